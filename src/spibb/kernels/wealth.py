"""The wealth of bets on a mean, value after value."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

LARGE, SMALL = 1e100, 1e-100
"""Wealth beyond these is put into the logarithm of its unit, before it overflows."""
LARGEST_EXPONENT = 700.0
"""exp of more than about 709 is infinite."""


@njit(cache=True)
def wealth(y: np.ndarray, mean: float, shares: np.ndarray, capital: np.ndarray, log_wanted: float):
    """Bet that values y ≥ 0 [n] have a larger mean than `mean` > 0.

    Part k of the capital [K], which sums to 1 at the start, stakes the share κ_k: each value
    multiplies it by 1 + κ_k (y/mean − 1). Returns after how many values the total first reaches
    exp(`log_wanted`), −1 if it never does, and the logarithm of the total at the end.

    Each part has a unit of its own: one that loses for long, and then wins, is not forgotten.
    """
    part, log_unit = capital.copy(), np.zeros(len(capital))
    scale, top = np.ones(len(capital)), 0.0  # units relative to the largest, and its logarithm
    goal = _power(log_wanted)
    reached = 0 if log_wanted <= 0.0 else -1
    total = 1.0
    for i in range(len(y)):
        gain = y[i] / mean - 1.0
        total, outside = 0.0, False
        for k in range(len(part)):
            part[k] *= 1.0 + shares[k] * gain
            total += part[k] * scale[k]
            outside |= part[k] > LARGE or part[k] < SMALL
        if reached < 0 and total >= goal:
            reached = i + 1
        if outside:
            log_total = top + math.log(total)
            _rescale(part, log_unit)
            top = log_unit.max()
            scale[:] = np.exp(log_unit - top)
            goal, total = _power(log_wanted - top), math.exp(log_total - top)
    return reached, top + math.log(total)


@njit(cache=True)
def _power(exponent: float):
    return math.exp(exponent) if exponent < LARGEST_EXPONENT else math.inf


@njit(cache=True)
def _rescale(part: np.ndarray, log_unit: np.ndarray):
    """Parts that are too large or small for their unit become 1 of another."""
    for k in range(len(part)):
        if part[k] > LARGE or part[k] < SMALL:
            log_unit[k] += math.log(part[k])
            part[k] = 1.0
