"""Files that become Arrow tables: Arrow's own, workbooks, and HDF5 files of other libraries."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spibb.checks import did_you_mean, some
from spibb.errors import InputError, cause_of, install
from spibb.sql.rows import Table, rows_table
from spibb.sql.sources import Files, Source

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_ROWS = 1_048_576
"""Rows that a sheet can have."""
MOST_BYTES = 2 * 2**30
"""What the parts of a workbook may unpack to: some are read into memory whole."""


def convert(files: Files, source: Source) -> Table:
    """Read files of one kind whole; all must have the same columns and types."""
    import pyarrow as pa

    read = {".arrow": read_arrow, ".xlsx": read_workbook, ".h5": _read_hdf5}[files.kind]
    if source.query or (source.table and files.kind != ".xlsx"):
        raise InputError(f"{files.name} is one table, not a database: leave table and query out")
    found = [read(path, source) for path in files.paths]
    schema = found[0][0].schema
    for path, (table, _) in zip(files.paths, found):
        if table.schema.names != schema.names or table.schema.types != schema.types:
            raise InputError(
                f"the files have different columns: {path.name!r} has {some(table.schema.names)}, "
                f"{files.paths[0].name!r} has {some(schema.names)}, or their types differ; give "
                "them the same columns, or leave out those that differ"
            )
    loose = frozenset().union(*(loose for _, loose in found))
    return pa.concat_tables([table for table, _ in found]), loose


@contextmanager
def _whole(path: Path, kind: str) -> Iterator[None]:
    """Turn whatever a damaged file raises into one line."""
    try:
        yield
    except InputError:
        raise
    except MemoryError:
        raise InputError(f"{str(path)!r} does not fit into memory: give it as .parquet") from None
    except Exception as error:  # every reader has its own
        reason = cause_of(error)
        raise InputError(
            f"cannot read {str(path)!r} ({reason}): check that it is {kind}, and complete"
        ) from None


def read_arrow(path: Path, source: Source) -> Table:
    """Arrow's IPC files (Feather, version 2) and streams; every offset in them is checked."""
    import pyarrow as pa

    with _whole(path, "an Arrow file, a Feather file of version 2"), path.open("rb") as file:
        if file.read(6) == b"ARROW1":
            table = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
        else:
            table = pa.ipc.open_stream(pa.memory_map(str(path))).read_all()
        table.validate(full=True)
    return table, frozenset()


def _read_hdf5(path: Path, source: Source) -> Table:
    from spibb.sql.hdf5 import read_hdf5

    with _whole(path, "an HDF5 file"):
        return read_hdf5(path), frozenset()


def read_minari(place: str) -> Table:
    """A Minari dataset: an id of one on this machine, or its folder."""
    from spibb.sql import hdf5

    with _whole(Path(place), "a Minari dataset"):
        return hdf5.read_minari(place), frozenset()


def read_workbook(path: Path, source: Source) -> Table:
    """A sheet of an Excel workbook, the first if none is named; names are in its first row.

    Formulas count with the values that they had when the workbook was saved. Numbers, dates and
    true/false are what they are in the workbook; a column that mixes them is text.
    """
    try:
        import openpyxl
    except ImportError:
        raise InputError(
            f"cannot read {str(path)!r}: openpyxl is not installed: {install('excel')}"
        ) from None
    with _whole(path, "an Excel workbook"):
        _check_size(path)
        book = openpyxl.load_workbook(path, read_only=True, data_only=True, keep_links=False)
        sheet = _sheet(book, source.table, repr(str(path)))
        sheet.reset_dimensions()  # some writers state a wrong one, and rows beyond it would be lost
        rows = [tuple(row) for row in islice(sheet.iter_rows(values_only=True), MOST_ROWS + 1)]
        book.close()
    if len(rows) > MOST_ROWS:
        raise InputError(
            f"{str(path)!r} has more than {MOST_ROWS} rows, which no sheet can have: save it again"
        )
    return _sheet_table(rows, repr(str(path)))


def _check_size(path: Path) -> None:
    """A workbook is an archive; its parts say how large they are, and are read no further."""
    import zipfile

    with zipfile.ZipFile(path) as archive:
        if sum(info.file_size for info in archive.infolist()) > MOST_BYTES:
            raise InputError(
                f"{str(path)!r} unpacks to more than {MOST_BYTES / 2**30:.3g} GiB, our limit: save "
                "it as .csv"
            )


def _sheet(book: Any, wanted: str | None, name: str) -> Any:
    sheets = {sheet.title: sheet for sheet in book.worksheets}
    if not sheets:
        raise InputError(f"{name} has no sheet: check what wrote it")
    if wanted is None:
        return next(iter(sheets.values()))
    if wanted not in sheets:
        raise InputError(
            f"{name} has no sheet {wanted!r}{did_you_mean(wanted, sheets)}: it has {some(sheets)}"
        )
    return sheets[wanted]


def _sheet_table(rows: Sequence[tuple[Any, ...]], name: str) -> Table:
    """The rows of a sheet as a table; empty rows and columns at the end are left out."""
    kept = list(rows)
    while kept and all(cell is None for cell in kept[-1]):
        kept.pop()
    if len(kept) < 2:
        raise InputError(f"{name} has no rows below the names in the sheet's first row: check it")
    width = max(i + 1 for row in kept for i, cell in enumerate(row) if cell is not None)
    full = [(*row[:width], *[None] * (width - len(row))) for row in kept]
    for place, cell in enumerate(full[0]):
        if cell is None:
            raise InputError(
                f"{name} has no name in column {place + 1} of the sheet's first row: write one, or "
                "delete the column"
            )
    return rows_table([str(cell) for cell in full[0]], [full[1:]], name)
