"""HCPI as released: what the authors' code does differently, deviation by deviation.

`kernels.hcpi` has the correct version of each function, by the same name but for the values.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from spibb.kernels.mixtures import LAST, N_LANES, mix


@njit(cache=True)
def greedy(q: np.ndarray) -> np.ndarray:
    """The first of the best of all actions in every state, also where nothing was learnt [S, A]."""
    probs = np.zeros(q.shape)
    for s in range(len(q)):
        probs[s, np.argmax(q[s])] = 1.0
    return probs


@njit(cache=True)
def truncated_values(model, mixtures):
    """Q [S, A, K] and V [S, K] of the mixtures, cut to whole numbers as the released code does.

    Where nothing pays but a goal that pays 1 and ends, they are 0, but 1 for a pair that always
    ended there, and 1 for a state whose actions, with the whole mass of the mixture, all do.
    """
    n_states, n_actions = model.rewards.shape
    n_lanes = len(mixtures.alphas)
    q, v = np.zeros((n_states, n_actions, n_lanes)), np.zeros((n_states, n_lanes))
    pi = np.empty(model.rewards.shape)
    for k in range(n_lanes):
        mix(mixtures, k, pi)
        for s in range(n_states):
            sure = 0.0
            for a in range(n_actions):
                if model.counts[s, a] > 0 and model.rewards[s, a] >= 1.0:
                    q[s, a, k] = 1.0
                    sure += pi[s, a]
            v[s, k] = np.floor(sure)
    return q, v


@njit(cache=True)
def lower_bounds(found, quantile: float, out: np.ndarray):
    """x̄ − quantile · σ/√(n − 1) of the mixtures into `out` [11], −∞ where it is not a number.

    The baseline itself, the last, was no candidate.
    """
    for k in range(N_LANES):
        out[k] = -np.inf
        if found.n >= 2 and k != LAST:
            error = np.sqrt(found.square[k] / (found.n - 1)) / np.sqrt(found.n - 1)
            bound = found.mean[k] - error * quantile
            out[k] = -np.inf if np.isnan(bound) else bound


@njit(cache=True)
def choose(bounds: np.ndarray, rival: float) -> int:
    """The lane of the first of the highest bounds [11] if that is above `rival`, else the last."""
    best = int(np.argmax(bounds))
    return best if bounds[best] > rival else LAST
