"""A claim: a sentence of the paper, the statistic that decides it, and what the rows say."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from spibb.experiments.results import Results
from spibb.paper.competitors import Boundary, Version
from spibb.paper.evidence import AbsentError, View
from spibb.paper.reasons import Reason
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
    """An empirical sentence of the paper, in our words, and how to decide it.

    Attributes:
        quote: the paper's own words, from the ICML 2019 paper with its supplement; … marks what was
            left out. Empty where the paper does not say it.
        why: why it fails where it does; what was found by looking.
        unit: what kind of number the statistic is, in a word; empty if none of the usual ones.
    """

    id: str
    study: str
    where: str
    sentence: str
    statistic: str
    region: Region
    find: Callable[[View], Interval]
    quote: str
    why: Reason
    unit: str

    def decide(self, results: Results) -> Ruling:
        """Read the cells and compare."""
        view = View(results)
        try:
            interval = self.find(view)
        except AbsentError as lacking:
            return self._ruling(View(results), None, ABSENT, f"no {lacking}")
        verdict = self.region.judge(interval)
        if verdict == NOT_ENOUGH:
            return self._ruling(view, interval, verdict, "the interval reaches across the limit")
        note = view.shortage()
        return self._ruling(view, interval, NOT_ENOUGH if note else verdict, note)

    def _ruling(self, view: View, interval: Interval | None, verdict: str, note: str) -> Ruling:
        statistic = f"{self.statistic}; {self.region}"
        return Ruling(
            self.id, self.where, self.sentence, statistic, interval, verdict, note, self.region,
            self.quote, self.why, self.unit, view,
        )  # fmt: skip


@dataclass(frozen=True)
class Ruling:
    """What the rows say of a claim: the statistic with its interval, and the outcome.

    `view` is what was read to decide it.
    """

    id: str
    where: str
    sentence: str
    statistic: str
    interval: Interval | None
    verdict: str
    note: str
    region: Region
    quote: str
    why: Reason = field(repr=False)
    unit: str
    view: View = field(compare=False, repr=False)

    @property
    def basis(self) -> str:
        """What decided it: runs and sizes, and which of the paper's are not there."""
        lacking = self.view.lacking() if self.interval is not None else ""
        return self.view.basis() + (f": only {lacking}" if lacking else "")

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
        limits = self.region.lower, self.region.upper
        value, low, high = _printed(self.interval, limits)
        return value if self.interval.low == self.interval.high else f"{value} [{low}, {high}]"


CLAIMS: list[Claim] = []


NO_REASON = Reason()


def claim(  # noqa: PLR0913 (one parameter per part of a claim)
    id: str,
    where: str,
    sentence: str,
    statistic: str,
    region: Region,
    find: Callable[..., Interval],
    *,
    study: str,
    versions: tuple[Version, ...] | tuple[Boundary, ...] = (),
    quote: str = "",
    why: Reason = NO_REASON,
    why_released: Reason | None = None,
    unit: str = "",
) -> None:
    """Register a claim, or one for each version of an algorithm; `find` then takes the version.

    `why_released` is the reason of the released version where that has its own.
    """
    if not versions:
        CLAIMS.append(Claim(id, study, where, sentence, statistic, region, find, quote, why, unit))
    for version in versions:
        name = f"{id}-{'released' if version.released else 'correct'}"
        words = f"{sentence} ({version.words})"
        found = partial(find, version=version)
        reason = why_released if version.released and why_released is not None else why
        CLAIMS.append(
            Claim(name, study, where, words, statistic, region, found, quote, reason, unit)
        )


def above(limit: float) -> Region:
    """The statistic must exceed the limit."""
    return Region(lower=limit)


def below(limit: float) -> Region:
    """The statistic must stay under the limit."""
    return Region(upper=limit)


def between(lower: float, upper: float) -> Region:
    """The statistic must lie between the limits."""
    return Region(lower, upper)


def _printed(interval: Interval, limits: tuple[float, float]) -> tuple[str, ...]:
    """An estimate and its interval, in as many decimals, up to four, as tell the numbers apart.

    The ends of the interval differ, and the estimate from the limits of the claim.
    """
    decimals = 2 if abs(interval.value) >= 0.1 else 3
    while True:
        value, low, high = (
            f"{round(x, decimals) + 0.0:.{decimals}f}".replace("-", "−")
            for x in (interval.value, interval.low, interval.high)
        )
        narrow = low == high and interval.low != interval.high
        tied = any(round(interval.value - x, decimals) == 0 != interval.value - x for x in limits)
        if decimals == 4 or not (narrow or tied):
            return value, low, high
        decimals += 1


def _number(value: float) -> str:
    text = f"{value:.3f}" if abs(value) < 0.1 else f"{value:.2f}"
    short = text.rstrip("0").rstrip(".")
    return "0" if short == "-0" else short.replace("-", "−")
