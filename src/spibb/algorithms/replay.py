"""Offline Q-learning on replayed transitions: the policy that HCPI tests."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from spibb.algorithms.problem import Problem
from spibb.kernels import hcpi as kernels
from spibb.kernels.tuples import Codebook
from spibb.log import Log


def replayed_policy(
    training: Problem, log: Log, updates: int, step_size: float, seed: int
) -> np.ndarray:
    """The rows [S, A] of the policy that is greedy on offline Q-learning, Q = 0 at the start.

    It takes the best available action; where Q tells none apart, the baseline's row stays.
    """
    known = np.flatnonzero(log.known)
    q = np.zeros(training.baseline.probs.shape)
    if len(known):
        rows = known[replayed_rows(seed, updates, len(known))]
        none = np.empty(0, np.int64)
        codebook = Codebook(log.state, log.action, log.next_state, log.reward, none)
        kernels.q_learning(codebook, rows, training.available, training.discount, step_size, q)
    return kernels.greedy(q, training.available, training.baseline.probs)


def replayed_rows(seed: int, updates: int, n: int) -> np.ndarray:
    """The rows that Q-learning replays: `updates` of n, drawn uniformly with replacement."""
    return (replay_uniforms(seed, updates) * n).astype(np.int64)


@lru_cache(maxsize=8)
def replay_uniforms(seed: int, size: int) -> np.ndarray:
    """The uniforms in [0, 1) behind the rows that Q-learning replays [size]."""
    return np.random.default_rng(seed).random(size)
