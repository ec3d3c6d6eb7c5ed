"""From coded transitions to sorted outcome rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from spibb.kernels import units
from spibb.kernels.tuples import Model, Rows


class CountedOutcomes(NamedTuple):
    """Outcome rows: pair p has the entries indptr[p] … indptr[p + 1] − 1 of successors, n, Σr and
    Σ((r − c)/u)² [K]; c and u are those of the rewards from `low` to `high`."""

    indptr: np.ndarray
    successors: np.ndarray
    n: np.ndarray
    reward_sum: np.ndarray
    reward_sq: np.ndarray
    low: float
    high: float


centre_and_unit = njit(cache=True)(units.centre_and_unit)


@njit(cache=True)
def outcomes_of_codes(visits: np.ndarray, codebook, n_pairs: int):
    """The outcome rows of codes that occur.

    `visits` [C] counts each outcome code, and the codebook says what it is. Codes are sorted by
    pair and successor; those that differ in their reward only are added up. Returns the fields of
    `CountedOutcomes`.
    """
    pair, successor, reward = codebook.pair, codebook.successor, codebook.reward
    indptr = np.zeros(n_pairs + 1, dtype=np.int64)
    size, low, high = 0, np.inf, -np.inf
    for c in range(len(visits)):
        if visits[c] > 0:
            size += 1
            low, high = min(low, reward[c]), max(high, reward[c])
    centre, unit = centre_and_unit(low, high)
    successors, n = np.empty(size, dtype=np.int32), np.zeros(size, dtype=np.int64)
    reward_sum, reward_sq = np.zeros(size), np.zeros(size)
    k, last = -1, -1
    for c in range(len(visits)):
        if visits[c] > 0:
            if last < 0 or pair[c] != pair[last] or successor[c] != successor[last]:
                k += 1
                indptr[pair[c] + 1] += 1
                successors[k] = successor[c]
            n[k] += visits[c]
            reward_sum[k] += visits[c] * reward[c]
            reward_sq[k] += visits[c] * ((reward[c] - centre) / unit) ** 2
            last = c
    for p in range(n_pairs):
        indptr[p + 1] += indptr[p]
    size = k + 1
    return indptr, successors[:size], n[:size], reward_sum[:size], reward_sq[:size], low, high


@njit(cache=True)
def estimate(visits: np.ndarray, codebook, shape, discount: float):
    """M̂, and the smallest and the largest reward, of outcome codes that occur `visits` [C]."""
    n_pairs = shape[0] * shape[1]
    counted = CountedOutcomes(*outcomes_of_codes(visits, codebook, n_pairs))
    total, mean = np.empty(n_pairs, dtype=np.int64), np.empty(n_pairs)
    rows = frequencies(counted, total, mean)
    model = Model(total.reshape(shape), mean.reshape(shape), rows, discount)
    return model, counted.low, counted.high


@njit(cache=True)
def with_unseen(model, unseen: float, out: np.ndarray):
    """R̂ into `out` [S, A], and `unseen` where the log has nothing."""
    for s in range(len(out)):
        for a in range(out.shape[1]):
            out[s, a] = model.rewards[s, a] if model.counts[s, a] > 0 else unseen


@njit(cache=True)
def frequencies(counted, total: np.ndarray, mean: np.ndarray):
    """P̂ of outcome rows, ends left out; fills `total` [P] with N(x, a) and `mean` [P] with R̂.

    `Counts` has the same in NumPy, because the first `spibb improve` must not wait for a compiler;
    `tests/kernels/test_small_kernels.py` compares them.
    """
    indptr, successors, n = counted.indptr, counted.successors, counted.n
    reward_sum = counted.reward_sum
    n_pairs = len(indptr) - 1
    stay_indptr = np.zeros(n_pairs + 1, dtype=np.int64)
    stay = np.empty(len(successors), dtype=np.int32)
    probs = np.empty(len(successors))
    i = 0
    for p in range(n_pairs):
        count, reward = 0, 0.0
        for k in range(indptr[p], indptr[p + 1]):
            count += n[k]
            reward += reward_sum[k]
        total[p] = count
        mean[p] = reward / count if count > 0 else 0.0
        for k in range(indptr[p], indptr[p + 1]):
            if successors[k] >= 0:
                stay[i] = successors[k]
                probs[i] = n[k] / count
                i += 1
        stay_indptr[p + 1] = i
    return Rows(stay_indptr, stay[:i].copy(), probs[:i].copy())
