"""Basic RL: the best policy of M̂ over all available actions."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import njit

from spibb.kernels import counting, dense
from spibb.kernels.projection import free_box, playable


@njit(cache=True, inline="always")
def policies(data, grid, pis: np.ndarray):
    """Basic RL for each value of unseen pairs: fills `pis` [M, S, A]."""
    model = data.model
    box = free_box(playable(data.baseline, model.counts))
    rewards = np.empty(pis.shape)
    for m in range(len(pis)):
        counting.with_unseen(model, grid.unseen[m], rewards[m])
    dense.optimise_each(model.rows, rewards, model.discount, box, pis)


class Grid(NamedTuple):
    """Configurations: the value of pairs never seen [M]."""

    unseen: np.ndarray

    @staticmethod
    def kernel() -> Callable[..., None]:
        """What trains them."""
        return policies
