"""HCPI on drawn episodes: eleven mixtures in one pass over outcome codes.

The study draws episodes as codes of (state, action, successor) outcomes, of which there are few.
Everything that a step of an episode adds is then a row of a table, and one pass keeps the weight
and the running sum of every mixture in registers: the lanes are written out one by one, because an
array of lanes would live in memory and be four times as slow.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from spibb.kernels import dense

N_LANES = 11


@njit(cache=True)
def mixture_values(rows, rewards, discount: float, trained, baseline, alphas):
    """Q [S, A, K] and V [S + 1, K] of the mixtures (1 − α)π_t + απ_b; the last row of V is 0."""
    n_states, n_actions = rewards.shape
    q = np.empty((n_states, n_actions, len(alphas)))
    v = np.zeros((n_states + 1, len(alphas)))
    for k in range(len(alphas)):
        pi = (1.0 - alphas[k]) * trained + alphas[k] * baseline
        v[:n_states, k] = dense.evaluate(rows, rewards, discount, pi)
        q[:, :, k] = dense.q_values(rows, rewards, discount, v[:n_states, k].copy())
    return q, v


@njit(cache=True)
def step_tables(outcomes, policies, discount: float, q, v, alphas):
    """What a step contributes per outcome code: the four tables of `moments`, each [C, 11].

    `outcomes` are the (state, action, successor, reward) of each code, `policies` the trained one,
    the baseline and the behaviour [S, A]. Unused codes have action −1.
    """
    state, action, successor, reward = outcomes
    trained, baseline, behaviour = policies
    shape = (len(state), len(alphas))
    ratio, gain = np.zeros(shape), np.zeros(shape)
    first, tail = np.zeros(shape), np.zeros(shape)
    for c in range(len(state)):
        s, a = state[c], action[c]
        if a < 0:
            continue
        for k in range(len(alphas)):
            mixed = (1.0 - alphas[k]) * trained[s, a] + alphas[k] * baseline[s, a]
            ratio[c, k] = discount * mixed / behaviour[s, a]
            tail[c, k] = discount * v[successor[c], k]
            gain[c, k] = reward[c] + tail[c, k] - q[s, a, k]
            first[c, k] = v[s, k]
    return ratio, gain, first, tail


@njit(cache=True, inline="always")
def advance(u: float, y: float, ratio: float, gain: float):
    """One step of one lane: u ← u·ratio, y ← y + u·gain."""
    u *= ratio
    return u, y + u * gain


@njit(cache=True, fastmath={"contract"})
def moments(codes, lengths, tables, discount: float, whole: bool) -> np.ndarray:
    """Σ X_i, Σ X_i² and Σ w_i over episodes, for each of eleven lanes: [3, 11].

    `tables` hold a row [11] per code: `ratio` = γπ(a|x)/μ(a|x); `gain`, what the step adds per unit
    of γ^t w_t (r for pdis, r + γV(x') − Q(x, a) for dr); `first`, V of its state; and `tail`, what
    the last step of an episode takes back, γV(x'), because nothing is counted beyond a cut. With
    `whole`, X = w Σ_t γ^t r_t (is) and `gain` holds r.
    """
    ratio, gain, first, tail = tables
    sums = np.zeros((3, N_LANES))
    u = np.empty(N_LANES)
    y = np.empty(N_LANES)
    j = 0
    for length in lengths:
        start, plain, power = codes[j], 0.0, 1.0 / discount
        u0 = u1 = u2 = u3 = u4 = u5 = u6 = u7 = u8 = u9 = u10 = power
        y0 = y1 = y2 = y3 = y4 = y5 = y6 = y7 = y8 = y9 = y10 = 0.0
        for _ in range(length):
            c = np.uint32(codes[j])
            j += 1
            p, g = ratio[c], gain[c]
            u0, y0 = advance(u0, y0, p[0], g[0])
            u1, y1 = advance(u1, y1, p[1], g[1])
            u2, y2 = advance(u2, y2, p[2], g[2])
            u3, y3 = advance(u3, y3, p[3], g[3])
            u4, y4 = advance(u4, y4, p[4], g[4])
            u5, y5 = advance(u5, y5, p[5], g[5])
            u6, y6 = advance(u6, y6, p[6], g[6])
            u7, y7 = advance(u7, y7, p[7], g[7])
            u8, y8 = advance(u8, y8, p[8], g[8])
            u9, y9 = advance(u9, y9, p[9], g[9])
            u10, y10 = advance(u10, y10, p[10], g[10])
            power *= discount
            plain += power * g[0]
        u[0], u[1], u[2], u[3], u[4], u[5] = u0, u1, u2, u3, u4, u5
        u[6], u[7], u[8], u[9], u[10] = u6, u7, u8, u9, u10
        y[0], y[1], y[2], y[3], y[4], y[5] = y0, y1, y2, y3, y4, y5
        y[6], y[7], y[8], y[9], y[10] = y6, y7, y8, y9, y10
        last = codes[j - 1]
        for k in range(N_LANES):
            w = u[k] / power
            x = w * plain if whole else first[start, k] + y[k] - u[k] * tail[last, k]
            sums[0, k] += x
            sums[1, k] += x * x
            sums[2, k] += w
    return sums
