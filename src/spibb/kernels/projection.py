"""Boxes of policies, and the greedy step under their constraints for one state."""

from __future__ import annotations

import numpy as np
from numba import njit

SORT_FROM = 16
"""Number of actions from which sorting them once beats ranking them one by one."""


@njit(cache=True)
def free_rows(available: np.ndarray):
    """The bounds of any policy over the available actions [S, A], and the uniform one over them."""
    lower, upper = np.zeros(available.shape), np.zeros(available.shape)
    start = np.zeros(available.shape)
    for s in range(len(available)):
        size = np.count_nonzero(available[s])
        for a in range(available.shape[1]):
            if available[s, a]:
                upper[s, a] = 1.0
                start[s, a] = 1.0 / size
    return lower, upper, start


@njit(cache=True)
def seen_or_available(counts: np.ndarray, available: np.ndarray) -> np.ndarray:
    """Which actions were seen, per state; where none was, which are available [S, A]."""
    out = available.copy()
    for s in range(len(counts)):
        if counts[s].max() > 0:
            for a in range(counts.shape[1]):
                out[s, a] = counts[s, a] > 0
    return out


@njit(cache=True)
def next_best(q: np.ndarray, last: int) -> int:
    """The action that follows `last` in decreasing order of q, ties by index; −1 after the end."""
    best = -1
    for a in range(len(q)):
        after = last < 0 or q[a] < q[last] or (q[a] == q[last] and a > last)
        if after and (best < 0 or q[a] > q[best]):
            best = a
    return best


@njit(cache=True)
def fill_ranked(q: np.ndarray, lower: np.ndarray, upper: np.ndarray, rest: float, out: np.ndarray):
    """Add the mass `rest` to `out` [A], which holds `lower`, best q first, each up to `upper`.

    Algorithm 2 of the paper when lower = 0. Few actions are ranked one after the other until the
    mass is spent, many are sorted first, so that the cost is O(A log A). Returns Σ_a out·q.
    """
    if len(q) > SORT_FROM:
        for a in np.argsort(-q, kind="mergesort"):
            take = min(rest, upper[a] - lower[a])
            out[a] = lower[a] + take
            rest -= take
        return (out * q).sum()
    a = next_best(q, -1)
    while a >= 0 and rest > 0.0:
        take = min(rest, upper[a] - lower[a])
        out[a] = lower[a] + take
        rest -= take
        a = next_best(q, a)
    value = 0.0
    for a in range(len(q)):
        value += out[a] * q[a]
    return value


@njit(cache=True)
def project(
    q: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    start: np.ndarray,
    tie: float,
    out: np.ndarray,
) -> float:
    """Fill `out` [A] with the best row between the bounds; return its value Σ_a out·q.

    Where the row `start` is as good to within `tie`, `start` is kept: evidence that makes no
    difference changes nothing. Most often the single best action takes all mass that may move.
    """
    rest = value = value_start = 0.0
    best, highest = -1, -np.inf
    for a in range(len(q)):
        rest += start[a] - lower[a]
        value_start += start[a] * q[a]
        value += lower[a] * q[a]
        out[a] = lower[a]
        worth = q[a] if upper[a] > lower[a] else -np.inf
        better = worth > highest  # no branch: it would be mispredicted
        best = a if better else best
        highest = worth if better else highest
    if best >= 0 and upper[best] - lower[best] >= rest:
        out[best] += rest
        value += rest * q[best]
    elif best >= 0:
        value = fill_ranked(q, lower, upper, rest, out)
    if best < 0 or value - value_start <= tie:
        for a in range(len(q)):
            out[a] = start[a]
        return value_start
    return value
