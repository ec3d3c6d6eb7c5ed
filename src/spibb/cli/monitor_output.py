"""What `spibb monitor` prints."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR
from typing import TYPE_CHECKING

from spibb.cli.terminal import numbers_table, say
from spibb.monitoring.watch import UNDECIDED, Mean, Monitoring
from spibb.words import at_least, at_most, general, level, signed

if TYPE_CHECKING:
    from rich.console import Console


def print_monitoring(console: Console, found: Monitoring) -> None:
    """The verdict first, then the numbers behind it."""
    console.print(found.sentence, style="bold", highlight=False, markup=False)
    table = numbers_table(
        f"Return per episode, with intervals at level {level(found.delta)}:",
        "policy", "episodes", "mean", "at least", "at most",
    )  # fmt: skip
    rows = (
        ("baseline, before", found.baseline), ("new, all episodes", found.new),
        ("new, latest episodes (one look only)", found.recent),
    )  # fmt: skip
    for name, mean in rows:
        if mean is not None:
            table.add_row(name, *_cells(mean))
    console.print(table)
    if found.difference is not None and not found.drifts:
        least, most = found.difference
        low, high = signed(least, 4, ROUND_FLOOR), signed(most, 4, ROUND_CEILING)
        say(console, f"Difference: between {low} and {high}, however often you look.")
    if found.verdict == UNDECIDED and not found.drifts:
        say(console, outlook(found))
    say(console, f"Order of the episodes: {found.order}.")
    for warning in found.warnings:
        say(console, f"Careful: {warning}.")


def _cells(mean: Mean) -> tuple[str, ...]:
    shown = f"{mean.episodes:,}", general(mean.value, 4)
    if mean.interval is None:
        return *shown, "–", "–"
    return *shown, at_least(mean.interval[0], 4), at_most(mean.interval[1], 4)


def outlook(found: Monitoring) -> str:
    """How many more episodes would show a drop."""
    drop = f"drop of {general(found.drop, 3)}"
    if math.isinf(found.more_episodes):
        return (
            f"No number of episodes would show a {drop}: the baseline's mean is "
            f"known from {found.baseline.episodes:,} episodes only."
        )
    if not found.more_episodes:
        return f"A {drop} would probably have been shown by now."
    return f"About {found.more_episodes:,.0f} more episodes would show a {drop}, if there is one."
