"""`spibb claims`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spibb.cli.progress import new_console, progress
from spibb.errors import InputError


def claims(
    folders: Annotated[
        list[Path],
        typer.Argument(help="Folders that `spibb experiment` wrote, or their stored tables."),
    ],
    html: Annotated[
        Path | None,
        typer.Option(
            help="Write the page “Does the paper hold?” to this file; in a folder, to claims.html."
        ),
    ] = None,
) -> None:
    """Say, claim by claim, what the paper states and whether the stored rows show it.

    Several folders of one study are read together, and so are parts of `assurance` with other
    sizes or columns in one folder. For a folder of `gridworld-baselines`, the
    answer is the number of baselines on which each claim holds.
    """
    from spibb.cli import terminal
    from spibb.files import write_text
    from spibb.paper import holds
    from spibb.paper.claims import MARKDOWN, TABLE, write_claims
    from spibb.paper.stored import members, read_results

    console = new_console()
    for place, folder in enumerate(folders):
        if folder.resolve() in {other.resolve() for other in folders[:place]}:
            raise InputError(f"{str(folder)!r} is given twice: its rows would count twice")
    single, family = [], []
    with progress(console, "aggregating the rows", "of the columns") as tell:
        for folder in folders:
            if found := members(folder, separate=False):
                family += [(member, read_results(member, tell)) for member in found]
            else:
                single.append((folder, read_results(folder, tell)))
    page = holds.gather(single, family)
    console.print(holds.terminal(page), markup=False, highlight=False)
    if html is not None:
        html = html / "claims.html" if html.is_dir() else html
        suffix = holds.markdown if html.suffix == ".md" else holds.web
        write_text(html, suffix(page, html.parent))
        terminal.say_path(console, f"Written: {html}")
        if not page.figures:
            terminal.say_path(
                console, f"It has no pictures: run `spibb figures {folders[0]}` first."
            )
        return
    for folder, results in single:
        write_claims(results, folder)
        terminal.say_path(console, f"Written: {folder / MARKDOWN}, {folder / TABLE}")
