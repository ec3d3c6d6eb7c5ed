"""The greedy step under the constraints of SPIBB, for one state."""

from __future__ import annotations

import numpy as np
from numba import njit

SORT_FROM = 16
"""Number of actions from which sorting them once beats ranking them one by one."""


@njit(cache=True)
def fill_best(q: np.ndarray, lower: np.ndarray, upper: np.ndarray, rest: float, out: np.ndarray):
    """Put `lower` and the mass `rest` into `out` [A], best q first, each entry up to `upper`.

    Returns False where the single best action could not take all of `rest`: then `out` is not
    filled, and `fill_ranked` must do it.
    """
    best = -1
    for a in range(len(q)):
        out[a] = lower[a]
        if upper[a] > lower[a] and (best < 0 or q[a] > q[best]):
            best = a
    if best < 0:
        return rest <= 0.0
    if upper[best] - lower[best] < rest:
        return False
    out[best] = lower[best] + rest
    return True


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
    """As `fill_best` for any bounds: Algorithm 2 of the paper when lower = 0.

    Few actions are ranked one after the other until the mass is spent, many are sorted first, so
    that the cost is O(A log A).
    """
    if len(q) > SORT_FROM:
        for a in np.argsort(-q, kind="mergesort"):
            take = min(rest, upper[a] - lower[a])
            out[a] = lower[a] + take
            rest -= take
        return
    a = next_best(q, -1)
    while a >= 0 and rest > 0.0:
        take = min(rest, upper[a] - lower[a])
        out[a] = lower[a] + take
        rest -= take
        a = next_best(q, a)


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
    difference changes nothing.
    """
    rest = 0.0
    value_start = 0.0
    for a in range(len(q)):
        rest += start[a] - lower[a]
        value_start += start[a] * q[a]
    if not fill_best(q, lower, upper, rest, out):
        fill_ranked(q, lower, upper, rest, out)
    value = 0.0
    for a in range(len(q)):
        value += out[a] * q[a]
    if value - value_start <= tie:
        for a in range(len(q)):
            out[a] = start[a]
        return value_start
    return value
