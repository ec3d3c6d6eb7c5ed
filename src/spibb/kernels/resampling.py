"""Bootstrap of tail means."""

from __future__ import annotations

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
