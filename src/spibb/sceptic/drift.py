"""Did the process change while the log was recorded? Early against late episodes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from spibb.evaluate import mean_of, returns
from spibb.log import Log
from spibb.sceptic.exchange import Exchange, exchange_test, some_episodes


@dataclass(frozen=True)
class Drift:
    """The mean return of the first and of the second half of the episodes, and of what they do.

    `returns_p` is that of a two-sided test of equal means (normal approximation), `dynamics` the
    comparison of successors and rewards of the same pairs. `decisions_p` compares how often the
    actions of a state were taken: the policy that made the log may have changed.
    """

    early: float
    late: float
    returns_p: float
    dynamics: Exchange
    decisions_p: float

    @property
    def p_value(self) -> float:
        """Of all three together."""
        return min(1.0, 3 * min(self.returns_p, self.dynamics.p_value, self.decisions_p))


def drift_check(log: Log, discount: float, rng: np.random.Generator) -> Drift | None:
    """Compare both halves of a log, in the order of its episodes; None for a single episode."""
    if log.n_episodes < 2:
        return None
    found = returns(log, discount)
    half = log.n_episodes // 2
    early, late = mean_of(found[:half]), mean_of(found[half:])
    error = math.hypot(early.standard_error, late.standard_error)
    gap = abs(early.value - late.value)
    p = math.erfc(gap / error / math.sqrt(2)) if error > 0 else float(gap == 0)
    log = some_episodes(log, rng)
    lengths = np.diff(log.episode_starts)
    is_late = np.repeat(np.arange(log.n_episodes) >= log.n_episodes // 2, lengths)
    pair = log.state.astype(np.int64) * len(log.actions) + log.action
    known = log.known
    dynamics = exchange_test(
        pair[known], log.next_state[known], log.reward[known], is_late[known], rng
    )  # fmt: skip
    nothing = np.zeros(len(log))
    decisions = exchange_test(log.state.astype(np.int64), log.action, nothing, is_late, rng)
    return Drift(early.value, late.value, p, dynamics, decisions.successors_p)
