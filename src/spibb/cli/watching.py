"""What `spibb monitor` prints."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from spibb.cli.terminal import numbers_table, say
from spibb.monitoring.watch import UNDECIDED, Mean, Monitoring
from spibb.words import level

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
        say(console, f"Difference: between {least:+.4g} and {most:+.4g}, however often you look.")
    if found.verdict == UNDECIDED and not found.drifts:
        say(console, outlook(found))
    say(console, f"Order of the episodes: {found.order}.")
    for warning in found.warnings:
        say(console, f"Careful: {warning}.")


def _cells(mean: Mean) -> tuple[str, ...]:
    ends = ("–", "–") if mean.interval is None else (f"{end:.4g}" for end in mean.interval)
    return f"{mean.episodes:,}", f"{mean.value:.4g}", *ends


def outlook(found: Monitoring) -> str:
    """How many more episodes would show a drop."""
    if math.isinf(found.more_episodes):
        return (
            f"No number of episodes would show a drop of {found.drop:.3g}: the baseline's mean is "
            f"known from {found.baseline.episodes:,} episodes only."
        )
    if not found.more_episodes:
        return f"A drop of {found.drop:.3g} would probably have been shown by now."
    return (
        f"About {found.more_episodes:,.0f} more episodes would show a drop of {found.drop:.3g}, if "
        "there is one."
    )
