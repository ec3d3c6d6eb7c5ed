"""What HCPI returns: a mixture with the baseline, the bounds of all of them, and the reason."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from spibb import ope
from spibb.algorithms.improvement import Improvement
from spibb.kernels import hcpi as kernels
from spibb.kernels.mixtures import LAST
from spibb.words import at_least

ALPHAS = np.arange(11) / 10
ALPHAS.flags.writeable = False
"""The shares of the baseline in the mixtures."""


@dataclass(frozen=True, eq=False)
class HCPIImprovement(Improvement):
    """What HCPI returned and why.

    The policy is (1 − alpha)π_t + alpha·π_b; alpha = 1 is the baseline. `lower_bounds` [11] belong
    to the mixtures `alphas` [11], −∞ where there is none; `baseline_estimate` is the performance
    that they had to beat. `iterations` counts the candidates that have a bound.
    """

    alpha: float
    lower_bound: float
    baseline_estimate: float
    reason: str = field(kw_only=True)
    alphas: np.ndarray
    lower_bounds: np.ndarray

    @property
    def kept_baseline(self) -> bool:
        """True where the baseline was returned."""
        return self.alpha == 1


def reason_for(bounds: np.ndarray, tests: list[ope.LowerBound], rival: float) -> str:
    """Why this candidate, or why the baseline."""
    best = kernels.choose(bounds, -math.inf)
    found = tests[best]
    if found.value == -math.inf:
        return f"no candidate has a lower bound ({found.refusal}): the baseline is kept"
    name = "the baseline itself" if best == LAST else f"alpha = {ALPHAS[best]:g}"
    highest = f"the highest lower bound is {at_least(found.value, 4)} ({name})"
    if found.value > rival:
        return f"{highest}, above the baseline's performance {rival:.4g}"
    return f"{highest}, not above the baseline's performance {rival:.4g}: the baseline is kept"
