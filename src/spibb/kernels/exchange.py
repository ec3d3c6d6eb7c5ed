"""Orders of random numbers, for permutation tests."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True)
def orders(place: np.ndarray, found: np.ndarray):
    """Fill `found` [B, n] with the stable order of each row of numbers [B, n].

    They are about evenly spread over [0, n): each goes to the bucket of its whole part, and the few
    of a bucket are compared.
    """
    n = place.shape[1]
    bucket, end = np.empty(n, np.int64), np.empty(n + 1, np.int64)
    for b in range(len(place)):
        row, order = place[b], found[b]
        for k in range(n + 1):
            end[k] = 0
        for i in range(n):
            bucket[i] = min(int(row[i]), n - 1)
            end[bucket[i] + 1] += 1
        for k in range(n):
            end[k + 1] += end[k]
        for i in range(n):
            order[end[bucket[i]]] = i
            end[bucket[i]] += 1
        for k in range(1, n):
            i, at = order[k], k
            while at > 0 and row[order[at - 1]] > row[i]:
                order[at] = order[at - 1]
                at -= 1
            order[at] = i
