"""RaMDP: the best policy of M̂ after each reward paid for its uncertainty."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import njit

from spibb.kernels import dense, robust
from spibb.kernels.projection import seen_first_box

COUNT_FLOOR = 1e-5
"""What the released code adds to every count."""


@njit(cache=True)
def adjusted_rewards(model, v_max: float, grid) -> np.ndarray:
    """Rewards [M, S, A] after their penalties, for several κ, correct or as released.

    Correct: R̂ − κ/√N, and −V_max where N = 0. Released: R̂ − κ/√(N + 1e-5) − γ P̂(end) κ/√1e-5,
    where unseen pairs do not even end.
    """
    rewards, counts = model.rewards, model.counts
    exits = dense.left_out(model.rows.indptr, model.rows.probs).reshape(rewards.shape)
    out = np.empty((len(grid.kappa), *rewards.shape))
    for s in range(len(rewards)):
        for a in range(rewards.shape[1]):
            n = counts[s, a]
            once = 1.0 / np.sqrt(max(n, 1))
            floored = 1.0 / np.sqrt(n + COUNT_FLOOR)
            if n > 0:
                floored += model.discount * exits[s, a] / np.sqrt(COUNT_FLOOR)
            for m in range(len(grid.kappa)):
                if grid.released[m] > 0.0:
                    out[m, s, a] = rewards[s, a] - grid.kappa[m] * floored
                else:
                    paid = rewards[s, a] - grid.kappa[m] * once
                    out[m, s, a] = paid if n > 0 else -v_max
    return out


@njit(cache=True)
def extreme_rewards(model, r_max: float, test_radius: float):
    """R̂ ∓ R_max/(1−γ)·e, two [S, A]: the safety test values the policy in the first, and the
    baseline in the second."""
    radius = robust.radii(model.counts, test_radius)
    cost = r_max / (1.0 - model.discount)
    low, high = np.empty(radius.shape), np.empty(radius.shape)
    dense.combine(1.0, model.rewards, -cost, radius, low)
    dense.combine(1.0, model.rewards, cost, radius, high)
    return low, high


@njit(cache=True, inline="always")
def policies(data, grid, pis: np.ndarray):
    """RaMDP for each configuration, the baseline where its safety test fails: fills `pis`."""
    model = data.model
    box = seen_first_box(model.counts, data.baseline)
    rewards = adjusted_rewards(model, data.v_max, grid)
    dense.optimise_each(model.rows, rewards, model.discount, box, pis)
    for m in range(len(pis)):
        if grid.test_radius[m] > 0.0:
            r_max = robust.largest_reward(data.r_low, data.r_high)
            low, high = extreme_rewards(model, r_max, grid.test_radius[m])
            worst = dense.performance(model.rows, low, model.discount, data.initial, pis[m])
            best = dense.performance(model.rows, high, model.discount, data.initial, data.baseline)
            if not robust.is_safe(worst, best):
                dense.copy(data.baseline, pis[m])


class Grid(NamedTuple):
    """Configurations: κ, whether as released, e(1) of the safety test (0 without one) [M]."""

    kappa: np.ndarray
    released: np.ndarray
    test_radius: np.ndarray

    @staticmethod
    def kernel() -> Callable[..., None]:
        """What trains them."""
        return policies
