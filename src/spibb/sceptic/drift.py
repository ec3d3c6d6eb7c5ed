"""Did the process change while the log was recorded? Early against late episodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from spibb.episodes.propensities import varies
from spibb.evaluate import returns
from spibb.frozen import Frozen
from spibb.log import Log
from spibb.sceptic import echoes
from spibb.sceptic.echoes import echo_p
from spibb.sceptic.exchange import SUSPICIOUS, Exchange, exchange_test, in_time

CYCLES = (20, 5)
"""Lengths of the groups of consecutive episodes that may be seasons, beside both halves."""


@dataclass(frozen=True)
class Drift:
    """The mean return of the first and of the second half of the episodes, and of what they do.

    `returns_p` compares the returns of both halves, `dynamics` successors and rewards of the same
    pairs, `decisions_p` how often the actions of a state were taken: the policy that made the log
    may have changed. All three are permutation tests. Where the log records probabilities that vary
    within a state, it says itself that the decisions changed, and how; that, and the returns that
    come with it, are then not asked (None).
    """

    early: float
    late: float
    returns_p: float | None
    dynamics: Exchange
    decisions_p: float | None

    @property
    def causes(self) -> dict[str, float]:
        """What was compared, in words, with its p-value."""
        asked = {
            "returns": self.returns_p, "what follows the same decision": self.dynamics.p_value,
            "how often actions are taken": self.decisions_p,
        }  # fmt: skip
        return {what: p for what, p in asked.items() if p is not None}

    @property
    def p_value(self) -> float:
        """Of all together."""
        return min(1.0, self.corrected(min(self.causes.values())))

    def corrected(self, p: float) -> float:
        """The p-value of one of the questions, for as many as were asked."""
        return len(self.causes) * p


@dataclass(frozen=True)
class Season:
    """Whether time can pass for a difference between actions: only if both changed with it.

    Of groups of `length` consecutive episodes (1: of episodes and those before them), `decisions_p`
    compares how often the actions of a state were taken, and `outcomes_p` what followed the same
    decisions; 0 where it was not asked because the decisions did not change. An action that was
    taken more often in good times looks good. `asked` is the number of lengths that were tried.
    """

    decisions_p: float
    outcomes_p: float
    length: int
    asked: int = 1

    @property
    def p_value(self) -> float:
        """Of "one of the two stayed the same": the larger one, corrected for the lengths tried."""
        return min(1.0, self.asked * max(self.decisions_p, self.outcomes_p))


def season_check(log: Log, rng: np.random.Generator) -> Season | None:
    """Did decisions and outcomes both change with time? None for a single episode.

    Asked of both halves, of groups of 20 and of 5 consecutive episodes, and of whether episodes
    resemble those before them: shifts, weekdays, and rows of one user that stand together.
    """
    if log.n_episodes < 2:
        return None
    log = in_time(log, rng)
    halves = -(-log.n_episodes // 2)
    groups = [_InTime.of(log, n) for n in (halves, *(n for n in CYCLES if n < halves))]
    asked = len(groups) + 1
    found = [
        _season(asked, group.length, partial(group.decisions, rng), partial(_outcomes, group, rng))
        for group in groups
    ]
    echo = [
        partial(echo_p, echoes.per_episode(log, values), rng)
        for values in (echoes.decisions(log), echoes.outcomes(log)[:, None])
    ]
    found.append(_season(asked, 1, *echo))
    clear = [season for season in found if season.p_value < SUSPICIOUS]  # the slowest change first
    return clear[0] if clear else min(found, key=lambda season: season.p_value)


def _season(
    asked: int, length: int, decisions: Callable[[], float], outcomes: Callable[[], float]
) -> Season:
    """Outcomes are asked for where the decisions changed."""
    p = decisions()
    return Season(p, outcomes() if asked * p < SUSPICIOUS else 0.0, length, asked)


def _outcomes(groups: _InTime, rng: np.random.Generator) -> float:
    return groups.outcomes(rng).p_value


def drift_check(log: Log, discount: float, rng: np.random.Generator) -> Drift | None:
    """Compare both halves of a log; None for a single episode, and where no order is known."""
    if log.n_episodes < 2 or log.untimed:
        return None
    earned, late = returns(log, discount), _InTime.halves(log).group == 1
    halves = _InTime.halves(in_time(log, rng))
    told = varies(log) is not None
    return Drift(
        float(earned[~late].mean()), float(earned[late].mean()),
        None if told else halves.returns(discount, rng), halves.outcomes(rng),
        None if told else halves.decisions(rng),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _InTime(Frozen):
    """A log, and the group [E] of consecutive episodes, `length` of them, that each belongs to."""

    log: Log
    length: int
    group: np.ndarray

    @classmethod
    def of(cls, log: Log, length: int) -> _InTime:
        return cls(log, length, np.arange(log.n_episodes) // length)

    @classmethod
    def halves(cls, log: Log) -> _InTime:
        return cls.of(log, -(-log.n_episodes // 2))

    @property
    def of_rows(self) -> np.ndarray:
        """The group of each row [N]."""
        return np.repeat(self.group, self.log.lengths)

    def returns(self, discount: float, rng: np.random.Generator) -> float:
        """The p-value of equal returns."""
        alike = np.zeros(self.log.n_episodes, dtype=np.int64)
        return exchange_test(alike, alike, returns(self.log, discount), self.group, rng).rewards_p

    def outcomes(self, rng: np.random.Generator) -> Exchange:
        """The test of equal successors and rewards after the same decision."""
        log, known = self.log, self.log.known
        return exchange_test(
            log.pair[known], log.next_state[known], log.reward[known], self.of_rows[known], rng
        )

    def decisions(self, rng: np.random.Generator) -> float:
        """The p-value of equal shares of the actions of each state."""
        log, nothing = self.log, np.zeros(len(self.log))
        state = log.state.astype(np.int64)
        return exchange_test(state, log.action, nothing, self.of_rows, rng).successors_p
