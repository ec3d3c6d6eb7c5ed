"""Rare disasters that a pair has not shown: how often they may await it, by other pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import betaln, ndtri

from spibb.assurance.rows import PooledRows
from spibb.counts import END
from spibb.frozen import Frozen

ORDINARY = 0.01
"""Probability with which normal noise has, in a log of its size, a surprise that is not called
ordinary."""
ROUNDING = 1e-9
SELDOM = 0.95
"""Share of the most played action's probability below which an action is seldom played."""
EXPOSED = np.array([0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0])
"""Shares of the pairs that disasters may await, φ."""
RATES = 2.0 ** -np.arange(1.0, 11.0)
"""Their mean rates there, m."""


@dataclass(frozen=True, eq=False)
class Disasters(Frozen):
    """The log's worst event, `size`, and the pairs in which no comparable one was seen.

    A disaster is a target r + γ V̄(x') at least half as far below the mean of its pair as the worst
    one of the log, which itself is beyond what noise alone shows in a log of that size. A share φ
    of the pairs is exposed to disasters, each at a rate of its own, Beta(1, 1/m). φ and m are drawn
    from a grid by the evidence of all pairs, apart for actions that the baseline plays and for
    those that it seldom plays: what it avoids may be what falls. A pair that has shown none in n
    visits is exposed with probability φL/(φL + 1 − φ), L = 1/(1 + mn), at a rate of
    Beta(1, 1/m + n); those that have shown one speak for themselves.

    `pairs` [U] are these, `visits` [U] their n, `group` [U] 0 or 1, `odds` [2, G] the probabilities
    of the grid.
    """

    size: float
    pairs: np.ndarray
    visits: np.ndarray
    group: np.ndarray
    odds: np.ndarray

    @classmethod
    def of(
        cls, rows: PooledRows, probs: np.ndarray, v: np.ndarray, discount: float, lowest: float,
        noise: float,
    ) -> Disasters:  # fmt: skip
        """From the baseline [S, A] and its values [S], the lowest reward and the noise σ²."""
        ahead, n = discount * np.append(v, 0.0)[rows.successors], rows.visits
        below, deeper = _below(rows, ahead), _deeper(rows, lowest)
        size = max(float(below.max(initial=0.0)), _surely(rows, below, lowest))
        seldom = (probs < SELDOM * probs.max(axis=1, keepdims=True)).reshape(-1).astype(np.intp)
        if size <= _ordinary(n.sum()) * np.sqrt(noise):
            nothing = np.zeros(0, dtype=np.intp)
            return cls(0.0, nothing, nothing * 1.0, nothing, np.ones((2, 1)))
        some = np.where(below + deeper >= size / 2, _lowest(rows, deeper), 0.0)
        events = np.bincount(rows.pair, np.where(below >= size / 2, rows.n, some), len(n))
        odds = np.stack([_odds(events[seldom == kind], n[seldom == kind]) for kind in (0, 1)])
        pairs = np.flatnonzero(events < 0.5)
        return cls(size, pairs, n[pairs], seldom[pairs], odds)

    def draw(self, draws: int, rng: np.random.Generator) -> np.ndarray:
        """What the pairs lose by disasters that they have not shown [D, U]."""
        which = np.stack([rng.choice(len(odds), draws, p=odds) for odds in self.odds])
        exposed, rate = (grid.reshape(-1)[which.T].take(self.group, axis=1) for grid in _grid())
        shown = exposed / (1 + rate * self.visits)
        awaits = rng.random(shown.shape) * (shown + 1 - exposed) < shown
        at, level = np.flatnonzero(awaits), rng.random(shown.shape)
        more = 1 / rate.take(at) + self.visits.take(at % len(self.visits))
        found = np.zeros(shown.shape)
        # Beta(1, b) by its inverse
        found.reshape(-1)[at] = self.size * -np.expm1(np.log1p(-level.take(at)) / more)
        return found


def _grid() -> tuple[np.ndarray, np.ndarray]:
    """φ and m [7, 10] each."""
    exposed, rates = np.meshgrid(EXPOSED, RATES, indexing="ij")
    return exposed, rates


def _below(rows: PooledRows, ahead: np.ndarray) -> np.ndarray:
    """How far the mean target of each outcome is below that of its pair [K].

    Rewards of two values count with the mean of their pair's ends, or of its other steps: how often
    they are paid is drawn elsewhere (`assurance.rates`).
    """
    target = ahead + (_by_end(rows) if rows.two_valued else rows.mean_reward)
    mean = np.bincount(rows.pair, rows.n * target, len(rows.visits)) / np.maximum(rows.visits, 1)
    found: np.ndarray = mean[rows.pair] - target
    return found


def _deeper(rows: PooledRows, lowest: float) -> np.ndarray:
    """How far the lowest reward of an outcome may be below their mean [K]."""
    if rows.two_valued:
        return np.zeros(len(rows.n))
    found: np.ndarray = np.minimum(_furthest(rows), rows.mean_reward - lowest)
    return found


def _furthest(rows: PooledRows) -> np.ndarray:
    """How far one reward of an outcome can be below their mean, by their squares [K]."""
    found: np.ndarray = np.sqrt(rows.reward_squares * (rows.n - 1) / rows.n)
    return found


def _surely(rows: PooledRows, below: np.ndarray, lowest: float) -> float:
    """How far the lowest reward of the log is, at least, below the mean of its pair.

    Sums and squares do not say which outcome it belongs to; it is one of those whose squares leave
    room for it.
    """
    furthest, apart = _furthest(rows), rows.mean_reward - lowest
    room = (apart > 0) & (furthest >= apart * (1 - ROUNDING))
    if rows.two_valued or not room.any():
        return 0.0
    return float((below + apart)[room].min())


def _ordinary(n: float) -> float:
    """Standard deviations that the lowest of n normal numbers is seldom beyond."""
    return float(-ndtri(ORDINARY / max(n, 1.0)))


def _lowest(rows: PooledRows, deeper: np.ndarray) -> np.ndarray:
    """How many rewards of an outcome are as low as that, by their squares, if any varies [K]."""
    squares = rows.reward_squares / np.where(deeper > 0, deeper, 1.0) ** 2
    return np.where(deeper > 0, np.minimum(squares, rows.n), 0.0)


def _by_end(rows: PooledRows) -> np.ndarray:
    """The mean reward of the outcomes of a pair that end the process, and of the others [K]."""
    kind = 2 * rows.pair + (rows.successors == END)
    found: np.ndarray = (
        np.bincount(kind, rows.n * rows.mean_reward) / np.maximum(np.bincount(kind, rows.n), 1)
    )[kind]
    return found


def _odds(events: np.ndarray, visits: np.ndarray) -> np.ndarray:
    """The probability of each φ and m [70] given the disasters of pairs and their visits."""
    tried = visits > 0
    k, n = events[tried], visits[tried]
    exposed, rates = (grid.reshape(-1, 1) for grid in _grid())
    shown = np.log(exposed) + betaln(1 + k, 1 / rates + n - k) - np.log(rates)
    with np.errstate(divide="ignore"):
        spared = np.log((1 - exposed) * (k == 0))
    evidence = np.logaddexp(shown, spared).sum(axis=1)
    odds = np.exp(evidence - evidence.max())
    return odds / odds.sum()
