"""A claim: a sentence of the paper, the statistic that decides it, and what the rows say."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from spibb.experiments.results import Results
from spibb.paper.evidence import AbsentError, View
from spibb.stats import Interval

HOLDS, FAILS = "holds", "fails"
Keys = Callable[[float], str]
"""From a hyper-parameter to the column of a version."""
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
class Version:
    """One of two readings of a competitor: as the authors ran it, or as it is defined."""

    name: str
    words: str
    key: Keys


RAMDP = (
    Version("released", "RaMDP as released", lambda k: f"ramdp:kappa={k:g},released=true"),
    Version("correct", "correct RaMDP", lambda k: f"ramdp:kappa={k:g}"),
)
HCPI = (
    Version(
        "released", "HCPI as released", lambda d: f"hcpi:delta={d:g},estimator=dr,released=true"
    ),
    Version("correct", "correct HCPI", lambda d: f"hcpi:delta={d:g},estimator=dr"),
)
ROBUST_VERSIONS = (
    Version(
        "released", "Robust MDP as released",
        lambda d: f"robust-mdp:delta={d:g},released=true,safety_test=false",
    ),
    Version("correct", "correct Robust MDP", lambda d: f"robust-mdp:delta={d:g},safety_test=false"),
)  # fmt: skip
DELTA_IN_TEXT, DELTA_IN_CODE = 0.1, 0.001
"""δ of Robust MDP in the paper, and in the released code."""


def robust_key(key: Keys) -> str:
    """The column of the benchmark of a version of Robust MDP."""
    return key(DELTA_IN_CODE if "released" in key(DELTA_IN_TEXT) else DELTA_IN_TEXT)


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
        """The statistic as it is printed: 0.31 [0.29, 0.33]."""
        if self.interval is None:
            return "–"
        value, low, high = (
            _number(x) for x in (self.interval.value, self.interval.low, self.interval.high)
        )
        return f"{value} [{low}, {high}]"


REGISTRY: list[Claim] = []


def claim(
    id: str,
    where: str,
    sentence: str,
    statistic: str,
    region: Region,
    *,
    study: str,
    versions: tuple[Version, ...] = (),
) -> Callable[[Callable[..., Interval]], Callable[..., Interval]]:
    """Register a function that finds the statistic of a claim; once per version, if there are."""

    def register(find: Callable[..., Interval]) -> Callable[..., Interval]:
        entry: Callable[..., Claim] = partial(_entry, id, study, where, sentence, statistic, region)
        if not versions:
            REGISTRY.append(entry(find))
        REGISTRY.extend(entry(partial(find, key=version.key), version) for version in versions)
        return find

    return register


def above(limit: float) -> Region:
    """The statistic must exceed the limit."""
    return Region(lower=limit)


def below(limit: float) -> Region:
    """The statistic must stay under the limit."""
    return Region(upper=limit)


def between(lower: float, upper: float) -> Region:
    """The statistic must lie between the limits."""
    return Region(lower, upper)


def _entry(
    id: str, study: str, where: str, sentence: str, statistic: str, region: Region,
    find: Callable[..., Interval], version: Version | None = None,
) -> Claim:  # fmt: skip
    if version is not None:
        id, sentence = f"{id}-{version.name}", f"{sentence} ({version.words})"
    return Claim(id, study, where, sentence, statistic, region, find)


def _number(value: float) -> str:
    text = f"{value:.3f}" if abs(value) < 0.1 else f"{value:.2f}"
    short = text.rstrip("0").rstrip(".")
    return "0" if short == "-0" else short.replace("-", "−")
