"""From coded transitions to sorted outcome rows."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True)
def by_pair(pair: np.ndarray, n_pairs: int) -> tuple[np.ndarray, np.ndarray]:
    """Counting sort: where each pair's transitions start [P + 1], and their row numbers [N]."""
    starts = np.zeros(n_pairs + 1, dtype=np.int64)
    for j in range(len(pair)):
        starts[pair[j] + 1] += 1
    for p in range(n_pairs):
        starts[p + 1] += starts[p]
    order = np.empty(len(pair), dtype=np.int64)
    fill = starts[:-1].copy()
    for j in range(len(pair)):
        order[fill[pair[j]]] = j
        fill[pair[j]] += 1
    return starts, order


@njit(cache=True)
def outcomes(
    starts: np.ndarray, order: np.ndarray, successor: np.ndarray, reward: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Merge each pair's transitions by successor: indptr, successors, n, Σr, Σr²."""
    n_pairs = len(starts) - 1
    indptr = np.zeros(n_pairs + 1, dtype=np.int64)
    successors = np.empty(len(order), dtype=np.int32)
    n = np.zeros(len(order), dtype=np.int64)
    reward_sum = np.zeros(len(order))
    reward_sq = np.zeros(len(order))
    k = 0
    for p in range(n_pairs):
        rows = order[starts[p] : starts[p + 1]]
        if len(rows) > 1:
            rows = rows[np.argsort(successor[rows], kind="mergesort")]
        for j in rows:
            if k == indptr[p] or successors[k - 1] != successor[j]:
                successors[k] = successor[j]
                k += 1
            n[k - 1] += 1
            reward_sum[k - 1] += reward[j]
            reward_sq[k - 1] += reward[j] * reward[j]
        indptr[p + 1] = k
    return indptr, successors[:k].copy(), n[:k].copy(), reward_sum[:k].copy(), reward_sq[:k].copy()
