"""Tests and lower bounds by betting: exact in finite samples, for values bounded from below only.

Under the hypothesis E[X] ≤ 0 no bet on X > 0 makes money on average: with X ≥ −c and a bet λ in
[0, 1/c] that does not depend on X, the factor 1 + λX is not negative and has mean at most 1. What
is won by betting is evidence (Shafer 2021; Waudby-Smith & Ramdas 2024): a wealth of mean at most 1
is an *e-value*, and by Markov's inequality it exceeds 1/δ with probability at most δ.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from spibb.bisection import enclosed

SPREADS = np.exp(np.linspace(-0.8, 0.8, 9))
"""Factors on the favoured bet that a mixture plays."""
WEIGHTS = np.exp(-0.5 * np.linspace(-2, 2, 9) ** 2)
WEIGHTS /= WEIGHTS.sum()
"""The share of the capital on each of them."""
MOST = 0.95
"""No bet stakes more than this share of the wealth."""
LARGEST_LOG = 600.0
"""e-values beyond e⁶⁰⁰ count as e⁶⁰⁰, which is lower and so valid."""
SMALLEST = 2.0**-60
"""The least of the range of a bound that is looked at."""
WIDTH = 2.0**-53
"""Of that range: to what the bound is enclosed."""


@dataclass(frozen=True, eq=False)
class Rests:
    """Values that depend on a number which is not known, but shared by all of a group.

    The value at `place` [m] is `x` of the sample if the number of its `group` [m] is the smallest
    possible, `other` [m] if it is the largest, and on the line between them otherwise. Groups are
    numbered below the number of values.
    """

    place: np.ndarray
    other: np.ndarray
    group: np.ndarray

    def least(self, change: np.ndarray) -> np.ndarray:
        """Σ over groups of the smaller of 0 and the sum of `change` [..., m], one a value."""
        if not len(self.place):
            return np.zeros(change.shape[:-1])
        order, begin = self._groups
        sums = np.add.reduceat(change[..., order], begin, axis=-1)
        return np.asarray(np.minimum(sums, 0.0).sum(axis=-1))

    @cached_property
    def _groups(self) -> tuple[np.ndarray, np.ndarray]:
        """The values in an order by group [m], and where each group begins in it."""
        order = np.argsort(self.group, kind="stable")
        return order, np.flatnonzero(np.diff(self.group[order], prepend=-1))


NO_RESTS = Rests(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0, dtype=np.int64))


@dataclass(frozen=True, eq=False)
class Sample:
    """Independent values X [n] with the times T [n] over which they were earned.

    What is known of them beforehand: X ≥ −loss·T and T ≤ longest. A value without a time of its
    own has T = 1. `rests` says which values are known except for a number that groups share.
    """

    x: np.ndarray
    times: np.ndarray
    loss: float
    longest: float
    rests: Rests = NO_RESTS

    @property
    def most_lost(self) -> float:
        """c: no value is below −c."""
        return self.loss * self.longest

    @property
    def lowest(self) -> float:
        """The lowest value, whatever the rests are; it is below −c only if what is known is not."""
        return float(min(self.x.min(initial=0.0), self.rests.other.min(initial=0.0)))

    @property
    def total(self) -> float:
        """ΣX, with the rests that make it smallest."""
        rests = self.rests
        return float(self.x.sum() + rests.least(rests.other - self.x[rests.place]))

    @property
    def rate(self) -> float:
        """The estimate ΣX/ΣT of E[X]/E[T], with the worst rests; NaN without values."""
        total = float(self.times.sum())
        return self.total / total if total > 0 else math.nan

    def shares(self, bet: float) -> np.ndarray:
        """κ_k = λ_k·c: the shares of the wealth that the bets around `bet` stake."""
        return np.minimum(bet * SPREADS * self.most_lost, MOST)


def together(samples: Sequence[Sample]) -> Sample:
    """One sample of all values; what is unknown of one is not shared with another."""
    starts = np.cumsum([0, *(len(sample.x) for sample in samples)]).tolist()
    rests = [sample.rests for sample in samples]
    return Sample(
        np.concatenate([sample.x for sample in samples]),
        np.concatenate([sample.times for sample in samples]),
        max(sample.loss for sample in samples), max(sample.longest for sample in samples),
        Rests(
            np.concatenate([rest.place + start for rest, start in zip(rests, starts)]),
            np.concatenate([rest.other for rest in rests]),
            np.concatenate([rest.group + start for rest, start in zip(rests, starts)]),
        ),
    )  # fmt: skip


def growth(mean: float, second: float, most_lost: float) -> tuple[float, float]:
    """The bet on values of a mean and a mean square, and what a value then adds to log wealth.

    λ = mean/second maximises λ·mean − λ²·second/2, unless it would stake too much.
    """
    bet = min(mean / second, MOST / most_lost)
    return bet, bet * mean - bet**2 * second / 2


def log_e_value(sample: Sample, bet: float) -> float:
    """log of Σ_k w_k Π_i (1 + λ_k X_i): the wealth of a mixture of bets around `bet`.

    If the X_i are independent of mean at most 0, none is below −c, and `bet` was chosen without
    them, this is the logarithm of an e-value: for each λ_k = min(bet·s_k, 0.95/c) the factors are
    independent, not negative and of mean at most 1, so is their product, and so is the weighted
    mean of the products. It does not depend on the order of the X_i. Against the best of the λ_k
    it loses −log w_k at most.

    Where values depend on unknown numbers (`rests`), the smallest wealth over all of them is
    taken: it is at most the wealth at the true ones. The logarithm of a product is a sum over
    groups, each concave in its number, so that the smallest is at one of the two ends.
    """
    shares, c = sample.shares(bet)[:, None], sample.most_lost
    return _log_mixture(sample, lambda x, _: shares * (x / c))


def _log_mixture(sample: Sample, staked: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> float:
    """log Σ_k w_k Π_i (1 + stake_ki), each product with its worst rests.

    `staked` gives the stakes [9, m] of values [m] that were earned over times [m].
    """
    single = np.log1p(staked(sample.x, sample.times))
    logs = single.sum(axis=1) + np.log(WEIGHTS)
    rests, place = sample.rests, sample.rests.place
    if len(place):
        change = np.log1p(staked(rests.other, sample.times[place])) - single[:, place]
        logs += rests.least(change)
    top = logs.max()
    return min(float(top + np.log(np.exp(logs - top).sum())), LARGEST_LOG)


def lower_rate(sample: Sample, bet: float, log_wanted: float) -> float:
    """A lower bound on r = E[X]/E[T] that stakes the shares κ_k of `log_e_value`.

    At r = 0 its wealth is that of `log_e_value`.
    """
    return refuted_rate(sample, sample.shares(bet), log_wanted)


def refuted_rate(sample: Sample, shares: np.ndarray, log_wanted: float) -> float:
    """A lower bound on r = E[X]/E[T]: the largest r that the wealth of the `shares` [9] refutes.

    At the true r the X − rT have mean 0 and are at least −(loss + r)·longest; staking shares κ_k
    that were chosen without them gives an e-value whose factors

        1 + κ (X − rT) / ((loss + r)·longest)

    fall in r, because (X − rT)/(loss + r) has the derivative −(X + loss·T)/(loss + r)² ≤ 0. So the
    r whose wealth reaches exp(`log_wanted`) = 1/δ form an interval that ends at the bound; the one
    returned was seen to reach it. It misses with probability at most δ, does not depend on the
    order of the X, and is never above ΣX/ΣT: there the logarithms of the factors have a sum of at
    most 0.
    """

    def wealth(rise: float) -> float:
        def staked(x: np.ndarray, times: np.ndarray) -> np.ndarray:
            above = np.maximum(x + sample.loss * times, 0.0)  # it is, except for rounding
            return np.asarray(shares[:, None] * ((above / rise - times) / sample.longest))

        return _log_mixture(sample, staked)

    high = sample.rate + sample.loss
    low = high * SMALLEST
    if not high > 0 or wealth(low) < log_wanted:
        return -sample.loss
    return (
        enclosed(lambda rise: wealth(rise) - log_wanted, low, high, WIDTH * high)[0] - sample.loss
    )


def adjusted_p_values(log_e: np.ndarray) -> np.ndarray:
    """p-values [K] that may be compared with δ all at once, from the logarithms of K e-values.

    A mean of e-values is one, whatever their dependence, so the mean over a set I of hypotheses
    tests that all of I are true. Closed testing rejects k if every set that contains k is
    rejected:

        p_k = max over I ∋ k of 1 / mean_{i ∈ I} e_i,

    and P(some true hypothesis has p_k ≤ δ) ≤ δ: that needs the mean over the set of all true ones
    to reach 1/δ (Vovk & Wang 2021). Of the sets of j + 1 members the worst holds k and the j
    smallest of the others. Holm's procedure on the p-values 1/e rejects whenever e_k ≥ (K − rank
    + 1)/δ, which uses that the other e-values are at least 0; this uses what they are, so that it
    accepts all that Holm accepts, and more.
    """
    e = np.exp(np.minimum(np.asarray(log_e, dtype=np.float64), LARGEST_LOG))
    sizes = np.arange(1, len(e) + 1)
    order = np.argsort(e, kind="stable")
    sums = np.concatenate([[0.0], np.cumsum(e[order])])
    p = np.empty(len(e))
    for place, k in enumerate(order.tolist()):
        worst = np.where(sizes <= place + 1, e[k] + sums[:-1], sums[1:])
        p[k] = (sizes / np.maximum(worst, 1e-300)).max()
    return np.minimum(p, 1.0)
