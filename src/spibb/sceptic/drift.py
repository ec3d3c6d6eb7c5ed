"""Did the process change while the log was recorded? Early against late episodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spibb.episodes.propensities import varies
from spibb.evaluate import returns
from spibb.frozen import Frozen
from spibb.log import Log
from spibb.sceptic.exchange import SUSPICIOUS, Exchange, exchange_test, some_episodes


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

    `decisions_p` compares how often the actions of a state were taken in the first and in the
    second half of the episodes, `outcomes_p` what followed the same decisions; 0 where it was not
    asked because the decisions did not change. An action that was taken more often in good times
    looks good.
    """

    decisions_p: float
    outcomes_p: float

    @property
    def p_value(self) -> float:
        """Of "one of the two stayed the same": the larger one."""
        return max(self.decisions_p, self.outcomes_p)


def season_check(log: Log, rng: np.random.Generator) -> Season | None:
    """Did decisions and outcomes both change between the halves? None for a single episode."""
    if log.n_episodes < 2:
        return None
    halves = _Halves.of(some_episodes(log, rng))
    decisions = halves.decisions(rng)
    changed = decisions < SUSPICIOUS
    return Season(decisions, halves.outcomes(rng).p_value if changed else 0.0)


def drift_check(log: Log, discount: float, rng: np.random.Generator) -> Drift | None:
    """Compare both halves of a log, in the order of its episodes; None for a single episode."""
    if log.n_episodes < 2:
        return None
    earned, late = returns(log, discount), _Halves.of(log).late
    halves = _Halves.of(some_episodes(log, rng))
    told = varies(log) is not None
    return Drift(
        float(earned[~late].mean()), float(earned[late].mean()),
        None if told else halves.returns(discount, rng), halves.outcomes(rng),
        None if told else halves.decisions(rng),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Halves(Frozen):
    """A log, and which of its episodes [E] are of the second half."""

    log: Log
    late: np.ndarray

    @classmethod
    def of(cls, log: Log) -> _Halves:
        return cls(log, np.arange(log.n_episodes) >= log.n_episodes // 2)

    @property
    def late_rows(self) -> np.ndarray:
        """The same for rows [N]."""
        return np.repeat(self.late, np.diff(self.log.episode_starts))

    def returns(self, discount: float, rng: np.random.Generator) -> float:
        """The p-value of equal returns."""
        alike = np.zeros(self.log.n_episodes, dtype=np.int64)
        return exchange_test(alike, alike, returns(self.log, discount), self.late, rng).rewards_p

    def outcomes(self, rng: np.random.Generator) -> Exchange:
        """The test of equal successors and rewards after the same decision."""
        log, known = self.log, self.log.known
        pair = log.state.astype(np.int64) * len(log.actions) + log.action
        return exchange_test(
            pair[known], log.next_state[known], log.reward[known], self.late_rows[known], rng
        )

    def decisions(self, rng: np.random.Generator) -> float:
        """The p-value of equal shares of the actions of each state."""
        log, nothing = self.log, np.zeros(len(self.log))
        state = log.state.astype(np.int64)
        return exchange_test(state, log.action, nothing, self.late_rows, rng).successors_p
