"""What a log of vectors proposes for the settings of SPIBB-DQN; docs/deep.md has the evidence."""

from __future__ import annotations

import math

import numpy as np

from spibb.pseudocounts import median_distance

SHARE = 0.35
"""Of the logged decisions, so many lie below the proposed N∧, …"""
LEAST, MOST = 3.0, 20.0
"""… which is never outside these limits."""
UPDATES, BATCH = 40_000, 32
"""Minibatches that training takes, of so many transitions each, …"""
FEWEST, MANIEST = 20, 2000
"""… in so many passes over the log."""


def propose_radius(z: np.ndarray) -> float:
    """The median distance from a logged state [N, d] to its k-th nearest other one, k = √N."""
    n = len(z)
    return median_distance(z, min(math.ceil(math.sqrt(n)), n - 1)) if n > 1 else 1.0


def propose_n_wedge(taken: np.ndarray) -> float:
    """The quantile of the pseudo-counts of logged pairs [N] below which 35 % of them lie.

    Two digits, between 3 and 20.
    """
    found = min(max(float(np.quantile(taken, SHARE)), LEAST), MOST)
    return float(f"{found:.2g}")


def propose_passes(n_transitions: int) -> int:
    """Passes that make 40,000 updates, at least 20 and at most 2,000."""
    return min(max(math.ceil(UPDATES * BATCH / n_transitions), FEWEST), MANIEST)
