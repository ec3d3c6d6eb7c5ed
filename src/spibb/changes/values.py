"""The values of a policy in M̂ by NumPy alone: a forecast is made before a solver is loaded."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from spibb.arrays import owners
from spibb.counts import Counts

DIRECT_UP_TO = 500
"""States up to which a linear system is quicker than sweeps."""
TOLERANCE = 1e-9
"""Of the largest value: how far sweeps may be from theirs."""


def quick_values(
    counts: Counts, baseline: np.ndarray, discount: float
) -> tuple[np.ndarray, np.ndarray]:
    """Q [S, A] and V [S] as `departures.values_where_seen` has them, up to rounding."""
    pairs, reward = counts.pairs, counts.mean_reward
    indptr, successors, probs = counts.transitions
    seen = np.where(pairs > 0, baseline, 0.0)
    mass = seen.sum(axis=1, keepdims=True)
    rows = np.where(mass > 0, seen / np.where(mass > 0, mass, 1.0), baseline)
    owner, (n_states, n_actions) = owners(indptr), pairs.shape

    def q_of(v: np.ndarray) -> np.ndarray:
        ahead = np.bincount(owner, probs * v[successors], pairs.size).reshape(pairs.shape)
        return np.asarray(reward + discount * ahead)

    if n_states <= DIRECT_UP_TO:
        matrix = np.zeros((n_states, n_states))
        weights = rows.reshape(-1)[owner] * probs
        np.add.at(matrix, (owner // n_actions, successors), weights)
        v = np.linalg.solve(np.eye(n_states) - discount * matrix, (rows * reward).sum(axis=1))
    else:
        v = _swept(q_of, rows, discount)
    return np.where(pairs > 0, q_of(v), v[:, None]), v


def _swept(
    q_of: Callable[[np.ndarray], np.ndarray], rows: np.ndarray, discount: float
) -> np.ndarray:
    """V [S] by repeated steps: the last one's size bounds what is missing."""
    v = np.zeros(len(rows))
    while True:
        after = (rows * q_of(v)).sum(axis=1)
        left = discount / (1 - discount) * np.abs(after - v).max(initial=0.0)
        v = after
        if left <= TOLERANCE * np.abs(v).max(initial=0.0):
            return v
