"""Model-free Π_b-SPIBB: Q fitted to targets, transition by transition."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from spibb.kernels.projection import greedy


class LoggedSteps(NamedTuple):
    """(x, a, x', r) of every transition [N]; x' is −1 at an end."""

    state: np.ndarray
    action: np.ndarray
    successor: np.ndarray
    reward: np.ndarray


class FittedQ(NamedTuple):
    """Q [S, A], at most `error` off, where `wanted` was asked for; and the number of `sweeps`."""

    q: np.ndarray
    sweeps: int
    error: float
    wanted: float


EPSILON = float(np.finfo(np.float64).eps)


@njit(cache=True)
def fit(transitions, box, discount: float, unseen: float, tolerance: float, max_sweeps: int):
    """Q(x, a) ← mean of y_j = r_j + γ V(x'_j) over the samples of (x, a), to the fixed point.

    A pass contracts by γ, so that γ/(1 − γ) times its change, and its rounding over 1 − γ, bound
    the error. It ends when that is below `tolerance` times the largest Q of a pair with samples.
    Returns the fields of `FittedQ`.
    """
    state, action = transitions.state, transitions.action
    successor, reward = transitions.successor, transitions.reward
    n = np.zeros(box.lower.shape)
    for j in range(len(state)):
        n[state[j], action[j]] += 1.0
    unit = 4.0 * EPSILON * np.sqrt(n.max())
    q = np.where(n > 0, 0.0, unseen)
    pi, ties = np.empty(q.shape), np.zeros(len(q))
    error, wanted, attainable = np.inf, 0.0, 0.0
    sweeps = 0
    while error > max(wanted, attainable) and sweeps < max_sweeps:
        v = greedy(q, box, ties, pi)
        target = np.where(n > 0, 0.0, unseen)
        for j in range(len(state)):
            y = reward[j]
            if successor[j] >= 0:
                y += discount * v[successor[j]]
            target[state[j], action[j]] += y / n[state[j], action[j]]
        change = np.abs(target - q).max()
        q = target
        level = np.where(n > 0, np.abs(q), 0.0).max()
        noise = unit * level / (1.0 - discount)
        error, wanted = change * discount / (1.0 - discount) + noise, tolerance * level
        attainable = 1.5 * noise
        sweeps += 1
    return q, sweeps, error, wanted
