"""Random MDPs with the farthest terminal state, and baselines of a wanted performance in an MDP."""

from __future__ import annotations

import numpy as np
from numba import njit

from spibb.kernels.dense import build_system, evaluate, improve, policy_iteration, rounding
from spibb.kernels.sampling import next_random

START = 0
"""The initial state x_0 of every random MDP."""
HORIZON = 50
"""A terminal state must be worth more than γ^HORIZON at x_0: it can then be reached."""
SETTLED = 5e-3
"""Sweeps of the terminal-state search stop when no value at x_0 rises by more than this."""
MAX_SWEEPS = 1_000
MAX_ITERATIONS = 1_000
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
    return (indptr, kept[:k].copy(), weight[:k].copy()), rewards


@njit(cache=True)
def free_box(n_states: int, n_actions: int):
    """All policies; ties are uniform."""
    shape = (n_states, n_actions)
    return np.zeros(shape), np.ones(shape), np.full(shape, 1.0 / n_actions)


@njit(cache=True)
def optimum(rows, rewards: np.ndarray, discount: float, guess: np.ndarray):
    """V* [S] and Q* [S, A] by policy iteration from the policy that is greedy for a guess of V*."""
    box = free_box(*rewards.shape)
    pi, q = np.empty(rewards.shape), np.empty(rewards.shape)
    improve(rows, rewards, discount, box, guess, rounding(rewards, discount), pi, q)
    v, _, _ = policy_iteration(rows, rewards, discount, box, pi, q, MAX_ITERATIONS)
    return v, q


@njit(cache=True)
def farthest(successors: np.ndarray, probs: np.ndarray, discount: float, n_states: int):
    """The terminal state ≠ x_0 with the smallest V*(x_0) > γ^HORIZON, its rows, rewards, V* and Q*.

    Value iteration over all candidates gives lower bounds of V*(x_0). Candidates are then solved
    exactly, smallest bound first, until the next bound is above the best exact value: the choice
    is exact however few sweeps there were. The terminal state is −1 if no candidate qualifies.
    """
    w = np.eye(n_states)
    sweeps = 0
    while sweep(successors, probs, discount, w) > SETTLED and sweeps < MAX_SWEEPS:
        sweeps += 1
    best, terminal = np.inf, -1
    rows, rewards = end_in(successors, probs, START, n_states)
    v, q = np.zeros(n_states), np.zeros(rewards.shape)
    for f in np.argsort(w[START]):
        if w[START, f] >= discount * best:
            break
        if f == START:
            continue
        rows_f, rewards_f = end_in(successors, probs, f, n_states)
        guess = w[:, f] / discount
        guess[f] = 0.0
        v_f, q_f = optimum(rows_f, rewards_f, discount, guess)
        if discount**HORIZON < v_f[START] < best:
            best, terminal = v_f[START], f
            rows, rewards, v, q = rows_f, rewards_f, v_f, q_f
    return terminal, rows, rewards, v, q


@njit(cache=True)
def generate(uniforms: np.ndarray, n_states: int, discount: float):
    """A random MDP with its farthest terminal state; see `draw_rows` and `farthest`."""
    successors, probs = draw_rows(uniforms, n_states)
    return farthest(successors, probs, discount, n_states)


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
def performance(rows, rewards: np.ndarray, discount: float, initial: np.ndarray, pi) -> float:
    """ρ(π, M)."""
    return initial @ evaluate(rows, rewards, discount, pi)


@njit(cache=True)
def spread(q: np.ndarray) -> float:
    """Mean over states of max_a Q − mean_a Q: the scale on which a temperature acts."""
    total = 0.0
    for s in range(len(q)):
        total += q[s].max() - q[s].mean()
    return total / len(q)


@njit(cache=True)
def soften(mdp, q: np.ndarray, ends, target: float, tolerance: float, pi: np.ndarray) -> float:
    """Fill `pi` with softmax(Q*/τ) where ρ(π) = target to within `tolerance`; return ρ(π).

    `mdp` = (rows, rewards, discount, initial); `ends` = ρ of the uniform policy and ρ*, the values
    at τ = ∞ and τ = 0, must lie on either side of the target. With t = 1/(1 + τ/scale) the bracket
    is [0, 1], and regula falsi with the Illinois rule shrinks it.
    """
    rows, rewards, discount, initial = mdp
    scale = spread(q)
    low, high = 0.0, 1.0
    below, above = ends[0] - target, ends[1] - target
    side = 0
    error = np.inf
    while abs(error) > tolerance:
        t = (low * above - high * below) / (above - below)
        if not low < t < high:
            t = (low + high) / 2.0
        if not low < t < high:
            break
        softmax(q, t / ((1.0 - t) * scale), pi)
        error = performance(rows, rewards, discount, initial, pi) - target
        if error < 0.0:
            low, below = t, error
            above = above / 2.0 if side < 0 else above
            side = -1
        else:
            high, above = t, error
            below = below / 2.0 if side > 0 else below
            side = 1
    return target + error
