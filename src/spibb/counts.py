"""Counts: what a log says about each pair (x, a), in the size of the problem, not of the log."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from spibb.kernels import counting
from spibb.labels import Vocabulary
from spibb.log import Log

SparseRows = tuple[np.ndarray, np.ndarray, np.ndarray]
END = -1
"""The successor code of a termination."""


@dataclass(frozen=True, eq=False)
class Counts:
    """Sufficient statistics of a log: N_D(x, a, x'), terminations, and rewards per outcome.

    The outcomes of pair p = x·A + a are the entries indptr[p] … indptr[p + 1] of `successors`
    (−1 = terminated), `n`, `reward_sum` and `reward_sq` [K], sorted by successor. `starts` [S]
    counts the episodes that begin in each state; `reward_range` holds the smallest and the largest
    reward of the log.
    """

    indptr: np.ndarray
    successors: np.ndarray
    n: np.ndarray
    reward_sum: np.ndarray
    reward_sq: np.ndarray
    starts: np.ndarray
    reward_range: tuple[float, float]
    states: Vocabulary
    actions: Vocabulary

    @classmethod
    def from_log(cls, log: Log) -> Counts:
        """Count the transitions whose successor is known."""
        known = log.known
        n_states, n_actions = len(log.states), len(log.actions)
        pair = log.state[known].astype(np.int64) * n_actions + log.action[known]
        starts, order = counting.by_pair(pair, n_states * n_actions)
        rows = counting.outcomes(starts, order, log.next_state[known], log.reward[known])
        first = log.state[log.episode_starts[:-1]]
        begun = np.bincount(first, minlength=n_states)
        extremes = float(log.reward.min()), float(log.reward.max())
        return cls(*rows, begun, extremes, log.states, log.actions)

    @property
    def shape(self) -> tuple[int, int]:
        """(S, A)."""
        return len(self.states), len(self.actions)

    @cached_property
    def pairs(self) -> np.ndarray:
        """N_D(x, a) [S, A]: how often each pair was seen."""
        return self._estimates[0]

    @cached_property
    def mean_reward(self) -> np.ndarray:
        """R̂(x, a) [S, A], 0 where the pair was never seen."""
        return self._estimates[1]

    @cached_property
    def transitions(self) -> SparseRows:
        """P̂ as sparse rows (indptr, successors, probabilities), ends left out."""
        return self._estimates[2]

    @cached_property
    def _estimates(self) -> tuple[np.ndarray, np.ndarray, SparseRows]:
        """N, R̂ and P̂, in one pass over the outcomes."""
        pairs, mean = np.empty(self.shape, dtype=np.int64), np.empty(self.shape)
        rows = counting.frequencies(
            self.indptr, self.successors, self.n, self.reward_sum, pairs.reshape(-1),
            mean.reshape(-1),
        )  # fmt: skip
        pairs.flags.writeable = mean.flags.writeable = False
        return pairs, mean, rows

    @cached_property
    def terminations(self) -> np.ndarray:
        """How often each pair ended the process [S, A]."""
        ends = np.where(self.successors == END, self.n, 0)
        sums = np.bincount(self.pair_of_outcome, weights=ends, minlength=len(self.indptr) - 1)
        return sums.astype(np.int64).reshape(self.shape)

    @cached_property
    def pair_of_outcome(self) -> np.ndarray:
        """The pair p = x·A + a that each outcome belongs to [K]."""
        return np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr))
