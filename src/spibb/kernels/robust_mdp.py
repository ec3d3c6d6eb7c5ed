"""Robust MDP: the best policy in the worst MDP that a log does not rule out."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import njit

from spibb.kernels import dense, robust, robust_mdp_released
from spibb.kernels.projection import seen_first_box
from spibb.kernels.tuples import Ambiguous, Box


@njit(cache=True, inline="always")
def policies(data, grid, pis: np.ndarray):
    """Robust MDP for each configuration, the baseline where its test fails: fills `pis`.

    Each search starts from the policy found before.
    """
    model, baseline = data.model, data.baseline
    box = seen_first_box(model.counts, baseline)
    only = Box(baseline, baseline, baseline)
    q, kept = np.empty(baseline.shape), np.empty(len(model.rows.probs))
    moved = np.empty(baseline.size)
    pi, pi_b = box.start.copy(), baseline.copy()
    for m in range(len(pis)):
        if grid.released[m] > 0.0:
            robust_mdp_released.policy(data, grid.released[m], pis[m])
            continue
        radius = robust.radii(model.counts, grid.radius[m])
        known = grid.known_rewards[m] > 0.0
        r_max = robust.largest_reward(data.r_low, data.r_high)
        low, high = robust.reward_bounds(data, radius, r_max, known)
        xi = Ambiguous(model.rows, low, radius, model.discount)
        worst = robust.policy_iteration(xi, box, pi, q, kept, moved)[0]
        dense.copy(pi, pis[m])
        if grid.tested[m] > 0.0:
            dense.combine(-1.0, high, 0.0, high, low)  # the best case is the worst of −R, negated
            best = robust.policy_iteration(xi, only, pi_b, q, kept, moved)[0]
            promised = -dense.expectation(data.initial, best)
            if not robust.is_safe(dense.expectation(data.initial, worst), promised):
                dense.copy(baseline, pis[m])


class Grid(NamedTuple):
    """Configurations: e(1) of a pair seen once, whether tested, whether R is known [M].

    `released` is the logarithm of the released code's e = √(2 · log/N), and 0 for the others.
    """

    radius: np.ndarray
    tested: np.ndarray
    known_rewards: np.ndarray
    released: np.ndarray

    @staticmethod
    def kernel() -> Callable[..., None]:
        """What trains them."""
        return policies
