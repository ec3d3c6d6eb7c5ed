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
    order, key, end = np.empty(n, np.int64), np.empty(n), np.empty(BUCKETS * n + 1, np.int64)
    for b in range(len(keys)):
        for i in range(n):
            key[i] = begin[i] + size[i] * keys[b, i]
        _sort(key, order, end)
        for k in range(n):
            sums[first[order[k]] + place[k]] += value[k]
        total = 0.0
        for c in range(len(weight)):
            total += weight[c] * sums[c] ** 2
            sums[c] = 0.0
        found[b] = total
    return found


@njit(cache=True)
def orders(keys: np.ndarray):
    """The order of the keys [B, n] in [0, 1), each row for itself, as `argsort` has it."""
    n, found = keys.shape[1], np.empty(keys.shape, np.int64)
    key, end = np.empty(n), np.empty(BUCKETS * n + 1, np.int64)
    for b in range(len(keys)):
        for i in range(n):
            key[i] = n * keys[b, i]
        _sort(key, found[b], end)
    return found


@njit(cache=True)
def _sort(key: np.ndarray, order: np.ndarray, end: np.ndarray):
    """Put the order of keys [n] into `order` [n]; they are spread evenly over [0, n)."""
    n = len(key)
    sorted_key, bucket = np.empty(n), np.empty(n, np.int64)
    for k in range(len(end)):
        end[k] = 0
    for i in range(n):
        bucket[i] = min(int(BUCKETS * key[i]), BUCKETS * n - 1)
        end[bucket[i] + 1] += 1
    for k in range(1, len(end)):
        end[k] += end[k - 1]
    for i in range(n):
        at = end[bucket[i]]
        end[bucket[i]] += 1
        order[at], sorted_key[at] = i, key[i]
    _settle(order, sorted_key)


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
