"""What `auto` returns: the candidate that the log chose, and the models that it chose by."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from spibb.algorithms.auto.cautious import CAUTIOUS
from spibb.algorithms.improvement import Improvement
from spibb.assurance.posterior import Posterior


@dataclass(frozen=True, eq=False)
class AutoImprovement(Improvement):
    """What the sweep chose and why; `chosen` is None where the baseline was returned.

    `values_in_models` [draws, 2] are ρ(π, M) and ρ(π_b, M) in the models that were drawn to choose.

    >>> result = spibb.Auto().improve(problem)
    >>> result.chosen is None, result.reason
    (True, 'fewer than 5 rewards of the log differ from the usual one, ...the baseline is kept')
    """

    reason: str = field(kw_only=True)
    values_in_models: np.ndarray

    @property
    def considered(self) -> np.ndarray:
        """As for any improvement; the cautious policy may change every state."""
        if self.chosen is None or self.chosen.algorithm != CAUTIOUS:
            return super().considered
        return np.ones(len(self.bootstrapped), dtype=bool)

    def posterior(self, *, draws: int = 1000, seed: int = 0) -> Posterior:
        """As for any improvement; models that were drawn to choose are not drawn again."""
        if (draws, seed) == (len(self.values_in_models), getattr(self.algorithm, "seed", None)):
            return Posterior.of(self.values_in_models)
        return super().posterior(draws=draws, seed=seed)
