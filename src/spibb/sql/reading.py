"""Whole files as Arrow tables, and the types that the values of a CSV file decide."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spibb.errors import InputError
from spibb.sql.opening import open_source
from spibb.sql.sources import Source

if TYPE_CHECKING:
    import pyarrow as pa

DIGITS = r"((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)"
NUMBER_TEXT = rf"[+-]?({DIGITS}([eE][+-]?[0-9]+)?|(?i:nan|inf|infinity))"
"""How numbers are written."""
EXACT = "(0|-?[1-9][0-9]{0,14})"
"""Whole numbers that a float keeps apart."""
EXACT_FLOAT = rf"{EXACT}\.0"


def read_table(path: str | Path | Source) -> pa.Table:
    """Read a whole table; columns of a CSV file that hold nothing but numbers become numbers.

    DuckDB would guess types from the first 20,480 rows, round a later 0.5 in a column that began
    with whole numbers, and turn the labels yes and 12:00 into others.
    """
    import pyarrow as pa

    engine = open_source(path)
    table = engine.table("SELECT * FROM log")
    columns = [
        numbers_if_all(table.column(name)) if name in engine.loose else table.column(name)
        for name in table.column_names
    ]
    return pa.table(columns, names=table.column_names)


def numbers_if_all(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column of text as numbers if it holds nothing else; 007 is a name."""
    kind = number_type([column])
    return column if kind is None else column.cast(kind)


def label_type(columns: Sequence[Any]) -> pa.DataType | None:
    """The type of whole numbers that columns of labels show together, None where they are text.

    A column shows whole numbers if all its cells are written as a computer writes them, or if all
    end in .0, as where missing cells made a column of whole numbers one of floats. 007, +1, 1e5,
    1. and 20 digits are names: two that are written differently stay apart. NaN among numbers is a
    missing number, as in any file of floats, so that they are floats.
    """
    import pyarrow as pa
    from pyarrow import compute

    values = [compute.unique(column).cast("string").drop_null() for column in columns]
    if all(map(_whole, values)):
        return pa.int64()
    if all(all_match(column, EXACT) or all_match(column, EXACT_FLOAT) for column in values):
        return pa.float64()
    missing = any(compute.any(matches(column, "(?i:nan)")).as_py() for column in values)
    return number_type(columns) if missing else None


def check_untyped(labels: pa.Table) -> None:
    """Refuse columns of labels that a CSV file, which has no types, would give back as others."""
    import pyarrow as pa
    from pyarrow import compute

    for name in labels.column_names:
        column = labels.column(name)
        text = pa.types.is_string(column.type)
        empty = text and compute.any(matches(column, "")).as_py()
        if empty or pa.types.is_boolean(column.type) or (text and label_type([column]) is not None):
            raise InputError(
                f"a .csv file has no types, so the labels of {name!r} would change, such as "
                f"{column[0].as_py()!r}: save the log as .parquet"
            )


def _whole(values: Any) -> bool:
    """Whether texts are whole numbers of 64 bits as a computer writes them."""
    import pyarrow as pa
    from pyarrow import compute

    try:
        same = compute.equal(values.cast(pa.int64()).cast("string"), values)
    except pa.ArrowInvalid:
        return False
    return bool(compute.all(same, min_count=0).as_py())


def all_match(values: Any, pattern: str) -> bool:
    """Whether all texts are wholly of a pattern."""
    from pyarrow import compute

    return bool(compute.all(matches(values, pattern), min_count=0).as_py())


def matches(values: Any, pattern: str) -> Any:
    """Which texts are wholly of a pattern."""
    from pyarrow import compute

    return compute.match_substring_regex(values, f"^{pattern}$")


def number_type(columns: Sequence[Any]) -> pa.DataType | None:
    """The type of numbers that columns of text show together, None where they are text.

    Whole numbers as a computer writes them are whole numbers; 007, +1 and 20 digits are names. If
    all are numbers and some have a point or an exponent, they are floats.
    """
    import pyarrow as pa
    from pyarrow import compute

    values = pa.chunked_array([compute.unique(column).cast("string") for column in columns])
    values = values.drop_null()
    if _whole(values):
        return pa.int64()
    if not all_match(values, NUMBER_TEXT):
        return None
    if not compute.any(compute.match_substring_regex(values, "[.eEnN]")).as_py():
        return None
    return pa.float64()
