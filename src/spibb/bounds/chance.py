"""What chance alone makes of the largest of many differences."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import chdtri

DRAWS = 10_000
NUMBERS = 1 << 22
"""Numbers drawn at most, but for the fewest draws."""
AT_ONCE = 1 << 14
"""Numbers drawn in one call, unless one draw has more: they stay in the processor's cache."""
FEWEST_DRAWS = 200
IN_THE_TAIL = 20
"""Draws beyond a limit that make it reliable."""


class Chance(NamedTuple):
    """The mean of a statistic under chance, and the limit that it exceeds with probability δ."""

    mean: float
    limit: float


def chance_of_largest(freedom: np.ndarray, k: int, delta: float) -> Chance:
    """The sum of the k largest of independent χ² variables with these degrees of freedom [m].

    Whoever changes k of m states where differences look large has the largest of m. The sum of all
    is χ² itself; others are drawn, with a seed of their own: the limit is a number, not a guess.
    Where few draws are beyond it, the tail goes on as that of χ² does, e^(−x/2).
    """
    if k >= len(freedom):
        total = float(freedom.sum())
        return Chance(total, float(chdtri(total, delta)))
    draws = int(np.clip(NUMBERS // len(freedom), FEWEST_DRAWS, DRAWS))
    sums = _largest(freedom, k, draws)
    reliable = max(delta, IN_THE_TAIL / draws)
    limit = float(np.quantile(sums, 1 - reliable)) + 2 * math.log(reliable / delta)
    return Chance(float(sums.mean()), limit)


def _largest(freedom: np.ndarray, k: int, draws: int) -> np.ndarray:
    """Drawn sums of the k largest [draws], some rows at a time."""
    rng, at = np.random.default_rng(0), len(freedom) - k
    sums, rows = np.empty(draws), max(1, AT_ONCE // len(freedom))
    for first in range(0, draws, rows):
        part = sums[first : first + rows]
        drawn = rng.chisquare(freedom, (len(part), len(freedom)))
        drawn.partition(at)
        drawn[:, at:].sum(1, out=part)
    return sums
