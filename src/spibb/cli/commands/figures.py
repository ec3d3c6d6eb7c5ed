"""`spibb figures`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spibb.cli.progress import new_console, progress


def figures(
    folder: Annotated[Path, typer.Argument(help="A folder that `spibb experiment` wrote.")],
    others: Annotated[
        list[Path] | None,
        typer.Option(
            "--with",
            metavar="FOLDER",
            help="Also draw the columns of this folder of the same study. Repeatable.",
        ),
    ] = None,
    small: Annotated[
        bool,
        typer.Option(
            "--small",
            help="For a website: only PNG; for the finite studies, only the paper's own figures.",
        ),
    ] = False,
) -> None:
    """Draw every figure of the paper that the stored rows allow, and a page that shows them."""
    from spibb.cli import terminal
    from spibb.experiments.results import results_table
    from spibb.paper.figures import write_figures
    from spibb.paper.plot import require_matplotlib
    from spibb.paper.stored import read_results
    from spibb.tables import write_table

    require_matplotlib()
    console = new_console()
    with progress(console, "aggregating the rows", "of the columns") as tell:
        results = read_results(folder, tell)
        more = [(other, read_results(other, tell)) for other in others or []]
    with progress(console, "drawing"):
        write_table(results_table(results), folder / "table.csv")
        paths = write_figures(results, folder, more, small)
    terminal.say_path(console, f"Numbers: {folder / 'table.csv'}")
    terminal.say_path(console, f"{len(paths) - 1} figures; open {paths[-1]}")
