"""Scales of numbers, for compiled code and for plain Python: nothing here needs Numba."""

from __future__ import annotations

import math

SMALLEST_EXPONENT = -1000
"""Smallest exponent of the unit of rewards: below, 2 to its power or the inverse is subnormal."""


def centre_and_unit(low: float, high: float) -> tuple[float, float]:
    """The middle c of a range and a power of two u with |r − c| ≤ u < 4 |high − c| within it.

    Squares of (r − c)/u neither cancel where rewards are large beside their differences, nor
    overflow. Without any width u is 1; u is never so small that dividing by it overflows.
    """
    width = high / 2 - low / 2
    exponent = max(math.frexp(width)[1], SMALLEST_EXPONENT)
    half = 2.0 ** (exponent - 1)  # Python refuses 2.0 ** 1024, and takes twice 2.0 ** 1023 for inf
    return high / 2 + low / 2, 2.0 * half if width > 0 else 1.0
