"""`spibb monitor`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spibb.cli.options import with_columns
from spibb.cli.progress import new_console, progress

if TYPE_CHECKING:
    from spibb.ingest.mapping import ColumnMap

PolicyArgument = Annotated[
    Path, typer.Argument(metavar="POLICY", help="The folder that `spibb improve` wrote.")
]
LogArgument = Annotated[
    str,
    typer.Argument(
        metavar="LOG",
        help="A log of all episodes that the new policy has made since its start.",
    ),
]
LowestReturn = Annotated[
    float | None, typer.Option(help="Lowest possible return. Default: as given to improve.")
]
HighestReturn = Annotated[
    float | None,
    typer.Option(help="Highest possible return. Default: as given to improve."),
]
Delta = Annotated[
    float,
    typer.Option(
        help="Probability of ever giving a false alarm, and of ever giving a false all-clear."
    ),
]
Margin = Annotated[float, typer.Option(help="Tolerated loss per episode.")]
Drop = Annotated[
    float | None,
    typer.Option(help="Say how many more episodes it takes to show a drop of this size."),
]
Order = Annotated[
    str | None,
    typer.Option(
        help="Column that orders the episodes: a number or a time. Default: the step if it is "
        "a time, otherwise the number in the episode's name."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


@with_columns
def monitor(
    policy: PolicyArgument,
    log: LogArgument,
    lowest_return: LowestReturn = None,
    highest_return: HighestReturn = None,
    delta: Delta = 0.05,
    margin: Margin = 0.0,
    drop: Drop = None,
    order: Order = None,
    as_json: AsJson = False,
    *,
    column_map: ColumnMap,
) -> None:
    """Test on its own episodes whether a new policy is worse than the baseline was.

    Run it as often as you like: the error probability covers all runs together. The exit code is 1
    for an alarm (roll back), 0 for "no worse" and "undecided", 2 for bad input.
    """
    from spibb.cli.logs import say_assumptions
    from spibb.monitoring.deployed import load_deployed
    from spibb.monitoring.watch import chronological, name_in_time
    from spibb.monitoring.watch import monitor as test_for_loss
    from spibb.stored_policies import open_for

    console = new_console()
    with progress(console, "reading and comparing"):
        deployed = load_deployed(policy)
        table = open_for(log, column_map, deployed.loaded)
        records, how = chronological(table, order)
        found = test_for_loss(
            deployed, records, delta=delta, margin=margin, lowest_return=lowest_return,
            highest_return=highest_return, drop=drop, order=how,
            name=partial(name_in_time, table, order),
        )  # fmt: skip
    if as_json:
        import json

        print(json.dumps(found.summary, indent=2, ensure_ascii=False))
    else:
        from spibb.cli.monitor_output import print_monitoring

        print_monitoring(console, found)
        say_assumptions(console, table.whole)
    if found.alarm:
        raise typer.Exit(1)
