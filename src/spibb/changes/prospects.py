"""What the tests of planned changes will say with more episodes.

**What is believed of a change.** All episodes of the log together say that the values X of its test
have the mean m ± s. The best of many changes looks better than it is, so that m is drawn towards 0.
Let the actions of a state differ with the variance τ² around their common mean. What the means of
the log's pairs differ by beyond chance estimates τ² (`Spread`: the moments of a random effect,
DerSimonian & Laird 1986), and the gain of a change that moves the masses d, Σ d(a) Q(a), has the
variance t² = τ² Σ d(a)² beforehand. Given the log its mean is m·t²/(t² + s²), with the variance
s²·t²/(t² + s²), whichever change was chosen by looking.

**What is expected of its test.** With a mean μ and a mean square q of X, the bet λ = min{μ/q,
0.95/c} lets log e of n episodes be about normal with the mean n(λμ − λ²q/2) and the variance nλ²q.
It passes if it reaches log(k/δ), where k − 1 other tests fail (`betting.adjusted_p_values`). The
odds are averaged over what is believed of μ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from spibb.bisection import halved
from spibb.bounds.betting import MOST, Sample, together
from spibb.bounds.normal import ONE_SIDED_95, normal_cdf
from spibb.changes.change_search import Chooser
from spibb.changes.planned_tests import PlannedTest
from spibb.episodes.visits import Visits
from spibb.frozen import Frozen

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(15)
"""Of means over a normal distribution."""
WEIGHTS = WEIGHTS / WEIGHTS.sum()
MOST_TIMES = 100.0
"""No forecast goes further than this many times the log."""


@dataclass(frozen=True, eq=False)
class Outlook(Frozen):
    """What is believed of tests [K]: the `mean` of X with its `error`, and the mean `square`.

    No value loses more than `most_lost`, and `n` values judge for each length of the log.
    """

    mean: np.ndarray
    error: np.ndarray
    square: np.ndarray
    most_lost: np.ndarray
    n: np.ndarray

    def odds(self, times: float, wanted: np.ndarray) -> np.ndarray:
        """P(log e reaches what is `wanted` [K]), with `times` as many episodes."""
        mean = self.mean[:, None] + self.error[:, None] * NODES
        square, n = self.square[:, None], times * self.n[:, None]
        with np.errstate(over="ignore"):
            bet = np.minimum(np.maximum(mean, 0.0) / square, MOST / self.most_lost[:, None])
        expected, spread = n * (bet * mean - bet**2 * square / 2), np.sqrt(n * square) * bet
        reached = normal_cdf((expected - wanted[:, None]) / np.where(spread > 0, spread, 1.0))
        return np.asarray(np.where(bet > 0, reached, 0.0) @ WEIGHTS)

    def until(self, wanted: float) -> float | None:
        """How many times the log lets the one test pass at even odds; None if not even `MOST_TIMES`
        do."""
        need = np.array([wanted])

        def fails(log_times: float) -> bool:
            return float(self.odds(math.exp(log_times), need)[0]) < 0.5

        longest = math.log(MOST_TIMES)
        return None if fails(longest) else math.exp(halved(fails, 0.0, longest, 12)[1])

    def together(self, times: float, delta: float) -> np.ndarray:
        """The odds of tests that share δ."""
        odds = np.ones(len(self.mean))
        for _ in range(4):
            failing = (1 - odds).sum() - (1 - odds)
            odds = self.odds(times, np.log((1 + failing) / delta))
        return odds

    @classmethod
    def joined(cls, parts: Sequence[Outlook]) -> Outlook:
        """Tests one after the other."""
        fields = ("mean", "error", "square", "most_lost", "n")
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in fields))

    def among(self, which: np.ndarray) -> Outlook:
        """Some of them."""
        fields = (self.mean, self.error, self.square, self.most_lost, self.n)
        return Outlook(*(values[which] for values in fields))

    def as_one(self) -> Outlook:
        """A single test of the values of all, each of other episodes."""
        n = self.n.sum()
        share = self.n / n if n > 0 else np.full(len(self.n), 1 / len(self.n))
        return Outlook(
            np.array([share @ self.mean]), np.array([math.hypot(*(share * self.error))]),
            np.array([share @ self.square]), np.array([self.most_lost.max()]), np.array([n]),
        )  # fmt: skip


class Spread(NamedTuple):
    """τ²: how the actions of a state differ beyond chance, in the mean return after them.

    `shown` says that chance would seldom let them differ so much (5 %).
    """

    variance: float
    shown: bool

    @classmethod
    def of(cls, chooser: Chooser, *others: Visits) -> Spread:
        """Of all pairs that the episodes of a chooser have, and other visits."""
        parts = (chooser.likely, *(visits.valued(chooser.v) for visits in others))
        found = [_beyond_chance(visits, chooser.noise, chooser.counts.shape) for visits in parts]
        beyond, variance, sizes = np.sum(found, axis=0).tolist()
        shown = beyond > ONE_SIDED_95 * math.sqrt(variance)
        return cls(max(beyond, 0.0) / sizes if sizes > 0 else 0.0, shown)


def _beyond_chance(
    visits: Visits, noise: np.ndarray, shape: tuple[int, ...]
) -> tuple[float, float, float]:
    """How much the means of pairs differ beyond chance: a sum of squares, the variance that it has
    by chance, and what it is for each unit of τ²."""
    state = np.repeat(np.arange(shape[0]), np.diff(visits.starts))
    pair, size = state * shape[1] + visits.action, shape[0] * shape[1]
    n = np.bincount(pair, minlength=size).reshape(shape)
    sums = np.bincount(pair, weights=visits.low, minlength=size).reshape(shape)
    total = np.maximum(n.sum(axis=1), 1)
    means, common = sums / np.maximum(n, 1), sums.sum(axis=1) / total
    between = (n * (means - common[:, None]) ** 2).sum(axis=1)
    freedom = np.maximum((n > 0).sum(axis=1) - 1, 0)
    sizes = n.sum(axis=1) - (n**2).sum(axis=1) / total
    beyond = float((between - noise * freedom).sum())
    return beyond, 2 * float(noise**2 @ freedom), float(sizes.sum())


def believed(
    plans: Sequence[PlannedTest], chooser: Chooser, variance: float, judged: float
) -> Outlook:
    """What the episodes of a chooser say of plans, if effects have a `variance` (τ²).

    `judged` is the share of the episodes that judge.
    """
    return Outlook.joined([_believed(plan, chooser, variance, judged) for plan in plans])


def _believed(plan: PlannedTest, chooser: Chooser, variance: float, judged: float) -> Outlook:
    likely, worst = (plan.sample(v, chooser.bounds) for v in (chooser.likely, chooser.visits))
    n = max(len(likely.x), 1)
    mean, square = likely.total / n, float((likely.x**2).sum()) / n
    times = float(likely.times.sum()) / n
    square = max(square, plan.second * (plan.mass**2 * times if plan.block else 1.0))
    if not square > 0:  # fewer visits than a block has
        return Outlook(*(np.array([number]) for number in (0.0, 0.0, 1.0, likely.most_lost, 0.0)))
    error = math.sqrt(square / n)
    moved = plan.played - chooser.baseline[plan.state]
    scale = times * (plan.mass if plan.block else 1.0)
    known = variance * float(moved @ moved) * scale**2
    share = known / (known + error**2) if known > 0 else 0.0
    hurt = max(mean - worst.total / max(len(worst.x), 1), 0.0)
    return Outlook(
        np.array([share * mean - hurt]), np.array([math.sqrt(share) * error]), np.array([square]),
        np.array([likely.most_lost]), np.array([judged * n]),
    )  # fmt: skip


def of_one(plans: Sequence[PlannedTest], chooser: Chooser, judged: float) -> Outlook:
    """What the episodes of a chooser say of one test of a change that states share.

    They alone say how large such effects are: of m² the variance s² is chance (James & Stein).
    """
    sample = together([plan.sample(chooser.likely, chooser.bounds) for plan in plans])
    n = max(len(sample.x), 1)
    mean, square = sample.total / n, float((sample.x**2).sum()) / n
    error = math.sqrt(square / n)
    share = max(1 - (error / mean) ** 2, 0.0) if mean > 0 else 0.0
    square = square if square > 0 else 1.0
    numbers = share * mean, math.sqrt(share) * error, square, sample.most_lost, judged * n
    return Outlook(*(np.array([number]) for number in numbers))


def updated(before: Outlook, sample: Sample) -> Outlook:
    """What is believed of one test after the sample that tested it: its values are new."""
    n = len(sample.x)
    if not n:
        return before
    square = np.maximum(before.square, float((sample.x**2).sum()) / n)
    known, chance = before.error**2, square / n
    share = known / np.where(known > 0, known + chance, 1.0)
    mean = before.mean + share * (sample.total / n - before.mean)
    error = np.sqrt(1 - share) * before.error
    return Outlook(mean, error, square, np.array([sample.most_lost]), np.array([float(n)]))
