"""Small problems: exact policy evaluation and policy iteration with a dense matrix."""

from __future__ import annotations

import numpy as np
from numba import njit

from spibb.kernels.projection import project

MAX_ITERATIONS = 1_000
"""Evaluations after which policy iteration gives up."""


@njit(cache=True)
def left_out(indptr: np.ndarray, probs: np.ndarray) -> np.ndarray:
    """What each row of P leaves out of 1, at least 0 [P]."""
    out = np.empty(len(indptr) - 1)
    for p in range(len(out)):
        total = 0.0
        for k in range(indptr[p], indptr[p + 1]):
            total += probs[k]
        out[p] = max(0.0, 1.0 - total)
    return out


@njit(cache=True, fastmath={"contract"})
def build_system(rows, rewards, discount: float, pi: np.ndarray, matrix, v):
    """Fill `matrix` [S, S] with I − γP_π and `v` [S] with R_π."""
    indptr, successors, probs = rows
    n_states, n_actions = rewards.shape
    flat = matrix.ravel()
    for k in range(len(flat)):
        flat[k] = 0.0
    for s in range(n_states):
        row = np.uint64(s * n_states)
        flat[row + np.uint64(s)] = 1.0
        reward = 0.0
        for a in range(n_actions):
            weight = pi[s, a]
            if weight == 0.0:
                continue
            reward += weight * rewards[s, a]
            p = s * n_actions + a
            for k in range(np.uint64(indptr[p]), np.uint64(indptr[p + 1])):
                flat[row + np.uint64(successors[k])] -= discount * weight * probs[k]
        v[s] = reward


@njit(cache=True, fastmath={"contract", "reassoc"})
def solve_m_matrix(matrix: np.ndarray, v: np.ndarray):
    """Solve matrix · x = v in place of `v`, destroying `matrix`.

    I − γP is a diagonally dominant M-matrix: elimination needs no pivoting, and rows with zeros in
    the pivot columns are skipped, which many are in a sparse problem. Two pivots at a time halve
    the traffic of the rows below, a fifth of the time at 50 states; unsigned indices into the flat
    matrix spare Numba's test for negative ones, a third.
    """
    n, one, two = np.uint64(len(v)), np.uint64(1), np.uint64(2)
    flat = matrix.ravel()
    k = np.uint64(0)
    while k + one < n:
        top, next_top = k * n, (k + one) * n
        inverse = 1.0 / flat[top + k]
        factor = flat[next_top + k] * inverse
        if factor != 0.0:
            for j in range(k + one, n):
                flat[next_top + j] -= factor * flat[top + j]
            v[k + one] -= factor * v[k]
        next_inverse = 1.0 / flat[next_top + k + one]
        for i in range(k + two, n):
            row = i * n
            factor = flat[row + k] * inverse
            next_factor = (flat[row + k + one] - factor * flat[top + k + one]) * next_inverse
            if factor != 0.0 or next_factor != 0.0:
                for j in range(k + two, n):
                    flat[row + j] -= factor * flat[top + j] + next_factor * flat[next_top + j]
                v[i] -= factor * v[k] + next_factor * v[k + one]
        k += two
    for i in range(len(v) - 1, -1, -1):
        total = v[i]
        for j in range(i + 1, len(v)):
            total -= matrix[i, j] * v[j]
        v[i] = total / matrix[i, i]


@njit(cache=True)
def evaluate(rows, rewards, discount: float, pi: np.ndarray) -> np.ndarray:
    """V^π [S], exactly: (I − γP_π)⁻¹ R_π."""
    n_states = len(rewards)
    matrix = np.empty((n_states, n_states))
    v = np.empty(n_states)
    build_system(rows, rewards, discount, pi, matrix, v)
    solve_m_matrix(matrix, v)
    return v


@njit(cache=True, fastmath={"contract"})
def q_row(rows, rewards, discount: float, v: np.ndarray, s: int, out: np.ndarray):
    """Q(s, ·) = R + γ P v into `out` [A]."""
    indptr, successors, probs = rows
    n_actions = rewards.shape[1]
    for a in range(n_actions):
        p = s * n_actions + a
        total = 0.0
        for k in range(np.uint64(indptr[p]), np.uint64(indptr[p + 1])):
            total += probs[k] * v[np.uint64(successors[k])]
        out[a] = rewards[s, a] + discount * total


@njit(cache=True)
def q_values(rows, rewards, discount: float, v: np.ndarray) -> np.ndarray:
    """Q = R + γ P v [S, A]."""
    q = np.empty(rewards.shape)
    for s in range(len(rewards)):
        q_row(rows, rewards, discount, v, s, q[s])
    return q


@njit(cache=True)
def rounding(rewards: np.ndarray, discount: float) -> float:
    """Gains below this are rounding, not improvement: values are at most max|R| / (1 − γ)."""
    largest = 0.0
    for s in range(len(rewards)):
        for a in range(rewards.shape[1]):
            largest = max(largest, abs(rewards[s, a]))
    gap = 1.0 - discount
    return 1e-14 * largest / (gap * gap)


@njit(cache=True)
def improve(rows, rewards, discount: float, box, v, tie: float, pi, q) -> float:
    """One policy improvement step in every state; fills `pi` and `q` [S, A].

    Returns the largest gain of a state's new row over the value v(s) that it had.
    """
    lower, upper, start = box
    gain = 0.0
    for s in range(len(v)):
        q_row(rows, rewards, discount, v, s, q[s])
        value = project(q[s], lower[s], upper[s], start[s], tie, pi[s])
        gain = max(gain, value - v[s])
    return gain


@njit(cache=True)
def policy_iteration(rows, rewards, discount: float, box, pi, q):
    """Policy iteration over a box of policies: fills `pi` and `q` [S, A].

    Starts from the policy in `pi`, which must be feasible. Returns V [S], the number of
    evaluations, and whether the last improvement step found nothing more to gain.
    """
    tie = rounding(rewards, discount)
    v, gain, iterations = np.empty(0), np.inf, 0
    while gain > tie and iterations < MAX_ITERATIONS:
        v = evaluate(rows, rewards, discount, pi)
        gain = improve(rows, rewards, discount, box, v, tie, pi, q)
        iterations += 1
    return v, iterations, gain <= tie


@njit(cache=True)
def copy(a: np.ndarray, out: np.ndarray):
    """out = a for two tables [S, A]; Numba takes seconds to compile the assignment of slices."""
    for s in range(len(a)):
        for k in range(a.shape[1]):
            out[s, k] = a[s, k]


@njit(cache=True, inline="always")
def optimise_each(rows, rewards, discount: float, box, pis: np.ndarray):
    """The best policies of one box for several tables of rewards [M, S, A]: fills `pis` alike.

    Each search starts from the policy found before, which is near where rewards differ little.
    """
    q = np.empty(pis.shape[1:])
    for m in range(len(pis)):
        copy(pis[m - 1] if m > 0 else box[2], pis[m])
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
def performances(rows, rewards, discount: float, initial, policies) -> np.ndarray:
    """ρ(π, M) of each policy [M, S, A]: [M]. Neighbours are often equal, and evaluated once."""
    rho = np.empty(len(policies))
    for m in range(len(policies)):
        if m > 0 and equal(policies[m], policies[m - 1]):
            rho[m] = rho[m - 1]
        else:
            rho[m] = performance(rows, rewards, discount, initial, policies[m])
    return rho


@njit(cache=True)
def threshold_box(counts: np.ndarray, n_wedge: float, baseline, share: float, lower, upper):
    """The bounds of SPIBB: a pair seen less than N∧ times keeps `share` to all of its mass."""
    for s in range(len(baseline)):
        for a in range(baseline.shape[1]):
            held = counts[s, a] < n_wedge
            lower[s, a] = share * baseline[s, a] if held else 0.0
            upper[s, a] = baseline[s, a] if held else 1.0


@njit(cache=True)
def spibb_sweep(rows, rewards, discount: float, baseline, counts, n_wedges, share: float, pis):
    """Π_b-SPIBB (share 1) or Π_≤b-SPIBB (share 0) for each of increasing N∧ > 0: `pis` [M, S, A].

    Each fit starts from the values of the one before, which saves more than half of the
    evaluations. Where the policy that is greedy for them in the new box is the old policy, they
    are its values already, and nothing is left to improve.
    """
    lower, upper = np.empty(baseline.shape), np.empty(baseline.shape)
    start = baseline.copy()
    q = np.empty(baseline.shape)
    tie = rounding(rewards, discount)
    for m in range(len(n_wedges)):
        threshold_box(counts, n_wedges[m], baseline, share, lower, upper)
        if m == 0:
            copy(start, pis[m])
        else:
            for s in range(len(baseline)):
                project(q[s], lower[s], upper[s], start[s], tie, pis[m, s])
            if equal(pis[m], pis[m - 1]):
                continue
        policy_iteration(rows, rewards, discount, (lower, upper, start), pis[m], q)
