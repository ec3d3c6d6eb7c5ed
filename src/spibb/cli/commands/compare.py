"""`spibb compare`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from spibb.cli.options import DiscountOption, with_columns
from spibb.cli.progress import new_console, progress

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

    With a log, also say what both are worth in models drawn from it, and whether the log supports
    replacing B by A.
    """
    from spibb.cli.logs import say_discount, say_findings
    from spibb.cli.terminal import print_comparison, say
    from spibb.cli.vectors import print_vector_comparison
    from spibb.comparison import Comparison, compare_read

    console = new_console()
    with progress(console, "reading and comparing"):
        found = compare_read(a, b, log, column_map, discount=discount, seed=seed)
    if isinstance(found, Comparison):
        print_comparison(console, found)
    else:
        print_vector_comparison(console, found)
    if found.trained:
        say(
            console,
            "This log trained A, so it adds no evidence to what `spibb improve` said. Compare with "
            "a log of other episodes.",
        )
    say_findings(console, found.assumptions)
    if found.discount is not None:
        say_discount(console, found.discount, found.discount_from)
