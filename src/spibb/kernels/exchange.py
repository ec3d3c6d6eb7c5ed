"""Statistics of permutation tests, one exchange after the other."""

from __future__ import annotations

import numpy as np
from numba import njit

BUCKETS = 2
"""Per row: few rows then share one."""


@njit(cache=True)
def squares(keys: np.ndarray, size, begin, first, place, value, weight):
    """Σ_cells weight·(Σ of values)² [B] after each of several exchanges.

    Keys [B, n] in [0, 1) order the rows within their strata, of which each row has the `size` and
    the `begin` [n]. Row k gets the group of the one that comes k-th: its `value` [n] then counts in
    cell first + place [n each], `first` being that of the group, and `place` its own.
    """
    n, found, sums = keys.shape[1], np.empty(len(keys)), np.zeros(len(weight))
    order, sorted_key = np.empty(n, np.int64), np.empty(n)
    key, bucket, end = np.empty(n), np.empty(n, np.int64), np.empty(BUCKETS * n + 1, np.int64)
    for b in range(len(keys)):
        for k in range(len(end)):
            end[k] = 0
        for i in range(n):
            key[i] = begin[i] + size[i] * keys[b, i]
            bucket[i] = min(int(BUCKETS * key[i]), BUCKETS * n - 1)
            end[bucket[i] + 1] += 1
        for k in range(1, len(end)):
            end[k] += end[k - 1]
        for i in range(n):
            at = end[bucket[i]]
            end[bucket[i]] += 1
            order[at], sorted_key[at] = i, key[i]
        _settle(order, sorted_key)
        for k in range(n):
            sums[first[order[k]] + place[k]] += value[k]
        total = 0.0
        for c in range(len(weight)):
            total += weight[c] * sums[c] ** 2
            sums[c] = 0.0
        found[b] = total
    return found


@njit(cache=True)
def _settle(order: np.ndarray, key: np.ndarray):
    """Sort rows that are almost in the order of their keys."""
    for k in range(1, len(key)):
        row, own, at = order[k], key[k], k
        while at > 0 and key[at - 1] > own:
            order[at], key[at] = order[at - 1], key[at - 1]
            at -= 1
        if at < k:
            order[at], key[at] = row, own
