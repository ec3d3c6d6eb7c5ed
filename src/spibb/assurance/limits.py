"""Between which limits the returns of a log's process lie, by the log."""

from __future__ import annotations

import numpy as np

from spibb.assurance.rows import PooledRows

SWEEPS = 100
"""Steps that are looked ahead; what follows is bounded by the rewards alone."""


def return_limits(
    rows: PooledRows, reward_range: tuple[float, float], discount: float
) -> tuple[float, float]:
    """The lowest and the highest mean return that any model of the log can have.

    Every step pays within the range of the rewards and leads where its state was seen to lead. So
    no drawn value of non-negative rewards is negative, and where states tell how many steps are
    left, a constant in all rewards moves the limits as it moves the values.
    """
    low, high = reward_range
    return 0.0 - _most(rows, -low, discount), _most(rows, high, discount)


def _most(rows: PooledRows, paid: float, discount: float) -> float:
    """The largest mean return if every step pays as much; a bound from above after each sweep."""
    most = max(paid, paid / (1 - discount))
    v = np.full(rows.shape[0] + 1, most)
    v[-1] = 0.0  # the end, which code −1 finds
    state, first = np.unique(rows.pair // rows.shape[1], return_index=True)
    for _ in range(SWEEPS):
        found = paid + discount * np.maximum.reduceat(v[rows.successors], first)
        moved = not np.array_equal(found, v[state])
        v[state] = found
        if not moved:
            break
    return float(rows.initial @ v[:-1])
