"""Cells combined into one statistic, with an interval that does not claim more than they do."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from spibb.experiments.results import STATISTICS, Results
from spibb.stats import Interval, tail_size

LEVEL = 0.95
EMPTY: Mapping[str, object] = MappingProxyType({})
Sizes = Sequence[int] | None
"""The sizes of a curve; all if None."""
FEWEST_IN_TAIL = 10
"""With fewer runs in its tail, the interval of a tail mean is too narrow to decide anything."""

FEWEST_LOGS = 10
"""With fewer data sets to draw from, intervals that draw whole data sets are too narrow."""


class AbsentError(Exception):
    """The results lack what a claim speaks of; the text says what."""


@dataclass(frozen=True, eq=False)
class View:
    """The cells of results, by column, statistic and size; remembers how much it read.

    Joined folders may have fewer runs of some columns than of others.
    """

    results: Results
    rows: list[int] = field(default_factory=list)
    tails: list[int] = field(default_factory=list)

    def at(
        self,
        column: str,
        statistic: str,
        size: int,
        eta: float | None = None,
        noise: float | None = None,
        passes: int | None = None,
    ) -> Interval:
        """Performance of one cell: normalised for finite MDPs, a return for the helicopter."""
        cell = self.results.cell(column, size, eta, noise, passes)
        if cell is None:
            named = {"η =": eta, "noise factor": noise, "passes =": passes}
            where = [f"{name} {value:g}" for name, value in named.items() if value is not None]
            raise AbsentError(" at ".join([column, ", ".join(where)] if where else [column]))
        self.rows.append(cell.runs)
        if statistic != "mean":
            self.tails.append(tail_size(cell.runs, STATISTICS[statistic]))
        return cell.statistics[statistic]

    def curve(
        self, column: str, statistic: str, sizes: Sizes = None, eta: float | None = None
    ) -> list[Interval]:
        """Normalised performance at each size; all sizes if none are named."""
        found = self.sizes() if sizes is None else sizes
        return [self.at(column, statistic, size, eta) for size in found]

    def lowest(
        self, column: str, statistic: str, sizes: Sizes = None, eta: float | None = None
    ) -> Interval:
        """The smallest normalised performance over sizes."""
        return smallest(self.curve(column, statistic, sizes, eta))

    def highest(
        self, column: str, statistic: str, sizes: Sizes = None, eta: float | None = None
    ) -> Interval:
        """The largest normalised performance over sizes."""
        return largest(self.curve(column, statistic, sizes, eta))

    def overall(
        self, column: str, statistic: str, sizes: Sizes = None, eta: float | None = None
    ) -> Interval:
        """Normalised performance, averaged over sizes."""
        return average(self.curve(column, statistic, sizes, eta))

    def margin(
        self, column: str, others: Sequence[str], statistic: str, sizes: Sizes = None,
        eta: float | None = None,
    ) -> Interval:  # fmt: skip
        """By how much a column beats the best of the others, averaged over sizes."""
        own, *theirs = (self.overall(c, statistic, sizes, eta) for c in (column, *others))
        return smallest([difference(own, other) for other in theirs])

    def shortage(self) -> str:
        """What there is too little of to decide anything by what was read; empty if nothing."""
        training = self.results.experiment.training
        if training is not None and not training.one_log and self.rows:
            logs = min(self.rows) // training.seeds
            if logs < FEWEST_LOGS:
                return f"data sets: {logs}, at least {FEWEST_LOGS} needed"
        if self.tails and min(self.tails) < FEWEST_IN_TAIL:
            return f"runs in the tail: {min(self.tails)}, at least {FEWEST_IN_TAIL} needed"
        return ""

    def sizes(self, at_least: int = 0, at_most: int | None = None) -> list[int]:
        """The sizes within limits."""
        limit = math.inf if at_most is None else at_most
        found = [n for n in self.results.experiment.sizes if at_least <= n <= limit]
        if not found:
            raise AbsentError(f"sizes from {at_least} to {limit:g}")
        return found

    def etas(self) -> tuple[float, ...]:
        """The qualities of the baselines."""
        return self.results.experiment.etas

    def keys(
        self, algorithm: str, option: str, fixed: Mapping[str, object] = EMPTY, least: int = 2
    ) -> dict[float, str]:
        """Columns of an algorithm that differ in one option, by its value; `least` must be there.

        All other options are those of `fixed`.
        """
        found = {}
        for column in self.results.experiment.columns:
            options = dict(column.options)
            value = options.pop(option, None)
            if column.algorithm == algorithm and value is not None and options == dict(fixed):
                found[float(value)] = column.key
        if len(found) < least:
            raise AbsentError(f"{algorithm} at several values of {option}")
        return dict(sorted(found.items()))


def exact(value: float) -> Interval:
    """A number that is known."""
    return Interval(value, value, value)


def difference(a: Interval, b: Interval) -> Interval:
    """a − b; the margins of the two add as squares (method of variance estimates recovery).

    That is exact for independent estimates. Columns are trained on the same data sets, which
    correlates them: the interval is then wider than it needs to be.
    """
    value = a.value - b.value
    below = math.hypot(a.value - a.low, b.high - b.value)
    above = math.hypot(a.high - a.value, b.value - b.low)
    return Interval(value, value - below, value + above)


def average(intervals: Sequence[Interval]) -> Interval:
    """The mean; its margins are the mean margins, as if all errors went the same way."""
    n = len(intervals)
    return Interval(
        sum(i.value for i in intervals) / n,
        sum(i.low for i in intervals) / n,
        sum(i.high for i in intervals) / n,
    )


def smallest(intervals: Sequence[Interval]) -> Interval:
    """The minimum, with limits that hold for all of them at once (Bonferroni)."""
    wide = [_widened(interval, len(intervals)) for interval in intervals]
    return Interval(min(i.value for i in wide), min(i.low for i in wide), min(i.high for i in wide))


def largest(intervals: Sequence[Interval]) -> Interval:
    """The maximum, with limits that hold for all of them at once (Bonferroni)."""
    return negative(smallest([negative(interval) for interval in intervals]))


def negative(interval: Interval) -> Interval:
    """−x."""
    return Interval(-interval.value, -interval.high, -interval.low)


def distance(a: Interval, b: Interval) -> Interval:
    """|a − b|; the lower limit is 0 where either could be the larger one."""
    gap = difference(a, b)
    low, high = sorted((abs(gap.low), abs(gap.high)))
    return Interval(abs(gap.value), 0.0 if gap.low <= 0 <= gap.high else low, high)


def share_below(intervals: Sequence[Interval], limit: float) -> Interval:
    """The share of values below a limit; its limits count those that surely or possibly are."""
    n = len(intervals)
    wide = [_widened(interval, n) for interval in intervals]
    return Interval(
        sum(i.value < limit for i in wide) / n,
        sum(i.high < limit for i in wide) / n,
        sum(i.low < limit for i in wide) / n,
    )


def _widened(interval: Interval, comparisons: int) -> Interval:
    """Margins stretched so that `comparisons` such intervals hold together."""
    from scipy.special import ndtri

    tail = (1 - LEVEL) / 2
    factor = float(ndtri(1 - tail / comparisons) / ndtri(1 - tail))
    value = interval.value
    return Interval(
        value, value - factor * (value - interval.low), value + factor * (interval.high - value)
    )
