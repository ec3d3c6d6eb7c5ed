"""Formulas that kernels and Python share: nothing here needs Numba.

Kernels compile them; Python calls them as they are, on numbers or arrays.
"""

from __future__ import annotations

import math
from typing import TypeVar

import numpy as np

Real = TypeVar("Real", float, np.ndarray)


def is_playable(baseline: Real, visits: Real) -> bool | np.ndarray:
    """Whether the baseline plays an action, or the log has it."""
    return (baseline > 0) | (visits > 0)


def mixed(alpha: Real, trained: Real, baseline: Real) -> Real:
    """(1 − α)π_t + απ_b: the mixtures that HCPI tests."""
    return (1.0 - alpha) * trained + alpha * baseline


def pdis_limit(lowest: float) -> float:
    """What no contribution to pdis can be below, if no return is below `lowest`: min(L, 0).

    The end pays 0: a limit L > 0 would charge γ^T w_{T−1} L, which no reward has to make up for.
    """
    return min(lowest, 0.0)


def student_t(mean: float, square: float, n: int, quantile: float) -> float:
    """x̄ − √(Σ(x_i − x̄)²/(n − 1)/n) · t: Student's lower bound, given Σ(x_i − x̄)² and t_{1−δ}."""
    return mean - math.sqrt(square / (n - 1) / n) * quantile


def is_safe(worst: float, baseline_best: float) -> bool:
    """The safety test: is the policy's worst case above the baseline's best case?

    Equality is not enough: all values of a log without any reward are 0, and every policy would
    pass.
    """
    return worst > baseline_best
