"""Random MDPs with the farthest terminal state, and baselines of a wanted performance in an MDP."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from spibb.kernels.dense import build_system, empty_system, evaluate, policy_iteration, q_row
from spibb.kernels.sampling import next_random
from spibb.kernels.tuples import Box, Rows

START = 0
"""The initial state x_0 of every random MDP."""
HORIZON = 50
"""A terminal state must be worth more than γ^HORIZON at x_0: it can then be reached."""
SETTLED = 1e-2
"""Sweeps of the terminal-state search stop when no value at x_0 rises by more than this.

It only moves work between sweeps and exact solves; the choice does not depend on it."""
MAX_SWEEPS = 1_000
TOLERANCE = 1e-12
"""How closely the temperature must meet its target in ρ; rewards are in units of the largest."""
MAX_PICKS = 1_000
"""States picked in the randomisation, times S, before it gives up."""
MASS = 0.1
"""Probability that a step of "move" takes from the best action."""
SHRINK = 0.9
"""Factor on the best action's probability in a step of "multiply"."""


# ---- random MDPs -------------------------------------------------------------------------------


@njit(cache=True)
def draw_rows(uniforms: np.ndarray, n_states: int):
    """Turn uniforms [P, 2C − 1] into C distinct successors, sorted, and probabilities: [P, C] each.

    Successors by Floyd's algorithm, every subset equally likely; probabilities are the spacings of
    C − 1 sorted uniforms. NumPy's uniforms are multiples of 2⁻⁵³, so rows sum to 1 to the bit.
    """
    n_pairs = len(uniforms)
    width = (uniforms.shape[1] + 1) // 2
    successors = np.empty((n_pairs, width), dtype=np.int32)
    probs = np.empty((n_pairs, width))
    for p in range(n_pairs):
        for j in range(width):
            last = n_states - width + j
            pick = min(int(uniforms[p, j] * (last + 1)), last)
            for i in range(j):
                if successors[p, i] == pick:
                    pick = last
                    break
            insert(successors[p], j, pick)
        for j in range(width - 1):
            insert(probs[p], j, uniforms[p, width + j])
        probs[p, width - 1] = 1.0
        for j in range(width - 1, 0, -1):
            probs[p, j] -= probs[p, j - 1]
    return successors, probs


@njit(cache=True)
def insert(row: np.ndarray, n: int, value):
    """Insert a value into the first n entries of a row, which are sorted."""
    while n > 0 and row[n - 1] > value:
        row[n] = row[n - 1]
        n -= 1
    row[n] = value


@njit(cache=True, fastmath={"contract"})
def sweep(successors: np.ndarray, probs: np.ndarray, discount: float, w: np.ndarray) -> float:
    """One Gauss–Seidel sweep of value iteration for every terminal state at once, in place.

    Lane f of `w` [S, S] holds γV(x) for the MDP in which entering f pays 1 and ends, and 1 at
    x = f: then V(x) = max_a Σ P(x'|x, a) w(x'). From below, values only rise. Returns the largest
    rise at x_0.
    """
    n_states, n_lanes = w.shape
    n_actions = len(successors) // n_states
    best = np.empty(n_lanes)
    value = np.empty(n_lanes)
    rise = 0.0
    for s in range(n_states):
        best[:] = 0.0
        for p in range(s * n_actions, (s + 1) * n_actions):
            value[:] = 0.0
            for j in range(successors.shape[1]):
                prob, then = probs[p, j], w[successors[p, j]]
                for f in range(n_lanes):
                    value[f] += prob * then[f]
            for f in range(n_lanes):
                best[f] = max(best[f], value[f])
        if s == START:
            for f in range(n_lanes):
                rise = max(rise, discount * best[f] - w[s, f])
        for f in range(n_lanes):
            w[s, f] = discount * best[f]
        w[s, s] = 1.0
    return rise


@njit(cache=True)
def end_in(successors: np.ndarray, probs: np.ndarray, terminal: int, n_states: int):
    """The rows without a terminal state, and the rewards [S, A]: 1 on entering it, which ends.

    The terminal state's own rows are empty and pay nothing.
    """
    n_pairs, width = successors.shape
    n_actions = n_pairs // n_states
    indptr = np.zeros(n_pairs + 1, dtype=np.int64)
    kept = np.empty(n_pairs * width, dtype=np.int32)
    weight = np.empty(n_pairs * width)
    rewards = np.zeros((n_states, n_actions))
    k = 0
    for p in range(n_pairs):
        if p // n_actions != terminal:
            for j in range(width):
                if successors[p, j] == terminal:
                    rewards[p // n_actions, p % n_actions] = probs[p, j]
                else:
                    kept[k] = successors[p, j]
                    weight[k] = probs[p, j]
                    k += 1
        indptr[p + 1] = k
    return Rows(indptr, kept[:k].copy(), weight[:k].copy()), rewards


@njit(cache=True)
def optimum(rows, rewards: np.ndarray, discount: float, guess: np.ndarray):
    """V* [S] and Q* [S, A] by policy iteration from the policy that is greedy for a guess of V*."""
    pi, q = np.zeros(rewards.shape), np.empty(rewards.shape)
    for s in range(len(rewards)):
        q_row(rows, rewards, discount, guess, s, q)
        pi[s, np.argmax(q[s])] = 1.0
    uniform = np.full(rewards.shape, 1.0 / rewards.shape[1])
    box = Box(np.zeros(rewards.shape), np.ones(rewards.shape), uniform)
    return policy_iteration(rows, rewards, discount, box, pi, q)[0], q


class FarGoal(NamedTuple):
    """A terminal state (−1: none qualifies), the MDP that ends there, its V* [S] and Q* [S, A]."""

    terminal: int
    rows: tuple[np.ndarray, np.ndarray, np.ndarray]
    rewards: np.ndarray
    v: np.ndarray
    q: np.ndarray


@njit(cache=True)
def farthest(successors: np.ndarray, probs: np.ndarray, discount: float, n_states: int):
    """The terminal state ≠ x_0 with the smallest V*(x_0) > γ^HORIZON.

    Value iteration over all candidates gives lower bounds of V*(x_0). Candidates are then solved
    exactly, smallest bound first, until the next bound is above the best exact value: the choice
    is exact however few sweeps there were. Returns the fields of a `FarGoal`.
    """
    w = np.eye(n_states)
    sweeps = 0
    while sweep(successors, probs, discount, w) > SETTLED and sweeps < MAX_SWEEPS:
        sweeps += 1
    lower = w[START] / discount
    lower[START] = np.inf
    best, terminal = np.inf, -1
    rows, rewards = end_in(successors, probs, n_states, n_states)
    v, q = np.zeros(n_states), np.zeros(rewards.shape)
    while lower.min() < best:
        f = int(np.argmin(lower))
        lower[f] = np.inf
        rows_f, rewards_f = end_in(successors, probs, f, n_states)
        v_f, q_f = optimum(rows_f, rewards_f, discount, w[:, f] / discount)
        if discount**HORIZON < v_f[START] < best:
            best, terminal = v_f[START], f
            rows, rewards, v, q = rows_f, rewards_f, v_f, q_f
    return terminal, (rows.indptr, rows.successors, rows.probs), rewards, v, q


# ---- baselines ---------------------------------------------------------------------------------


@njit(cache=True)
def softmax(q: np.ndarray, inverse_temperature: float, out: np.ndarray):
    """softmax(q / temperature) of every row into `out` [S, A]."""
    for s in range(len(q)):
        top = q[s].max()
        total = 0.0
        for a in range(q.shape[1]):
            out[s, a] = np.exp(inverse_temperature * (q[s, a] - top))
            total += out[s, a]
        for a in range(q.shape[1]):
            out[s, a] /= total


@njit(cache=True)
def performance(mdp, pi: np.ndarray) -> float:
    """ρ(π, M), exactly; `mdp` is a `Task`."""
    rows, rewards, discount, initial = mdp
    return initial @ evaluate(rows, rewards, discount, pi)


@njit(cache=True)
def spread(q: np.ndarray) -> float:
    """Mean over states of max_a Q − mean_a Q: the scale on which a temperature acts."""
    total = 0.0
    for s in range(len(q)):
        total += q[s].max() - q[s].mean()
    return total / len(q)


@njit(cache=True)
def soften(mdp, q: np.ndarray, uniform: float, optimal: float, target: float, pi) -> float:
    """Fill `pi` [S, A] with softmax(Q*/τ) such that ρ(π) = target to TOLERANCE; return ρ(π).

    `uniform` and `optimal` are ρ at τ = ∞ and τ = 0, on either side of the target. In
    t = 1/(1 + τ/scale) the root lies in [0, 1]; regula falsi with the Illinois rule (halve the
    error of an end that stays twice) takes 7 to 12 evaluations where bisection takes 40.
    """
    pi[:] = 1.0 / q.shape[1]
    if optimal - uniform <= TOLERANCE:
        return uniform
    scale = spread(q)
    low, high = 0.0, 1.0
    below, above = uniform - target, optimal - target
    side, error = 0, uniform - target
    while abs(error) > TOLERANCE:
        t = (low * above - high * below) / (above - below)
        if not low < t < high:
            t = (low + high) / 2.0
        if not low < t < high:
            break
        softmax(q, t / ((1.0 - t) * scale), pi)
        error = performance(mdp, pi) - target
        if error < 0.0:
            low, below = t, error
            above = above / 2.0 if side < 0 else above
            side = -1
        else:
            high, above = t, error
            below = below / 2.0 if side > 0 else below
            side = 1
    return target + error


@njit(cache=True, fastmath={"contract"})
def invert_m_matrix(matrix: np.ndarray):
    """Replace a diagonally dominant M-matrix by its inverse: Gauss–Jordan without pivoting."""
    n = len(matrix)
    for k in range(n):
        scale = 1.0 / matrix[k, k]
        matrix[k, k] = 1.0
        for j in range(n):
            matrix[k, j] *= scale
        for i in range(n):
            factor = matrix[i, k]
            if i != k and factor != 0.0:
                matrix[i, k] = 0.0
                for j in range(n):
                    matrix[i, j] -= factor * matrix[k, j]


@njit(cache=True, fastmath={"contract"})
def change_row(mdp, s: int, change: np.ndarray, inverse: np.ndarray, v: np.ndarray, h: np.ndarray):
    """Update V^π [S] and B = (I − γP_π)⁻¹ [S, S] when `change` [A] is added to row s of π.

    Sherman–Morrison: with u = −γ Σ_a change(a) P(·|s, a), h = uᵀB and r = Σ_a change(a) R(s, a),
    V += B e_s (r − uᵀV) / (1 + h(s)) and B −= B e_s hᵀ / (1 + h(s)). `h` [S] is a workspace.
    """
    (indptr, successors, probs), rewards, discount, _ = mdp
    n_states, n_actions = rewards.shape
    h[:] = 0.0
    gain = 0.0
    for a in range(n_actions):
        if change[a] == 0.0:
            continue
        gain += change[a] * rewards[s, a]
        for k in range(indptr[s * n_actions + a], indptr[s * n_actions + a + 1]):
            weight = discount * change[a] * probs[k]
            row = inverse[successors[k]]
            gain += weight * v[successors[k]]
            for y in range(n_states):
                h[y] -= weight * row[y]
    scale = 1.0 / (1.0 + h[s])
    for x in range(n_states):
        factor = inverse[x, s] * scale
        if factor != 0.0:
            v[x] += factor * gain
            for y in range(n_states):
                inverse[x, y] -= factor * h[y]


@njit(cache=True)
def pick(seeds: np.ndarray, n: int) -> int:
    """A random number in 0 … n − 1 from the stream in seeds[0]."""
    return int((next_random(seeds, 0) >> np.uint64(11)) * 2.0**-53 * n)


@njit(cache=True)
def worsen(row: np.ndarray, best: int, multiply: bool, seeds: np.ndarray, change: np.ndarray):
    """One randomisation step in a state: fill `change` [A], and add it to the row.

    Moves MASS, or what is left, from the best action to another random one; or multiplies the best
    action's probability by SHRINK and renormalises.
    """
    change[:] = -row
    if multiply:
        row[best] *= SHRINK
        row /= row.sum()
    else:
        other = (best + 1 + pick(seeds, len(row) - 1)) % len(row)
        mass = min(MASS, row[best])
        row[best] -= mass
        row[other] += mass
    change += row


@njit(cache=True)
def randomise(mdp, q: np.ndarray, target: float, multiply: bool, seeds: np.ndarray, pi):
    """Worsen random states of `pi` [S, A] until ρ(π) ≤ target.

    Returns ρ(π), exact, ρ before the last step, and the number of steps. States whose actions are
    equally good have no best action and stay as they are. Gives up after S·MAX_PICKS picks.
    """
    rows, rewards, discount, initial = mdp
    n_states, n_actions = q.shape
    system, h = empty_system(n_states), np.empty(n_states)
    inverse = np.empty((n_states, n_states))
    change = np.empty(n_actions)
    value = before = performance(mdp, pi)
    picks = steps = 0
    while value > target and picks < MAX_PICKS * n_states:
        build_system(rows, rewards, discount, pi, system)
        inverse[:] = system[:, :n_states]
        for s in range(n_states):
            inverse[s, s] += 1.0
        invert_m_matrix(inverse)
        v = inverse @ np.ascontiguousarray(system[:, n_states + 1])
        while value > target and picks < MAX_PICKS * n_states:
            picks += 1
            s = pick(seeds, n_states)
            best = int(np.argmax(q[s]))
            if q[s, best] == q[s].min() or pi[s, best] == 0.0:
                continue
            worsen(pi[s], best, multiply, seeds, change)
            change_row(mdp, s, change, inverse, v, h)
            before = value
            value = initial @ v
            steps += 1
        value = performance(mdp, pi)
    return value, before, steps


@njit(cache=True)
def baselines(mdp, q: np.ndarray, etas: np.ndarray, multiply: bool, seeds: np.ndarray):
    """A baseline for each η [E] with ρ(π_b) just below ηρ* + (1 − η)ρ(uniform).

    `mdp` is a `Task`, `q` = Q* [S, A], `seeds` [E]. Returns the policies
    [E, S, A]; their values, the values before the last step and the targets [3, E]; ρ(uniform); ρ*.
    """
    n_states, n_actions = q.shape
    pi = np.full((len(etas), n_states, n_actions), 1.0 / n_actions)
    values = np.empty((3, len(etas)))
    uniform = performance(mdp, np.full((n_states, n_actions), 1.0 / n_actions))
    optimal = 0.0
    for s in range(n_states):
        optimal += mdp[3][s] * q[s].max()
    for e in range(len(etas)):
        target = etas[e] * optimal + (1.0 - etas[e]) * uniform
        soften(mdp, q, uniform, optimal, (target + optimal) / 2.0, pi[e])
        value, before, _ = randomise(mdp, q, target, multiply, seeds[e : e + 1], pi[e])
        values[0, e], values[1, e], values[2, e] = value, before, target
    return pi, values, uniform, optimal
