"""Did the process change while the log was recorded? Early against late episodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spibb.evaluate import returns
from spibb.log import Log
from spibb.sceptic.exchange import Exchange, exchange_test, some_episodes


@dataclass(frozen=True)
class Drift:
    """The mean return of the first and of the second half of the episodes, and of what they do.

    `returns_p` compares the returns of both halves, `dynamics` successors and rewards of the same
    pairs, `decisions_p` how often the actions of a state were taken: the policy that made the log
    may have changed. All three are permutation tests.
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
    early, late = (float(half.mean()) for half in _halves(returns(log, discount)))
    log = some_episodes(log, rng)
    late_episode = np.arange(log.n_episodes) >= log.n_episodes // 2
    alike = np.zeros(log.n_episodes, dtype=np.int64)
    earned = exchange_test(alike, alike, returns(log, discount), late_episode, rng)
    is_late = np.repeat(late_episode, np.diff(log.episode_starts))
    pair = log.state.astype(np.int64) * len(log.actions) + log.action
    known = log.known
    dynamics = exchange_test(
        pair[known], log.next_state[known], log.reward[known], is_late[known], rng
    )  # fmt: skip
    nothing = np.zeros(len(log))
    decisions = exchange_test(log.state.astype(np.int64), log.action, nothing, is_late, rng)
    return Drift(early, late, earned.rewards_p, dynamics, decisions.successors_p)


def _halves(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    half = len(values) // 2
    return values[:half], values[half:]
