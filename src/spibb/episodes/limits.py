"""Limits of returns: how many steps a return covers, and which excess is only rounding."""

from __future__ import annotations

import math

SHARE, ULPS = 1e-9, 4
"""What rounding may be of the span between two limits, and beside it in last digits of a limit."""


def discounted_steps(discount: float, horizon: float = math.inf) -> float:
    """1 + γ + … + γ^{H−1} for H ≥ 1, to the last digits also where γ is close to 1."""
    if discount == 0:
        return 1.0
    return -math.expm1(horizon * math.log(discount)) / (1 - discount)


def slack(low: float, high: float) -> float:
    """How far beyond one of two limits a return may be by rounding alone.

    It is small beside the span: what it lets pass is clipped, and must not matter.
    """
    return SHARE * abs(high - low) + ULPS * math.ulp(max(abs(low), abs(high)))
