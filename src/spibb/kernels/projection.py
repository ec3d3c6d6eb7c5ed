"""Boxes of policies, and the greedy step under their constraints for one state."""

from __future__ import annotations

import numpy as np
from numba import njit

from spibb.kernels import formulas
from spibb.kernels.tuples import Box

is_playable = njit(cache=True, inline="always")(formulas.is_playable)

SORT_FROM = 16
"""Number of actions from which sorting them once beats ranking them one by one."""


@njit(cache=True)
def playable(baseline: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Which actions the baseline plays or the log has seen [S, A]."""
    out = np.empty(baseline.shape, dtype=np.bool_)
    for s in range(len(baseline)):
        for a in range(baseline.shape[1]):
            out[s, a] = is_playable(baseline[s, a], counts[s, a])
    return out


@njit(cache=True)
def free_box(available: np.ndarray):
    """Any policy over the available actions [S, A]; starts from the uniform one over them."""
    lower, upper = np.zeros(available.shape), np.zeros(available.shape)
    start = np.zeros(available.shape)
    for s in range(len(available)):
        size = 0
        for a in range(available.shape[1]):
            size += available[s, a]
        for a in range(available.shape[1]):
            if available[s, a]:
                upper[s, a] = 1.0
                start[s, a] = 1.0 / size
    return Box(lower, upper, start)


@njit(cache=True)
def seen_first_box(counts: np.ndarray, baseline: np.ndarray):
    """Any policy over the actions seen; where a state has none, over the playable ones."""
    allowed = playable(baseline, counts)
    for s in range(len(counts)):
        seen = 0
        for a in range(counts.shape[1]):
            seen += counts[s, a]
        for a in range(counts.shape[1]):
            if seen > 0:
                allowed[s, a] = counts[s, a] > 0
    return free_box(allowed)


@njit(cache=True)
def rank(values: np.ndarray, n: int, order: np.ndarray):
    """Fill `order` with the indices of the first n `values`, largest value first, ties by index.

    Shell's sort, which is plain insertion below 18 values. NumPy's would take seconds to compile.
    """
    for i in range(n):
        order[i] = i
    gap = 1
    while gap < n // 9:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, n):
            moving, j = order[i], i
            while j >= gap and comes_before(values, moving, order[j - gap]):
                order[j] = order[j - gap]
                j -= gap
            order[j] = moving
        gap //= 3


@njit(cache=True, inline="always")
def comes_before(values: np.ndarray, i: int, k: int) -> bool:
    """Whether i precedes k in decreasing order of value, ties by index."""
    return values[i] > values[k] or (values[i] == values[k] and i < k)


@njit(cache=True, inline="always")
def next_best(q: np.ndarray, box, out: np.ndarray, tie: float, s: int) -> int:
    """The best action whose mass is below its bound, the first of several; −1 if there is none."""
    best = -1
    for a in range(q.shape[1]):
        if out[s, a] < box.upper[s, a] and (best < 0 or q[s, a] > q[s, best] + tie):
            best = a
    return best


@njit(cache=True)
def rank_with_ties(q: np.ndarray, tie: float) -> np.ndarray:
    """The actions, largest q first; runs whose q lie within `tie` of their first by index [A]."""
    order = np.empty(len(q), dtype=np.int64)
    rank(q, len(q), order)
    first, top = 0, q[order[0]]
    for i in range(1, len(q)):
        if q[order[i]] < top - tie:
            first, top = i, q[order[i]]
        moving, j = order[i], i
        while j > first and order[j - 1] > moving:
            order[j] = order[j - 1]
            j -= 1
        order[j] = moving
    return order


@njit(cache=True, inline="always")
def top_up(box, rest: float, out: np.ndarray, s: int, a: int) -> float:
    """Raise out(s, a) by `rest`, at most to its upper bound; return what is left."""
    room = box.upper[s, a] - out[s, a]
    if rest < room:
        out[s, a] += rest
        return 0.0
    out[s, a] = box.upper[s, a]
    return rest - room


@njit(cache=True)
def fill_ranked(q: np.ndarray, box, rest: float, tie: float, out: np.ndarray, s: int):
    """Add the mass `rest` to row s of `out`, best q first, each up to its bound; ties by index.

    Algorithm 2 of the paper when the row is 0. Few actions are ranked one after the other until the
    mass is spent, many are sorted first. Returns Σ_a out·q.
    """
    if q.shape[1] > SORT_FROM:
        for a in rank_with_ties(q[s], tie):
            if out[s, a] < box.upper[s, a]:
                rest = top_up(box, rest, out, s, a)
    else:
        a = next_best(q, box, out, tie, s)
        while a >= 0 and rest > 0.0:
            rest = top_up(box, rest, out, s, a)
            a = next_best(q, box, out, tie, s)
    value = 0.0
    for a in range(q.shape[1]):
        value += out[s, a] * q[s, a]
    return value


@njit(cache=True)
def project(q: np.ndarray, box, tie: float, out: np.ndarray, s: int) -> float:
    """Fill row s of `out` [S, A] with the best row of the box; return its value Σ_a out·q.

    Where the row of `start` is as good to within `tie`, that is kept: evidence that makes no
    difference changes nothing. Of actions whose q differ by at most `tie` the first is taken, so
    that rounding decides nothing. Most often a single one takes all mass that may move. Tables and
    the number of a row are passed, because six views of rows cost more than the projection.
    """
    rest = value = gain = 0.0
    best = -1
    for a in range(q.shape[1]):
        rest += box.start[s, a] - box.lower[s, a]
        value += box.lower[s, a] * q[s, a]
        out[s, a] = box.lower[s, a]
        if box.upper[s, a] > box.lower[s, a] and (best < 0 or q[s, a] > q[s, best] + tie):
            best = a
    if best >= 0 and box.upper[s, best] - box.lower[s, best] >= rest:
        out[s, best] += rest
        value += rest * q[s, best]
    elif best >= 0:
        value = fill_ranked(q, box, rest, tie, out, s)
    for a in range(q.shape[1]):  # what does not move cancels, however large
        gain += (out[s, a] - box.start[s, a]) * q[s, a]
    if best >= 0 and gain > tie:
        return value
    value = 0.0
    for a in range(q.shape[1]):
        out[s, a] = box.start[s, a]
        value += box.start[s, a] * q[s, a]
    return value


@njit(cache=True)
def greedy(q: np.ndarray, box, ties: np.ndarray, pi: np.ndarray) -> np.ndarray:
    """The best row of the box in every state into `pi` [S, A]; returns its values V [S].

    Values of a state within ties(s) [S] of one another are equal.
    """
    v = np.empty(len(q))
    for s in range(len(q)):
        v[s] = project(q, box, ties[s], pi, s)
    return v
