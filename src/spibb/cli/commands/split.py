"""`spibb split`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spibb.cli.options import ForceFolder, LogArgument, with_columns
from spibb.cli.progress import new_console, progress

if TYPE_CHECKING:
    from spibb.ingest.mapping import ColumnMap


@with_columns
def split(
    log: LogArgument,
    share: Annotated[
        float, typer.Option(help="Share of the episodes in the test file, in (0, 1).")
    ] = 0.3,
    out: Annotated[Path, typer.Option(help="Folder for the train and test files.")] = Path("split"),
    seed: Annotated[int, typer.Option(min=0, help="Seed of the split.")] = 0,
    force: ForceFolder = False,
    *,
    column_map: ColumnMap,
) -> None:
    """Split a log into two files of whole episodes, one to improve with and one to evaluate on.

    The seed and the names of the episodes decide, not the order of the rows. With --unit, all rows
    of a unit are in the same file. All columns and cells stay as they are. Both files are written,
    or neither.
    """
    from spibb.cli import terminal
    from spibb.ingest import open_engine
    from spibb.ingest.splitting import split_table
    from spibb.report.folder import claim
    from spibb.sql.writing import write_rows

    console = new_console()
    with progress(console, "reading and splitting"), claim(out, force) as held:
        parts = split_table(open_engine(log), column_map, share, seed)
        tables = {"train": parts.train, "test": parts.test}

        def write(folder: Path) -> None:
            for name, table in tables.items():
                write_rows(table, folder / f"{name}{parts.ending}")

        held.publish(write)
    for name, n in (("train", parts.train_episodes), ("test", parts.test_episodes)):
        rows = tables[name].num_rows
        file = out / f"{name}{parts.ending}"
        terminal.say_path(console, f"{file}: {n:,} {parts.what}, {rows:,} rows")
