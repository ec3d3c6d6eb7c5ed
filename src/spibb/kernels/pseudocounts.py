"""Distance pseudo-counts: a tree over the queries, whose nodes keep the points that they can reach.

Queries that lie together share their candidates. A node of the tree holds some queries, the box
around them, and a contiguous copy of the points that are nearer than the radius to that box. Its
two halves choose theirs from that copy, and a leaf compares all of its queries, side by side, with
each point that is left. The tree is grown depth first, so that one list per level exists at a time.
Where boxes exclude nothing, as in many dimensions, this is brute force.

Arrays: points [D, N] sorted by action, `starts` [A + 1] of each action, queries as rows [M, D], all
in radii. D is a multiple of four; coordinates that are missing are zero. Leaves compute in single
precision relative to their centre: coordinates there are small, so that little is lost.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit, prange

LANES = 32
"""Most queries of a leaf, compared side by side."""
WIDTH = 8.0
"""Widest box of a leaf, in radii: in a wider one, single precision would lose too many digits."""
CHUNK = 2048
"""Most queries of a tree; each tree begins with all points, and trees are shared among workers."""
LEVELS = 16
"""Lists that may exist at once: more than the halvings from a chunk to a single query."""
ROOM = 4
"""Copies of all points for which a worker has room (pages that it does not touch cost nothing)."""
BLOCK = 64
"""Similarities that are added in single precision before they join a sum in double precision."""
FAST = {"contract", "nsz", "reassoc"}
"""Liberties with rounding that let loops run on vectors; none with NaN or infinity."""


@njit(cache=True, fastmath=FAST)
def add_gaps(points: np.ndarray, centre: np.ndarray, half: np.ndarray, fresh: bool, out) -> None:
    """Squared distance of points [4, n] from a box: set `out` [n] to it, or add it."""
    x, y, z, w = points[0], points[1], points[2], points[3]
    a, b, c, d = centre[0], centre[1], centre[2], centre[3]
    e, f, g, h = half[0], half[1], half[2], half[3]
    zero = x.dtype.type(0)
    for n in range(len(x)):
        p, q = abs(x[n] - a) - e, abs(y[n] - b) - f
        r, s = abs(z[n] - c) - g, abs(w[n] - d) - h
        p, q = p if p > zero else zero, q if q > zero else zero
        r, s = r if r > zero else zero, s if s > zero else zero
        total = p * p + q * q + r * r + s * s
        out[n] = total if fresh else out[n] + total


@njit(cache=True)
def choose(source, above: np.ndarray, box, shift, target, below: np.ndarray, work) -> None:
    """Copy the points of `source` that a box can reach to `target`, from below[0] on.

    Action a has the points above[a] … above[a + 1]; `below` [A + 1] is filled for the copies, from
    which `shift` [D] is subtracted.
    """
    gaps, kept = work
    centre, half = box
    first = above[0]
    for d in range(0, len(source), 4):
        part = source[d : d + 4, first : above[-1]]
        add_gaps(part, centre[d : d + 4], half[d : d + 4], d == 0, gaps)
    n = 0
    for a in range(len(above) - 1):
        for j in range(above[a], above[a + 1]):
            kept[n] = j
            n += gaps[j - first] <= 1.0
        below[a + 1] = below[0] + n
    for d in range(len(source)):
        row, out, by = source[d], target[d, below[0] : below[-1]], shift[d]
        for j in range(n):
            out[j] = row[kept[j]] - by


@njit(cache=True)
def box_of(rows: np.ndarray, box) -> int:
    """Fill `box` (centre [D], half [D]) for rows [n, D]; return the coordinate that is widest."""
    centre, half = box
    widest = 0
    for d in range(rows.shape[1]):
        low = high = rows[0, d]
        for i in range(1, len(rows)):
            low, high = min(low, rows[i, d]), max(high, rows[i, d])
        centre[d] = low + (high - low) / 2
        half[d] = max(high - centre[d], centre[d] - low)
        if half[d] > half[widest]:
            widest = d
    return widest


@njit(cache=True)
def swap(rows: np.ndarray, order: np.ndarray, i: int, j: int) -> None:
    """Exchange two rows and their numbers."""
    for d in range(rows.shape[1]):
        rows[i, d], rows[j, d] = rows[j, d], rows[i, d]
    order[i], order[j] = order[j], order[i]


@njit(cache=True)
def halve(rows: np.ndarray, order: np.ndarray, d: int) -> int:
    """Move the rows that are least in coordinate d to the front; return how many: whole leaves.

    Hoare's selection by rank.
    """
    half = len(rows) // 2
    if len(rows) > LANES:
        half = (half + LANES - 1) // LANES * LANES
    low, high = 0, len(rows) - 1
    while low < high:
        pivot = rows[(low + high) // 2, d]
        i, j = low, high
        while i <= j:
            while rows[i, d] < pivot:
                i += 1
            while rows[j, d] > pivot:
                j -= 1
            if i <= j:
                swap(rows, order, i, j)
                i += 1
                j -= 1
        if half <= j:
            high = j
        elif half >= i:
            low = i
        else:
            break
    return half


@njit(cache=True)
def make_chunks(rows: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Sort queries [M, D], and their numbers, into chunks of neighbours; return their bounds."""
    stack = np.empty((len(rows) + 1, 2), dtype=np.int64)
    bounds = np.zeros(len(rows) + 1, dtype=np.int64)
    box = np.empty(rows.shape[1]), np.empty(rows.shape[1])
    stack[0] = 0, len(rows)
    n_stack, n_chunks = 1, 0
    while n_stack > 0:
        n_stack -= 1
        begin, end = stack[n_stack]
        d = box_of(rows[begin:end], box)
        if end - begin <= CHUNK:
            n_chunks += 1
            bounds[n_chunks] = end
            continue
        middle = begin + halve(rows[begin:end], order[begin:end], d)
        stack[n_stack] = middle, end
        stack[n_stack + 1] = begin, middle
        n_stack += 2
    return bounds[: n_chunks + 1]


@njit(cache=True, fastmath=FAST)
def compare_4(points: np.ndarray, queries: np.ndarray, total: np.ndarray) -> None:
    """Add max(0, 1 − ‖x − x_i‖) over points [4, n] for queries [4, LANES] to `total` [LANES]."""
    zero, one = np.float32(0), np.float32(1)
    for n in range(points.shape[1]):
        x, y, z, w = points[0, n], points[1, n], points[2, n], points[3, n]
        for k in range(LANES):
            p, q = queries[0, k] - x, queries[1, k] - y
            r, s = queries[2, k] - z, queries[3, k] - w
            near = one - math.sqrt(p * p + q * q + r * r + s * s)
            total[k] += near if near > zero else zero


@njit(cache=True, fastmath=FAST)
def compare(points: np.ndarray, queries: np.ndarray, total: np.ndarray, squares) -> None:
    """The same in any dimension; `squares` [LANES] is scratch."""
    zero, one = np.float32(0), np.float32(1)
    for n in range(points.shape[1]):
        squares[:] = zero
        for d in range(0, len(points), 4):
            x, y, z, w = points[d, n], points[d + 1, n], points[d + 2, n], points[d + 3, n]
            for k in range(LANES):
                p, q = queries[d, k] - x, queries[d + 1, k] - y
                r, s = queries[d + 2, k] - z, queries[d + 3, k] - w
                squares[k] += p * p + q * q + r * r + s * s
        for k in range(LANES):
            near = one - math.sqrt(squares[k])
            total[k] += near if near > zero else zero


@njit(cache=True)
def count_leaf(points: np.ndarray, bounds: np.ndarray, rows, centre, order, out) -> None:
    """Compare up to `LANES` queries with points around a centre, into their rows of `out`."""
    queries = np.empty((len(points), LANES), dtype=np.float32)
    some = np.empty(LANES, dtype=np.float32)
    squares = np.empty(LANES, dtype=np.float32)
    for k in range(LANES):
        queries[:, k] = rows[min(k, len(rows) - 1)] - centre
    for a in range(len(bounds) - 1):
        total = np.zeros(LANES)
        for begin in range(bounds[a], bounds[a + 1], BLOCK):
            block = points[:, begin : min(begin + BLOCK, bounds[a + 1])]
            some[:] = 0
            if len(points) == 4:
                compare_4(block, queries, some)
            else:
                compare(block, queries, some, squares)
            total += some
        for k in range(len(rows)):
            out[order[k], a] = total[k]


@njit(cache=True)
def count_chunk(points, starts, rows, order, room, out) -> None:
    """Pseudo-counts of the queries of one chunk, into their rows of `out` [M, A]."""
    (lists, bounds), (near, near_bounds), work = room
    box = np.empty(rows.shape[1]), np.empty(rows.shape[1])
    still = np.zeros(rows.shape[1])
    stack = np.empty((LEVELS + 1, 3), dtype=np.int64)
    stack[0] = 0, len(rows), 0
    n_stack = 1
    while n_stack > 0:
        n_stack -= 1
        begin, end, level = stack[n_stack]
        source, above = (points, starts) if level == 0 else (lists, bounds[level - 1])
        d = box_of(rows[begin:end], box)
        if end - begin <= LANES and 2.0 * box[1][d] <= WIDTH:
            choose(source, above, box, box[0], near, near_bounds, work)
            count_leaf(near, near_bounds, rows[begin:end], box[0], order[begin:end], out)
            continue
        top = 0 if level == 0 else above[-1]
        if top + above[-1] - above[0] <= lists.shape[1]:
            bounds[level, 0] = top
            choose(source, above, box, still, lists, bounds[level], work)
            level += 1
        middle = begin + halve(rows[begin:end], order[begin:end], d)
        stack[n_stack] = middle, end, level
        stack[n_stack + 1] = begin, middle, level
        n_stack += 2


@njit(cache=True)
def workspace(points: np.ndarray, n_actions: int):
    """Room for the lists of all levels, for that of a leaf, and for one choice."""
    n_dims, n = points.shape
    lists = np.empty((n_dims, ROOM * n)), np.zeros((LEVELS, n_actions + 1), dtype=np.int64)
    near = np.empty((n_dims, n), dtype=np.float32), np.zeros(n_actions + 1, dtype=np.int64)
    return lists, near, (np.empty(n, dtype=np.float32), np.empty(n + 1, dtype=np.int64))


@njit(cache=True)
def count(points, starts, rows, order, chunks, out) -> None:
    """Pseudo-counts of all chunks of queries, into `out` [M, A]."""
    room = workspace(points, len(starts) - 1)
    for c in range(len(chunks) - 1):
        begin, end = chunks[c], chunks[c + 1]
        count_chunk(points, starts, rows[begin:end], order[begin:end], room, out)


@njit(cache=True, parallel=True)
def count_parallel(points, starts, rows, order, chunks, out, workers: int) -> None:
    """The same with several workers; a chunk's numbers do not depend on who computes them."""
    for w in prange(workers):
        room = workspace(points, len(starts) - 1)
        for c in range(w, len(chunks) - 1, workers):
            begin, end = chunks[c], chunks[c + 1]
            count_chunk(points, starts, rows[begin:end], order[begin:end], room, out)
