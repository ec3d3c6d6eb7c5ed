"""Averages over successors in rows that mix a pair's own outcomes with those of its state."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numba.core import config

LANES = 8
"""Policies that are averaged side by side: as many numbers as a vector holds."""


class Mixed(NamedTuple):
    """Rows w Σ_k θ_k [x'_k] + (1 − w) m_x.

    `tried` [T] are the pairs with outcomes, `last` [S] the first of them after those of each state;
    `first` [T + 1] is where their outcomes begin in `successors` (S: the end); `overall` [S] is the
    distribution of the whole log's successors, and m_x of the `idle` states.
    """

    tried: np.ndarray
    last: np.ndarray
    first: np.ndarray
    successors: np.ndarray
    overall: np.ndarray
    idle: np.ndarray


class Weights(NamedTuple):
    """Weights of outcomes [D, K] with their sums in pairs [D, T], of pairs in m_x [D, T], and w
    [D, P], in D models."""

    mass: np.ndarray
    total: np.ndarray
    pair: np.ndarray
    weight: np.ndarray


@njit(cache=True, inline="always")
def lanes(a, i):
    """a[i] … a[i + 7] of a flat array."""
    i = np.uint64(i)
    return (
        a[i], a[i + np.uint64(1)], a[i + np.uint64(2)], a[i + np.uint64(3)],
        a[i + np.uint64(4)], a[i + np.uint64(5)], a[i + np.uint64(6)], a[i + np.uint64(7)],
    )  # fmt: skip


@njit(cache=True, inline="always")
def plus(c, x, a):
    """c + x a of lanes."""
    return (c[0] + x * a[0], c[1] + x * a[1], c[2] + x * a[2], c[3] + x * a[3],
            c[4] + x * a[4], c[5] + x * a[5], c[6] + x * a[6], c[7] + x * a[7])  # fmt: skip


@njit(cache=True, inline="always")
def plus_product(c, x, a, b):
    """c + x a b of lanes."""
    return (c[0] + x * a[0] * b[0], c[1] + x * a[1] * b[1], c[2] + x * a[2] * b[2],
            c[3] + x * a[3] * b[3], c[4] + x * a[4] * b[4], c[5] + x * a[5] * b[5],
            c[6] + x * a[6] * b[6], c[7] + x * a[7] * b[7])  # fmt: skip


def lacks(rows: Mixed, play, weights: Weights, discount, earned, v, out):
    """Fills out [D, M, S] with e = R + γ P_π V − V, for R and V [D, M, S].

    `play` [P, W] are the policies in a multiple of LANES columns.
    """
    # without this Numba computes lane by lane, which takes twice as long
    before = config.SLP_VECTORIZE  # type: ignore[attr-defined]
    config.SLP_VECTORIZE = 1  # type: ignore[attr-defined]
    try:
        _lacks(rows, play, weights, discount, earned, v, out)
    finally:
        config.SLP_VECTORIZE = before  # type: ignore[attr-defined]


@njit(cache=True, fastmath={"contract"})
def _lacks(rows: Mixed, play, weights: Weights, discount, earned, v, out):
    n_policies, n_states = out.shape[1:]
    gamma, one, none = v.dtype.type(discount), v.dtype.type(1.0), v.dtype.type(0.0)
    nothing = none, none, none, none, none, none, none, none
    width, every = play.shape[1], play.ravel()
    by_state, average = np.zeros((n_states + 1) * LANES, v.dtype), np.empty(LANES, v.dtype)
    for d in range(len(v)):
        theta = weights.mass[d]
        for lane in range(0, width, LANES):
            count = min(LANES, n_policies - lane)
            for m in range(count):
                for x in range(n_states):
                    by_state[x * LANES + m] = v[d, lane + m, x]
            whole = nothing
            for x in range(n_states if len(rows.idle) else 0):
                whole = plus(whole, v.dtype.type(rows.overall[x]), lanes(by_state, x * LANES))
            t = np.uint64(0)
            for x in range(n_states):
                own, pooled, kept = nothing, nothing, nothing
                if t == np.uint64(rows.last[x]):
                    pooled = whole
                while t < np.uint64(rows.last[x]):
                    p, mean = rows.tried[t], nothing
                    for k in range(
                        np.uint64(rows.first[t]), np.uint64(rows.first[t + np.uint64(1)])
                    ):
                        value = lanes(by_state, np.uint64(rows.successors[k]) * np.uint64(LANES))
                        mean = plus(mean, v.dtype.type(theta[k]), value)
                    chosen = lanes(every, p * width + lane)
                    w = v.dtype.type(weights.weight[d, p])
                    each = one / v.dtype.type(weights.total[d, t])
                    own, kept = plus_product(own, w * each, chosen, mean), plus(kept, w, chosen)
                    pooled = plus(pooled, v.dtype.type(weights.pair[d, t]) * each, mean)
                    t += np.uint64(1)
                for j in range(LANES):
                    average[j] = own[j] + (one - kept[j]) * pooled[j]
                for m in range(count):
                    here = d, lane + m, x
                    out[here] = earned[here] + gamma * average[m] - v[here]
