"""How much of the log speaks of the new policy: importance weights, step by step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spibb.frozen import Frozen
from spibb.log import Log

STEPS = 50
"""Steps beyond this are not shown."""
LOWEST = -700.0
"""Stands for the logarithm of 0: exp of less than about −745 is 0."""


@dataclass(frozen=True, eq=False)
class Overlap(Frozen):
    """Importance weights of whole episodes [E], and by step t the effective number of episodes.

    `effective` [T] is Kish's (Σ w_t)²/Σ w_t² of the weights after step t, those of shorter episodes
    at their end included.
    """

    weights: np.ndarray
    effective: np.ndarray


def overlap(log: Log, policy: np.ndarray, baseline: np.ndarray) -> Overlap | None:
    """The weights of a policy [S, A] on a log that `baseline` [S, A] made, or as it records."""
    made = log.taken_probs(baseline)
    if not (made > 0).all():
        return None
    with np.errstate(divide="ignore"):
        logs = np.maximum(np.log(policy[log.state, log.action] / made), LOWEST)
    starts, lengths = log.episode_starts, log.lengths
    total = np.cumsum(logs) - np.repeat(np.append(0.0, np.cumsum(logs))[starts[:-1]], lengths)
    last = log.last_rows
    found = [
        _effective(total[np.minimum(starts[:-1] + t, last)])
        for t in range(min(STEPS, int(lengths.max())))
    ]
    whole = total[last]
    weights = np.where(whole > LOWEST / 2, np.exp(np.clip(whole, LOWEST, -LOWEST)), 0.0)
    return Overlap(weights, np.array(found))


def _effective(logs: np.ndarray) -> float:
    """Kish's size of weights given by their logarithms; 0 where all are 0."""
    if logs.max() <= LOWEST / 2:
        return 0.0
    w = np.exp(logs - logs.max())
    return float(w.sum() ** 2 / (w**2).sum())
