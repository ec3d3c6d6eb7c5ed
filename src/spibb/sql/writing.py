"""Rows that came from a file, written to another: cells as they were, quotes only where needed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from spibb.errors import InputError
from spibb.files import possible, write_whole
from spibb.sql.duck import open_duckdb, os_errors
from spibb.sql.engines import Engine
from spibb.tables import write_table

if TYPE_CHECKING:
    import pyarrow as pa

ENDINGS = (".csv", ".parquet")
COPY = "COPY (SELECT * FROM written) TO $path (FORMAT csv, HEADER, USE_TMP_FILE false)"
"""Write into the existing file: otherwise DuckDB makes one of its own, which stays behind."""


def check_target(path: Path, *, force: bool) -> None:
    """Refuse a file that cannot be written, before any work is done."""
    check_ending(path)
    check_free(path, force=force)


def check_ending(path: Path) -> None:
    """Tables are written as .csv or .parquet."""
    if path.suffix.lower() not in ENDINGS:
        raise InputError(f"cannot write {path.name!r}: the name must end in .csv or .parquet")


def check_free(path: Path, *, force: bool) -> None:
    """A file that is there stays, unless it may be overwritten; its folder must be there."""
    if possible(path).is_dir():
        raise InputError(f"cannot write {str(path)!r}: it is a folder, name a file")
    if not path.parent.is_dir():
        raise InputError(
            f"cannot write {str(path)!r}: there is no folder {str(path.parent)!r}; create it first"
        )
    if path.exists() and not force:
        raise InputError(
            f"{str(path)!r} already exists: name another file, or overwrite it with --force"
        )


def check_distinct(engine: Engine, what: str) -> None:
    """Columns of one name would get others when they are copied."""
    if engine.repeated:
        name = sorted(engine.repeated)[0]
        raise InputError(f"{what} has the column {name!r} more than once: rename or drop one")


def write_rows(table: pa.Table, path: Path) -> None:
    """Write .csv or .parquet; an empty text in a CSV file is "", a missing value is nothing."""
    check_ending(path)
    if path.suffix.lower() == ".parquet":
        write_table(table, path)
        return
    connection = open_duckdb()
    connection.register("written", table)

    def write(temporary: Path) -> None:
        with os_errors():
            connection.execute(COPY, {"path": str(temporary)})

    write_whole(path, write)
