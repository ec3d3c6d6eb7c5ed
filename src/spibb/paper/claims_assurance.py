"""What assurance promises, decided on the bench: `certified` and `auto` against their δ."""

from __future__ import annotations

from functools import partial

from spibb.experiments.assurance import OLD_RULE, PROTOTYPE, ahead, covered, misled, worse
from spibb.paper.assured import (
    CHOSE,
    MARGIN,
    PROMISED_FROM,
    bins,
    cells_above,
    cells_of,
    mean_of,
    pooled,
)
from spibb.paper.claim import above, below, claim
from spibb.paper.evidence import (
    AbsentError,
    Bounded,
    View,
    difference,
    distance,
    independent_average,
    largest,
)
from spibb.paper.reasons import CONTRADICTED, Reason
from spibb.stats import Interval

AUTO, CERTIFIED, LOOSE = "auto", "certified", "certified:delta=0.2"
DELTA, LOOSE_DELTA = 0.05, 0.2
CELLS = (
    "cells whose share of worse logs is above δ, with the number of those surely above (lower "
    "95 % limit) and of those that these logs cannot clear (upper 95 % limit above δ"
)

promise = partial(claim, study="assurance")


def _found(view: View, column: str) -> None:
    """Refuse results without a column."""
    if not any(c.column == column for c in view.results.cells):
        raise AbsentError(column)


def _above(view: View, column: str, delta: float, least: int = 0, margin: float = 0.0) -> Interval:
    _found(view, column)
    return cells_above(view.results, column, delta, least=least, margin=margin)


promise(
    "certified-0.05", "certified", "certified (δ = 0.05) keeps its promise in every cell.",
    f"{CELLS})", below(1),
    lambda view: _above(view, worse(CERTIFIED), DELTA),
    unit="share",
)  # fmt: skip

promise(
    "certified-0.2", "certified", "certified (δ = 0.2) keeps its promise in every cell.",
    f"{CELLS})", below(1),
    lambda view: _above(view, worse(LOOSE), LOOSE_DELTA),
    unit="share",
)  # fmt: skip

promise(
    "auto-0.05", "auto", "auto (δ = 0.05) keeps its promise in every cell of at least 30 "
    "episodes.", f"{CELLS} + 2 points)", below(1),
    lambda view: _above(view, worse(AUTO), DELTA, PROMISED_FROM, MARGIN),
    unit="share",
)  # fmt: skip

promise(
    "verdict-false", "verdict", "The verdict supports a policy that is truly worse in at most "
    "δ = 0.05 of the logs of every cell of at least 30 episodes.", f"{CELLS} + 2 points)", below(1),
    lambda view: _above(view, misled(AUTO), DELTA, PROMISED_FROM, MARGIN),
    unit="share",
)  # fmt: skip

promise(
    "auto-overall", "auto", "Over all cells of at least 30 episodes, auto is worse in at "
    "most δ of the logs.", "share of worse logs, all cells together", below(DELTA),
    lambda view: _pooled(view, worse(AUTO)),
    unit="share",
)  # fmt: skip


def _auto_confirmed(view: View) -> Interval:
    names = [name for name in view.results.experiment.families if name not in CHOSE]
    if not names:
        raise AbsentError("family that did not choose the rule of auto")
    return largest([_pooled(view, worse(AUTO), name) for name in names])


promise(
    "auto-confirmed", "auto", "The same on the families that did not choose its rule.",
    "largest share of worse logs of a confirming family, its cells together", below(DELTA),
    _auto_confirmed,
    unit="share",
)  # fmt: skip

promise(
    "auto-safer-than-before", "auto", "auto is less often worse than its rule of version 0.0.",
    "share of worse logs of auto minus that of the older rule, all cells of at least 30 episodes "
    "that both have", below(0),
    lambda view: _less_often(view, OLD_RULE),
    unit="share",
)  # fmt: skip

promise(
    "prototype-overall", "auto", "The prototype of auto is worse in at most δ of the logs of at "
    "least 30 episodes, too.", "its share of worse logs, all cells together", below(DELTA),
    lambda view: _pooled(view, worse(PROTOTYPE)),
    unit="share",
)  # fmt: skip

promise(
    "auto-safer-than-prototype", "auto", "auto is worse no more often than its prototype.",
    "share of worse logs of auto minus that of the prototype, all cells of at least 30 episodes "
    "that both have", below(0),
    lambda view: _less_often(view, PROTOTYPE),
    unit="share",
)  # fmt: skip


promise(
    "auto-gain", "auto", "auto gains as much as its prototype does on the same logs.",
    "gain of auto minus that of the prototype, log by log; mean over all cells of at least 30 "
    "episodes", above(0),
    lambda view: _gain(view, ahead(AUTO, PROTOTYPE), PROMISED_FROM, 10**9),
    unit="mean",
)  # fmt: skip

promise(
    "certified-gain", "certified", "certified is not vacuous with 1,000 episodes and more.",
    "mean gain of certified (δ = 0.05) over all cells of at least 1,000 episodes", above(0.1),
    lambda view: _gain(view, CERTIFIED, 1000, 10**9),
    unit="mean",
)  # fmt: skip


def _probability(view: View) -> Interval:
    found = [
        distance(Bounded(b.stated, b.stated, b.stated, 0.0, 1.0), b.frequency)
        for family in view.results.experiment.families
        for b in bins(view.results, AUTO, family)
        if b.edge >= 0.8
    ]
    if not found:
        raise AbsentError("stated probability from 0.8 on")
    return largest(found)


promise(
    "auto-probability", "auto", "Stated probabilities from 0.8 on are within 3 "
    "points of frequencies in every family.",
    "largest distance of a bin's stated probability to its frequency, over families", below(0.03),
    _probability,
    why=Reason(None, CONTRADICTED,
        "the log that trained the policy also evaluates it; no command prints the probability",
    ),
)  # fmt: skip

promise(
    "auto-bound", "auto", "The gain that auto states as sure is reached in at least 1 − δ "
    "of the logs in which it changes something.",
    "share of these logs, all cells of at least 30 episodes together", above(1 - DELTA),
    lambda view: _pooled(view, covered(AUTO)),
    why=Reason(None, CONTRADICTED,
        "models drawn from small logs are shrunk towards what actions have in common, which may "
        "flatter; the verdict warns below 100 episodes",
    ),
    unit="share",
)  # fmt: skip


def _pooled(view: View, column: str, family: str | None = None) -> Interval:
    found = pooled(cells_of(view.results, column, PROMISED_FROM, 10**9, family))
    if found is None:
        raise AbsentError(column)
    return found


def _less_often(view: View, other: str) -> Interval:
    """The share of worse logs of `auto` minus that of another rule, over the cells of both."""
    both = [
        (own, cell)
        for cell in cells_of(view.results, worse(other), PROMISED_FROM)
        if (own := view.results.cell(worse(AUTO), cell.size, family=cell.family,
                                     quality=cell.quality)) is not None
    ]  # fmt: skip
    ours, theirs = (pooled(pair[i] for pair in both) for i in (0, 1))
    if ours is None or theirs is None:
        raise AbsentError(worse(other))
    return difference(ours, theirs)


def _gain(view: View, key: str, least: int, most: int) -> Interval:
    """The mean over cells; no two cells share a log."""
    found = [mean_of(cell) for cell in cells_of(view.results, key, least, most)]
    if not found:
        raise AbsentError(f"{key} with {least} to {most} episodes")
    return independent_average(found)
