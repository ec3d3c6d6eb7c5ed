"""What chance alone makes of the largest of many differences."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import chdtri, gammainccinv

DRAWS = 4000
NUMBERS = 1 << 22
"""Numbers drawn at most, but for the fewest draws."""
FEWEST_DRAWS = 100
IN_THE_TAIL = 20
"""Draws beyond a limit that make it reliable; with fewer, a gamma distribution is fitted."""


class Chance(NamedTuple):
    """The mean of a statistic under chance, and the limit that it exceeds with probability δ."""

    mean: float
    limit: float


def chance_of_largest(freedom: np.ndarray, k: int, delta: float) -> Chance:
    """The sum of the k largest of independent χ² variables with these degrees of freedom [m].

    Whoever changes k of m states where differences look large has the largest of m. The sum of all
    is χ² itself; others are drawn (with a seed of their own: the limit is a number, not a guess).
    """
    if k >= len(freedom):
        total = float(freedom.sum())
        return Chance(total, float(chdtri(total, delta)))
    draws = int(np.clip(NUMBERS // len(freedom), FEWEST_DRAWS, DRAWS))
    rng = np.random.default_rng(0)
    sums = np.array([_largest(rng.chisquare(freedom), k) for _ in range(draws)])
    mean, variance = float(sums.mean()), float(sums.var())
    if delta * draws >= IN_THE_TAIL:
        return Chance(mean, float(np.quantile(sums, 1 - delta)))
    return Chance(mean, float(gammainccinv(mean**2 / variance, delta)) * variance / mean)


def _largest(x: np.ndarray, k: int) -> float:
    return float(np.partition(x, len(x) - k)[len(x) - k :].sum())
