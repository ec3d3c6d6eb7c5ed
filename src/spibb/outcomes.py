"""Outcomes: everything that can follow each pair (x, a), with its probability and its reward."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from spibb import checks
from spibb.arrays import PROBABILITY_ROUNDING, owners
from spibb.counts import END
from spibb.errors import InputError
from spibb.frozen import Frozen
from spibb.kernels import dense
from spibb.kernels.tuples import Rows
from spibb.words import apart

SUM_TOLERANCE = 1e-9
"""How far rounding may take a pair's probabilities from sum 1; they are divided by their sum."""


@dataclass(frozen=True, eq=False)
class Outcomes(Frozen):
    """What can happen after each pair: a successor or the end, and a reward.

    Those of pair p = x·A + a are the entries indptr[p] … indptr[p + 1] of `successors` (−1 = the
    process ends), `probs` and `rewards` [K], sorted by successor and then by reward. A pair may
    have several ends, and several rewards on the way to one successor; its probabilities sum to 1.
    `shape` is (S, A).
    """

    indptr: np.ndarray
    successors: np.ndarray
    probs: np.ndarray
    rewards: np.ndarray
    shape: tuple[int, int]

    def __post_init__(self) -> None:
        checks.sparse_rows(
            "the outcomes", self.indptr, self.shape[0] * self.shape[1], successors=self.successors,
            probs=self.probs, rewards=self.rewards,
        )  # fmt: skip
        checks.codes("successors of the outcomes", self.successors, self.shape[0], END)
        checks.finite(self.rewards, "rewards of the outcomes")
        checks.narrow(self)
        self.freeze()

    @classmethod
    def from_list(
        cls,
        pair: np.ndarray,
        successor: np.ndarray,
        prob: np.ndarray,
        reward: np.ndarray,
        shape: tuple[int, int],
    ) -> Outcomes:
        """Sort a list of outcomes that is in any order, and add up equal ones.

        Where a pair's probabilities sum to less than 1, the rest is an end that pays nothing.
        """
        total = np.bincount(pair, weights=prob, minlength=shape[0] * shape[1])
        check_sums(total, shape[1])
        whole = np.where(np.abs(total - 1) <= SUM_TOLERANCE, total, 1.0)
        short = np.flatnonzero(whole > total)
        none = np.zeros(len(short))
        pair = np.concatenate([pair, short])
        successor = np.concatenate([successor, np.full(len(short), END)])
        prob = np.concatenate([prob, 1 - total[short]]) / whole[pair]
        return cls._sorted(pair, successor, prob, np.concatenate([reward, none]), shape)

    @classmethod
    def _sorted(
        cls,
        pair: np.ndarray,
        successor: np.ndarray,
        prob: np.ndarray,
        reward: np.ndarray,
        shape: tuple[int, int],
    ) -> Outcomes:
        possible = np.flatnonzero(prob > 0)
        order = possible[np.lexsort((reward[possible], successor[possible], pair[possible]))]
        pair, successor, reward = pair[order], successor[order], reward[order]
        first = _first_of_equal(pair, successor, reward)
        return cls(
            indptr=_row_starts(pair[first], shape),
            successors=successor[first].astype(np.int32),
            probs=np.add.reduceat(prob[order], first),
            rewards=reward[first],
            shape=shape,
        )

    @classmethod
    def from_rows(
        cls, rows: Rows, going_on: np.ndarray, ending: np.ndarray, shape: tuple[int, int]
    ) -> Outcomes:
        """Outcomes of sparse rows, whose missing mass is the end.

        `going_on` [K] are the rewards on the way to each successor, `ending` [P] those of the ends.
        """
        indptr, successors, probs = rows
        left = dense.left_out(indptr, probs)
        ends = left > PROBABILITY_ROUNDING
        at = indptr[:-1][ends]
        return cls(
            indptr=indptr + np.concatenate([[0], np.cumsum(ends)]),
            successors=np.insert(successors, at, END),
            probs=np.insert(probs, at, left[ends]),
            rewards=np.insert(going_on, at, ending[ends]),
            shape=shape,
        )

    @cached_property
    def expected_rewards(self) -> np.ndarray:
        """R(x, a) = Σ p·r over the outcomes of the pair [S, A]."""
        sums = np.bincount(self._pair, self.probs * self.rewards, len(self.indptr) - 1)
        return sums.reshape(self.shape)

    @cached_property
    def rows(self) -> Rows:
        """P as sparse rows (indptr, successors, probabilities): rewards added up, ends left out."""
        stays = self.successors != END
        pair, successor = self._pair[stays], self.successors[stays]
        first = _first_of_equal(pair, successor)
        probs = np.add.reduceat(self.probs[stays], first) if len(first) else np.empty(0)
        return Rows(_row_starts(pair[first], self.shape), successor[first], probs)

    @cached_property
    def _pair(self) -> np.ndarray:
        return owners(self.indptr)


def _first_of_equal(*columns: np.ndarray) -> np.ndarray:
    """Where each run of equal entries begins."""
    new = np.ones(len(columns[0]), dtype=bool)
    new[1:] = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    return np.flatnonzero(new)


def _row_starts(pair: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    sizes = np.bincount(pair, minlength=shape[0] * shape[1])
    return np.concatenate([[0], np.cumsum(sizes)])


def check_sums(total: np.ndarray, n_actions: int) -> None:
    """Check that the probabilities of no pair sum to more than 1 [P]."""
    if (total > 1 + SUM_TOLERANCE).any():
        x, a = divmod(int(np.argmax(total)), n_actions)
        found, _ = apart(total.max(), 1)
        raise InputError(
            f"outcomes of state {x}, action {a} sum to {found}, expected at most 1: "
            "divide their probabilities by the sum"
        )
