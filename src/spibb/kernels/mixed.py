"""Averages over successors in rows that mix a pair's own outcomes with those of its state."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit


class Mixed(NamedTuple):
    """Rows w Σ_k θ_k [x'_k] + (1 − w) m_x.

    `tried` [T] are the pairs with outcomes, `first` [T + 1] where these begin in `successors` (−1:
    the end); `overall` [S] is the distribution of the whole log's successors, and m_x of the
    `idle` states.
    """

    tried: np.ndarray
    first: np.ndarray
    successors: np.ndarray
    overall: np.ndarray
    idle: np.ndarray


@njit(cache=True)
def backup(rows: Mixed, play, outcome, pair, weight, discount, v, out):
    """Fills out [D, M, S] with γ Σ_x' P_π(x'|x) v(x'), for v [D, M, S].

    `play` [P, M] are M policies, `outcome` [D, K] the weights of outcomes within pairs, `pair`
    [D, T] those of pairs in m_x, and `weight` [D, P] is w.
    """
    n_policies, n_states = out.shape[1:]
    n_actions = len(play) // n_states
    gamma, one = v.dtype.type(discount), v.dtype.type(1.0)
    by_state = np.empty((n_states, n_policies), v.dtype)
    mean, whole = np.empty(n_policies, v.dtype), np.empty(n_policies, v.dtype)
    own, pooled, kept = np.empty((3, n_policies), v.dtype)
    for d in range(len(v)):
        by_state[:] = v[d].T
        out[d] = 0.0
        if len(rows.idle):
            whole[:] = 0.0
            for x in range(n_states):
                for m in range(n_policies):
                    whole[m] += v.dtype.type(rows.overall[x]) * by_state[x, m]
            for x in rows.idle:
                out[d, :, x] = gamma * whole
        t = 0
        while t < len(rows.tried):
            x = rows.tried[t] // n_actions
            own[:] = 0.0
            pooled[:] = 0.0
            kept[:] = 0.0
            while t < len(rows.tried) and rows.tried[t] // n_actions == x:
                p = rows.tried[t]
                share, w = v.dtype.type(pair[d, t]), v.dtype.type(weight[d, p])
                mean[:] = 0.0
                for k in range(rows.first[t], rows.first[t + 1]):
                    q, y = v.dtype.type(outcome[d, k]), rows.successors[k]
                    if y >= 0:
                        for m in range(n_policies):
                            mean[m] += q * by_state[y, m]
                for m in range(n_policies):
                    own[m] += w * play[p, m] * mean[m]
                    kept[m] += w * play[p, m]
                    pooled[m] += share * mean[m]
                t += 1
            for m in range(n_policies):
                out[d, m, x] = gamma * (own[m] + (one - kept[m]) * pooled[m])
