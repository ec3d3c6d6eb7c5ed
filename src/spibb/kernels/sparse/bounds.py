"""Bounds of MacQueen (1966) for rows that may sum to less than one, and types of the solvers.

The theory is in `solve.py`.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from spibb.kernels.tuples import Box

SLIVER = 1e-12  # probability mass below this is rounding
SLOW = 0.75  # error ratio of two sweeps from which convergence is slow

Floats = NDArray[np.float64]
Reals = NDArray[np.float64] | NDArray[np.float32]
Ints = NDArray[np.int64]
Masses = tuple[float, float]
Index = int | np.int64 | np.uint64


def tail(c: float, up: float, down: float) -> float:
    """g(c) = c (k + k^2 + ...): what a change of c at this sweep can still add."""
    k = up if c >= 0.0 else down
    if c == 0.0 or k == 0.0:
        return 0.0
    return c * k / (1.0 - k) if k < 1.0 else np.inf * c


def interval(low: float, high: float, kept: Masses) -> tuple[float, float]:
    """Middle and half length of the interval of v* - T v."""
    least, most = kept
    bottom, top = tail(low, least, most), tail(high, most, least)
    if not top - bottom < np.inf:
        return 0.0, np.inf
    return (bottom + top) / 2.0, (top - bottom) / 2.0


def spread(low: float, high: float, kept: Masses) -> float:
    """How much two actions can differ in what a change of v between low and high does to them."""
    least, most = kept
    return high * (most if high >= 0.0 else least) - low * (least if low >= 0.0 else most)


def largest(v: Reals) -> float:
    """max |v|."""
    return max(float(v.max(initial=0.0)), -float(v.min(initial=0.0)))


@njit(cache=True, forceinline=True)
def free_mass(box: Box, s: Index) -> float:
    """Probability of s that is left to hand out, 0 if no action has room for it."""
    lower, upper, start = box.lower, box.upper, box.start
    mass, has_room = 0.0, False
    for a in range(np.uint64(lower.shape[1])):
        mass += start[s, a] - lower[s, a]
        has_room |= upper[s, a] > lower[s, a]
    return max(mass, 0.0) if has_room else 0.0
