"""The certificate of changes that were tested on episodes that were not used to choose them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from typing import Any

from spibb.certificate import Bound, Certificate
from spibb.checks import some
from spibb.labels import Label
from spibb.words import at_least, counted, general, level

BOUND = "held-out tests"


@dataclass(frozen=True)
class Change:
    """What a test is about: in `state`, avoid some actions; the others keep their proportions."""

    state: Label
    avoided: tuple[Label, ...]

    def __str__(self) -> str:
        return f"in state {self.state!r} avoid {some(self.avoided, 3)}"


@dataclass(frozen=True)
class ChangeTest:
    """A change (or several that stand or fall together) and what the held-out episodes say of it.

    `p_value` is that of the test alone, `adjusted_p_value` may be compared with δ beside all the
    others. `advantage` is the estimated gain per visit of changing this state alone, what cut
    episodes lack counted at its worst, and `lower_bound` a lower limit of it. Two things hold, each
    with probability 1 − δ and so both with 1 − 2δ: no accepted change has a negative advantage; all
    limits of one certificate are right, except those that are 0 because the change was accepted.
    Where the baseline is not known, a limit is either that of the covariance, which is smaller, or,
    where that is negative, as far down as returns can differ. `visits` of `episodes` held-out
    episodes were counted. `more_episodes` is a rough number of further episodes that a rejected
    change needs to pass at even odds; None where chance alone would favour it as much as the
    episodes do, or where it is more than 100 times the log; 0 where it was accepted.

    >>> result = spibb.Certified(lowest_return=0, highest_return=1).improve(problem)
    >>> sum(test.accepted for test in result.tests)
    0
    """

    changes: tuple[Change, ...]
    accepted: bool
    p_value: float
    adjusted_p_value: float
    advantage: float
    lower_bound: float
    visits: int
    episodes: int
    more_episodes: int | None

    @property
    def lacks(self) -> str:
        """What a rejected change would need."""
        if self.accepted:
            return "nothing"
        if self.more_episodes is None:
            return "the episodes favour it no more than chance may"
        return f"about {counted(self.more_episodes, 'more episode')}"

    def __str__(self) -> str:
        what = str(self.changes[0])
        if len(self.changes) > 1:
            what = f"{what}; {counted(len(self.changes) - 1, 'more state')} in the same test"
        if not self.accepted:
            return f"{what}: not accepted (p = {self.adjusted_p_value:.2g}): {self.lacks}"
        return (
            f"{what}: accepted (p = {self.adjusted_p_value:.2g}), advantage "
            f"{general(self.advantage, 3)}, at least {at_least(self.lower_bound)}, "
            f"{self.visits:,} visits"
        )


def nearest(tests: Sequence[ChangeTest]) -> int | None:
    """Episodes that the nearest of the changes that failed needs, if any may pass."""
    return min((test.more_episodes for test in tests if test.more_episodes), default=None)


@dataclass(frozen=True)
class ChangeCertificate(Certificate):
    """Every change of the policy passed a test on episodes not used to choose it: ζ = 0.

    `tests` lists them and those that failed; `choosing` and `judging` are numbers of episodes;
    `cuts` says at what returns cut ones count, and is empty where none was cut. `first` is how many
    further episodes would let some change pass, where none did.

    **Guarantee.** With probability at least 1 − δ over logs that the baseline made,

        ρ(π, M*) ≥ ρ(π_b, M*),

    if no return leaves the limits that were declared. What the lower limits of the tests say holds
    with the same probability, and both together with 1 − 2δ (`ChangeTest`).

    >>> algorithm = spibb.Certified(lowest_return=0, highest_return=1)
    >>> certificate = algorithm.improve(problem).certificate()
    >>> len(certificate.accepted), certificate.refusal is None
    (0, False)
    """

    tests: tuple[ChangeTest, ...] = ()
    choosing: int = 0
    judging: int = 0
    cuts: str = ""
    first: int | None = None

    def _facts(self) -> Mapping[str, Any]:
        """Those of any certificate, and how many changes passed."""
        tests = {"changes_tested": len(self.tests), "accepted": len(self.accepted)}
        return {**super()._facts(), **tests}

    @property
    def accepted(self) -> tuple[ChangeTest, ...]:
        """The tests that were passed."""
        return tuple(test for test in self.tests if test.accepted)

    @property
    def more_episodes(self) -> int | None:
        """Further episodes that let the next change pass, or the first where none did."""
        return nearest(self.tests) if self.accepted or self.first is None else self.first

    def __str__(self) -> str:
        if self.refusal is not None:
            return f"No certificate: {self.refusal}."
        return (
            f"Certified: with probability at least {level(self.delta)} the new policy is no worse "
            f"than the baseline. {self._passed} on {self.judging:,} episodes that were not used to "
            f"choose {'it' if len(self.tests) == 1 else 'them'}. The lower limits of the "
            "advantages are a separate statement at the same level."
        )

    @property
    def _passed(self) -> str:
        """How many tests were passed, in words."""
        passed, tested = len(self.accepted), len(self.tests)
        if tested == 1:
            return "The one change tested passed"
        test = "its test" if passed == 1 else "their tests"
        return f"{passed} of {tested} changes passed {test}"


def certify_changes(
    tests: tuple[ChangeTest, ...],
    delta: float,
    reason: str,
    *,
    return_range: float,
    assumptions: tuple[str, ...],
    episodes: tuple[int, int],
    cuts: str = "",
    first: int | None = None,
) -> ChangeCertificate:
    """ζ = 0 at δ if some change was accepted and all accepted ones pass at δ; else the reason."""
    worst = max((t.adjusted_p_value for t in tests if t.accepted), default=math.inf)
    refusal = None if worst <= delta else reason
    if delta < worst < math.inf:
        refusal = (
            f"the changes were accepted at a larger failure probability than {delta:g}: improve "
            f"with delta={delta:g}, or ask for a certificate at {_rounded_up(worst)} or more"
        )
    bounds = () if refusal else (Bound(BOUND, 0.0, vacuous=False),)
    return ChangeCertificate(
        delta, math.nan, return_range, bounds, assumptions, refusal, tests, *episodes, cuts,
        first,
    )  # fmt: skip


def _rounded_up(delta: float) -> str:
    """A failure probability below 1 in few digits, and not below the given one."""
    for digits in range(2, 17):
        rounded = Context(prec=digits, rounding=ROUND_CEILING).create_decimal(Decimal(delta))
        if rounded < 1:
            return f"{float(rounded):.{digits}g}"
    return repr(delta)
