"""The cells of a policy table: text, numbers, and labels protected against spreadsheets.

A CSV file has no types. `Policy.save` writes text in quotes and numbers without, so a column whose
first cell is quoted is text, whatever it looks like; any other column is numbers, or true and
false, if it holds nothing else. A file with the column `spreadsheet_safe` has an apostrophe before
every text that a spreadsheet might take for a formula.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from spibb.sql.commas import with_points
from spibb.sql.duck_files import DuckFiles
from spibb.sql.opening import open_source
from spibb.sql.reading import all_match, label_type, matches, numbers_if_all
from spibb.sql.sources import Source
from spibb.tables import SPREADSHEET_SAFE

if TYPE_CHECKING:
    import pyarrow as pa

ENOUGH = 1 << 22
"""Characters that hold the first two lines of a CSV file; DuckDB reads none that are longer."""


@dataclass(frozen=True, eq=False)
class Cells:
    """A policy's table as it is written; `loose` columns may be numbers or true and false.

    `repeated` are the names, in lower case, that the file has more than once.
    """

    table: pa.Table
    loose: frozenset[str]
    repeated: frozenset[str] = frozenset()

    def column(self, name: str, *, text: bool = False) -> pa.ChunkedArray:
        """A column of labels with the type that its cells show, or as the text that was written."""
        column = self.table.column(name)
        if name not in self.loose or text:
            return column
        kind = label_type([column])
        return _flags_if_all(column) if kind is None else column.cast(kind)

    def numbers(self, name: str) -> pa.ChunkedArray:
        """A column as numbers if it holds nothing else."""
        column = self.table.column(name)
        return numbers_if_all(column) if name in self.loose else column


def read_cells(given: str | Path | Source) -> Cells:
    """Read the table of a policy."""
    if (plain := _plain_parquet(Source.of(given))) is not None:
        return Cells(plain, frozenset())
    engine = open_source(given, csv="allow_quoted_nulls=false")
    table = engine.table("SELECT * FROM log")
    loose = engine.loose
    if loose and isinstance(engine, DuckFiles):
        quoted = _quoted_cells(engine.files.paths[0], table.num_columns)
        loose = frozenset(n for n, q in zip(table.column_names, quoted) if not q) & loose
    if engine.decimal == ",":
        table = _pointed(table, loose)
    if SPREADSHEET_SAFE in table.column_names:
        names = {name: name.removeprefix("'") for name in table.column_names}
        table = _replaced(table, names, "^'", "").rename_columns(list(names.values()))
        loose = frozenset(names[name] for name in loose)
    return Cells(table, loose, engine.repeated)


def _plain_parquet(source: Source) -> pa.Table | None:
    """The table of a file such as `Policy.save` writes; DuckDB takes longer to start than to read.

    None if it has other columns than plain ones, or cannot be read: DuckDB says why.
    """
    path = Path(str(source.place))
    if source != Source(source.place) or path.suffix.lower() != ".parquet" or not path.is_file():
        return None
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

    try:
        schema = ParquetFile(path).schema_arrow
        if not _is_plain(schema):
            return None
        texts = [field.name for field in schema if field.type == pa.string()]
        return ParquetFile(path, read_dictionary=texts).read()
    except (OSError, pa.ArrowException, UnicodeError):  # names may be no text
        return None


def _is_plain(schema: pa.Schema) -> bool:
    """Whether the names differ, the types are those we write, and no cell is escaped."""
    import pyarrow as pa

    names = {name.lower() for name in schema.names}
    plain = {pa.string(), pa.int64(), pa.bool_(), pa.float64()}
    return (
        set(schema.types) <= plain and len(names) == len(schema) and SPREADSHEET_SAFE not in names
    )


def _pointed(table: pa.Table, loose: frozenset[str]) -> pa.Table:
    """Loose columns that hold numbers only with points in the place of decimal commas."""
    import pyarrow as pa

    columns = [
        with_points([column])[0] if name in loose and pa.types.is_string(column.type) else column
        for name, column in zip(table.column_names, table.columns)
    ]
    return pa.table(columns, names=table.column_names)


def _replaced(table: pa.Table, names: Iterable[str], pattern: str, new: str) -> pa.Table:
    """Replace a pattern once in every text of some columns."""
    import pyarrow as pa
    from pyarrow import compute

    columns = [
        compute.replace_substring_regex(column, pattern, new, max_replacements=1)
        if name in names
        and (pa.types.is_string(column.type) or pa.types.is_large_string(column.type))
        else column
        for name, column in zip(table.column_names, table.columns)
    ]
    return pa.table(columns, names=table.column_names)


def _flags_if_all(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """True and false, as they are written by `Policy.save`; not True, yes or 1."""
    import pyarrow as pa

    if not pa.types.is_string(column.type) or len(column) == 0:
        return column
    return matches(column, "true") if all_match(column, "(true|false)") else column


def _quoted_cells(path: Path, width: int) -> list[bool]:
    """Which cells of the first row below the names are in quotes."""
    import pyarrow as pa

    with pa.input_stream(path, compression="detect") as file:
        text = file.read(ENOUGH).decode("utf-8-sig", errors="replace")
    for separator in ",;\t|":
        names, end = _cells(text, 0, separator)
        cells, _ = _cells(text, end, separator)
        if len(names) == len(cells) == width:
            return [cell.startswith('"') for cell in cells]
    return [False] * width


def _cells(text: str, start: int, separator: str) -> tuple[list[str], int]:
    """The cells of the line that starts at a character, and where the next line starts."""
    mark = re.escape(separator)
    pattern = re.compile(rf'("[^"]*(?:""[^"]*)*"|[^{mark}\r\n]*)({mark}|\r\n|\n|\r|$)')
    cells, at = [], start
    while found := pattern.match(text, at):
        cells.append(found[1])
        at = found.end()
        if found[2] != separator:
            break
    return cells, at
