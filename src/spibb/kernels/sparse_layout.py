"""Sparse rows laid out in blocks of states, for sweeps without branches.

Kernels unpack their tuples once per chunk and their helpers take arrays and indices: passing a
tuple or a view costs an atomic reference count, which would double the time of short rows.
"""

from typing import NamedTuple

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from spibb.kernels.sparse_bounds import SLIVER, Box, Floats, Index, Ints, Kept, Rows, free_mass

LANES = 8
CHUNK = 128
UNPICKED = 2**32 - 1  # no choice yet
WORTHWHILE = 0.8  # sweep single policies if that reads less than this share of the entries


class Layout(NamedTuple):
    """The MDP in B blocks, K slots and C columns; block b owns slots first[b] : first[b + 1].

    The first slot of a block holds the fixed rows of its states.
    """

    order: NDArray[
        np.uint32
    ]  # state of each lane; the last block repeats its last state [B, LANES]
    first: Ints  # first slot of each block [B + 1]
    start: Ints  # first column of each slot [K + 1]
    successors: NDArray[np.uint32]  # unsigned: spares the test for negative indices [C, LANES]
    probs: Floats  # times the discount, in fixed rows also times `lower` [C, LANES]
    rewards: Floats  # -inf where the state has no such slot [K, LANES]
    room: Floats  # 0 where the state has no such slot; read in tight blocks only [K, LANES] or [0]
    mass: Floats  # [B, LANES]
    tight: NDArray[np.bool_]  # some room is below the mass: actions may have to share it [B]


class Picked(NamedTuple):
    """The row of the best policy in each state: sweeps of that policy read nothing else.

    It is the fixed row, then mass times the best slot.
    """

    start: Ints  # first column of each block [B + 1]
    successors: NDArray[np.uint32]  # [C', LANES]
    probs: Floats  # [C', LANES]
    rewards: Floats  # [B, LANES]
    choice: NDArray[np.uint32]  # number of the slot within its block [B, LANES]


@njit(cache=True, forceinline=True)
def _length(indptr: Ints, row: Index) -> int:
    return indptr[row + 1] - indptr[row]


@njit(cache=True, forceinline=True)
def _free_actions(indptr: Ints, lower: Floats, upper: Floats, s: Index, actions: Ints) -> int:
    """List the actions of s with room, longest row first; return their number.

    Insertion sort: rows of equal length, the usual case, cost one comparison each.
    """
    base = s * lower.shape[1]
    n = 0
    for a in range(lower.shape[1]):
        if upper[s, a] > lower[s, a]:
            i = n
            while i > 0 and _length(indptr, base + actions[i - 1]) < _length(indptr, base + a):
                actions[i] = actions[i - 1]
                i -= 1
            actions[i] = a
            n += 1
    return n


@njit(cache=True)
def _order(indptr: Ints, lower: Floats, upper: Floats, order: NDArray[np.uint32]) -> None:
    """Sort the states of each chunk by number of slots, then of entries: blocks of one shape."""
    n_states, n_actions = lower.shape
    states = order.reshape(-1)
    for lo in range(0, n_states, CHUNK * LANES):
        hi = min(n_states, lo + CHUNK * LANES)
        keys = np.empty(hi - lo, np.int64)
        for s in range(lo, hi):
            n = 0
            for a in range(n_actions):
                n += upper[s, a] > lower[s, a]
            keys[s - lo] = (n << 40) + indptr[(s + 1) * n_actions] - indptr[s * n_actions]
        ranks = np.arange(hi - lo) if keys.min() == keys.max() else np.argsort(keys)
        for i in range(hi - lo):
            states[lo + i] = lo + ranks[i]
    states[n_states:] = states[n_states - 1]


@njit(cache=True)
def _measure(
    indptr: Ints,
    box: Box,
    order: NDArray[np.uint32],
    widths: NDArray[np.int32],
    masses: Floats,
    tight: NDArray[np.bool_],
) -> None:
    """Find masses, tight blocks, and the columns [B, A + 1] of the slots of each block.

    The fixed slot comes first; -1 stands for no slot.
    """
    lower, upper, _ = box
    n_actions = lower.shape[1]
    actions = np.empty(n_actions, np.int64)
    for b in range(order.shape[0]):
        for lane in range(LANES):
            s, fixed = np.int64(order[b, lane]), 0
            for a in range(n_actions):
                if lower[s, a] > 0.0:
                    fixed += _length(indptr, s * n_actions + a)
            widths[b, 0] = max(widths[b, 0], fixed)
            mass = free_mass(box, s)
            masses[b, lane] = mass
            n = _free_actions(indptr, lower, upper, s, actions) if mass > 0.0 else 0
            for i in range(n):
                a = actions[i]
                widths[b, i + 1] = max(widths[b, i + 1], _length(indptr, s * n_actions + a))
                tight[b] |= upper[s, a] - lower[s, a] < mass - SLIVER


@njit(cache=True)
def _first_slots(widths: NDArray[np.int32], first: Ints) -> None:
    """Write the first slot of each block."""
    first[0] = 0
    for b in range(widths.shape[0]):
        n = 0
        while n < widths.shape[1] and widths[b, n] >= 0:
            n += 1
        first[b + 1] = first[b] + n


@njit(cache=True)
def _first_columns(widths: NDArray[np.int32], first: Ints, start: Ints) -> None:
    """Write the first column of each slot."""
    start[0] = 0
    for b in range(widths.shape[0]):
        for k in range(first[b], first[b + 1]):
            start[k + 1] = start[k] + widths[b, k - first[b]]


@njit(cache=True, forceinline=True)
def _copy_row(
    successors: NDArray[np.int32],
    probs: Floats,
    entries: tuple[int, int],
    factor: float,
    to_successors: NDArray[np.uint32],
    to_probs: Floats,
    at: int,
) -> float:
    """Copy factor * row down one lane, from flat position `at` on; return the sum of the copy."""
    total = 0.0
    for k in range(entries[0], entries[1]):
        p = factor * probs[k]
        to_successors[at] = successors[k]
        to_probs[at] = p
        total += p
        at += LANES
    return total


@njit(cache=True)
def _fill_chunk(
    rows: Rows, rewards: Floats, discount: float, box: Box, layout: Layout, c: int
) -> tuple[float, float]:
    """Fill the blocks of chunk c; return the least and most discounted mass that policies keep."""
    indptr, successors, probs = rows
    lower, upper, _ = box
    n_actions = lower.shape[1]
    order, first, column, to_successors, to_probs, to_rewards, room, masses, tight = layout
    to_successors, to_probs = to_successors.reshape(-1), to_probs.reshape(-1)
    actions = np.empty(n_actions, np.int64)
    least, most = np.inf, 0.0
    for b in range(c * CHUNK, min(order.shape[0], (c + 1) * CHUNK)):
        for lane in range(LANES):
            s, slot, mass = np.int64(order[b, lane]), first[b], masses[b, lane]
            at = column[slot] * LANES + lane
            fixed, kept = 0.0, 0.0
            for a in range(n_actions):
                if lower[s, a] > 0.0:
                    row, factor = s * n_actions + a, discount * lower[s, a]
                    span = (indptr[row], indptr[row + 1])
                    kept += _copy_row(successors, probs, span, factor, to_successors, to_probs, at)
                    at += (span[1] - span[0]) * LANES
                    fixed += lower[s, a] * rewards[s, a]
            to_rewards[slot, lane] = fixed
            worst, best = (np.inf, 0.0) if mass > 0.0 else (0.0, 0.0)
            n = _free_actions(indptr, lower, upper, s, actions) if mass > 0.0 else 0
            for i in range(n):
                slot, a = first[b] + 1 + i, actions[i]
                row, at = s * n_actions + a, column[slot] * LANES + lane
                span = (indptr[row], indptr[row + 1])
                total = _copy_row(successors, probs, span, discount, to_successors, to_probs, at)
                worst, best = min(worst, total), max(best, total)
                to_rewards[slot, lane] = rewards[s, a]
                if tight[b]:
                    room[slot, lane] = upper[s, a] - lower[s, a]
            least, most = min(least, kept + mass * worst), max(most, kept + mass * best)
    return least, most


@njit(cache=True)
def _fill_serial(
    rows: Rows, rewards: Floats, discount: float, box: Box, layout: Layout
) -> tuple[float, float]:
    least, most = np.inf, 0.0
    for c in range((layout.order.shape[0] + CHUNK - 1) // CHUNK):
        x, y = _fill_chunk(rows, rewards, discount, box, layout, c)
        least, most = min(least, x), max(most, y)
    return least, most


@njit(cache=True, parallel=True)
def _fill_parallel(
    rows: Rows, rewards: Floats, discount: float, box: Box, layout: Layout
) -> tuple[float, float]:
    least, most = np.inf, 0.0
    for c in prange((layout.order.shape[0] + CHUNK - 1) // CHUNK):
        x, y = _fill_chunk(rows, rewards, discount, box, layout, c)
        least = min(least, x)
        most = max(most, y)
    return least, most


def build_layout(
    rows: Rows, rewards: Floats, discount: float, box: Box, parallel: bool
) -> tuple[Layout, Kept]:
    """Lay the MDP out; also return the least and most discounted mass that policies keep.

    Arrays are made here, by NumPy, and not inside kernels: NumPy asks for huge pages, without which
    the scattered reads of values and entries miss the TLB.
    """
    n_states, n_actions = rewards.shape
    n_blocks = (n_states + LANES - 1) // LANES
    order = np.empty((n_blocks, LANES), np.uint32)
    widths = np.full((n_blocks, n_actions + 1), -1, np.int32)
    mass, tight = np.empty((n_blocks, LANES)), np.zeros(n_blocks, np.bool_)
    first = np.empty(n_blocks + 1, np.int64)
    _order(rows[0], box[0], box[1], order)
    _measure(rows[0], box, order, widths, mass, tight)
    _first_slots(widths, first)
    start = np.empty(first[-1] + 1, np.int64)
    _first_columns(widths, first, start)
    layout = Layout(
        order=order,
        first=first,
        start=start,
        successors=np.zeros((start[-1], LANES), np.uint32),
        probs=np.zeros((start[-1], LANES)),
        rewards=np.full((first[-1], LANES), -np.inf),
        room=np.zeros((first[-1] if tight.any() else 0, LANES)),
        mass=mass,
        tight=tight,
    )
    fill = _fill_parallel if parallel else _fill_serial
    return layout, fill(rows, rewards, discount, box, layout)


def space_for_picks(layout: Layout) -> Picked:
    """Space for one row per state, or none where sweeps of one policy would save little reading.

    A block's widest slot is the first after the fixed one. Policies of tight blocks mix slots, so
    they have no single best one.
    """
    widths, fixed = np.diff(layout.start), layout.first[:-1]
    widest = np.minimum(fixed + 1, layout.first[1:] - 1)
    start = np.zeros(fixed.size + 1, np.int64)
    np.cumsum(widths[fixed] + np.where(widest > fixed, widths[widest], 0), out=start[1:])
    if layout.tight.any() or start[-1] > WORTHWHILE * layout.start[-1]:
        start = np.zeros(1, np.int64)
    return Picked(
        start=start,
        successors=np.zeros((start[-1], LANES), np.uint32),
        probs=np.zeros((start[-1], LANES)),
        rewards=np.zeros((start.size - 1, LANES)),
        choice=np.full((start.size - 1, LANES), UNPICKED, np.uint32),
    )
