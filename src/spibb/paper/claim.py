"""A claim: a sentence of the paper, the statistic that decides it, and what the rows say."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from spibb.experiments.results import Results
from spibb.paper.competitors import Version
from spibb.paper.evidence import AbsentError, View
from spibb.stats import Interval

HOLDS, FAILS = "holds", "fails"
NOT_ENOUGH, ABSENT = "not enough runs", "not in these results"


@dataclass(frozen=True)
class Region:
    """Where the statistic must lie for the claim to hold, limits excluded."""

    lower: float = -math.inf
    upper: float = math.inf

    def __str__(self) -> str:
        if math.isinf(self.upper):
            return f"holds if above {_number(self.lower)}"
        if math.isinf(self.lower):
            return f"holds if below {_number(self.upper)}"
        return f"holds if between {_number(self.lower)} and {_number(self.upper)}"

    def judge(self, interval: Interval) -> str:
        """The whole interval inside holds, the whole of it outside fails."""
        if self.lower < interval.low and interval.high < self.upper:
            return HOLDS
        if interval.high <= self.lower or interval.low >= self.upper:
            return FAILS
        return NOT_ENOUGH


@dataclass(frozen=True)
class Claim:
    """An empirical sentence of the paper, in our words, and how to decide it."""

    id: str
    study: str
    where: str
    sentence: str
    statistic: str
    region: Region
    find: Callable[[View], Interval]

    def decide(self, results: Results) -> Ruling:
        """Read the cells and compare."""
        view = View(results)
        try:
            interval = self.find(view)
        except AbsentError as lacking:
            return self._ruling(None, ABSENT, f"no {lacking}")
        verdict = self.region.judge(interval)
        if verdict == NOT_ENOUGH:
            return self._ruling(interval, verdict, "the interval reaches across the limit")
        note = view.shortage()
        return self._ruling(interval, NOT_ENOUGH if note else verdict, note)

    def _ruling(self, interval: Interval | None, verdict: str, note: str) -> Ruling:
        statistic = f"{self.statistic}; {self.region}"
        return Ruling(
            self.id, self.where, self.sentence, statistic, interval, verdict, note, self.region
        )


@dataclass(frozen=True)
class Ruling:
    """What the rows say of a claim: the statistic with its interval, and the outcome."""

    id: str
    where: str
    sentence: str
    statistic: str
    interval: Interval | None
    verdict: str
    note: str
    region: Region = field(default_factory=lambda: Region())

    @property
    def margin(self) -> float:
        """How far the statistic is beyond the limit; negative where it is within."""
        if self.interval is None:
            return math.nan
        return max(self.region.lower - self.interval.value, self.interval.value - self.region.upper)

    @property
    def value(self) -> str:
        """The statistic as it is printed: 0.31 [0.29, 0.33]; one number where it is exact."""
        if self.interval is None:
            return "–"
        value, low, high = _apart(self.interval)
        return value if self.interval.low == self.interval.high else f"{value} [{low}, {high}]"


REGISTRY: list[Claim] = []


def claim(
    id: str,
    where: str,
    sentence: str,
    statistic: str,
    region: Region,
    find: Callable[..., Interval],
    *,
    study: str,
    versions: tuple[Version, ...] = (),
) -> None:
    """Register a claim, or one for each version of a competitor; `find` then takes the version."""
    if not versions:
        REGISTRY.append(Claim(id, study, where, sentence, statistic, region, find))
    for version in versions:
        name = f"{id}-{'released' if version.released else 'correct'}"
        words = f"{sentence} ({version.words})"
        found = partial(find, version=version)
        REGISTRY.append(Claim(name, study, where, words, statistic, region, found))


def above(limit: float) -> Region:
    """The statistic must exceed the limit."""
    return Region(lower=limit)


def below(limit: float) -> Region:
    """The statistic must stay under the limit."""
    return Region(upper=limit)


def between(lower: float, upper: float) -> Region:
    """The statistic must lie between the limits."""
    return Region(lower, upper)


def _apart(interval: Interval) -> tuple[str, ...]:
    """An estimate and its limits, in as many decimals, up to four, as tell the limits apart."""
    decimals = 2 if abs(interval.value) >= 0.1 else 3
    while True:
        value, low, high = (
            f"{round(x, decimals) + 0.0:.{decimals}f}".replace("-", "−")
            for x in (interval.value, interval.low, interval.high)
        )
        if low != high or interval.low == interval.high or decimals == 4:
            return value, low, high
        decimals += 1


def _number(value: float) -> str:
    text = f"{value:.3f}" if abs(value) < 0.1 else f"{value:.2f}"
    short = text.rstrip("0").rstrip(".")
    return "0" if short == "-0" else short.replace("-", "−")
