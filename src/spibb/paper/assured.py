"""The cells of the assurance benchmark: shares of logs, by family, baseline and size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from spibb.envs.small import BASELINES
from spibb.experiments.assurance import EDGES, SIZES, said, true
from spibb.experiments.results import Cell, Results
from spibb.paper.evidence import Bounded
from spibb.stats import Interval, share_interval

CHOSE = frozenset({
    "bernoulli-bandit", "river-swim", "cliff-signs", "cliff-costs", "dense-rewards",
    "noisy-rewards", "rare-clicks", "pit-chain", "near-null", "null",
})  # fmt: skip
"""Families that shaped the rule of `auto`: five chose its constants, four made it stricter because
it failed on them, and the cliff with costs added candidates. All others only confirm it, or do not
(docs/decisions.md)."""
PROMISED_FROM = 30
"""Episodes from which `auto` must keep its promise."""
MARGIN = 0.02
"""By how much the upper limit of a share may be above δ."""


def cells_of(
    results: Results, column: str, least: int = 0, most: int = max(SIZES), family: str | None = None
) -> Iterator[Cell]:
    """The cells of a column within limits of size, of all families or of one."""
    for name in results.experiment.families if family is None else (family,):
        for quality in BASELINES:
            for size in results.experiment.sizes:
                cell = results.cell(column, size, family=name, quality=quality)
                if cell is not None and least <= size <= most:
                    yield cell


def mean_of(cell: Cell) -> Interval:
    """The mean of a cell: a share, or a gain."""
    return cell.statistics["mean"]


def pooled(cells: Iterator[Cell]) -> Interval | None:
    """The share over the logs of several cells; None without any."""
    found = list(cells)
    trials = sum(cell.runs for cell in found)
    hits = sum(mean_of(cell).value * cell.runs for cell in found)
    if not trials:
        return None
    share = share_interval(hits, trials)
    return Bounded(share.value, share.low, share.high, 0.0, 1.0)


@dataclass(frozen=True)
class ProbabilityBin:
    """Candidates whose stated probability lies in one bin, and how often they are no worse."""

    edge: float
    logs: int
    stated: float
    frequency: Interval


def bins(results: Results, key: str, family: str | None = None) -> Iterator[ProbabilityBin]:
    """Stated probability against frequency, over all baselines and sizes."""
    for edge in EDGES[:-1]:
        stated = pooled(cells_of(results, said(key, edge), family=family))
        frequency = pooled(cells_of(results, true(key, edge), family=family))
        if stated is not None and frequency is not None:
            logs = sum(c.runs for c in cells_of(results, said(key, edge), family=family))
            yield ProbabilityBin(edge, logs, stated.value, frequency)


def cells_above(
    results: Results, column: str, delta: float, *, least: int = 0, margin: float = 0.0
) -> Interval:  # fmt: skip
    """How many cells have a share above δ: as seen, for sure, and as far as the logs can tell.

    For sure: the lower 95 % limit is above δ. As far as the logs can tell: the upper limit is above
    δ + margin.
    """
    found = [mean_of(cell) for cell in cells_of(results, column, least)]
    return Interval(
        float(sum(i.value > delta for i in found)),
        float(sum(i.low > delta for i in found)),
        float(sum(i.value > delta or i.high > delta + margin for i in found)),
    )
