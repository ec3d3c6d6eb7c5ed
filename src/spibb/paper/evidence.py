"""Cells combined into one statistic, with an interval that does not claim more than they do."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from spibb.experiments.results import STATISTICS, Results
from spibb.experiments.spec import GRIDWORLDS
from spibb.experiments.studies import study_of
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


@dataclass(frozen=True)
class Bounded(Interval):
    """An interval of a number that cannot leave [least, most]; neither can its limits."""

    least: float = -math.inf
    most: float = math.inf

    def __post_init__(self) -> None:
        # rounding may put a value itself a little outside
        object.__setattr__(self, "low", min(self.value, max(self.low, self.least)))
        object.__setattr__(self, "high", max(self.value, min(self.high, self.most)))


def bounded(interval: Interval) -> Bounded:
    """The same interval; anything is possible where nothing else is known."""
    if isinstance(interval, Bounded):
        return interval
    return Bounded(interval.value, interval.low, interval.high)


@dataclass(frozen=True, eq=False)
class View:
    """The cells of results, by column, statistic and size; remembers how much it read.

    Joined folders may have fewer runs of some columns than of others. By kind (sizes, η, N∧),
    `asked` is what the paper has of what a claim is about, and `had` what was there.
    """

    results: Results
    rows: list[int] = field(default_factory=list)
    tails: list[int] = field(default_factory=list)
    statistics: set[str] = field(default_factory=set)
    asked: dict[str, set[float]] = field(default_factory=dict)
    had: dict[str, set[float]] = field(default_factory=dict)

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
        self.statistics.add(statistic)
        if statistic != "mean":
            self.tails.append(tail_size(cell.runs, STATISTICS[statistic]))
        found = cell.statistics[statistic]
        return Bounded(found.value, found.low, found.high, *possible(self.results))

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
            share = min(STATISTICS[name] for name in self.statistics)
            needed = math.ceil(FEWEST_IN_TAIL / share)
            return (
                f"runs in the tail: {min(self.tails)}, at least {FEWEST_IN_TAIL} needed "
                f"({needed:,} runs)"
            )
        return ""

    def sizes(self, at_least: int = 0, at_most: int | None = None) -> list[int]:
        """The sizes within limits."""
        limit = math.inf if at_most is None else at_most
        found = [n for n in self.results.experiment.sizes if at_least <= n <= limit]
        wanted = [n for n in paper_sizes(self.results) if at_least <= n <= limit]
        self.ask("sizes", wanted, found)
        if not found:
            raise AbsentError(f"sizes from {at_least} to {limit:g}")
        return found

    def first_size(self) -> int:
        """The size where a claim needs one only."""
        first = self.results.experiment.sizes[:1]
        self.ask("sizes", first, first)
        return first[0]

    def etas(self) -> tuple[float, ...]:
        """The qualities of the baselines."""
        experiment = self.results.experiment
        wanted = study_of(experiment).default(experiment.study, "main").etas
        self.ask("η", wanted, experiment.etas)
        return experiment.etas

    def ask(self, kind: str, wanted: Iterable[float], found: Iterable[float]) -> None:
        """Note what a claim is about, and what of it is there."""
        self.asked.setdefault(kind, set()).update(wanted)
        self.had.setdefault(kind, set()).update(found)

    def lacking(self) -> str:
        """Where a claim is about more of the paper's sizes, η or N∧ than there are: 2 of 10."""
        return ", ".join(
            f"{len(wanted & self.had[kind])} of the paper's {len(wanted)} {kind}"
            for kind, wanted in self.asked.items()
            if not wanted <= self.had[kind]
        )

    def basis(self) -> str:
        """What was read: how many runs, and of which sizes."""
        experiment = self.results.experiment
        training = experiment.training
        if not self.rows:
            return ""
        fewest = min(self.rows)
        if training is None:
            rows = f"{fewest:,} runs"
        elif training.one_log:
            rows = f"{fewest:,} networks"
        else:
            rows = f"{fewest // training.seeds:,} data sets × {training.seeds}"
        read = sorted(self.had.get("sizes", ()))
        return rows + (f", |D| = {_listed(read)}" if read else "")

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


def paper_sizes(results: Results) -> tuple[int, ...]:
    """The sizes of the paper's benchmark of the study."""
    experiment = results.experiment
    return study_of(experiment).default(experiment.study, "main").sizes


def possible(results: Results) -> tuple[float, float]:
    """The least and the largest performance that there can be.

    Of finite MDPs, normalised: ρ is at least 0 and at most the optimum. A random MDP's baseline
    may be close to its optimum, so that nothing bounds the loss. Of the helicopter: a return.
    """
    if results.experiment.training is not None:
        return -1.0, 10.0
    if results.experiment.study in GRIDWORLDS:
        return -results.baseline / (results.optimal - results.baseline), 1.0
    return -math.inf, 1.0


def _listed(sizes: Sequence[float]) -> str:
    """10, or from 10 to 1,000 (7)."""
    if len(sizes) < 3:
        return " and ".join(f"{n:,g}" for n in sizes)
    return f"{sizes[0]:,g} to {sizes[-1]:,g} ({len(sizes)} sizes)"


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
    one, other = bounded(a), bounded(b)
    least, most = one.least - other.most, one.most - other.least
    return Bounded(value, value - below, value + above, least, most)


def average(intervals: Sequence[Interval]) -> Interval:
    """The mean; its margins are the mean margins, as if all errors went the same way."""
    n = len(_some(intervals))
    known = [bounded(interval) for interval in intervals]
    return Bounded(
        sum(i.value for i in known) / n,
        sum(i.low for i in known) / n,
        sum(i.high for i in known) / n,
        min(i.least for i in known),
        max(i.most for i in known),
    )


def independent_average(intervals: Sequence[Interval]) -> Interval:
    """The mean of independent estimates: their margins add as squares."""
    mean, n = average(intervals), len(intervals)
    below = math.hypot(*(i.value - i.low for i in intervals)) / n
    above = math.hypot(*(i.high - i.value for i in intervals)) / n
    return replace(mean, low=mean.value - below, high=mean.value + above)


def smallest(intervals: Sequence[Interval]) -> Interval:
    """The minimum, with limits that hold for all of them at once (Bonferroni)."""
    wide = [_widened(interval, len(intervals)) for interval in _some(intervals)]
    return Bounded(
        *(min(getattr(i, name) for i in wide) for name in ("value", "low", "high", "least", "most"))
    )


def largest(intervals: Sequence[Interval]) -> Interval:
    """The maximum, with limits that hold for all of them at once (Bonferroni)."""
    return negative(smallest([negative(interval) for interval in intervals]))


def negative(interval: Interval) -> Interval:
    """−x."""
    known = bounded(interval)
    return Bounded(-known.value, -known.high, -known.low, -known.most, -known.least)


def distance(a: Interval, b: Interval) -> Interval:
    """|a − b|; the lower limit is 0 where either could be the larger one."""
    gap = bounded(difference(a, b))
    low, high = sorted((abs(gap.low), abs(gap.high)))
    most = max(abs(gap.least), abs(gap.most))
    low = 0.0 if gap.low <= 0 <= gap.high else low
    return Bounded(abs(gap.value), low, high, 0.0, most)


def share_below(intervals: Sequence[Interval], limit: float) -> Interval:
    """The share of values below a limit; its limits count those that surely or possibly are."""
    n = len(_some(intervals))
    wide = [_widened(interval, n) for interval in intervals]
    return Interval(
        sum(i.value < limit for i in wide) / n,
        sum(i.high < limit for i in wide) / n,
        sum(i.low < limit for i in wide) / n,
    )


def _some(intervals: Sequence[Interval]) -> Sequence[Interval]:
    """Refuse an empty list: there is nothing to compare."""
    if not intervals:
        raise AbsentError("sizes or columns to compare")
    return intervals


def _widened(interval: Interval, comparisons: int) -> Bounded:
    """Margins stretched so that `comparisons` such intervals hold together."""
    from scipy.special import ndtri

    tail = (1 - LEVEL) / 2
    factor = float(ndtri(1 - tail / comparisons) / ndtri(1 - tail))
    known, value = bounded(interval), interval.value
    return Bounded(
        value, value - factor * (value - known.low), value + factor * (known.high - value),
        known.least, known.most,
    )  # fmt: skip
