"""Units of a network's inputs and rewards, taken from the log that it learns from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spibb.errors import InputError
from spibb.frozen import Frozen
from spibb.pseudocounts import mean_and_deviation

ROUNDED_TO = 2.0**-20
"""Inputs are rounded to multiples of it, in deviations: no unit of a column leaves a trace."""
STILL = 1e-6
"""The deviation of a column that never varies, relative to its value: others are far from it."""
LARGEST = 1e100
"""A number beyond this is taken for a mistake."""
SMALLEST = float(np.finfo(np.float64).smallest_subnormal)
"""No deviation is less: it would be 0."""


@dataclass(frozen=True, eq=False)
class Scaling(Frozen):
    """z = (x − centre) / spread, by column [d]."""

    centre: np.ndarray
    spread: np.ndarray

    @classmethod
    def of(cls, states: np.ndarray, features: Sequence[str]) -> Scaling:
        """Mean and standard deviation of each column of states [N, d]."""
        for column, name in zip(states.T, features):
            if (largest := float(np.abs(column).max())) > LARGEST:
                raise InputError(
                    f"column {name!r} holds {largest:g}, expected numbers up to {LARGEST:g}: check "
                    "the column"
                )
        low, high = states.min(axis=0), states.max(axis=0)
        still = low == high
        tiny = STILL * np.where(low == 0, 1.0, np.abs(low))
        mean, deviation = mean_and_deviation(states)
        spread = np.maximum(np.where(still, tiny, deviation), SMALLEST)
        return cls(np.where(still, low, mean), spread)

    def __call__(self, states: np.ndarray) -> np.ndarray:
        """States [M, d] in deviations from the mean."""
        z: np.ndarray = np.round((states - self.centre) / self.spread / ROUNDED_TO) * ROUNDED_TO
        return z


def reward_unit(returns: np.ndarray) -> float:
    """The root mean square of the returns to go [N]: values are about 1 in this unit."""
    largest = float(np.abs(returns).max())
    return largest * float(np.sqrt(np.mean((returns / largest) ** 2))) if largest else 1.0


def in_units(rewards: np.ndarray, unit: float) -> np.ndarray:
    """Rewards in a unit, rounded so that their own unit leaves no trace."""
    return np.asarray(np.round(rewards / (unit * 2.0**-30)) * 2.0**-30)
