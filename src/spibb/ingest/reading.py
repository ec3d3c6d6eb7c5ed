"""Whole files as Arrow tables, and the types that the values of a CSV file decide."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from spibb.ingest.engines import open_files
from spibb.ingest.sources import find_files

if TYPE_CHECKING:
    import pyarrow as pa


def read_table(path: str | Path) -> pa.Table:
    """Read a whole file; columns of a CSV file that hold nothing but numbers become numbers.

    DuckDB would guess types from the first 20,480 rows, round a later 0.5 in a column that began
    with whole numbers, and turn the labels yes and 12:00 into others.
    """
    import pyarrow as pa

    engine = open_files(find_files([path]))
    table = engine.table("SELECT * FROM log")
    columns = [
        numbers_if_all(table.column(name)) if name in engine.loose else table.column(name)
        for name in table.column_names
    ]
    return pa.table(columns, names=table.column_names)


def numbers_if_all(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column of text as numbers if it holds nothing else; 007 is a name."""
    import pyarrow as pa
    from pyarrow import compute

    with suppress(pa.ArrowInvalid):
        numbers = column.cast(pa.int64())
        as_written = compute.equal(numbers.cast(column.type), column)
        return numbers if compute.all(as_written, min_count=0).as_py() else column  # 007 is a name
    with suppress(pa.ArrowInvalid):
        numbers = column.cast(pa.float64())
        point = compute.match_substring_regex(column, "[.eEnN]")
        return numbers if compute.any(point).as_py() else column  # so are 20 digits
    return column
