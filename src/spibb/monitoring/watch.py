"""Watch a deployed policy: an alarm as soon as its episodes show that it is worse."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spibb import checks
from spibb.columns import UNIT
from spibb.episodes.conformity import Conformity
from spibb.episodes.limits import slack
from spibb.episodes.returns import EpisodeReturns
from spibb.errors import InputError
from spibb.evaluate import MonteCarlo, mean_of
from spibb.ingest.aggregate import LogTable
from spibb.ingest.vectors import VectorLog, VectorTable
from spibb.log import Log
from spibb.monitoring.deployed import Deployed, load_deployed
from spibb.monitoring.evidence import (
    NEVER,
    Reference,
    drop_to_show,
    episodes_to_show,
    first_shown_worse,
    highest_difference,
    interval,
    interval_at_any_time,
)
from spibb.showing import Range, Shown
from spibb.stored_policies import conformity_of
from spibb.words import apart, listed

WORSE, NO_WORSE, UNDECIDED = "worse", "no worse", "undecided"
FOR_CHANGES = 0.2
"""The share of δ for alarms that leave out the first episodes, which may have been better."""
FIRST_START = 50
"""The fewest first episodes that an alarm leaves out."""
BY_LOG = "the order of the log's episodes"


def _numbered(k: int) -> str:
    """An episode whose name is not known."""
    return f"number {k + 1}"


@dataclass(frozen=True)
class Mean:
    """The mean of some returns with an interval; None if no constant mean fits the returns."""

    value: float
    episodes: int
    interval: tuple[float, float] | None


@dataclass(frozen=True)
class Monitoring(Shown):
    """What the episodes of a deployed policy say about it.

    `verdict` is "worse", "no worse" or "undecided", and `since` the number of episodes after which
    it was first shown. Where `after` is not 0, it is the episodes after that many that were shown
    to be worse: the policy, or the world, changed. "Worse" stays; "no worse" is about a mean that
    stays the same, and is withdrawn when no such mean fits the episodes. `recent` are the last ones
    on their own, None where there are few; its interval holds with 1 − δ at a single look.

    `new.interval` holds at all times together with probability 1 − δ, `baseline.interval` with
    1 − δ; each end of `difference` (new − baseline) holds at all times with 1 − δ. A false "worse",
    at any time, has probability at most δ, and so has a false "no worse". An interval is None where
    its lower end would be above its upper one: the returns changed over time. About `more_episodes`
    more would show a drop of `drop` (infinitely many: the baseline's own log is too small to show
    it).

    >>> _ = spibb.run(log, "kept", baseline=baseline, n_wedge=1e9, force=True)
    >>> found = spibb.monitor("kept", log, lowest_return=0, highest_return=1)
    >>> found.alarm, found.new.episodes
    (False, 3)
    """

    verdict: str
    since: int | None
    after: int
    new: Mean
    recent: Mean | None
    baseline: Mean
    difference: tuple[float, float] | None
    margin: float
    delta: float
    limits: tuple[float, float]
    drop: float
    more_episodes: float
    conformity: Conformity
    cut: int
    order: str

    def _facts(self) -> Mapping[str, Any]:
        """The verdict and its numbers."""
        return {
            "verdict": self.verdict, "since": self.since, "episodes": self.new.episodes,
            "new": self.new.value, "baseline": self.baseline.value,
            "difference": None if self.difference is None else Range(*self.difference),
            "margin": self.margin, "delta": self.delta,
        }  # fmt: skip

    @property
    def alarm(self) -> bool:
        """Whether the policy is shown to be worse: roll back."""
        return self.verdict == WORSE

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        by = f" by more than {self.margin:g}" if self.margin else ""
        wrong = f"wrong with probability at most {self.delta:g}, however often you look"
        if self.verdict == UNDECIDED and self.drifts:
            return (
                f"Undecided after {self.new.episodes:,} episodes: the returns changed over time, "
                "so no single answer holds for all of them; look at the latest ones."
            )
        if self.verdict == UNDECIDED:
            return (
                f"Undecided after {self.new.episodes:,} episodes: no evidence yet that the new "
                f"policy is worse than the baseline was{by}, and none that it is not."
            )
        after = f"Shown after {self.since:,} of {self.new.episodes:,} episodes; {wrong}."
        if self.alarm:
            late = f"After its first {self.after:,} episodes the" if self.after else "The"
            return (
                f"Worse: roll back. {late} new policy earns less than the baseline did{by}. {after}"
            )
        return f"No worse. The new policy is not worse than the baseline was{by}. {after}"

    @property
    def drifts(self) -> bool:
        """Whether no constant mean fits the episodes."""
        return self.new.interval is None or self.difference is None

    @property
    def warnings(self) -> tuple[str, ...]:
        """What may be wrong with the comparison."""
        found = list(self.conformity.warnings)
        if self.drifts:
            found.append(
                "the returns changed over time: no constant mean fits the episodes; look at early "
                "and late ones separately"
            )
        if self.cut:
            found.append(
                f"{self.cut:,} of {self.new.episodes:,} episodes were cut short and count only "
                "with what was recorded; leave out those that are still running"
            )
        return tuple(found)

    @property
    def summary(self) -> dict[str, Any]:
        """Everything in plain values, for JSON."""
        more = self.more_episodes
        return {
            **asdict(self), "alarm": self.alarm, "sentence": self.sentence,
            "warnings": list(self.warnings), "more_episodes": None if math.isinf(more) else more,
        }  # fmt: skip

    def __str__(self) -> str:
        return self.sentence


@checks.takes(policy=(Deployed, str, Path), log=(VectorLog, Log))
def monitor(
    policy: str | Path | Deployed,
    log: Log | VectorLog,
    *,
    delta: float = 0.05,
    margin: float = 0.0,
    lowest_return: float | None = None,
    highest_return: float | None = None,
    drop: float | None = None,
    order: str = BY_LOG,
    name: Callable[[int], str] = _numbered,
) -> Monitoring:
    """Test whether a deployed policy is worse than the baseline was.

    Check the growing log as often as you like: the error probability covers all checks together.
    See `monitoring.evidence` for the test and its proof.

    Parameters:
        policy: the folder that ``spibb improve`` wrote.
        log: the episodes that this policy made, in the order of time (``log.episodes(order)`` sorts
            them), all of them since the start; `read_vectors` reads that of a policy on vectors.
        delta: probability of ever giving a false alarm, and of a false "no worse".
        margin: loss per episode that is tolerated.
        lowest_return: no return is below it; the one declared to ``spibb improve`` if None.
        highest_return: no return is above it; the one declared to ``spibb improve`` if None.
        drop: a loss per episode: how many more episodes would show it? None asks for the drop that
            as many episodes as the baseline's log has would show.
        order: what the order of the episodes is, in words.
        name: what the k-th episode in that order, from 0, is called in messages.

    Returns:
        The verdict, with means, intervals and warnings.

    >>> _ = spibb.run(log, "kept", baseline=baseline, n_wedge=1e9, force=True)
    >>> spibb.monitor("kept", log, lowest_return=0, highest_return=1).verdict
    'undecided'
    """
    deployed = policy if isinstance(policy, Deployed) else load_deployed(policy)
    checks.delta(delta)
    checks.number("margin", margin, 0, math.inf, "[)")
    if drop is not None:
        checks.number("drop", drop, 0, math.inf, "()")
    conforms = conformity_of(deployed.loaded, log)
    returned = EpisodeReturns.of([log], deployed.discount)
    low, high = limits = _limits(deployed, lowest_return, highest_return)
    span = high - low
    x = _inside("the log", returned.values, limits, name)
    z = _inside("the baseline's log", deployed.returns, limits)
    shown, (least, most) = _tested(x, z, margin / span, delta)
    drop, more = _outlook(x, z, drop and drop / span, delta)
    new = _mean(returned.mean, interval_at_any_time(x, delta), limits)
    difference = _ordered(span * least, span * most)
    if shown.verdict == NO_WORSE and (new.interval is None or difference is None):
        shown = _Signal(UNDECIDED)
    return Monitoring(
        shown.verdict, shown.since, shown.after, new, _recent(returned.values, x, delta, limits),
        _mean(mean_of(deployed.returns), interval(z, delta), limits), difference, margin, delta,
        limits, span * drop, more, conforms, returned.cut, order,
    )  # fmt: skip


@dataclass(frozen=True)
class _Signal:
    """A verdict, after how many episodes it was shown, and how many of these it leaves out."""

    verdict: str
    since: int | None = None
    after: int = 0


def _tested(
    x: np.ndarray, z: np.ndarray, margin: float, delta: float
) -> tuple[_Signal, tuple[float, float]]:
    """What returns x show against the baseline's z, all in [0, 1]; and the limits of x̄ − z̄.

    The alarms share δ: the one for all episodes has most of it, and so has "no worse".
    """
    alone = (1 - FOR_CHANGES) * delta
    up, down = Reference.of(z, alone), Reference.of(1 - z, alone)
    worse, better = first_shown_worse(x, up, margin), first_shown_worse(1 - x, down, -margin)
    difference = -highest_difference(1 - x, down), highest_difference(x, up)
    alarms = [_Signal(WORSE, worse)] if worse != NEVER else []
    alarms += _worse_later(x, z, margin, FOR_CHANGES * delta)
    if alarms:  # the earliest stays the earliest, whatever comes later
        return min(alarms, key=lambda shown: shown.since or 0), difference
    return _Signal(UNDECIDED) if better == NEVER else _Signal(NO_WORSE, better), difference


def _worse_later(x: np.ndarray, z: np.ndarray, margin: float, delta: float) -> Iterator[_Signal]:
    """The alarms of tests that leave out the first 50, 100, 200, … episodes.

    The k-th of them, from 0 on, has the share 1/((k + 1)(k + 2)) of δ, all together have δ.
    """
    for k, start in enumerate(_starts(len(x))):
        reference = Reference.of(z, delta / ((k + 1) * (k + 2)))
        time = first_shown_worse(x[start:], reference, margin)
        if time != NEVER:
            yield _Signal(WORSE, start + time, start)


def _starts(n: int) -> list[int]:
    """The numbers of first episodes that a test leaves out."""
    return [FIRST_START << k for k in range(64) if FIRST_START << k < n]


def _recent(
    values: np.ndarray, x: np.ndarray, delta: float, limits: tuple[float, float]
) -> Mean | None:
    """The last quarter of the episodes, at least 50; None where that would be most of them."""
    n = max(FIRST_START, len(x) // 4)
    if 2 * n > len(x):
        return None
    return _mean(mean_of(values[-n:]), interval(x[-n:], delta), limits)


def chronological(table: LogTable | VectorTable, column: str | None) -> tuple[Log | VectorLog, str]:
    """The log with its episodes in the order of time, and what that order is, in words.

    By the first value of a column in each episode; without one as in `TypedTable.time_order`.
    """
    if table.draw is not None:
        return _first_of_each(table.whole, column)
    order = table.time_order(column)
    ask = "" if order.known else ": give --order and a column of numbers or times"
    return table.log(order=order), f"{order.how}{ask}"


def name_in_time(table: LogTable | VectorTable, column: str | None, k: int) -> str:
    """What the k-th episode of the chronological log is called, or its number from 1."""
    if table.draw is not None or not table.names["episode_id"]:
        return _numbered(k)
    places = table.time_order(column).places
    return table.episode_names()[k if places is None else int(places[k])]


def _first_of_each(table: LogTable | VectorTable, column: str | None) -> tuple[Any, str]:
    """Single decisions in the order of time, the first one of each unit.

    A row that is drawn among all of a unit would be another one when the unit has more rows: what
    was seen at one look would change until the next.
    """
    log, units = table.log(), table.units()
    order = np.arange(len(log)) if column is None else table.episode_order(column)
    first = np.sort(np.unique(units[order], return_index=True)[1])
    unit, how = listed(table.names[UNIT]), "row" if column is None else column
    return (
        log.episodes(order[first]),
        f"by {how}, the first row of every {unit} ({len(first):,} of {len(log):,})",
    )


def _limits(deployed: Deployed, lowest: float | None, highest: float | None) -> tuple[float, float]:
    """Limits of every return: as given, or as declared before."""
    names = ("lowest_return", "highest_return")
    declared = deployed.limits or (None, None)
    for name, given, before in zip(names, (lowest, highest), declared):
        if given is None and before is None:
            seen = f"{deployed.returns.min():g} to {deployed.returns.max():g}"
            raise InputError(
                f"{name} is not known: give --{name.replace('_', '-')} ({name} in Python), a limit "
                f"that every return of an episode stays within (those of the baseline's log were "
                f"{seen}, which does not prove a limit)"
            )
    low = checks.number(
        names[0], declared[0] if lowest is None else lowest, -math.inf, math.inf, "()"
    )
    value = declared[1] if highest is None else highest
    return low, checks.number(names[1], value, low, math.inf, "()")


def _inside(
    what: str,
    returns: np.ndarray,
    limits: tuple[float, float],
    name: Callable[[int], str] = _numbered,
) -> np.ndarray:
    """Returns [E] in units of the span between the limits; one outside is an error."""
    low, high = limits
    rounding = slack(low, high)
    for outside, end, limit, remedy in (
        (returns < low - rounding, "lowest_return", low, "lower"),
        (returns > high + rounding, "highest_return", high, "higher"),
    ):
        if outside.any():
            first = int(np.argmax(outside))
            returned, most = apart(returns[first], limit)
            raise InputError(
                f"{what}: episode {name(first)} returns {returned}, beyond the {end} {most} "
                f"({int(outside.sum())} such episodes): give a {remedy} limit, which every "
                "return stays within"
            )
    return np.clip((returns - low) / (high - low), 0.0, 1.0)


def _mean(mean: MonteCarlo, inside: tuple[float, float], limits: tuple[float, float]) -> Mean:
    low, high = limits
    bounds = low + (high - low) * inside[0], low + (high - low) * inside[1]
    return Mean(mean.value, mean.n_episodes, _ordered(*bounds))


def _ordered(low: float, high: float) -> tuple[float, float] | None:
    """An interval; None if its ends contradict each other."""
    return (low, high) if low <= high else None


def _outlook(x: np.ndarray, z: np.ndarray, drop: float | None, delta: float) -> tuple[float, float]:
    """A drop, and about how many more episodes would show it."""
    spread, error = float(np.append(x, z).std()), float(z.std()) / math.sqrt(len(z))
    if drop is None:
        total = float(max(len(z), 2 * len(x)))
        return drop_to_show(total, spread, error, delta), total - len(x)
    total = episodes_to_show(drop, spread, error, delta)
    return drop, max(math.ceil(total) - len(x), 0) if math.isfinite(total) else math.inf
