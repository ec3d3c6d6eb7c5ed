"""What `certified` returns: the policy, the tests of its changes, and what they rest on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from spibb import checks
from spibb.algorithms.improvement import Improvement
from spibb.algorithms.problem import Problem
from spibb.change_certificate import ChangeCertificate, ChangeTest, certify_changes
from spibb.episodes.limits import discounted_steps
from spibb.episodes.visits import Declared, ReturnBounds
from spibb.words import counted, roughly, short


@dataclass(frozen=True)
class Grounds:
    """What a certificate rests on: the limits of returns, and what is known of the baseline.

    `recorded` says that the log has its probabilities, `by_row` that these vary within a state,
    `guessed` that it has actions that the log never takes. `cut` says that values of cut episodes
    were limited, and `cuts_count` how they count.
    """

    bounds: ReturnBounds
    declared: Declared
    known: bool
    recorded: bool
    by_row: bool
    cut: bool
    guessed: bool
    cuts_count: str

    @property
    def assumptions(self) -> tuple[str, ...]:
        """They complete "It assumes that …"."""
        low, high = short(self.bounds.low + 0.0), short(self.bounds.high + 0.0)
        return (
            self._made,
            "episodes are independent, and one unchanging process made them",
            "every episode has one step, as in the log"
            if self.declared.horizon == 1
            else "the process is Markov in the states given",
            f"every return lies in [{low}, {high}] ({self.bounds.source})",
            *(("no record was cut because of what would have followed",) if self.cut else ()),
        )

    @property
    def _made(self) -> str:
        """Which policy made the log."""
        if not self.known:
            return (
                "one policy made the log; it is not known, and the certificate is about avoiding "
                "the listed actions while that policy decides the rest: the other probabilities of "
                "the policy file are estimates of it"
            )
        source = "as the log records it" if self.recorded else "as given"
        if self.by_row:
            source += (
                ", row by row; it continues in the states that do not change, where the policy "
                "file shows its average"
            )
        elif self.guessed:
            source += (
                "; it continues in the states that do not change, where the policy file guesses "
                "the probabilities of actions never taken"
            )
        return f"the baseline made the log, {source}"


@dataclass(frozen=True, eq=False)
class CertifiedImprovement(Improvement):
    """The policy, the tests of its changes and of those that failed, and the reason in words.

    `iterations` counts the tests; `episodes` those that chose and those that judged. `first` is a
    number of further episodes that would let some change pass, where none did.

    >>> result = spibb.Certified(lowest_return=0, highest_return=1).improve(problem)
    >>> result.episodes, result.tests
    ((1, 2), ())
    """

    tests: tuple[ChangeTest, ...]
    reason: str = field(kw_only=True)
    first: int | None = field(kw_only=True, default=None)
    grounds: Grounds | None
    episodes: tuple[int, int]

    @property
    def return_limits(self) -> tuple[float, float] | None:
        """The declared limits of returns from any step on."""
        return None if self.grounds is None else (self.grounds.bounds.low, self.grounds.bounds.high)

    @property
    def estimate_limits(self) -> tuple[float, float] | None:
        """The estimators take a lowest return L to say that no reward is below (1 − γ)·L.

        Where a lower reward is declared, over few steps, L is what that reward would add up to for
        ever.
        """
        if self.grounds is None:
            return None
        bounds, reward = self.grounds.bounds, self.grounds.declared.lowest_reward
        endless = math.inf if reward is None else reward * discounted_steps(self.problem.discount)
        return (min(bounds.low, endless) if endless < 0 else bounds.low), bounds.high

    def certificate(self, delta: float | None = None) -> ChangeCertificate:
        """The tested changes; refused at a δ that they do not pass, and where the verdict
        withdraws it, as one on a log that contradicts the baseline."""
        found = self.tested(delta)
        return found if found.refusal else self.verdict.leaves(found)

    def tested(self, delta: float | None = None) -> ChangeCertificate:
        """What the tests alone prove; whether their assumptions hold, the verdict asks."""
        asked = self.algorithm.delta if delta is None else checks.delta(delta)  # type: ignore[attr-defined]
        grounds = self.grounds
        return certify_changes(
            self.tests, asked, self.reason,
            return_range=math.nan if grounds is None else grounds.bounds.span,
            assumptions=() if grounds is None else grounds.assumptions,
            episodes=self.episodes, cuts="" if grounds is None else grounds.cuts_count,
            first=self.first,
        )  # fmt: skip


def reason_for(problem: Problem, tests: Sequence[ChangeTest], more: int | None) -> str:
    """What happened, in one line; with `more` episodes some change would pass at even odds."""
    if not tests and (problem.available.sum(axis=1) < 2).all():
        return "every state has one action only: there is nothing to choose"
    passed = sum(test.accepted for test in tests)
    if passed:
        return f"{passed} of {counted(len(tests), 'change')} passed"
    failed = f"none of the {len(tests)} changes tested passed"
    if len(tests) == 1:
        failed = "the one change tested did not pass"
    if not tests:
        failed = "no change has enough evidence among the choosing episodes to be worth a test"
    return (
        failed if more is None else f"{failed}; the first needs about {roughly(more)} more episodes"
    )
