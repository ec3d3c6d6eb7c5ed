"""How far the noise estimated from a few visits may be from the true noise.

A pair that pays rarely and much looks as if it always paid nothing until it pays: the variance of
its few visits is then too small, and a difference from another action looks sure. So the variance
m(x, a) of a pair's n visits is raised towards that of the action in all states, m(a), where this
is larger:

    m̃(x, a) = m(x, a) + (1 − w) max(m(a) − m(x, a), 0),      w = n/(n + k),

with k the kurtosis of the action's returns, at most their number. k is 3 for normal noise, where a
few visits show the variance, and 1/p for a prize of probability p, which takes some 1/p visits to
be seen. m(a) is the mean of m(x, a) over states, each with its weight w: states are alike, not
visits, and one that is visited often and never varies says little of the others.
"""

from __future__ import annotations

import numpy as np


class Noise:
    """Sums over the visits of pairs: their number, and h², h⁴ of what a visit is off by.

    `tilts` are Σ w² of the weights w with which visits count; 0 where they do not.
    """

    def __init__(self, n_states: int, n_actions: int) -> None:
        shape = (n_states, n_actions)
        self.visits, self.squares, self.fourth, self.tilts = np.zeros((4, *shape))

    def add(self, state: np.ndarray, action: np.ndarray, off: np.ndarray, w: np.ndarray) -> None:
        """Add visits [N], one after the other: parts of a log give what the whole does."""
        pair, square = (state, action), off**2
        for sums, terms in (
            (self.visits, 1.0), (self.squares, square), (self.fourth, square**2), (self.tilts, w**2)
        ):  # fmt: skip
            np.add.at(sums, pair, terms)

    def lacking(self) -> np.ndarray:
        """Σ_a Σ w²·(m̃ − m) [S]: by how much Σ (w h)² of a state may be too small."""
        n, squares = self.visits.sum(axis=0), self.squares.sum(axis=0)
        kurtosis = np.ones(len(n))
        np.divide(n * self.fourth.sum(axis=0), squares**2, out=kurtosis, where=squares > 0)
        weight = self.visits / (self.visits + kurtosis)
        own = self.squares / np.maximum(self.visits, 1)
        usual = (weight * own).sum(axis=0) / np.maximum(weight.sum(axis=0), 1e-300)
        raised = (1 - weight) * np.maximum(usual - own, 0)
        return np.asarray((self.tilts * raised).sum(axis=1))
