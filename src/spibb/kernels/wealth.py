"""The wealth of bets on a mean, value after value."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

LARGE, SMALL = 1e100, 1e-100


@njit(cache=True)
def wealth(y: np.ndarray, mean: float, shares: np.ndarray, capital: np.ndarray, log_wanted: float):
    """Bet that values y ≥ 0 [n] have a larger mean than `mean` > 0.

    Part k of the capital [K], which sums to 1 at the start, stakes the share κ_k: each value
    multiplies it by 1 + κ_k (y/mean − 1). Returns after how many values the total first reaches
    exp(`log_wanted`), −1 if it never does, and the logarithm of the total at the end.
    """
    part = capital.copy()
    log_unit, reached = 0.0, -1
    goal = math.exp(min(log_wanted, 230.0)) if log_wanted < 230.0 else math.inf
    if log_wanted <= 0.0:
        reached = 0
    total = 1.0
    for i in range(len(y)):
        gain = y[i] / mean - 1.0
        total = 0.0
        for k in range(len(part)):
            part[k] *= 1.0 + shares[k] * gain
            total += part[k]
        if reached < 0 and total >= goal:
            reached = i + 1
        if total > LARGE or total < SMALL:
            for k in range(len(part)):
                part[k] /= total
            log_unit += math.log(total)
            total = 1.0
            goal = math.exp(log_wanted - log_unit) if log_wanted - log_unit < 230.0 else math.inf
    return reached, log_unit + math.log(total)
