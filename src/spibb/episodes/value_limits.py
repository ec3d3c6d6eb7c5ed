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
from dataclasses import dataclass

import numpy as np

from spibb.bounds.betting import MOST
from spibb.episodes.visits import ReturnBounds, Visits

ROUNDS = 4
"""How often the limits tighten each other."""
CELLS = 1 << 25
"""A limit is one of as many numbers between the declared limits of returns."""
STEPS = 60
"""Newton steps at most; a few are needed."""


def narrowed(visits: Visits, bounds: ReturnBounds, noise: np.ndarray, delta: float) -> Visits:
    """The visits with limits of the values at which episodes were cut; they fail with P ≤ `delta`.

    `noise` [S] is a guess of the variance of returns that was made without these episodes.
    """
    wealths = _Wealths.of(visits, noise, math.log(2 * visits.n_states / delta), bounds.span)
    least, most = (np.full(visits.n_states, end) for end in (bounds.high, -bounds.low))
    for _ in range(ROUNDS):
        low, high = visits.ends(wealths.rows)
        least = wealths.turn(low, bounds.low, least)
        most = wealths.turn(-high, -bounds.high, most)
        visits = visits.within(
            wealths.refuted(low, bounds.low, least), -wealths.refuted(-high, -bounds.high, most)
        )
    return visits


@dataclass(frozen=True, eq=False)
class _Wealths:
    """W(v) of all states, of the returns in `rows`: the first visits, in the order of `state`."""

    rows: np.ndarray
    state: np.ndarray
    bet: np.ndarray
    log_wanted: float
    span: float

    @classmethod
    def of(cls, visits: Visits, noise: np.ndarray, log_wanted: float, span: float) -> _Wealths:
        """Bets that suit the number of first visits and the noise."""
        rows = np.flatnonzero(visits.rank == 0)
        state = np.repeat(np.arange(visits.n_states), np.diff(visits.starts))[rows]
        n = np.bincount(state, minlength=visits.n_states)
        bet = np.minimum(np.sqrt(2 * log_wanted / np.maximum(n * noise, 1e-300)), MOST / span)
        return cls(rows, state, bet, log_wanted, span)

    def _factors(self, g: np.ndarray, v: np.ndarray) -> np.ndarray:
        """λ (G_i − v) [n]."""
        return np.asarray(self.bet[self.state] * (g - v[self.state]))

    def turn(self, g: np.ndarray, lowest: float, start: np.ndarray) -> np.ndarray:
        """About where W(v) = exp(`log_wanted`) [S], between the limits of v; Newton from `start`.

        log W is concave and falls: a step leads beyond the turn, and from there all lead back
        towards it, none too far.
        """
        v = np.clip(start, lowest, lowest + self.span)
        for _ in range(STEPS):
            factors = self._factors(g, v)
            lacks = self.log_wanted - self._summed(np.log1p(factors))
            slope = self.bet * self._summed(1 / (1 + factors))
            step = np.where(slope > 0, lacks / np.where(slope > 0, slope, 1.0), self.span)
            before, v = v, np.clip(v - step, lowest, lowest + self.span)
            if np.abs(v - before).max(initial=0.0) <= self.span / CELLS / 1024:
                break
        return v

    def refuted(self, g: np.ndarray, lowest: float, turn: np.ndarray) -> np.ndarray:
        """The largest of the cells' lower ends that W refutes, or the lowest value [S]."""
        cell = np.floor((turn - lowest) / (self.span / CELLS))
        cell = np.clip(cell, 0, CELLS - 1)
        while True:
            v = lowest + cell * (self.span / CELLS)
            wealth = self._summed(np.log1p(self._factors(g, v)))
            wrong = (cell > 0) & (wealth < self.log_wanted)
            if not wrong.any():
                return v
            cell[wrong] -= 1

    def _summed(self, values: np.ndarray) -> np.ndarray:
        return np.bincount(self.state, weights=values, minlength=len(self.bet))
