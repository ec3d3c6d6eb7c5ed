"""Robust MDP as the authors' released code computes it; for the paper's curves only.

There, the goal is a state, a reward belongs to the state that is entered, and the adversary moves
both. Values stop changing after few sweeps, and the last maximum leaves out every pair whose
adversarial row does not sum to exactly 1 in floating point. The numbers below are those of that
code; so is the order of every sum that decides what is left out.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from spibb.kernels import dense
from spibb.kernels.tuples import Rows

MAX_SWEEPS = 200
MAX_RESIDUAL = 0.005
"""Sweeps stop when no value changes by more."""
SMALL = 15
LANES = 8
"""NumPy adds up to 128 numbers in so many interleaved sums."""


@njit(cache=True)
def place_of_end(rows, counts: np.ndarray) -> int:
    """The last state that the log never shows, whose place in rows the goal takes; else S."""
    n_states = len(counts)
    shown = np.zeros(n_states, dtype=np.bool_)
    for s in range(n_states):
        for a in range(counts.shape[1]):
            shown[s] = shown[s] or counts[s, a] > 0
    for k in range(len(rows.successors)):
        shown[rows.successors[k]] = True
    for s in range(n_states - 1, -1, -1):
        if not shown[s]:
            return s
    return n_states


@njit(cache=True)
def with_goal(rows, counts: np.ndarray, goal: int):
    """The rows with the goal as a state, sorted by successor; empty where a pair is unseen."""
    n_pairs = len(rows.indptr) - 1
    flat = counts.ravel()
    indptr = np.zeros(n_pairs + 1, dtype=np.int64)
    successors = np.empty(len(rows.probs) + n_pairs, dtype=np.int32)
    probs = np.empty(len(successors))
    i = 0
    for p in range(n_pairs):
        n, stays, placed = flat[p], 0.0, False
        for k in range(rows.indptr[p], rows.indptr[p + 1]):
            stays += rows.probs[k]
        ends = np.round(n * dense.rest(stays)) / max(n, 1)
        for k in range(rows.indptr[p], rows.indptr[p + 1]):
            if not placed and rows.successors[k] > goal and ends > 0.0:
                successors[i], probs[i], placed = goal, ends, True
                i += 1
            successors[i], probs[i] = rows.successors[k], rows.probs[k]
            i += 1
        if not placed and ends > 0.0:
            successors[i], probs[i] = goal, ends
            i += 1
        indptr[p + 1] = i
    return Rows(indptr, successors[:i].copy(), probs[:i].copy())


@njit(cache=True)
def adverse(rows, p: int, budget: float, rank: np.ndarray, worst: int, masses: np.ndarray):
    """The adversary's row of pair p: up to `budget` moves from the best states to the worst.

    Fills `masses` [n + 1] with those of the pair's n successors and, last, with that of the worst
    state if it is none of them.
    """
    first, n = rows.indptr[p], rows.indptr[p + 1] - rows.indptr[p]
    at = n
    for k in range(n):
        masses[k] = rows.probs[first + k]
        if rows.successors[first + k] == worst:
            at = k
    masses[n] = 0.0
    left = min(budget, 1.0 - masses[at])
    masses[at] += left
    below = len(rank)
    for _ in range(n + 1):
        best, highest = at, -1
        for k in range(n):
            if highest < rank[rows.successors[first + k]] < below:
                best, highest = k, rank[rows.successors[first + k]]
        below = highest
        taken = min(left, masses[best])
        masses[best] -= taken
        left -= taken
        if left <= 0.0:
            break


@njit(cache=True)
def total_as_numpy(x: np.ndarray) -> float:
    """The sum of up to 128 numbers in the order in which NumPy adds them."""
    if len(x) < LANES:
        total = 0.0
        for value in x:
            total += value
        return total
    lanes = x[:LANES].copy()
    whole = len(x) - len(x) % LANES
    for i in range(LANES, whole):
        lanes[i % LANES] += x[i]
    total = ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + (
        (lanes[4] + lanes[5]) + (lanes[6] + lanes[7])
    )
    for i in range(whole, len(x)):
        total += x[i]
    return total


@njit(cache=True)
def sums_to_one(rows, p: int, masses: np.ndarray, worst: int, row: np.ndarray) -> bool:
    """Whether the adversary's row of a pair sums to 1 to the last bit; `row` [n] is room for it."""
    for s in range(len(row)):
        row[s] = 0.0
    first, n = rows.indptr[p], rows.indptr[p + 1] - rows.indptr[p]
    row[worst] = masses[n]
    for k in range(n):
        row[rows.successors[first + k]] = masses[k]
    return total_as_numpy(row) == 1.0


@njit(cache=True, inline="always")
def exchange(order: np.ndarray, i: int, j: int):
    """Swap two entries."""
    order[i], order[j] = order[j], order[i]


@njit(cache=True)
def partition(x: np.ndarray, order: np.ndarray, low: int, high: int) -> int:
    """Split order[low … high] at the median of its first, middle and last; gives its place."""
    middle = low + (high - low) // 2
    for i, j in ((middle, low), (high, middle), (middle, low)):
        if x[order[i]] < x[order[j]]:
            exchange(order, i, j)
    pivot, i, j = x[order[middle]], low, high - 1
    exchange(order, middle, j)
    while True:
        i, j = i + 1, j - 1
        while x[order[i]] < pivot:
            i += 1
        while pivot < x[order[j]]:
            j -= 1
        if i >= j:
            exchange(order, i, high - 1)
            return i
        exchange(order, i, j)


@njit(cache=True)
def argsort_as_numpy(x: np.ndarray, order: np.ndarray):
    """The order of `x` [n] that NumPy's quicksort gives, equals included, into `order` [n].

    That of the versions of the paper's time, and of later ones on processors without vector
    instructions: parts of at most 16 are sorted by insertion.
    """
    ends = np.empty((len(x) + 1, 2), dtype=np.int64)
    ends[0, 0], ends[0, 1], waiting = 0, len(x) - 1, 1
    for i in range(len(x)):
        order[i] = i
    while waiting > 0:
        waiting -= 1
        low, high = ends[waiting]
        if high - low > SMALL:
            middle = partition(x, order, low, high)
            ends[waiting, 0], ends[waiting, 1] = low, middle - 1
            ends[waiting + 1, 0], ends[waiting + 1, 1] = middle + 1, high
            waiting += 2
            continue
        for i in range(low + 1, high + 1):
            moved, j = order[i], i
            while j > low and x[moved] < x[order[j - 1]]:
                order[j] = order[j - 1]
                j -= 1
            order[j] = moved


@njit(cache=True)
def rank_states(v: np.ndarray, discount: float, goal: int, reward: float, x, rank) -> int:
    """What entering each state is worth into `x` [n], its rank into `rank` [n]; gives the worst."""
    for s in range(len(v)):
        x[s] = discount * v[s]
    x[goal] = reward
    order = np.empty(len(x), dtype=np.int64)
    argsort_as_numpy(x, order)
    for i in range(len(order)):
        rank[order[i]] = i
    return order[0]


@njit(cache=True)
def sweep(rows, budget: np.ndarray, x, rank, worst: int, q: np.ndarray, masses: np.ndarray):
    """Q of every pair against the adversary into `q` [S, A]; unseen pairs are worth 0."""
    flat, budgets = q.ravel(), budget.ravel()
    for p in range(len(flat)):
        first, n = rows.indptr[p], rows.indptr[p + 1] - rows.indptr[p]
        flat[p] = 0.0
        if n > 0:
            adverse(rows, p, budgets[p], rank, worst, masses)
            flat[p] = masses[n] * x[worst]
            for k in range(n):
                flat[p] += masses[k] * x[rows.successors[first + k]]


@njit(cache=True)
def raise_values(q: np.ndarray, v: np.ndarray) -> float:
    """The highest of every row into `v` [S], and the largest change."""
    residual = 0.0
    for s in range(len(v)):
        highest = q[s, 0]
        for a in range(1, q.shape[1]):
            highest = max(highest, q[s, a])
        residual = max(residual, abs(highest - v[s]))
        v[s] = highest
    return residual


@njit(cache=True)
def choose(rows, budget: np.ndarray, rank, worst: int, q: np.ndarray, masses, pi: np.ndarray):
    """The first of the best actions that are left in; the first of all where none is [S, A]."""
    row = np.empty(len(rank))
    for s in range(len(q)):
        chosen = -1
        for a in range(q.shape[1]):
            p = s * q.shape[1] + a
            pi[s, a] = 0.0
            if rows.indptr[p + 1] > rows.indptr[p]:
                adverse(rows, p, budget[s, a], rank, worst, masses)
                left_in = sums_to_one(rows, p, masses, worst, row)
                if left_in and (chosen < 0 or q[s, a] > q[s, chosen]):
                    chosen = a
        pi[s, max(chosen, 0)] = 1.0


@njit(cache=True)
def policy(data, log_term: float, pi: np.ndarray):
    """Robust MDP with errors e = √(2 · log_term/N), half of which is the mass that moves: `pi`."""
    counts, discount = data.model.counts, data.model.discount
    goal = place_of_end(data.model.rows, counts)
    rows = with_goal(data.model.rows, counts, goal)
    budget, q, v = np.zeros(counts.shape), np.empty(counts.shape), np.zeros(len(counts))
    for s in range(len(counts)):
        for a in range(counts.shape[1]):
            budget[s, a] = np.sqrt(2.0 / max(counts[s, a], 1) * log_term) / 2.0
    n = max(len(counts), goal + 1)
    x, rank, masses = np.empty(n), np.empty(n, dtype=np.int64), np.empty(n + 1)
    worst = 0
    for _ in range(MAX_SWEEPS):
        worst = rank_states(v, discount, goal, data.r_high, x, rank)
        sweep(rows, budget, x, rank, worst, q, masses)
        if raise_values(q, v) <= MAX_RESIDUAL:
            break
    choose(rows, budget, rank, worst, q, masses, pi)
