"""Greedy sweeps over a layout, and sweeps of the policy that they picked."""

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from spibb.kernels.sparse_bounds import SLIVER, Floats, Ints
from spibb.kernels.sparse_layout import CHUNK, LANES, UNPICKED, Layout, Picked


@njit(cache=True)
def _scratch(layout: Layout, c: int) -> tuple[Floats, Ints]:
    """Working space for chunk c: values of slots, heap."""
    most = 1
    for b in range(c * CHUNK, min(layout.order.shape[0], (c + 1) * CHUNK)):
        most = max(most, layout.first[b + 1] - layout.first[b])
    return np.empty((most, LANES)), np.empty(most, np.int64)


@njit(cache=True, forceinline=True)
def _add_columns(
    successors: NDArray[np.uint32], probs: Floats, lo: int, hi: int, v: Floats, q: Floats, i: int
) -> None:
    """q[i, lane] += sum_{lo <= k < hi} probs[k, lane] * v[successors[k, lane]]."""
    for k in range(lo, hi):
        for lane in range(LANES):
            q[i, lane] += probs[k, lane] * v[successors[k, lane]]


@njit(cache=True, forceinline=True)
def _best_slot(q: Floats, n: int, lane: int) -> int:
    """The best of slots 1 to n - 1, or 0 if there are none."""
    best, choice = -np.inf, 0
    for i in range(1, n):
        choice = i if q[i, lane] > best else choice
        best = max(best, q[i, lane])
    return choice


@njit(cache=True)
def _sift_down(heap: Ints, n: int, i: int, q: Floats, lane: int) -> None:
    """Repair the max-heap heap[:n] of slots, ordered by q[slot, lane], where i is too high."""
    while 2 * i + 1 < n:
        child = 2 * i + 1
        if child + 1 < n and q[heap[child + 1], lane] > q[heap[child], lane]:
            child += 1
        if q[heap[i], lane] >= q[heap[child], lane]:
            return
        heap[i], heap[child] = heap[child], heap[i]
        i = child


@njit(cache=True)
def _share(
    q: Floats, n: int, room: Floats, first: int, lane: int, mass: float, heap: Ints
) -> float:
    """Value of handing out mass in decreasing order of q, each of slots 1 to n - 1 up to its room.

    The heap yields in order only the slots that are needed: O(A), and O(log A) for each of them.
    """
    size = 0
    for i in range(1, n):
        if room[first + i, lane] > 0.0:
            heap[size] = i
            size += 1
    for i in range(size // 2 - 1, -1, -1):
        _sift_down(heap, size, i, q, lane)
    value = 0.0
    while size > 0 and mass > 0.0:
        part = min(mass, room[first + heap[0], lane])
        value += part * q[heap[0], lane]
        mass -= part
        size -= 1
        heap[0] = heap[size]
        _sift_down(heap, size, 0, q, lane)
    return value


@njit(cache=True, forceinline=True)
def _copy_lane(
    successors: NDArray[np.uint32],
    probs: Floats,
    span: tuple[int, int],
    factor: float,
    to_successors: NDArray[np.uint32],
    to_probs: Floats,
    to_span: tuple[int, int],
    lane: int,
) -> None:
    """Copy columns `span` of a lane, times factor, to columns `to_span`; pad with zeros."""
    for i in range(to_span[1] - to_span[0]):
        k, at = span[0] + i, to_span[0] + i
        inside = k < span[1]
        to_successors[at, lane] = successors[k, lane] if inside else np.uint32(0)
        to_probs[at, lane] = factor * probs[k, lane] if inside else 0.0


@njit(cache=True)
def _greedy_chunk(
    layout: Layout, picked: Picked, v: Floats, out: Floats, c: int
) -> tuple[float, float, int]:
    """Write T v of chunk c and pick its best slots; return the range of T v - v and new picks."""
    order, first, start, successors, probs, rewards, room, masses, tight = layout
    q, heap = _scratch(layout, c)
    start_p, successors_p, probs_p, rewards_p, choices = picked
    picking = choices.shape[0] > 0
    low, high, changed = np.inf, -np.inf, 0
    for b in range(c * CHUNK, min(order.shape[0], (c + 1) * CHUNK)):
        lo, n = first[b], first[b + 1] - first[b]
        for i in range(n):
            for lane in range(LANES):
                q[i, lane] = rewards[lo + i, lane]
            _add_columns(successors, probs, start[lo + i], start[lo + i + 1], v, q, i)
        for lane in range(LANES):
            mass, value, s = masses[b, lane], q[0, lane], order[b, lane]
            choice = _best_slot(q, n, lane)
            if tight[b] and room[lo + choice, lane] < mass - SLIVER:
                value += _share(q, n, room, lo, lane, mass, heap)
            elif mass > 0.0:
                value += mass * q[choice, lane]
            if picking and choice != choices[b, lane]:
                changed += 1
                at, slot = start_p[b] + start[lo + 1] - start[lo], lo + choice
                if choices[b, lane] == UNPICKED:
                    span, to_span = (start[lo], start[lo + 1]), (start_p[b], at)
                    _copy_lane(successors, probs, span, 1.0, successors_p, probs_p, to_span, lane)
                span, to_span = (start[slot], start[slot + 1]), (at, start_p[b + 1])
                _copy_lane(successors, probs, span, mass, successors_p, probs_p, to_span, lane)
                rewards_p[b, lane] = rewards[lo, lane] + mass * rewards[slot, lane]
                choices[b, lane] = choice
            out[s] = value
            low, high = min(low, value - v[s]), max(high, value - v[s])
    return low, high, changed


@njit(cache=True)
def _picked_chunk(
    layout: Layout, picked: Picked, v: Floats, out: Floats, c: int
) -> tuple[float, float]:
    """Write T_pi v of chunk c for the picked policy pi; return the range of T_pi v - v."""
    order = layout.order
    start, successors, probs, rewards, _ = picked
    q = np.empty((3, LANES))
    q[1], q[2] = np.inf, -np.inf
    for b in range(c * CHUNK, min(order.shape[0], (c + 1) * CHUNK)):
        for lane in range(LANES):
            q[0, lane] = rewards[b, lane]
        _add_columns(successors, probs, start[b], start[b + 1], v, q, 0)
        for lane in range(LANES):
            s, value = order[b, lane], q[0, lane]
            out[s] = value
            q[1, lane] = min(q[1, lane], value - v[s])
            q[2, lane] = max(q[2, lane], value - v[s])
    return q[1].min(), q[2].max()


@njit(cache=True)
def greedy_serial(
    layout: Layout, picked: Picked, v: Floats, out: Floats
) -> tuple[float, float, int]:
    """T v of all chunks on one thread: its range against v, and new picks."""
    low, high, changed = np.inf, -np.inf, 0
    for c in range((layout.order.shape[0] + CHUNK - 1) // CHUNK):
        x, y, n = _greedy_chunk(layout, picked, v, out, c)
        low, high, changed = min(low, x), max(high, y), changed + n
    return low, high, changed


@njit(cache=True, parallel=True)
def greedy_parallel(
    layout: Layout, picked: Picked, v: Floats, out: Floats
) -> tuple[float, float, int]:
    """As `greedy_serial`, on all threads."""
    low, high, changed = np.inf, -np.inf, 0
    for c in prange((layout.order.shape[0] + CHUNK - 1) // CHUNK):
        x, y, n = _greedy_chunk(layout, picked, v, out, c)
        low = min(low, x)
        high = max(high, y)
        changed += n
    return low, high, changed


@njit(cache=True)
def picked_serial(layout: Layout, picked: Picked, v: Floats, out: Floats) -> tuple[float, float]:
    """T_pi v of all chunks for the picked policy, on one thread: its range against v."""
    low, high = np.inf, -np.inf
    for c in range((layout.order.shape[0] + CHUNK - 1) // CHUNK):
        x, y = _picked_chunk(layout, picked, v, out, c)
        low, high = min(low, x), max(high, y)
    return low, high


@njit(cache=True, parallel=True)
def picked_parallel(layout: Layout, picked: Picked, v: Floats, out: Floats) -> tuple[float, float]:
    """As `picked_serial`, on all threads."""
    low, high = np.inf, -np.inf
    for c in prange((layout.order.shape[0] + CHUNK - 1) // CHUNK):
        x, y = _picked_chunk(layout, picked, v, out, c)
        low = min(low, x)
        high = max(high, y)
    return low, high


@njit(cache=True)
def longest_sum(layout: Layout) -> int:
    """Length of the longest sum in a backup."""
    longest = 0
    for b in range(layout.order.shape[0]):
        lo, hi = layout.first[b], layout.first[b + 1]
        slots = layout.start[min(lo + 2, hi)] - layout.start[lo]
        longest = max(longest, slots + (hi - lo if layout.tight[b] else 1))
    return longest + 4
