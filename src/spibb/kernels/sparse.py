"""Large sparse MDPs whose policies are confined to a box: optimal values with a proven error.

The constrained Bellman operator is

    (T v)(s) = max { sum_a pi(a) q(s, a) : lower(s, .) <= pi <= upper(s, .), sum_a pi(a) = 1 }
    q(s, a)  = rewards(s, a) + discount * sum_s' P(s' | s, a) v(s')

Plain MDPs, Pi_b-SPIBB and Pi_<=b-SPIBB differ in the box only. Rows of P may sum to less than one:
the missing mass ends the process, and what follows is worth 0.

**Normal form.** With mass(s) = sum_a (start - lower)(s, a) and room = upper - lower,

    (T v)(s) = sum_a lower(s, a) q(s, a)  +  fill(s),

where `fill` hands mass(s) to the actions in decreasing order of q, each up to its room. The first
term is linear in v and stored as one row, the *fixed* row of the state. Actions with room keep a
row of their own, a *slot*. A fixed policy is the box without room: fixed rows only.

**Bounds** (MacQueen 1966, here for rows below one). Let low <= T v - v <= high, and let every
policy of the box keep between `least` and `most` of the discounted mass,
least <= discount * sum_s' P_pi(s' | s) <= most. T is monotone, and

    T(v + c) <= T v + most * c  if c >= 0,      T(v + c) <= T v + least * c  if c < 0.

Applied again and again to T v <= v + high, and mirrored for low, this gives

    T v + g(low, least, most) <= v* <= T v + g(high, most, least),
    g(c, up, down) = c k / (1 - k),   k = up if c >= 0 else down.

The middle of that interval is returned; half its length is the error.

**Layout.** Sliced ELL: blocks of LANES states, entries stored lane by lane, so that the inner loop
is LANES independent sums without a branch. States of similar shape share a block (sorted within a
chunk of CHUNK blocks) and the slots of a state are sorted by length, so little is padded. A chunk
is the unit of parallel work. Each sweep reads one vector and writes another (Jacobi), so the number
of threads does not change the result.

**Rounding** is part of the bound: a backup that sums n terms may be off by n units of rounding of
the largest value. A penalty so large that its action is never chosen does not enter.
"""

from typing import NamedTuple

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

LANES = 8
CHUNK = 128
UNPICKED = 2**32 - 1  # no choice yet
SLIVER = 1e-12  # probability mass below this is rounding
WORTHWHILE = 0.8  # sweep single policies if that reads less than this share of the entries
HASTE = 0.5  # sweep a policy until its error is this share of the last certified one,
HASTY_SWEEPS = 20  # and at most so often;
SETTLING = 30.0  # less hastily where fewer picks changed: this times their share of the states,
DEEPEST = 1e-3  # but no less than this
SLOW = 0.75  # error ratio of two sweeps from which extrapolation is tried,
LEAP_EVERY = 6  # and after how many sweeps
PATIENCE = 12  # sweeps of value iteration after which it must have been faster than SLOW
FORBIDDEN = -1e300  # worth of an action that cannot take mass

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Rows = tuple[Ints, NDArray[np.int32], Floats]
Box = tuple[Floats, Floats, Floats]
Kept = tuple[float, float]
Index = int | np.int64


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


# ---- layout ------------------------------------------------------------------------------------
# Kernels unpack their tuples once per chunk and their helpers take arrays and indices: passing a
# tuple or a view costs an atomic reference count, which would double the time of short rows.


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


@njit(cache=True, forceinline=True)
def _free_mass(box: Box, s: Index) -> float:
    """Probability of s that is left to hand out, 0 if no action has room for it."""
    lower, upper, start = box
    mass, has_room = 0.0, False
    for a in range(lower.shape[1]):
        mass += start[s, a] - lower[s, a]
        has_room |= upper[s, a] > lower[s, a]
    return max(mass, 0.0) if has_room else 0.0


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
            mass = _free_mass(box, s)
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


def _build(
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


def _space_for_picks(layout: Layout) -> Picked:
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


# ---- sweeps ------------------------------------------------------------------------------------


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
def _greedy_serial(
    layout: Layout, picked: Picked, v: Floats, out: Floats
) -> tuple[float, float, int]:
    low, high, changed = np.inf, -np.inf, 0
    for c in range((layout.order.shape[0] + CHUNK - 1) // CHUNK):
        x, y, n = _greedy_chunk(layout, picked, v, out, c)
        low, high, changed = min(low, x), max(high, y), changed + n
    return low, high, changed


@njit(cache=True, parallel=True)
def _greedy_parallel(
    layout: Layout, picked: Picked, v: Floats, out: Floats
) -> tuple[float, float, int]:
    low, high, changed = np.inf, -np.inf, 0
    for c in prange((layout.order.shape[0] + CHUNK - 1) // CHUNK):
        x, y, n = _greedy_chunk(layout, picked, v, out, c)
        low = min(low, x)
        high = max(high, y)
        changed += n
    return low, high, changed


@njit(cache=True)
def _picked_serial(layout: Layout, picked: Picked, v: Floats, out: Floats) -> tuple[float, float]:
    low, high = np.inf, -np.inf
    for c in range((layout.order.shape[0] + CHUNK - 1) // CHUNK):
        x, y = _picked_chunk(layout, picked, v, out, c)
        low, high = min(low, x), max(high, y)
    return low, high


@njit(cache=True, parallel=True)
def _picked_parallel(layout: Layout, picked: Picked, v: Floats, out: Floats) -> tuple[float, float]:
    low, high = np.inf, -np.inf
    for c in prange((layout.order.shape[0] + CHUNK - 1) // CHUNK):
        x, y = _picked_chunk(layout, picked, v, out, c)
        low = min(low, x)
        high = max(high, y)
    return low, high


# ---- bounds ------------------------------------------------------------------------------------


@njit(cache=True)
def _tail(c: float, up: float, down: float) -> float:
    """g(c) = c (k + k^2 + ...): what a change of c at this sweep can still add."""
    k = up if c >= 0.0 else down
    if c == 0.0 or k == 0.0:
        return 0.0
    return c * k / (1.0 - k) if k < 1.0 else np.inf * c


@njit(cache=True)
def _interval(low: float, high: float, kept: Kept) -> tuple[float, float]:
    """Middle and half length of the interval of v* - T v."""
    least, most = kept
    bottom, top = _tail(low, least, most), _tail(high, most, least)
    if not top - bottom < np.inf:
        return 0.0, np.inf
    return (bottom + top) / 2.0, (top - bottom) / 2.0


@njit(cache=True)
def _longest_sum(layout: Layout) -> int:
    """Length of the longest sum in a backup."""
    longest = 0
    for b in range(layout.order.shape[0]):
        lo, hi = layout.first[b], layout.first[b + 1]
        slots = layout.start[min(lo + 2, hi)] - layout.start[lo]
        longest = max(longest, slots + (hi - lo if layout.tight[b] else 1))
    return longest + 4


@njit(cache=True)
def _largest(v: Floats) -> float:
    largest = 0.0
    for x in v:
        largest = max(largest, abs(x))
    return largest


@njit(cache=True)
def _leap_range(u: Floats, v: Floats, w: Floats, c: float) -> tuple[float, float]:
    """Range of T x - x at x = v + c (v - u), where v = T u, w = T v and T is linear."""
    low, high = np.inf, -np.inf
    for s in range(v.size):
        change = (w[s] - v[s]) + c * ((w[s] - v[s]) - (v[s] - u[s]))
        low, high = min(low, change), max(high, change)
    return low, high


@njit(cache=True)
def _leap_in_place(u: Floats, v: Floats, w: Floats, c: float) -> None:
    """Replace v by x = v + c (v - u), and w = T v by T x, where v = T u and T is linear."""
    for s in range(v.size):
        w[s] += c * (w[s] - v[s])
        v[s] += c * (v[s] - u[s])


# ---- driver ------------------------------------------------------------------------------------


def _leap(u: Floats, v: Floats, w: Floats, ratio: float, radius: float, kept: Kept) -> float:
    """Extrapolate v and w in place where that pays; return the radius afterwards.

    When all that is left of the error shrinks by `ratio` per sweep, the sum of its geometric series
    is known. The range of the residual after the leap is computed beforehand, and decides.
    """
    c = ratio / (1.0 - ratio)
    after = _interval(*_leap_range(u, v, w, c), kept)[1]
    if after > 0.7 * radius:
        return radius
    _leap_in_place(u, v, w, c)
    return after


def _iterate(
    layout: Layout, kept: Kept, v0: Floats, tol: float, max_sweeps: int, parallel: bool
) -> tuple[Floats, float, int]:
    """Modified policy iteration with certified bounds, or value iteration where picks do not pay.

    Sweeps of the picked policy go on until its own error is a share of that of the last greedy
    sweep: a small share once that sweep changed few picks. Nothing of this schedule touches the
    bounds, which hold for the last greedy sweep, whatever came before it.
    """
    greedy_sweep = _greedy_parallel if parallel else _greedy_serial
    picked_sweep = _picked_parallel if parallel else _picked_serial
    picked = _space_for_picks(layout)
    unit = _longest_sum(layout) * np.finfo(np.float64).eps / 2.0
    u, v, w = np.empty_like(v0), v0.copy(), np.empty_like(v0)
    greedy, aim, left, last, since_leap = True, 0.0, 0, np.inf, 0
    for sweeps in range(1, max_sweeps + 1):
        if greedy or sweeps == max_sweeps:
            low, high, changed = greedy_sweep(layout, picked, v, w)
            noise = unit * (_largest(v) + _largest(w))
            shift, error = _interval(low - noise, high + noise, kept)
            attainable = 2.0 * _interval(-noise, noise, kept)[1]
            if error <= max(tol, attainable) or sweeps == max_sweeps:
                w += shift
                return w, error, sweeps
        else:
            low, high = picked_sweep(layout, picked, v, w)
        radius = _interval(low, high, kept)[1]
        ratio = radius / last if last > 0.0 else 0.0
        since_leap += 1
        if since_leap >= LEAP_EVERY and SLOW < ratio < 1.0:
            radius, since_leap = _leap(u, v, w, ratio, radius, kept), 0
        last = radius
        u, v, w = v, w, u
        if greedy and picked.choice.size > 0:
            share = min(HASTE, max(DEEPEST, SETTLING * changed / v0.size))
            aim = max(share * error, tol)
            left = HASTY_SWEEPS if share == HASTE else max_sweeps
            greedy, since_leap = False, 0
        elif not greedy:
            left -= 1
            greedy = radius <= aim or left == 0
    return v, np.inf, 0


# ---- boxes that hold mass ----------------------------------------------------------------------
# Where part of every policy is fixed, as in Pi_b-SPIBB, sweeps of one policy read nearly as much as
# greedy ones, and a layout does not pay: value iteration reads the rows as they are.


class Task(NamedTuple):
    """The rows as they are, unsigned to spare the test for negative indices, and the box."""

    indptr: NDArray[np.uint64]  # [S * A + 1]
    successors: NDArray[np.uint32]
    probs: Floats
    rewards: Floats  # [S, A]
    lower: Floats  # [S, A]
    penalty: Floats  # 0 for actions that can take mass, FORBIDDEN for others [S, A]
    masses: Floats  # [S]
    discount: float


@njit(cache=True)
def _describe(rows: Rows, box: Box, penalty: Floats, masses: Floats) -> tuple[float, float, bool]:
    """Fill masses [S], and penalty [S, A] with 0 for free actions, -inf-like for the others.

    Return the least and most that a row of a usable action sums to, and whether some free action
    cannot take all the free mass of its state.
    """
    indptr, _, probs = rows
    lower, upper, _ = box
    n_states, n_actions = lower.shape
    least, most, tight = np.inf, 0.0, False
    for s in range(n_states):
        masses[s] = _free_mass(box, s)
        for a in range(n_actions):
            room = upper[s, a] - lower[s, a]
            penalty[s, a] = 0.0 if room > 0.0 or masses[s] == 0.0 else FORBIDDEN
            tight |= 0.0 < room < masses[s] - SLIVER
            if room > 0.0 or lower[s, a] > 0.0:
                total = 0.0
                for k in range(indptr[s * n_actions + a], indptr[s * n_actions + a + 1]):
                    total += probs[k]
                least, most = min(least, total), max(most, total)
    return min(least, most), most, tight


@njit(cache=True, fastmath={"contract", "reassoc"})
def _direct_chunk(task: Task, v: Floats, out: Floats, c: int) -> tuple[float, float]:
    """T v of the states of chunk c, for a box that is not tight; the range of T v - v.

    No branch depends on a value: half of them would be mispredicted.
    """
    indptr, successors, probs, rewards, lower, penalty, masses, discount = task
    n_actions = lower.shape[1]
    low, high = np.inf, -np.inf
    for s in range(c * CHUNK * LANES, min(v.size, (c + 1) * CHUNK * LANES)):
        best, value = 2.0 * FORBIDDEN, 0.0
        k = indptr[s * n_actions]
        for a in range(n_actions):
            end = indptr[s * n_actions + a + 1]
            total = 0.0
            while k < end:
                total += probs[k] * v[successors[k]]
                k += np.uint64(1)
            q = rewards[s, a] + discount * total
            value += lower[s, a] * q
            best = max(best, q + penalty[s, a])
        value += masses[s] * best
        out[s] = value
        low, high = min(low, value - v[s]), max(high, value - v[s])
    return low, high


@njit(cache=True)
def _direct_serial(task: Task, v: Floats, out: Floats) -> tuple[float, float]:
    low, high = np.inf, -np.inf
    for c in range((v.size + CHUNK * LANES - 1) // (CHUNK * LANES)):
        x, y = _direct_chunk(task, v, out, c)
        low, high = min(low, x), max(high, y)
    return low, high


@njit(cache=True, parallel=True)
def _direct_parallel(task: Task, v: Floats, out: Floats) -> tuple[float, float]:
    low, high = np.inf, -np.inf
    for c in prange((v.size + CHUNK * LANES - 1) // (CHUNK * LANES)):
        x, y = _direct_chunk(task, v, out, c)
        low = min(low, x)
        high = max(high, y)
    return low, high


def _value_iteration(
    rows: Rows, rewards: Floats, discount: float, box: Box, v0: Floats, tol: float,
    max_sweeps: int, parallel: bool,
) -> tuple[Floats, float, int] | None:  # fmt: skip
    """Certified value iteration on the rows as they are; None where it would be slow or wrong."""
    penalty, masses = np.empty(rewards.shape), np.empty(len(rewards))
    least, most, tight = _describe(rows, box, penalty, masses)
    if tight:
        return None
    task = Task(
        indptr=rows[0].astype(np.int64, copy=False).view(np.uint64),
        successors=rows[1].view(np.uint32),
        probs=rows[2],
        rewards=rewards,
        lower=box[0],
        penalty=penalty,
        masses=masses,
        discount=discount,
    )
    kept = discount * least, discount * most
    sweep = _direct_parallel if parallel else _direct_serial
    terms = int(np.diff(rows[0]).max(initial=0)) + rewards.shape[1] + 4
    v, w, errors = v0.copy(), np.empty_like(v0), []
    for sweeps in range(1, max_sweeps + 1):
        low, high = sweep(task, v, w)
        noise = terms * np.finfo(np.float64).eps / 2.0 * (_largest(v) + _largest(w))
        shift, error = _interval(low - noise, high + noise, kept)
        attainable = 2.0 * _interval(-noise, noise, kept)[1]
        if error <= max(tol, attainable) or sweeps == max_sweeps:
            return w + shift, error, sweeps
        errors.append(error)
        if len(errors) > PATIENCE and error > SLOW**PATIENCE * errors[-1 - PATIENCE]:
            return None
        v, w = w, v
    return None


# ---- public ------------------------------------------------------------------------------------


def optimise(
    rows: Rows,
    rewards: Floats,
    discount: float,
    box: Box,
    v0: Floats,
    tol: float,
    max_sweeps: int,
    parallel: bool = False,
) -> tuple[Floats, float, int]:
    """Optimal values [S] of the box-constrained MDP, a bound on their error, sweeps taken.

    rows = (indptr [S * A + 1], successors, probs): row s * A + a is P(. | s, a) and may be empty.
    box = (lower, upper, start), each [S, A] and C-contiguous: the policies with
    lower <= pi <= upper, of which start is one. The error in the sup norm is at most the bound,
    which is at most tol unless max_sweeps ran out, or rounding does not allow it.
    """
    if (box[0] > 0.0).any() and (box[1] > box[0]).any():
        found = _value_iteration(rows, rewards, discount, box, v0, tol, max_sweeps, parallel)
        if found is not None:
            return found
    layout, kept = _build(rows, rewards, discount, box, parallel)
    return _iterate(layout, kept, v0, tol, max_sweeps, parallel)


def evaluate(
    rows: Rows,
    rewards: Floats,
    discount: float,
    pi: Floats,
    v0: Floats,
    tol: float,
    max_sweeps: int,
    parallel: bool = False,
) -> tuple[Floats, float, int]:
    """Values [S] of the policy pi [S, A], a bound on their error, sweeps taken; see `optimise`."""
    return optimise(rows, rewards, discount, (pi, pi, pi), v0, tol, max_sweeps, parallel)


@njit(cache=True)
def q_from_v(rows: Rows, rewards: Floats, discount: float, v: Floats) -> Floats:
    """q(s, a) = rewards(s, a) + discount * sum_s' P(s' | s, a) v(s')  [S, A]."""
    indptr, successors, probs = rows
    n_states, n_actions = rewards.shape
    q = np.empty((n_states, n_actions))
    for s in range(n_states):
        for a in range(n_actions):
            row, total = s * n_actions + a, 0.0
            for k in range(indptr[row], indptr[row + 1]):
                total += probs[k] * v[np.uint32(successors[k])]
            q[s, a] = rewards[s, a] + discount * total
    return q
