"""How often a pair pays the higher one of two rewards."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spibb.assurance.rows import PooledRows
from spibb.counts import END
from spibb.frozen import Frozen

JEFFREYS = 0.5
"""Successes, or failures if these are rarer, that are added to those of a pair."""
SETTLED = 1e-4
"""Successes, or failures, that are too few to draw their share."""


@dataclass(frozen=True, eq=False)
class SuccessRates(Frozen):
    """Beta(`won`, `lost`) for the steps of a pair that end the process, and for the others [G].

    `group` [K] says to which of these an outcome belongs. All its outcomes have the same rate: only
    the mean reward of a pair matters, which is known no better if its steps lead to many states.

    To w successes in n visits κ visits at the mean rate m of all ends, or of all other steps, are
    added:

        Beta(w + κ m, n − w + κ (1 − m)),        κ = min(½ / min(m, 1 − m), n + 1).

    So the rarer value has Jeffreys' ½ (less where n is small, since a rare success should not be
    believed of every pair seen once), and the other one in proportion: what policies earn is not
    moved on average. Successes and failures can be exchanged.
    """

    group: np.ndarray
    won: np.ndarray
    lost: np.ndarray

    @classmethod
    def of(cls, rows: PooledRows, low: float, high: float) -> SuccessRates:
        """From rewards that are `low` or `high`."""
        code = 2 * rows.pair + (rows.successors == END)
        groups, group = np.unique(code, return_inverse=True)
        share = np.clip((rows.mean_reward - low) / (high - low), 0, 1)
        n, won = np.bincount(group, rows.n), np.bincount(group, rows.n * share)
        rate = _pooled_rates(n, won, groups % 2)
        added = np.minimum(JEFFREYS / np.minimum(rate, 1 - rate), n + 1)
        return cls(group, won + added * rate, n - won + added * (1 - rate))

    @property
    def mean(self) -> np.ndarray:
        """The expected rate of each outcome [K]."""
        found: np.ndarray = (self.won / (self.won + self.lost))[self.group]
        return found

    def draw(self, size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """The outcomes whose rates are worth drawing [C], and drawn rates [D, C]."""
        open_ = np.minimum(self.won, self.lost) > SETTLED
        rates = rng.beta(self.won[open_], self.lost[open_], (size, int(open_.sum())))
        drawn = np.flatnonzero(open_[self.group])
        return drawn, rates.take((np.cumsum(open_) - 1)[self.group[drawn]], axis=1)


def _pooled_rates(n: np.ndarray, won: np.ndarray, kind: np.ndarray) -> np.ndarray:
    """The mean rate among groups of the same kind [G], with one visit at that of the whole log."""
    overall = won.sum() / max(n.sum(), 1)  # a log may have no outcome at all
    visits, successes = np.bincount(kind, n), np.bincount(kind, won)
    found: np.ndarray = ((successes + overall) / (visits + 1))[kind]
    return found
