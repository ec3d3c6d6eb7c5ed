"""Shared by the deep tests: they need the extra, and a small log to train on.

Importing this without the extra is an ImportError, which the tests turn into a skip; where CI is
set it is another error, and they fail.
"""

from __future__ import annotations

import importlib.util

import numpy as np
from parts import IN_CI

NEEDED = ("jax", "equinox", "optax", "onnx", "onnxruntime")
MISSING = [name for name in NEEDED if importlib.util.find_spec(name) is None]
N_ACTIONS = 4

if MISSING:
    reason = f'{", ".join(MISSING)} missing: pip install ".[deep]" onnxruntime'
    raise RuntimeError(reason) if IN_CI else ImportError(reason)


def baseline(states):
    """A fixed stochastic policy on two features."""
    q = np.stack([states[:, 0], -states[:, 0], states[:, 1], 0 * states[:, 1]], axis=1)
    weights = np.exp(q)
    return weights / weights.sum(axis=1, keepdims=True)


def counts(states):
    """Fixed pseudo-counts between 0 and 10."""
    phase = np.arange(N_ACTIONS) + 5 * states[:, :1] + 3 * states[:, 1:2]
    return 5 + 5 * np.sin(phase)


def columns(n=200, seed=0):
    """Random transitions of two features and four actions."""
    rng = np.random.default_rng(seed)
    return {
        "state": rng.normal(size=(n, 2)),
        "action": rng.integers(0, N_ACTIONS, n),
        "reward": rng.normal(size=n),
        "next_state": rng.normal(size=(n, 2)),
        "terminated": rng.random(n) < 0.2,
    }


def small_log(n=200, seed=0):
    """A log of those transitions."""
    from spibb.deep import DeepLog

    return DeepLog(**columns(n, seed), baseline=baseline)
