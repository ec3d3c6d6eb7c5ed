"""Mixtures of a trained policy and the baseline: the candidates that HCPI tests, one per lane."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from spibb.kernels import formulas

mixed = njit(cache=True, inline="always")(formulas.mixed)

N_LANES = 11
LAST = N_LANES - 1
"""The lane of the baseline."""


class Mixtures(NamedTuple):
    """The policies under test: (1 − α)π_t + απ_b for each α [11]."""

    trained: np.ndarray
    baseline: np.ndarray
    alphas: np.ndarray


@njit(cache=True)
def mix(mixtures, lane: int, out: np.ndarray):
    """Fill `out` [S, A] with the mixture of a lane."""
    trained, baseline, alpha = mixtures.trained, mixtures.baseline, mixtures.alphas[lane]
    for s in range(len(out)):
        for a in range(out.shape[1]):
            out[s, a] = mixed(alpha, trained[s, a], baseline[s, a])
