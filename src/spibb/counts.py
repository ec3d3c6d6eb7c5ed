"""Counts: what a log says about each pair (x, a), in the size of the problem, not of the log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from spibb import checks
from spibb.arrays import densify, owners
from spibb.binning import Bins
from spibb.checks import takes
from spibb.columns import NO_STATE, recode_successors
from spibb.errors import InputError
from spibb.frozen import Frozen
from spibb.kernels.tuples import Rows
from spibb.kernels.units import centre_and_unit
from spibb.labels import Vocabulary
from spibb.log import Log
from spibb.showing import Range

END = NO_STATE
"""The successor code of a termination."""
SMALLEST, LARGEST = 1e-140, 1e152
"""The squares of smaller rewards have fewer digits, or none; those of larger ones overflow."""
BRACKETS = (0, 1, 2, 5, 10, 20, 50, 100)
"""Lower ends of histograms of counts: never seen, once, 2–4 times, …"""
NARROWEST = 1e-10
"""Range of the rewards, relative to their size, below which rounding would decide."""
SAME = 1e-12
"""Variances of rewards below this, relative to the square of their range, are rounding."""
RESOLVED = 1e-6
"""Rounding of a variance, relative likewise, up to which none that matters can hide in it."""
EPSILON = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Counts(Frozen):
    """Sufficient statistics of a log: N_D(x, a, x'), terminations, and rewards per outcome.

    `count_log` and `Counts.from_log` make them. All arrays are read-only.

    Attributes:
        indptr: the outcomes of pair p = x·A + a are the entries indptr[p] … indptr[p + 1] of the
            arrays [K] below, sorted by successor [S·A + 1].
        successors: codes of the next states [K]; −1 where the process ended.
        n: how often each outcome occurred [K].
        reward_sum: Σ r of each outcome [K].
        reward_sq: Σ((r − c)/u)² of each outcome [K], c and u being `centre` and `unit` of the
            rewards' range, so that neither an offset of the rewards nor their scale costs digits.
        starts: how many episodes begin in each state [S].
        reward_range: the smallest and the largest reward of the log.
        states: the labels of the states.
        actions: the labels of the actions.
        bins: the intervals of the columns that were cut.
        one_per: columns of the unit, such as a user, of which only one row was counted.

    >>> counts = spibb.Counts.from_log(log)
    >>> counts.pairs.tolist()  # rows mild and severe, columns treat and wait
    [[1, 2], [2, 1]]
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
    one_per: tuple[str, ...] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        for name in ("indptr", "successors", "n", "starts"):
            self._set(name, checks.whole_array(f"{name} of the counts", getattr(self, name)))
        for name in ("reward_sum", "reward_sq"):
            self._set(name, checks.real_array(f"{name} of the counts", getattr(self, name)))
        self._check_arrays()
        checks.narrow(self)
        for name in ("n", "starts"):
            self._set(name, getattr(self, name).astype(np.int64, copy=False))
        self.freeze()
        if not np.isfinite(self.reward_sum).all():
            raise InputError("rewards add up to infinity: scale them down, by 1e-10 for example")

    def _set(self, name: str, value: np.ndarray) -> None:
        object.__setattr__(self, name, value)

    def _check_arrays(self) -> None:
        """Kernels do not check indices: all that they index must exist."""
        n_states, n_actions = self.shape
        checks.sparse_rows(
            "the counts", self.indptr, n_states * n_actions, successors=self.successors, n=self.n,
            reward_sum=self.reward_sum, reward_sq=self.reward_sq,
        )  # fmt: skip
        checks.codes("successors of the counts", self.successors, n_states, END)
        if self.starts.shape != (n_states,):
            raise InputError(
                f"starts of the counts has shape {self.starts.shape}, expected ({n_states},)"
            )
        if (self.n < 1).any() or (self.starts < 0).any():
            raise InputError("counts must be positive: leave out outcomes that never occurred")

    def _facts(self) -> Mapping[str, Any]:
        """Sizes, and the range of the rewards."""
        n_states, n_actions = self.shape
        return {
            "transitions": int(self.n.sum()), "episodes": int(self.starts.sum()),
            "states": n_states, "actions": n_actions,
            "pairs_seen": int((np.diff(self.indptr) > 0).sum()),
            "rewards": Range(*self.reward_range),
        }  # fmt: skip

    @property
    def one_step(self) -> bool:
        """Whether every episode is a single step that ends, as in the log of a bandit."""
        ends = bool((self.successors == END).all())
        return ends and int(self.n.sum()) == int(self.starts.sum()) > 0

    @classmethod
    @takes(log=Log)
    def from_log(cls, log: Log) -> Counts:
        """Count the transitions whose successor is known.

        Parameters:
            log: the log.

        >>> spibb.Counts.from_log(log).pairs.tolist()
        [[1, 2], [2, 1]]
        """
        known, n_states, n_actions = log.known, len(log.states), len(log.actions)
        extremes = float(log.reward.min()), float(log.reward.max())
        centre, unit = centre_and_unit(*extremes)
        pair = log.pair[known]
        keys = pair * (n_states + 1) + (log.next_state[known] + 1)  # sorted as outcomes are
        found, outcome = densify(keys, n_states * n_actions * (n_states + 1))
        pair, successor = np.divmod(found, n_states + 1)
        reward = log.reward[known]
        squares = np.square((reward - centre) / unit)
        return cls(
            _indptr(pair, n_states * n_actions), (successor - 1).astype(np.int32),
            np.bincount(outcome, minlength=len(found)),
            np.bincount(outcome, reward, len(found)), np.bincount(outcome, squares, len(found)),
            np.bincount(log.state[log.episode_starts[:-1]], minlength=n_states), extremes,
            log.states, log.actions, bins=log.bins, one_per=log.one_per,
        )  # fmt: skip

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
        one_per: tuple[str, ...] = (),
    ) -> Counts:
        """Counts of outcomes in any order: their pairs x·A + a, successors, and N, Σr,
        Σ((r − c)/u)² [K, 3].

        u and c are those of `reward_range`. Outcomes that occur several times are added up.
        """
        order = np.lexsort((successor, pair))
        pair, successor, sums = pair[order], successor[order], sums[order]
        new = np.ones(len(pair), dtype=bool)
        new[1:] = (np.diff(pair) != 0) | (np.diff(successor) != 0)
        first = np.flatnonzero(new)
        totals = np.add.reduceat(sums, first) if len(first) else sums
        indptr = _indptr(pair[first], len(states) * len(actions))
        n, reward_sum, reward_sq = (np.ascontiguousarray(column) for column in totals.T)
        return cls(indptr, successor[first].astype(np.int32), n.astype(np.int64), reward_sum,
                   reward_sq, starts, reward_range, states, actions, bins=bins,
                   one_per=one_per)  # fmt: skip

    @takes(states=Vocabulary, actions=Vocabulary)
    def with_labels(self, states: Vocabulary, actions: Vocabulary) -> Counts:
        """The same counts with codes into vocabularies that hold all of their labels.

        Parameters:
            states: labels of the states.
            actions: labels of the actions.

        >>> counts = spibb.Counts.from_log(log)
        >>> wider = spibb.Vocabulary(["healed", "mild", "severe"])
        >>> counts.with_labels(wider, counts.actions).pairs.tolist()
        [[0, 0], [1, 2], [2, 1]]
        """
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
            bins=self.bins, one_per=self.one_per,
        )  # fmt: skip

    def in_units(self, unit: float) -> Counts:
        """These counts with rewards divided by a power of two; their squares must be numbers."""
        low, high = self.reward_range
        largest = max(abs(low), abs(high))
        if largest > LARGEST or 0 < largest < SMALLEST:
            raise InputError(
                f"rewards of up to {largest:g} in absolute value have squares outside the range of "
                "numbers: multiply or divide all rewards by a constant"
            )
        if 0 < high - low < NARROWEST * largest:
            raise InputError(
                f"rewards are {largest:g} in size but differ by {high - low:.3g} at most, less "
                f"than {NARROWEST:g} of that: subtract a constant, or round rewards that are equal"
            )
        return replace(
            self, reward_sum=self.reward_sum / unit, reward_range=(low / unit, high / unit)
        )

    @property
    def shape(self) -> tuple[int, int]:
        """(S, A)."""
        return len(self.states), len(self.actions)

    @cached_property
    def centre(self) -> float:
        """The middle of the range of rewards."""
        return centre_and_unit(*self.reward_range)[0]

    @cached_property
    def unit(self) -> float:
        """A power of two, about as large as rewards are far from `centre`."""
        return centre_and_unit(*self.reward_range)[1]

    @cached_property
    def reward_scatter(self) -> np.ndarray:
        """Σ((r − r̄)/u)² of each outcome about its own mean [K]; 0 where that is rounding.

        Where rewards are so large beside their differences that rounding could hide a variance,
        it is taken at the largest that rounding can hide.
        """
        mean = (self.reward_sum / self.n - self.centre) / self.unit
        scatter = self.reward_sq - self.n * mean**2
        largest = max(map(abs, self.reward_range))
        rounding = 4 * EPSILON * np.sqrt(self.n) * (1 + largest / self.unit)
        hidden = np.where((self.n > 1) & (rounding > RESOLVED), self.n * rounding, 0.0)
        told = scatter > self.n * (SAME + rounding)
        return np.where(told, scatter, np.minimum(hidden, self.reward_sq))

    @cached_property
    def two_valued(self) -> bool:
        """Whether all rewards are the lowest or the highest one: Σ (r − low)(r − high) = 0."""
        low, high = self.reward_range
        extreme = (high / 2 - low / 2) / self.unit
        rounding = 16 * EPSILON * (1 + max(abs(low), abs(high)) / self.unit)
        apart = np.abs(self.reward_sq - self.n * extreme**2)
        return bool((apart <= self.n * (SAME + rounding)).all())

    @cached_property
    def pairs(self) -> np.ndarray:
        """N_D(x, a) [S, A]: how often each pair was seen."""
        return self._estimates[0]

    @cached_property
    def mean_reward(self) -> np.ndarray:
        """R̂(x, a) [S, A], 0 where the pair was never seen."""
        return self._estimates[1]

    @cached_property
    def transitions(self) -> Rows:
        """P̂ as sparse rows (indptr, successors, probabilities), ends left out."""
        return self._estimates[2]

    @cached_property
    def _estimates(self) -> tuple[np.ndarray, np.ndarray, Rows]:
        """N, R̂ and P̂; see `kernels.counting.frequencies`, the same for compiled studies."""
        owner, stays = self.pair_of_outcome, self.successors != END
        size = len(self.indptr) - 1
        visits = np.diff(np.concatenate([[0], np.cumsum(self.n)])[self.indptr])
        mean = np.bincount(owner, self.reward_sum, size) / np.maximum(visits, 1)
        rows = Rows(
            _indptr(owner[stays], size), self.successors[stays],
            self.n[stays] / visits[owner[stays]],
        )  # fmt: skip
        pairs, mean = visits.reshape(self.shape), mean.reshape(self.shape)
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
        return owners(self.indptr)


def _indptr(pair: np.ndarray, n_pairs: int) -> np.ndarray:
    """Where the entries of each pair start [P + 1], given the sorted pairs of the entries [K]."""
    return np.concatenate([[0], np.cumsum(np.bincount(pair, minlength=n_pairs))])
