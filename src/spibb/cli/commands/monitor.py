"""`spibb monitor`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spibb.cli.options import with_columns
from spibb.cli.waiting import new_console, progress

if TYPE_CHECKING:
    from spibb.ingest.mapping import ColumnMap


@with_columns
def monitor(
    policy: Annotated[
        Path, typer.Argument(metavar="POLICY", help="The folder that `spibb improve` wrote.")
    ],
    log: Annotated[
        str,
        typer.Argument(
            metavar="LOG", help="Episodes of the new policy, all since the start: as any log."
        ),
    ],
    lowest_return: Annotated[
        float | None, typer.Option(help="A number that no return of an episode can be below.")
    ] = None,
    highest_return: Annotated[
        float | None,
        typer.Option(help="No return can be above it; by default as given to improve."),
    ] = None,
    delta: Annotated[
        float, typer.Option(help="Probability of a false alarm, ever; and of a false all-clear.")
    ] = 0.05,
    margin: Annotated[float, typer.Option(help="How much worse is tolerated.")] = 0.0,
    drop: Annotated[
        float | None, typer.Option(help="How many more episodes would show a drop of this size?")
    ] = None,
    order: Annotated[
        str | None,
        typer.Option(
            help="Column that orders the episodes: number or time. Else the step where it is a "
            "time, and the episode's name where it is not."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
    *,
    column_map: ColumnMap,
) -> None:
    """Test on episodes of the new policy whether it is worse than the baseline was.

    Ask as often as you like: the error probability is for all looks together. The exit code is 1
    for an alarm (roll back), 0 for "no worse" and "undecided", 2 for bad input.
    """
    from spibb.cli.logs import open_as, say_assumptions
    from spibb.monitoring.deployed import load_deployed
    from spibb.monitoring.watch import chronological
    from spibb.monitoring.watch import monitor as test_for_loss

    console = new_console()
    with progress(console, "reading and comparing"):
        deployed = load_deployed(policy)
        table = open_as(log, column_map, deployed.loaded)
        records, how = chronological(table, order)
        found = test_for_loss(
            deployed, records, delta=delta, margin=margin, lowest_return=lowest_return,
            highest_return=highest_return, drop=drop, order=how,
        )  # fmt: skip
    if as_json:
        import json

        print(json.dumps(found.summary, indent=2, ensure_ascii=False))
    else:
        from spibb.cli.watching import print_monitoring

        print_monitoring(console, found)
        say_assumptions(console, table)
    if found.alarm:
        raise typer.Exit(1)
