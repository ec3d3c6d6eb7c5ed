"""HCPI: offline Q-learning, and eleven mixtures in one pass over drawn outcome codes.

The study draws episodes as codes of (state, action, successor) outcomes, of which there are few.
Everything that a step of an episode adds is then a row of a table, and a pass keeps the weights and
the running sums of the mixtures in registers. The lanes are written out one by one, because an
array of lanes would live in memory and be twice as slow, and come in two passes of six, because
the numbers of twelve do not fit the sixteen registers of most processors.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from spibb.kernels import dense

N_LANES = 11
HALF = 6


# ---- training ----------------------------------------------------------------------------------


@njit(cache=True)
def q_learning(transitions, rows, available, discount: float, step_size: float, q: np.ndarray):
    """Q(x, a) += step_size · (r + γ max_{a'} Q(x', a') − Q(x, a)) for each of `rows`, into `q`.

    The maximum is over the available actions [S, A]; a negative successor is the end, worth 0. It
    is found by arithmetic alone: branches on what was learnt would be mispredicted all the time.
    """
    state, action, reward, successor = transitions
    n_actions = np.uint64(q.shape[1])
    flat = q.ravel()
    handicap = np.where(available, 0.0, -np.inf).ravel()
    for j in rows:
        following = successor[j]
        first = np.uint64(max(following, 0)) * n_actions
        best = -np.inf
        for i in range(first, first + n_actions):
            value = flat[i] + handicap[i]
            best = value if value > best else best
        best = best if following >= 0 else 0.0
        pair = np.uint64(state[j]) * n_actions + np.uint64(action[j])
        flat[pair] += step_size * (reward[j] + discount * best - flat[pair])


@njit(cache=True)
def replayed(codes: np.ndarray, uniforms: np.ndarray) -> np.ndarray:
    """Codes drawn uniformly with replacement, one per uniform in [0, 1)."""
    out = np.empty(len(uniforms), dtype=codes.dtype)
    for i in range(len(uniforms)):
        out[i] = codes[int(uniforms[i] * len(codes))]
    return out


@njit(cache=True)
def greedy(q: np.ndarray, available: np.ndarray, baseline: np.ndarray) -> np.ndarray:
    """The best available action of every state; the baseline's row where all are equal [S, A]."""
    probs = np.zeros(q.shape)
    for s in range(len(q)):
        best, equal = -1, True
        for a in range(q.shape[1]):
            if available[s, a]:
                equal = equal and (best < 0 or q[s, a] == q[s, best])
                if best < 0 or q[s, a] > q[s, best]:
                    best = a
        if equal:
            probs[s] = baseline[s]
        else:
            probs[s, best] = 1.0
    return probs


# ---- testing -----------------------------------------------------------------------------------


@njit(cache=True)
def mixture_values(rows, rewards, discount: float, trained, baseline, alphas):
    """Q [S, A, K] and V [S + 1, K] of the mixtures (1 − α)π_t + απ_b; the last row of V is 0."""
    n_states, n_actions = rewards.shape
    q = np.empty((n_states, n_actions, len(alphas)))
    v = np.zeros((n_states + 1, len(alphas)))
    for k in range(len(alphas)):
        pi = (1.0 - alphas[k]) * trained + alphas[k] * baseline
        values = dense.evaluate(rows, rewards, discount, pi)
        v[:n_states, k] = values
        q[:, :, k] = dense.q_values(rows, rewards, discount, values)
    return q, v


@njit(cache=True)
def step_tables(outcomes, policies, discount: float, q, v, alphas):
    """What a step contributes per outcome code, for lanes 0 … 5 and 6 … 11: [2, C, 12].

    A row holds six ratios γπ(a|x)/μ(a|x) and then six gains r + γV(x') − Q(x, a), what the step
    adds per unit of γ^t w_t; they are r where `q` and `v` are 0. `outcomes` are the (state, action,
    successor, reward) of each code, `policies` the trained one, the baseline and the behaviour
    [S, A]. Unused codes have action −1 and no row; lane 11 is empty.
    """
    state, action, successor, reward = outcomes
    trained, baseline, behaviour = policies
    steps = np.empty((2, len(state), 2 * HALF))
    for c in range(len(state)):
        s, a = state[c], action[c]
        if a < 0:
            continue
        scale = discount / behaviour[s, a]
        steps[1, c, HALF - 1] = steps[1, c, 2 * HALF - 1] = 0.0
        for k in range(len(alphas)):
            mixed = (1.0 - alphas[k]) * trained[s, a] + alphas[k] * baseline[s, a]
            row = steps[k // HALF, c]
            row[k % HALF] = scale * mixed
            row[HALF + k % HALF] = reward[c] + discount * v[successor[c], k] - q[s, a, k]
    return steps


@njit(cache=True, inline="always")
def advance(u: float, y: float, ratio: float, gain: float):
    """One step of one lane: u ← u·ratio, y ← y + u·gain."""
    u *= ratio
    return u, y + u * gain


@njit(cache=True)
def discounted(codes: np.ndarray, steps: np.ndarray, discount: float) -> float:
    """Σ_t γ^t r_t of an episode, where the gains of `steps` hold r."""
    total = 0.0
    for j in range(len(codes) - 1, -1, -1):
        total = steps[codes[j], HALF] + discount * total
    return total


@njit(cache=True, fastmath={"contract"})
def six_lanes(episodes, steps, ends, discount: float, whole: bool, sums: np.ndarray):
    """The part of `moments` of six lanes, with their `steps` [C, 12] and V [S + 1, 6]."""
    codes, lengths = episodes
    state, successor, v = ends
    u, y = np.empty(HALF), np.empty(HALF)
    power = discount ** (np.arange(lengths.max() + 1) - 1.0)
    unit = 1.0 / power
    j = 0
    for length in lengths:
        begin = j
        u0 = u1 = u2 = u3 = u4 = u5 = power[0]
        y0 = y1 = y2 = y3 = y4 = y5 = 0.0
        for _ in range(length):
            row = steps[np.uint32(codes[j])]
            j += 1
            u0, y0 = advance(u0, y0, row[0], row[6])
            u1, y1 = advance(u1, y1, row[1], row[7])
            u2, y2 = advance(u2, y2, row[2], row[8])
            u3, y3 = advance(u3, y3, row[3], row[9])
            u4, y4 = advance(u4, y4, row[4], row[10])
            u5, y5 = advance(u5, y5, row[5], row[11])
        u[0], u[1], u[2], u[3], u[4], u[5] = u0, u1, u2, u3, u4, u5
        y[0], y[1], y[2], y[3], y[4], y[5] = y0, y1, y2, y3, y4, y5
        plain = discounted(codes[begin:j], steps, discount) if whole else 0.0
        first, beyond = v[state[codes[begin]]], v[successor[codes[j - 1]]]
        for k in range(HALF):
            w = u[k] * unit[length]
            x = w * plain if whole else first[k] + y[k] - u[k] * discount * beyond[k]
            sums[0, k] += x
            sums[1, k] += x * x
            sums[2, k] += w


@njit(cache=True)
def moments(episodes, steps, ends, discount: float, whole: bool) -> np.ndarray:
    """Σ X_i, Σ X_i² and Σ w_i over episodes, for each of eleven lanes: [3, 11].

    `episodes` are codes [N] and lengths [E], `steps` the rows of `step_tables`, `ends` the state
    and successor of each code and V [S + 1, 11]. X = V(x_0) + Σ_t γ^t w_t gain_t (pdis, dr), and
    the last step takes back its γV(x'), because nothing is counted beyond a cut. With `whole`,
    X = w Σ_t γ^t r_t (is), and the gains must be r.
    """
    state, successor, v = ends
    sums = np.zeros((3, 2 * HALF))
    lanes = np.zeros((len(v), 2 * HALF))
    lanes[:, :N_LANES] = v
    for half in range(2):
        part = slice(half * HALF, (half + 1) * HALF)
        mine = (state, successor, lanes[:, part])
        six_lanes(episodes, steps[half], mine, discount, whole, sums[:, part])
    return sums[:, :N_LANES].copy()


@njit(cache=True)
def choose(sums: np.ndarray, n: int, quantile: float, rival: float) -> int:
    """The lane of the highest Student's t bound, ties to the last, if above `rival`; else the last.

    The bound is x̄ − quantile · σ/√n; a lane under which no episode is possible has none.
    """
    best, highest = N_LANES - 1, -np.inf
    for k in range(N_LANES - 1, -1, -1):
        if sums[2, k] > 0.0:
            mean = sums[0, k] / n
            spread = np.sqrt(max(sums[1, k] - n * mean**2, 0.0) / (n - 1))
            bound = mean - spread / np.sqrt(n) * quantile
            if bound > highest:
                best, highest = k, bound
    return best if highest > rival else N_LANES - 1
