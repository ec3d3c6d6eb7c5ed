"""What chance alone does: how large the largest of many differences becomes, what stays unseen."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import chdtri

RULE_OF_THREE = 3
"""An event of rate 3/n stays away from n cases with probability e⁻³ = 5 % (rule of three)."""
DRAWS = 10_000
NUMBERS = 1 << 22
"""Numbers drawn at most, but for the fewest draws."""
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
    freedom = np.sort(freedom)  # no draw depends on the order of the states
    if k >= len(freedom):
        total = float(freedom.sum())
        return Chance(total, float(chdtri(total, delta)))
    draws = int(np.clip(NUMBERS // len(freedom), FEWEST_DRAWS, DRAWS))
    sums = _largest(freedom, k, draws)
    reliable = max(delta, IN_THE_TAIL / draws)
    limit = float(np.quantile(sums, 1 - reliable)) + 2 * math.log(reliable / delta)
    return Chance(float(sums.mean()), limit)


def _largest(freedom: np.ndarray, k: int, draws: int) -> np.ndarray:
    """Drawn sums of the k largest [draws]."""
    rng, at = np.random.default_rng(0), len(freedom) - k
    squares = rng.chisquare(freedom, (draws, len(freedom)))
    squares.partition(at, axis=1)
    found: np.ndarray = squares[:, at:].sum(axis=1)
    return found
