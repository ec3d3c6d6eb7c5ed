"""Small problems: exact policy evaluation and policy iteration with a dense matrix.

**Accuracy.** I − γP_π is an M-matrix: its off-diagonal entries are negative, and every row has a
positive sum, the mass lost by discounting and by ends. Elimination that carries these sums along,
and takes each pivot from them and from the other entries, subtracts nothing (Grassmann, Taksar &
Heyman 1985; Alfa, Xue & Ye 2002). Its error is a few roundings of the values that |R| instead of R
would have, the `sizes` of the values, however close γ is to 1. Differences of Q within it are ties.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from spibb.kernels import simd
from spibb.kernels.projection import project
from spibb.kernels.tuples import Box

MAX_ITERATIONS = 1_000
"""Evaluations after which policy iteration gives up."""
PATIENCE = 200
"""Evaluations after which it keeps rows that tie, so that it cannot go in circles."""
ROUNDING = 4e-15
"""Error of a value and of Q, in terms of the size of the value; measured: below 6e-16."""
WHOLE = 1e-14
"""A row that misses 1 by less than this is rounded, and does not end."""
EXTRA = 3
"""Columns behind the states in a linear system: the mass lost, R and |R|."""
ALIGNED = 8
"""Numbers in a line of the cache: the rows of a system begin at multiples."""


@njit(cache=True, inline="always")
def rest(total: float) -> float:
    """What a row with this sum leaves out of 1, at least 0, and 0 where that is rounding."""
    return 1.0 - total if total < 1.0 - WHOLE else 0.0


@njit(cache=True)
def left_out(indptr: np.ndarray, probs: np.ndarray) -> np.ndarray:
    """What each row of P leaves out of 1 [P]."""
    out = np.empty(len(indptr) - 1)
    for p in range(len(out)):
        total = 0.0
        for k in range(indptr[p], indptr[p + 1]):
            total += probs[k]
        out[p] = rest(total)
    return out


@njit(cache=True)
def empty_system(n_states: int) -> np.ndarray:
    """Room for a linear system: [S, S + 3], and columns of zeros behind."""
    lines = (n_states + EXTRA + ALIGNED - 1) // ALIGNED
    return np.empty((n_states, lines * ALIGNED))


@njit(cache=True, fastmath={"contract"})
def build_system(rows, rewards, discount: float, pi: np.ndarray, system):
    """Fill `system` with −γP_π [S, S], the mass that P_π keeps, R_π and |R|_π."""
    indptr, successors, probs = rows
    n_states, n_actions = rewards.shape
    width = np.uint64(system.shape[1])
    flat = system.ravel()
    for k in range(np.uint64(0), np.uint64(len(flat)), np.uint64(simd.LANES)):
        simd.store(flat, k, simd.zeros())
    for s in range(n_states):
        row = np.uint64(s) * width
        kept = reward = size = 0.0
        for a in range(n_actions):
            weight = pi[s, a]
            if weight == 0.0:
                continue
            reward += weight * rewards[s, a]
            size += weight * abs(rewards[s, a])
            p = s * n_actions + a
            for k in range(np.uint64(indptr[p]), np.uint64(indptr[p + 1])):
                flat[row + np.uint64(successors[k])] -= discount * weight * probs[k]
                kept += weight * probs[k]
        last = row + np.uint64(n_states)
        flat[last], flat[last + np.uint64(1)], flat[last + np.uint64(2)] = kept, reward, size


@njit(cache=True, inline="always")
def close_system(system: np.ndarray, discount: float):
    """Replace the mass kept in `system` by the mass lost: 1 − γ·kept, without cancellation."""
    n = len(system)
    for s in range(n):
        system[s, n] = (1.0 - discount) + discount * rest(system[s, n])


@njit(cache=True, fastmath={"contract"}, inline="always")
def pivot_of(flat: np.ndarray, row, at, n) -> float:
    """The diagonal entry in column `at` of a row: the mass lost, and the entries behind it."""
    one, four = np.uint64(1), np.uint64(simd.LANES)
    pivot, others = flat[row + n], simd.zeros()
    j = at + one
    while j < n and j % four > 0:
        pivot -= flat[row + j]
        j += one
    while j + four <= n:
        others = simd.minus(others, 1.0, simd.load(flat, row + j))
        j += four
    while j < n:
        pivot -= flat[row + j]
        j += one
    return pivot + simd.total(others)


@njit(cache=True, fastmath={"contract"}, inline="always")
def eliminate_block(flat: np.ndarray, k, count, n, width, inverses: np.ndarray):
    """Eliminate within the rows k … k + count − 1; `inverses` [S] gets one over their pivots.

    What is left of a pivot is never read again, and may be changed.
    """
    one, four = np.uint64(1), np.uint64(simd.LANES)
    for b in range(count):
        at = k + b
        row = at * width
        inverses[at] = 1.0 / pivot_of(flat, row, at, n)
        for c in range(b + one, count):
            other = (k + c) * width
            factor = flat[other + at] * inverses[at]
            if factor != 0.0:
                for j in range(k, n + np.uint64(EXTRA), four):
                    x = simd.load(flat, other + j)
                    x = simd.minus(x, factor, simd.load(flat, row + j))
                    simd.store(flat, other + j, x)


@njit(cache=True, fastmath={"contract"})
def solve_system(system: np.ndarray, discount: float):
    """V [S] and the values of |R| [S] of a system, which is destroyed.

    The diagonal is never read. Rows with zeros in the pivot columns are skipped, which many are in
    a sparse problem. Four pivots at a time save traffic of the rows below; unsigned indices into
    the flat matrix spare Numba's test for negative ones, a third of the time.
    """
    close_system(system, discount)
    n, one, two, three, four = (np.uint64(len(system)), np.uint64(1), np.uint64(2), np.uint64(3),
                                np.uint64(simd.LANES))  # fmt: skip
    width, end = np.uint64(system.shape[1]), n + np.uint64(EXTRA)
    flat, inverses = system.ravel(), np.empty(len(system))
    k = np.uint64(0)
    while True:
        eliminate_block(flat, k, min(four, n - k), n, width, inverses)
        if k + four >= n:
            return substitute(system, inverses)
        i0, i1 = inverses[k], inverses[k + one]
        i2, i3 = inverses[k + two], inverses[k + three]
        r0 = k * width
        r1, r2, r3 = r0 + width, r0 + two * width, r0 + three * width
        for i in range(k + four, n):
            row = i * width
            at = row + k
            f0 = flat[at] * i0
            f1 = (flat[at + one] - f0 * flat[r0 + k + one]) * i1
            f2 = (flat[at + two] - f0 * flat[r0 + k + two] - f1 * flat[r1 + k + two]) * i2
            f3 = (flat[at + three] - f0 * flat[r0 + k + three] - f1 * flat[r1 + k + three]
                  - f2 * flat[r2 + k + three]) * i3  # fmt: skip
            if f0 != 0.0 or f1 != 0.0 or f2 != 0.0 or f3 != 0.0:
                for j in range(k + four, end, four):
                    x = simd.load(flat, row + j)
                    x = simd.minus(x, f0, simd.load(flat, r0 + j))
                    x = simd.minus(x, f1, simd.load(flat, r1 + j))
                    x = simd.minus(x, f2, simd.load(flat, r2 + j))
                    x = simd.minus(x, f3, simd.load(flat, r3 + j))
                    simd.store(flat, row + j, x)
        k += four


@njit(cache=True, fastmath={"contract"}, inline="always")
def substitute(system: np.ndarray, inverses: np.ndarray):
    """V [S] and the values of |R| [S] from an eliminated system, last state first.

    Behind the states both are 0, so that rows may be read in fours.
    """
    n, one, four = np.uint64(len(system)), np.uint64(1), np.uint64(simd.LANES)
    width = np.uint64(system.shape[1])
    flat, v, sizes = system.ravel(), np.zeros(width), np.zeros(width)
    i = n
    while i > 0:
        i -= one
        row, j = i * width, i + one
        value, size = flat[row + n + one], flat[row + n + one + one]
        while j % four > 0:
            value -= flat[row + j] * v[j]
            size -= flat[row + j] * sizes[j]
            j += one
        values_behind, sizes_behind = simd.zeros(), simd.zeros()
        while j < n:
            entries = simd.load(flat, row + j)
            values_behind = simd.plus(values_behind, entries, simd.load(v, j))
            sizes_behind = simd.plus(sizes_behind, entries, simd.load(sizes, j))
            j += four
        v[i] = (value - simd.total(values_behind)) * inverses[i]
        sizes[i] = (size - simd.total(sizes_behind)) * inverses[i]
    return v[: len(system)], sizes[: len(system)]


@njit(cache=True)
def values(rows, rewards, discount: float, pi: np.ndarray):
    """V^π [S], exactly: (I − γP_π)⁻¹ R_π; and the values of |R| [S], which bound its rounding."""
    system = empty_system(len(rewards))
    build_system(rows, rewards, discount, pi, system)
    return solve_system(system, discount)


@njit(cache=True)
def evaluate(rows, rewards, discount: float, pi: np.ndarray) -> np.ndarray:
    """V^π [S] alone."""
    return values(rows, rewards, discount, pi)[0]


@njit(cache=True, fastmath={"contract"})
def q_row(rows, rewards, discount: float, v: np.ndarray, s: int, q: np.ndarray):
    """Q(s, ·) = R + γ P v into row s of `q` [S, A]; a view of the row would be counted."""
    n_actions = rewards.shape[1]
    for a in range(n_actions):
        p = s * n_actions + a
        total = 0.0
        for k in range(np.uint64(rows.indptr[p]), np.uint64(rows.indptr[p + 1])):
            total += rows.probs[k] * v[np.uint64(rows.successors[k])]
        q[s, a] = rewards[s, a] + discount * total


@njit(cache=True)
def q_values(rows, rewards, discount: float, v: np.ndarray) -> np.ndarray:
    """Q = R + γ P v [S, A]."""
    q = np.empty(rewards.shape)
    for s in range(len(rewards)):
        q_row(rows, rewards, discount, v, s, q)
    return q


@njit(cache=True)
def improve(rows, rewards, discount: float, box, v, ties, pi, q) -> float:
    """One policy improvement step in every state; fills `pi` and `q` [S, A].

    Gains of up to ties(s) [S] are rounding. Returns the largest gain of a state's new row over
    v(s), less that. Where a tie keeps a row that is not the best, it is judged again by the
    rounding of the actions that can take or give mass: others may be worth far more.
    """
    gain = -np.inf
    for s in range(len(v)):
        q_row(rows, rewards, discount, v, s, q)
        value = project(q, box, ties[s], pi, s)
        if not is_best(q, box, pi, s):
            tie = rounding_of_choice(rows, rewards, box, ties, s)
            if tie < ties[s]:
                value = project(q, box, tie, pi, s)
        gain = max(gain, value - v[s] - ties[s])
    return gain


@njit(cache=True)
def rounding_of_choice(rows, rewards, box, ties: np.ndarray, s: int) -> float:
    """The largest rounding of Q among the actions of s that can take or give mass."""
    lower, upper = box.lower, box.upper
    n_actions = rewards.shape[1]
    found = 0.0
    for a in range(n_actions):
        if upper[s, a] > lower[s, a]:
            own = ROUNDING * abs(rewards[s, a]) + rounding_of_row(rows, ties, s * n_actions + a)
            found = max(found, own)
    return found


@njit(cache=True, inline="always")
def scale_by(x: float, a: np.ndarray):
    """a ← x·a for an array [S]."""
    for s in range(len(a)):
        a[s] *= x


@njit(cache=True, inline="always")
def is_best(q, box, pi, s: int) -> bool:
    """Whether no mass of row s of `pi` could move to a better action."""
    least, most = np.inf, -np.inf
    for a in range(q.shape[1]):
        least = min(least, q[s, a]) if pi[s, a] > box.lower[s, a] else least
        most = max(most, q[s, a]) if pi[s, a] < box.upper[s, a] else most
    return most <= least


@njit(cache=True)
def hidden_gains(q: np.ndarray, box, pi: np.ndarray) -> np.ndarray:
    """What each state's best row gains over its row of `pi`, which was chosen by a tie [S]."""
    best, gains = np.empty(q.shape), np.zeros(len(q))
    for s in range(len(q)):
        if is_best(q, box, pi, s):
            continue
        project(q, box, 0.0, best, s)
        for a in range(q.shape[1]):  # what does not move cancels, however large
            gains[s] += (best[s, a] - pi[s, a]) * q[s, a]
    return gains


class ExactValues(NamedTuple):
    """V [S] of the policy found, its rounding `ties` [S], and the number of evaluations.

    `settled` says that the last improvement step found nothing more to gain.
    """

    v: np.ndarray
    ties: np.ndarray
    iterations: int
    settled: bool


@njit(cache=True)
def policy_iteration(rows, rewards, discount: float, box, pi, q):
    """Policy iteration over a box of policies: fills `pi` and `q` [S, A].

    Starts from the policy in `pi`, which must be feasible. Returns the fields of `ExactValues`.
    Ties that go back to `box.start` can undo a gain elsewhere, and again: after many steps they
    keep the row that is there.
    """
    v, ties = np.empty(0), np.empty(0)
    within = Box(box.lower, box.upper, np.empty(pi.shape))
    copy(box.start, within.start)
    gain, iterations = np.inf, 0
    while gain > 0.0 and iterations < MAX_ITERATIONS:
        if iterations >= PATIENCE:
            copy(pi, within.start)
        v, ties = values(rows, rewards, discount, pi)
        scale_by(ROUNDING, ties)
        gain = improve(rows, rewards, discount, within, v, ties, pi, q)
        iterations += 1
    return v, ties, iterations, gain <= 0.0


@njit(cache=True, inline="always")
def rounding_of_row(rows, ties: np.ndarray, p: int) -> float:
    """Rounding of Q in pair p, whose successors' values are rounded by `ties` [S]."""
    indptr, successors, probs = rows
    total = 0.0
    for k in range(indptr[p], indptr[p + 1]):
        total += probs[k] * ties[successors[k]]
    return total


@njit(cache=True, inline="always")
def same_rows(rows, p: int, other: int) -> bool:
    """Whether two pairs have the same successors with the same probabilities."""
    indptr, successors, probs = rows
    shift = indptr[other] - indptr[p]
    if indptr[other + 1] - indptr[p + 1] != shift:
        return False
    for k in range(indptr[p], indptr[p + 1]):
        if successors[k] != successors[k + shift] or probs[k] != probs[k + shift]:
            return False
    return True


@njit(cache=True)
def doubt(rows, rewards, box, pi: np.ndarray, q: np.ndarray, ties: np.ndarray) -> float:
    """What the best choice may gain over `pi` in one step in some state, given the rounding.

    It is 0 where mass could move only to actions that are worse by more than rounding, or that
    differ in nothing: then `pi` is optimal, although rounding divided by 1 − γ may be large.
    """
    lower, upper = box.lower, box.upper
    n_actions = pi.shape[1]
    worst = 0.0
    for s in range(len(pi)):
        for a in range(n_actions):
            for b in range(n_actions):
                if a == b or pi[s, a] <= lower[s, a] or pi[s, b] >= upper[s, b]:
                    continue
                p, other = s * n_actions + a, s * n_actions + b
                gain = rewards[s, b] - rewards[s, a]
                if not same_rows(rows, p, other):
                    gain = q[s, b] - q[s, a]
                    gain += rounding_of_row(rows, ties, p) + rounding_of_row(rows, ties, other)
                worst = max(worst, gain)
    return worst


@njit(cache=True)
def copy(a: np.ndarray, out: np.ndarray):
    """out = a for two tables [S, A]; Numba takes seconds to compile the assignment of slices."""
    for s in range(len(a)):
        for k in range(a.shape[1]):
            out[s, k] = a[s, k]


@njit(cache=True, inline="always")
def optimise_each(rows, rewards, discount: float, box, pis: np.ndarray):
    """The best policies of one box for several tables of rewards: fills `pis`, both [M, S, A].

    Each search starts from the policy found before, which is near where rewards differ little.
    """
    q = np.empty(pis.shape[1:])
    for m in range(len(pis)):
        copy(pis[m - 1] if m > 0 else box.start, pis[m])
        policy_iteration(rows, rewards[m], discount, box, pis[m], q)


@njit(cache=True)
def equal(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two tables [S, A] are the same, number by number."""
    for s in range(len(a)):
        for k in range(a.shape[1]):
            if a[s, k] != b[s, k]:
                return False
    return True


@njit(cache=True)
def combine(x: float, a: np.ndarray, y: float, b: np.ndarray, out: np.ndarray):
    """out = x·a + y·b, three tables [S, A]."""
    for s in range(len(a)):
        for k in range(a.shape[1]):
            out[s, k] = x * a[s, k] + y * b[s, k]


@njit(cache=True)
def expectation(weights: np.ndarray, v: np.ndarray) -> float:
    """Σ_s weights · v."""
    total = 0.0
    for s in range(len(v)):
        total += weights[s] * v[s]
    return total


@njit(cache=True, inline="always")
def performance(rows, rewards, discount: float, initial, pi) -> float:
    """ρ(π, M) from weights of the initial states [S]."""
    return expectation(initial, evaluate(rows, rewards, discount, pi))


@njit(cache=True)
def performances(task, policies: np.ndarray) -> np.ndarray:
    """ρ(π, M) of each policy [M, S, A]: [M]. Neighbours are often equal, and evaluated once."""
    rows, rewards, discount, initial = task.rows, task.rewards, task.discount, task.initial
    rho = np.empty(len(policies))
    for m in range(len(policies)):
        if m > 0 and equal(policies[m], policies[m - 1]):
            rho[m] = rho[m - 1]
        else:
            rho[m] = performance(rows, rewards, discount, initial, policies[m])
    return rho
