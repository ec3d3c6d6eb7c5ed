"""Counts: what a log says about each pair (x, a), in the size of the problem, not of the log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from spibb.binning import Bins
from spibb.checks import InputError, takes
from spibb.columns import NO_STATE, recode_successors
from spibb.frozen import Frozen
from spibb.kernels import counting
from spibb.labels import Vocabulary
from spibb.log import Log

SparseRows = tuple[np.ndarray, np.ndarray, np.ndarray]
END = NO_STATE
"""The successor code of a termination."""
SMALLEST = 1e-140
"""The square of a smaller reward has fewer digits, or none."""


@dataclass(frozen=True, eq=False)
class Counts(Frozen):
    """Sufficient statistics of a log: N_D(x, a, x'), terminations, and rewards per outcome.

    The outcomes of pair p = x·A + a are the entries indptr[p] … indptr[p + 1] of `successors`
    (−1 = terminated), `n`, `reward_sum` and `reward_sq` [K], sorted by successor. `starts` [S]
    counts the episodes that begin in each state; `reward_range` holds the smallest and the largest
    reward of the log, `bins` the intervals of the columns that were cut.
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
    bins: Mapping[str, Bins] = field(default_factory=dict, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not np.isfinite(self.reward_sum).all():
            raise InputError("rewards add up to infinity: scale them down, by 1e-10 for example")

    @classmethod
    @takes(log=Log)
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
        return cls(*rows, begun, extremes, log.states, log.actions, bins=log.bins)

    @classmethod
    def from_outcomes(
        cls,
        pair: np.ndarray,
        successor: np.ndarray,
        sums: np.ndarray,
        *,
        starts: np.ndarray,
        reward_range: tuple[float, float],
        states: Vocabulary,
        actions: Vocabulary,
        bins: Mapping[str, Bins],
    ) -> Counts:
        """Counts of outcomes in any order: their pairs x·A + a, successors, and N, Σr, Σr² [K, 3].

        Outcomes that occur several times are added up.
        """
        order = np.lexsort((successor, pair))
        pair, successor, sums = pair[order], successor[order], sums[order]
        new = np.ones(len(pair), dtype=bool)
        new[1:] = (np.diff(pair) != 0) | (np.diff(successor) != 0)
        first = np.flatnonzero(new)
        totals = np.add.reduceat(sums, first) if len(first) else sums
        indptr = np.zeros(len(states) * len(actions) + 1, dtype=np.int64)
        np.cumsum(np.bincount(pair[first], minlength=len(indptr) - 1), out=indptr[1:])
        n, reward_sum, reward_sq = (np.ascontiguousarray(column) for column in totals.T)
        return cls(indptr, successor[first].astype(np.int32), n.astype(np.int64), reward_sum,
                   reward_sq, starts, reward_range, states, actions, bins=bins)  # fmt: skip

    def with_labels(self, states: Vocabulary, actions: Vocabulary) -> Counts:
        """The same counts with codes into larger vocabularies."""
        if states == self.states and actions == self.actions:
            return self
        rows, columns = self.states.codes_in(states), self.actions.codes_in(actions)
        state, action = np.divmod(self.pair_of_outcome, len(self.actions))
        starts = np.zeros(len(states), dtype=np.int64)
        starts[rows] = self.starts
        return Counts.from_outcomes(
            rows[state].astype(np.int64) * len(actions) + columns[action],
            recode_successors(self.successors, rows),
            np.column_stack([self.n, self.reward_sum, self.reward_sq]),
            starts=starts, reward_range=self.reward_range, states=states, actions=actions,
            bins=self.bins,
        )  # fmt: skip

    def in_units(self, unit: float) -> Counts:
        """The same counts of rewards divided by `unit`; their squares must have been numbers."""
        low, high = self.reward_range
        largest = max(abs(low), abs(high))
        if not np.isfinite(self.reward_sq).all() or 0 < largest < SMALLEST:
            raise InputError(
                f"rewards of up to {largest:g} in absolute value have squares outside the range of "
                "numbers: multiply or divide all rewards by a constant"
            )
        return replace(
            self, reward_sum=self.reward_sum / unit, reward_sq=self.reward_sq / unit / unit,
            reward_range=(low / unit, high / unit),
        )  # fmt: skip

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
