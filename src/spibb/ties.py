"""Which actions are equally good when their values are known only up to an error.

A row of a policy is greedy up to a tie: gains below it may be errors of the values, and leave the
row as it would be for equal values. One error for all states can be too coarse: rewards of 10¹⁴ in
one state must not hide that 1.01 is more than 1 in another.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from spibb.arrays import largest
from spibb.kernels import dense
from spibb.kernels.projection import greedy
from spibb.kernels.tuples import Box

PASSES = 1_000
STALLED = 0.999
"""Errors of states are pinned down in this many passes, or until none falls below this share."""

Backup = Callable[[np.ndarray], np.ndarray]
"""γ P e [S, A] of a vector e [S]."""


def settle(
    q: np.ndarray, box: Box, backup: Backup, v: np.ndarray, sizes: np.ndarray, error: float,
    limit: float,
) -> tuple[np.ndarray, bool]:  # fmt: skip
    """The greedy policy of q = R + γ P v, and whether a tie in it is in doubt.

    `error` bounds |v − v*|. A tie is in doubt where another row might gain more than `limit` times
    `sizes` [S, A], the terms |R| + γ P |v| that a pair's value adds up.
    """
    movable = np.where(box.upper > box.lower, sizes, 0.0).max(axis=1)
    rounding = dense.ROUNDING * movable
    probs = np.empty(q.shape)
    greedy(q, box, np.full(len(v), 2 * error + dense.ROUNDING * largest(v)), probs)
    gains = dense.hidden_gains(q, box, probs)
    if (gains > limit * movable).any():
        change = np.abs((probs * q).sum(axis=1) + gains - v)
        errors = pin_down(backup, box, change + rounding, error)
        greedy(q, box, 2 * _worst(backup, box, errors) + rounding, probs)
        gains = dense.hidden_gains(q, box, probs)
    return probs, bool((gains > limit * movable).any())


def pin_down(backup: Backup, box: Box, change: np.ndarray, error: float) -> np.ndarray:
    """|v − v*| of each state [S], from |T v − v| ≤ change [S] and one error for all.

    Because |v − v*| ≤ |v − T v| + γ max_a P |v − v*|, bounds on the right give one on the left,
    again and again.
    """
    errors = np.full(len(change), float(error))
    for _ in range(PASSES):
        closer = np.minimum(errors, change + _worst(backup, box, errors))
        if not (closer < STALLED * errors).any():
            break
        errors = closer
    return errors


def _worst(backup: Backup, box: Box, errors: np.ndarray) -> np.ndarray:
    """The largest error of γ P e among the actions that may be played [S]."""
    return np.where(box.upper > 0, backup(errors), 0.0).max(axis=1)
