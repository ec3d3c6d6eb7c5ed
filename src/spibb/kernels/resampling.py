"""Tail means: their bootstrap, and their moments in one pass."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit


@njit(cache=True)
def tail_means(ordered: np.ndarray, sizes: np.ndarray, rng, n_resamples: int) -> np.ndarray:
    """Means of the lowest `sizes` [T] values in resamples of sorted values [n]: [B, T].

    A resample of n values with replacement is kept as how often each value occurs, so that its
    lowest k are found by walking up the sorted values.
    """
    n = len(ordered)
    times = np.empty(n, dtype=np.int64)
    out = np.empty((n_resamples, len(sizes)))
    for b in range(n_resamples):
        times[:] = 0
        for _ in range(n):
            times[int(rng.random() * n)] += 1
        for t in range(len(sizes)):
            left, total, i = sizes[t], 0.0, 0
            while left > 0:
                take = min(left, times[i])
                total += take * ordered[i]
                left -= take
                i += 1
            out[b, t] = total / sizes[t]
    return out


class Heads(NamedTuple):
    """Mean, Σ(x − mean)² and last value of the lowest values, each [T]."""

    mean: np.ndarray
    squares: np.ndarray
    last: np.ndarray


@njit(cache=True)
def head_moments(ordered: np.ndarray, sizes: np.ndarray, state: np.ndarray, found):
    """Moments of the lowest `sizes` [T] values, into `found`.

    Called with one block [n] after another of values in ascending order; `state` holds how many
    values came before, and their mean and sum of squares (Welford's recurrence).
    """
    count, mean, squares = state
    for value in ordered:
        count += 1.0
        off = value - mean
        mean += off / count
        squares += off * (value - mean)
        for t in range(len(sizes)):
            if sizes[t] == count:
                found.mean[t], found.squares[t], found.last[t] = mean, squares, value
    state[0], state[1], state[2] = count, mean, squares
