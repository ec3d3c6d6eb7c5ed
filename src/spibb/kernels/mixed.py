"""Averages over successors in rows that mix a pair's own outcomes with those of its state."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit


class Mixed(NamedTuple):
    """Rows w Σ_k θ_k [x'_k] + (1 − w) m_x of M policies.

    `tried` [T] are the pairs with outcomes, `first` [T + 1] where these begin in `successors` (−1:
    the end); `overall` [S] is the distribution of the whole log's successors, and m_x of the
    `idle` states; `play` [P, M] is π(a|x)·w, and `left` [S, M] is Σ_a π(a|x)(1 − w).
    """

    tried: np.ndarray
    first: np.ndarray
    successors: np.ndarray
    overall: np.ndarray
    idle: np.ndarray
    play: np.ndarray
    left: np.ndarray


@njit(cache=True)
def backup(rows: Mixed, outcome, pair, v, out):
    """Fills out [D, S, M] with Σ_x' P_π(x'|x) v(x'), for v [D, S, M].

    `outcome` [D, K] are the weights of outcomes within pairs, `pair` [D, T] those of pairs in m_x.
    """
    n_states, n_policies = out.shape[1], out.shape[2]
    n_actions = len(rows.play) // n_states
    mean, whole = np.empty(n_policies, v.dtype), np.empty(n_policies, v.dtype)
    for d in range(len(v)):
        out[d] = 0.0
        if len(rows.idle):
            whole[:] = 0.0
            for x in range(n_states):
                for m in range(n_policies):
                    whole[m] += v.dtype.type(rows.overall[x]) * v[d, x, m]
            for x in rows.idle:
                out[d, x] = whole
        for t in range(len(rows.tried)):
            p, share = rows.tried[t], v.dtype.type(pair[d, t])
            x = p // n_actions
            mean[:] = 0.0
            for k in range(rows.first[t], rows.first[t + 1]):
                q, y = v.dtype.type(outcome[d, k]), rows.successors[k]
                if y >= 0:
                    for m in range(n_policies):
                        mean[m] += q * v[d, y, m]
            for m in range(n_policies):
                out[d, x, m] += (rows.play[p, m] + rows.left[x, m] * share) * mean[m]
