"""What HCPI returns: a mixture with the baseline, the bounds of all of them, and the reason."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from spibb.algorithms.improvement import Improvement
from spibb.kernels import hcpi as kernels
from spibb.kernels.formulas import mixed
from spibb.kernels.mixtures import LAST, Mixtures
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

    >>> result = spibb.HCPI().improve(problem)
    >>> result.alpha, round(result.lower_bound, 2), round(result.baseline_estimate, 2)
    (0.1, 0.72, 0.45)
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


class Tests(NamedTuple):
    """The candidates, their lower bounds [11] and why one has none, and what they had to beat."""

    mixtures: Mixtures
    bounds: np.ndarray
    refusals: Sequence[str | None]
    rival: float

    def probs(self, lane: int) -> np.ndarray:
        """The rows [S, A] of a candidate."""
        trained, baseline, alphas = self.mixtures
        return mixed(alphas[lane], trained, baseline)


def reason_for(tests: Tests) -> str:
    """Why this candidate, or why the baseline."""
    best, rival = kernels.choose(tests.bounds, -math.inf), tests.rival
    bound = tests.bounds[best]
    if bound == -math.inf:
        return f"no candidate has a lower bound ({tests.refusals[best]}): the baseline is kept"
    name = "the baseline itself" if best == LAST else f"alpha = {ALPHAS[best]:g}"
    highest = f"the highest lower bound is {at_least(bound, 4)} ({name})"
    if bound > rival:
        return f"{highest}, above the baseline's performance {rival:.4g}"
    return f"{highest}, not above the baseline's performance {rival:.4g}: the baseline is kept"
