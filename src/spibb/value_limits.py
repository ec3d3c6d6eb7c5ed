"""Limits of the values of states, by the returns after their first visits in episodes.

The return after the first visit of s has the mean V(s), and different episodes are independent: for
v = V(s) the wealth of a bet on returns above v,

    W(v) = Π_i (1 + λ (G_i − v)),  λ ∈ [0, 1/span),

has the mean 1, and reaches 1/δ with probability at most δ. It falls in v. So V(s) is not below the
v with W(v) = 1/δ, unless that happened; the upper limit is the same of −G.

An episode that was cut at y has G = recorded + γ^k V(y), and W grows with V(y). Where V(y) is not
known, a lower limit of it makes W smaller: what is refuted then is refuted at the true values too.
So limits of all states' values tighten each other, round after round, and nothing more can go
wrong: if no wealth *at the true values* reached its 1/δ, all limits of all rounds hold.
"""

from __future__ import annotations

import math

import numpy as np

from spibb.betting import MOST
from spibb.visits import ReturnBounds, Visits

ROUNDS = 4
"""How often the limits tighten each other."""
HALVINGS = 25


def narrowed(visits: Visits, bounds: ReturnBounds, noise: np.ndarray, delta: float) -> Visits:
    """The visits with limits of the values at which episodes were cut; they fail with P ≤ `delta`.

    `noise` [S] is a guess of the variance of returns that was made without these episodes.
    """
    log_wanted = math.log(2 * visits.n_states / delta)
    for _ in range(ROUNDS):
        least = _lower(visits, visits.low, bounds.low, noise, log_wanted, bounds.span)
        most = -_lower(visits, -visits.high, -bounds.high, noise, log_wanted, bounds.span)
        visits = visits.within(least, most)
    return visits


def _lower(
    visits: Visits, returns: np.ndarray, lowest: float, noise: np.ndarray, log_wanted: float,
    span: float,
) -> np.ndarray:  # fmt: skip
    """The largest v [S] with W(v) ≥ exp(`log_wanted`), found by halving, or the lowest value."""
    first = visits.rank == 0
    state = np.repeat(np.arange(visits.n_states), np.diff(visits.starts))[first]
    g, n = returns[first], np.bincount(state, minlength=visits.n_states)
    bet = np.minimum(np.sqrt(2 * log_wanted / np.maximum(n * noise, 1e-300)), MOST / span)
    low, high = np.full(len(n), lowest), np.full(len(n), lowest + span)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        factors = np.log1p(bet[state] * (g - middle[state]))
        refuted = np.bincount(state, weights=factors, minlength=len(n)) >= log_wanted
        low, high = np.where(refuted, middle, low), np.where(refuted, high, middle)
    return low
