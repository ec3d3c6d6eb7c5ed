"""`spibb compare`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from spibb.cli.options import DiscountOption, with_columns
from spibb.cli.waiting import new_console, progress

if TYPE_CHECKING:
    from spibb.ingest.mapping import ColumnMap


@with_columns
def compare(
    a: Annotated[
        str, typer.Argument(metavar="A", help="A policy: a file, or a folder of `spibb improve`.")
    ],
    b: Annotated[str, typer.Argument(metavar="B", help="Another policy, or the baseline.")],
    log: Annotated[
        str | None, typer.Option(help="A log. Adds visits, values, and which policy is better.")
    ] = None,
    discount: DiscountOption = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the posterior draws.")] = 0,
    *,
    column_map: ColumnMap,
) -> None:
    """Say in which states two policies differ and by how much.

    With a log, also say what both are worth in models drawn from it, and give the verdict on A in
    place of B.
    """
    from spibb.cli import terminal
    from spibb.ingest import column_names, read_log, read_policy
    from spibb.ingest.policy_files import load_policy
    from spibb.monitoring.deployed import discount_for
    from spibb.report.comparison import compare as compare_policies

    console = new_console()
    with progress(console, "reading and comparing"):
        first, second = (load_policy(path, columns=column_map.columns) for path in (a, b))
        left, right, records = first.policy, second.policy, None
        gamma, source = discount_for(discount, *((a, b) if log is not None else ()))
        if log is not None:
            present = column_names(log)
            column_map = first.complete(second.complete(column_map, present), present)
            records = read_log(log, **column_map.reading)
            left, right = read_policy(a, records), read_policy(b, records)
        found = compare_policies(left, right, records, discount=gamma, seed=seed)
    terminal.print_comparison(console, found)
    if log is not None:
        terminal.say_path(console, f"Discount {gamma:g}, {source}")
