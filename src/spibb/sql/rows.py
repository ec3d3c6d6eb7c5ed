"""Rows of Python values as an Arrow table: what workbooks and drivers of databases give.

A column has the type that all its values have; one that mixes them is text, as in a CSV file.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa

from spibb.errors import InputError

MIXED = pa.large_string()
"""Stands for text that values of several types were turned into."""
Table = tuple[Any, frozenset[str]]
"""An Arrow table, and those of its columns whose values decide their types."""


def rows_table(
    names: Sequence[str], batches: Iterable[Iterable[Sequence[Any]]], called: str
) -> Table:
    """The table of rows that come in batches, each with as many cells as there are names."""
    chunks: list[list[Any]] = [[] for _ in names]
    for batch in batches:
        for mine, cells in zip(chunks, zip(*batch, strict=True)):
            mine.append(_chunk(cells))
    repeated = next((name for name in names if list(names).count(name) > 1), None)
    if repeated is not None:
        raise InputError(f"{called} has several columns {repeated!r}: rename or drop all but one")
    found = {name: _joined(mine) for name, mine in zip(names, chunks)}
    loose = frozenset(name for name, (_, mixed) in found.items() if mixed)
    return pa.table({name: values for name, (values, _) in found.items()}), loose


def _chunk(cells: Sequence[Any]) -> Any:
    """Values as an array of their type, or of text where they mix types."""
    kinds = {type(cell) for cell in cells if cell is not None}
    if kinds and kinds <= {int, float}:
        return _numbers(cells)
    try:
        found = pa.array(cells) if len(kinds) < 2 else _texts(cells)
    except (pa.ArrowException, OverflowError):
        found = _texts(cells)
    return found.cast(pa.float64()) if pa.types.is_decimal(found.type) else found


def _texts(cells: Iterable[Any]) -> Any:
    return pa.array([_text(cell) for cell in cells], MIXED)


def _numbers(cells: Sequence[Any]) -> Any:
    """Whole numbers where all are, as a workbook writes 3 for 3.0."""
    exact = {int: 2**63, float: 2**53}
    if all(cell is None or (cell == cell // 1 and abs(cell) < exact[type(cell)]) for cell in cells):
        return pa.array([None if cell is None else int(cell) for cell in cells], pa.int64())
    return pa.array([None if cell is None else float(cell) for cell in cells], pa.float64())


def _joined(chunks: Sequence[Any]) -> tuple[Any, bool]:
    """One column, and whether it mixes types."""
    kinds = {chunk.type for chunk in chunks} - {pa.null()}
    if not kinds:
        return pa.chunked_array(chunks, pa.null()), False
    if len(kinds) == 1 or kinds == {pa.int64(), pa.float64()}:
        kind = kinds.pop() if len(kinds) == 1 else pa.float64()
        return pa.chunked_array([chunk.cast(kind) for chunk in chunks]), kind == MIXED
    return pa.chunked_array([_texts(chunk.to_pylist()) for chunk in chunks]), True


def _text(cell: Any) -> str | None:
    """A cell of a mixed column as a CSV file has it."""
    if cell is None:
        return None
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return cell.isoformat(" ") if isinstance(cell, datetime) else str(cell)
