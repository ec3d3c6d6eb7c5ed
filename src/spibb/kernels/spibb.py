"""Π_b-SPIBB and Π_≤b-SPIBB: the best policy of M̂ that keeps to the baseline where data are few."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import njit
from numba.extending import register_jitable

from spibb.kernels import counting, dense
from spibb.kernels.projection import greedy
from spibb.kernels.tuples import Box


@njit(cache=True, inline="always")
def only_seen(counts: np.ndarray, baseline: np.ndarray, box, s: int):
    """The row of a state at N∧ = 0: starts from the baseline's mass on the actions seen."""
    n_seen, mass = 0, 0.0
    for a in range(counts.shape[1]):
        if counts[s, a] > 0:
            n_seen += 1
            mass += baseline[s, a]
    for a in range(counts.shape[1]):
        seen = counts[s, a] > 0
        if n_seen == 0:
            box.lower[s, a] = box.upper[s, a] = baseline[s, a]
        else:
            share = baseline[s, a] / mass if mass > 0.0 else 1.0 / n_seen
            box.upper[s, a] = 1.0 if seen else 0.0
            box.start[s, a] = share if seen else 0.0


@register_jitable
def too_few(counts, n_wedge: float):
    """Whether pairs seen so often are bootstrapped: N < N∧; of a number or of an array."""
    return counts < n_wedge


@njit(cache=True)
def fill(counts: np.ndarray, baseline: np.ndarray, n_wedge: float, share: float, box):
    """Fill the box of the policies allowed [S, A].

    A pair seen less than N∧ times is bootstrapped: it keeps `share` (1: Π_b, 0: Π_≤b) to all of the
    baseline's mass. A trusted one may have any mass. At N∧ = 0 any policy over the pairs seen is
    allowed, and the baseline's row alone where there is none.
    """
    lower, upper, start = box
    for s in range(len(baseline)):
        for a in range(baseline.shape[1]):
            held = too_few(counts[s, a], n_wedge)
            lower[s, a] = share * baseline[s, a] if held else 0.0
            upper[s, a] = baseline[s, a] if held else 1.0
            start[s, a] = baseline[s, a]
        if n_wedge == 0.0:
            only_seen(counts, baseline, box, s)


@njit(cache=True, inline="always")
def policies(data, grid, pis: np.ndarray):
    """SPIBB for each N∧ and value of unseen pairs: fills `pis` [M, S, A].

    Each fit starts from the values of the one before if that has the same rewards, which saves more
    than half of the evaluations where N∧ increases. Where the policy that is greedy for them in the
    new box is the old policy, they are its values already, and nothing is left to improve.
    """
    model = data.model
    rewards, q = np.empty(data.baseline.shape), np.empty(data.baseline.shape)
    ties = np.empty(len(data.baseline))
    box = Box(np.empty(q.shape), np.empty(q.shape), np.empty(q.shape))
    for m in range(len(pis)):
        fill(model.counts, data.baseline, grid.n_wedge[m], grid.share, box)
        if m == 0 or grid.unseen[m] != grid.unseen[m - 1]:
            counting.with_unseen(model, grid.unseen[m], rewards)
            dense.copy(box.start, pis[m])
        else:
            greedy(q, box, ties, pis[m])
            if dense.equal(pis[m], pis[m - 1]):
                continue
        _, ties, _, _ = dense.policy_iteration(model.rows, rewards, model.discount, box, pis[m], q)


class Grid(NamedTuple):
    """Configurations: N∧ and the value of unseen pairs [M]; what bootstrapped pairs keep."""

    n_wedge: np.ndarray
    unseen: np.ndarray
    share: float

    @staticmethod
    def kernel() -> Callable[..., None]:
        """What trains them."""
        return policies
