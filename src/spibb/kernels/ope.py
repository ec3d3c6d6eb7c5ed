"""Off-policy evaluation of many policies in one pass over a log.

Policies are lanes: tables hold their values side by side in the last axis [K], so that the inner
loop is one stretch of vector instructions per transition.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit


class LoggedEpisodes(NamedTuple):
    """The columns of a log that estimates read: each episode e has the rows starts[e] …
    starts[e + 1] − 1.

    `following` [N] is the state after each row, in whose value the estimate goes on; `beyond` [E]
    completes the last reward of an episode; `inverse` [N] is 1/μ of the action taken.
    """

    starts: np.ndarray
    state: np.ndarray
    action: np.ndarray
    reward: np.ndarray
    following: np.ndarray
    beyond: np.ndarray
    inverse: np.ndarray


class LaneTables(NamedTuple):
    """π and Q̂ [S, A, K], and V̂ [S + 1, K], whose last row is 0, of K policies."""

    probs: np.ndarray
    q: np.ndarray
    v: np.ndarray


TINY = 1e-290
"""Weights below are set to 0: the processor handles the smallest numbers a hundred times slower."""


class LaneSums(NamedTuple):
    """What `forward` finds of every episode and lane, each [E, K]."""

    weights: np.ndarray
    decisions: np.ndarray
    modelled: np.ndarray


@njit(cache=True, fastmath={"contract"})
def forward(episodes, tables, discount: float, scale: np.ndarray, centre: np.ndarray, out):
    """Weighted sums of rewards and of model errors along every episode, for every lane.

    With w_t = Π_{u≤t} π(a_u|x_u)/μ(a_u|x_u), fills `out`: `weights` w_T, `decisions`
    Σ_t s_t w_t (r_t − c_t) and `modelled` V(x_0) + Σ_t s_t w_t (r_t + γV(x_{t+1}) − Q(x_t, a_t) −
    d_t). `scale` s [H, K] is γ^t, or
    γ^t over the normaliser; `centre` (c, d) [2, H, K] is 0, or the weighted means. The successor
    `beyond` [E] of an episode completes its last reward; V [S + 1, K] is 0 in its last row.
    """
    starts, state, action = episodes.starts, episodes.state, episodes.action
    reward, following = episodes.reward, episodes.following
    beyond, inverse = episodes.beyond, episodes.inverse
    pi, q, v = tables.probs, tables.q, tables.v
    n_lanes = pi.shape[2]
    for e in range(len(beyond)):
        begin, end = starts[e], starts[e + 1]
        w, x, y = out.weights[e], out.decisions[e], out.modelled[e]
        for k in range(n_lanes):
            w[k], x[k], y[k] = 1.0, 0.0, v[state[begin], k]
        for j in range(begin, end):
            p, now, then = pi[state[j], action[j]], q[state[j], action[j]], v[following[j]]
            s, c, d = scale[j - begin], centre[0, j - begin], centre[1, j - begin]
            r = reward[j]
            for k in range(n_lanes):
                product = w[k] * (p[k] * inverse[j])
                w[k] = product if product > TINY else 0.0
                x[k] += s[k] * w[k] * (r - c[k])
                y[k] += s[k] * w[k] * (r + discount * then[k] - now[k] - d[k])
        for k in range(n_lanes):
            x[k] += scale[end - begin - 1, k] * w[k] * discount * v[beyond[e], k]


@njit(cache=True, fastmath={"contract"})
def step_sums(episodes, tables, discount: float, out: np.ndarray):
    """Sums over episodes at every step, into `out` [3, H, K], which must be 0.

    Σ w_t, Σ w_t r_t and Σ w_t (r_t + γV(x_{t+1}) − Q(x_t, a_t)). An episode that ended before step
    t keeps its last weight in the first sum: it sits in an absorbing state that pays nothing.
    """
    starts, state, action = episodes.starts, episodes.state, episodes.action
    reward, following = episodes.reward, episodes.following
    beyond, inverse = episodes.beyond, episodes.inverse
    pi, q, v = tables.probs, tables.q, tables.v
    n_lanes = pi.shape[2]
    w = np.empty(n_lanes)
    finished = np.zeros((out.shape[1] + 1, n_lanes))
    for e in range(len(beyond)):
        begin, end = starts[e], starts[e + 1]
        for k in range(n_lanes):
            w[k] = 1.0
        for j in range(begin, end):
            p, now, then = pi[state[j], action[j]], q[state[j], action[j]], v[following[j]]
            n, x, y = out[0, j - begin], out[1, j - begin], out[2, j - begin]
            for k in range(n_lanes):
                product = w[k] * (p[k] * inverse[j])
                w[k] = product if product > TINY else 0.0
                n[k] += w[k]
                x[k] += w[k] * reward[j]
                y[k] += w[k] * (reward[j] + discount * then[k] - now[k])
        for k in range(n_lanes):
            out[1, end - begin - 1, k] += w[k] * discount * v[beyond[e], k]
            finished[end - begin, k] += w[k]
    for t in range(1, out.shape[1]):
        for k in range(n_lanes):
            finished[t, k] += finished[t - 1, k]
            out[0, t, k] += finished[t, k]


@njit(cache=True)
def resampled_means(values: np.ndarray, rng, out: np.ndarray):
    """Means of resamples of `values` [n], drawn with replacement, into `out` [B]."""
    n = len(values)
    for b in range(len(out)):
        total = 0.0
        for _ in range(n):
            total += values[int(rng.random() * n)]
        out[b] = total / n
