"""Engines: what answers SQL over a table called `log` — DuckDB on files and frames."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from spibb.checks import InputError, named, some
from spibb.columns import to_arrow_table
from spibb.sql.duck import open_duckdb
from spibb.sql.sources import Files
from spibb.tables import Progress

if TYPE_CHECKING:
    import pyarrow as pa

CSV = "header=true, skip=0, comment='', quote='\"', escape='\"', all_varchar=true"
"""All that DuckDB would guess but the separator: it drops lines that it takes for comments."""
HIVE = "hive_partitioning=true, hive_types_autocast=false"
REMEDIES = {
    ".csv": "check that it is whole, text in UTF-8, with one line of names, separated by commas",
    ".parquet": "check that it is a Parquet file, and whole",
    ".jsonl": "check that it is whole, text in UTF-8, with one JSON object per line",
}
INTEGER, WIDE, NUMBER, FLAG = "integer", "wide integer", "number", "flag"
TEXT, TIME, OTHER = "text", "time", "other"
"""Kinds of columns; wide integers may be beyond 64 bits."""


class Engine(Protocol):
    """A table called `log`: its columns with their kinds, and SQL over it in DuckDB's dialect.

    `loose` columns are text whose types the values decide, as in a CSV file.
    """

    @property
    def kinds(self) -> Mapping[str, str]:
        """Kind of each column."""

    @property
    def columns(self) -> Mapping[str, tuple[str, ...]]:
        """The caller's columns, and those that each is kept in: one per part of its labels."""

    @property
    def repeated(self) -> frozenset[str]:
        """Names, in lower case, that several columns have."""

    @property
    def loose(self) -> frozenset[str]:
        """Columns whose values decide their types."""

    @property
    def casts_text(self) -> bool:
        """Whether text that is no number can become NULL instead of an error."""

    @property
    def streams(self) -> bool:
        """Whether a row can be compared with the one that came before it at no cost."""

    def table(self, sql: str) -> pa.Table:
        """The rows that a query gives."""


def quoted(name: str) -> str:
    """A column name as an SQL identifier: nothing in it is executed."""
    return '"' + name.replace('"', '""') + '"'


def text_literal(value: str) -> str:
    """A text as an SQL literal."""
    return "'" + value.replace("'", "''") + "'"


@dataclass(frozen=True, eq=False)
class DuckFiles:
    """Files, read by DuckDB as often as there are queries, never held whole."""

    files: Files
    connection: Any
    source: str
    kinds: Mapping[str, str]
    loose: frozenset[str]
    repeated: frozenset[str]
    progress: Progress | None = None
    casts_text: bool = field(default=True, init=False)
    streams: bool = field(default=True, init=False)

    @property
    def columns(self) -> Mapping[str, tuple[str, ...]]:
        """Each column is its own only part."""
        return {name: (name,) for name in self.kinds}

    def table(self, sql: str) -> pa.Table:
        """The rows that a query gives."""
        with readable(self.files), reported(self.connection, self.progress):
            return _run(self.connection, self.source, sql, self.files)


@dataclass(frozen=True, eq=False)
class DuckFrame:
    """An Arrow table (or what can be seen as one) registered with a connection of our own."""

    connection: Any
    kinds: Mapping[str, str]
    columns: Mapping[str, tuple[str, ...]]
    loose: frozenset[str] = frozenset()
    repeated: frozenset[str] = frozenset()
    casts_text: bool = field(default=True, init=False)
    streams: bool = field(default=True, init=False)

    def table(self, sql: str) -> pa.Table:
        """The rows that a query gives."""
        with answered("the frame"):
            return self.connection.sql(sql).to_arrow_table()


@dataclass(frozen=True, eq=False)
class DuckRelation:
    """A relation of the caller's own DuckDB connection."""

    relation: Any
    kinds: Mapping[str, str]
    loose: frozenset[str] = frozenset()
    repeated: frozenset[str] = frozenset()
    casts_text: bool = field(default=True, init=False)
    streams: bool = field(default=True, init=False)

    @property
    def columns(self) -> Mapping[str, tuple[str, ...]]:
        """Each column is its own only part."""
        return {name: (name,) for name in self.kinds}

    def table(self, sql: str) -> pa.Table:
        """The rows that a query gives."""
        with answered("the DuckDB relation"):
            return self.relation.query("log", sql).to_arrow_table()


def open_files(files: Files, progress: Progress | None = None, csv: str = "") -> DuckFiles:
    """Look at the files' columns; they must agree. `csv` are more options of DuckDB's reader."""
    connection = open_duckdb()
    hive = f", {HIVE}" if files.hive else ""
    source = {
        ".csv": f"read_csv($files, {CSV}{csv and ', '}{csv}{hive})",
        ".parquet": f"read_parquet($files{hive})",
        ".jsonl": f"read_json($files, format='newline_delimited', sample_size=-1{hive})",
    }[files.kind]
    with readable(files):
        _check_schemas(connection, files)
        types = _describe(connection, source, files)
    _check_separated(types, files)
    with readable(files):
        repeated = _repeated(connection, files)
    if files.kind == ".jsonl":
        types = {name: _as_written(kind) for name, kind in types.items()}
        columns = ", ".join(
            f"{text_literal(name)}: {text_literal(kind)}" for name, kind in types.items()
        )
        source = f"read_json($files, format='newline_delimited', columns={{{columns}}}{hive})"
    partitions = _partitions(files) if files.hive else frozenset()
    loose = frozenset(types) if files.kind == ".csv" else partitions & types.keys()
    kinds = {name: kind_of(kind) for name, kind in types.items()}
    return DuckFiles(files, connection, source, kinds, loose, repeated, progress)


def _as_written(kind: str) -> str:
    """DuckDB would turn the labels 12:00 and 2020-01-01 of a JSON file into times and dates."""
    return "VARCHAR" if kind == "UUID" or kind_of(kind) == TIME else kind


def open_arrow(table: pa.Table) -> DuckFrame:
    """Query an Arrow table; a column of lists of one length is one column per element."""
    import pyarrow as pa

    if not table.column_names:
        raise InputError("the frame has no columns: check what made it")
    _check_distinct(table.column_names)
    columns = {name: _parts(table, name) for name in table.column_names}
    flat = [(part, values) for parts in columns.values() for part, values in parts.items()]
    _check_distinct([part for part, _ in flat])
    connection = open_duckdb()
    with answered("the frame"):
        connection.register("log", pa.table([v for _, v in flat], names=[name for name, _ in flat]))
        rows = connection.execute("DESCRIBE SELECT * FROM log").fetchall()
    kinds = {name: kind_of(kind) for name, kind, *_ in rows}
    return DuckFrame(connection, kinds, {name: tuple(parts) for name, parts in columns.items()})


def _check_distinct(names: Sequence[str]) -> None:
    """SQL takes State and state for one name."""
    name, times = Counter(name.lower() for name in names).most_common(1)[0]
    if times > 1:
        alike = some(other for other in names if other.lower() == name)
        raise InputError(f"the frame has {times} columns of one name, {alike}: rename them")


def _parts(table: pa.Table, name: str) -> dict[str, Any]:
    """A column by itself, or the elements of its lists."""
    import pyarrow as pa
    from pyarrow import compute

    column = table.column(name)
    if not (pa.types.is_list(column.type) or pa.types.is_large_list(column.type)
            or pa.types.is_fixed_size_list(column.type)):  # fmt: skip
        return {name: column}
    widths = compute.unique(compute.list_value_length(column)).drop_null().to_pylist()
    if len(widths) != 1 or widths[0] == 0:
        raise InputError(
            f"column {name!r} mixes labels of {some(sorted(widths))} parts: give all the same form"
        )
    return {f"{name}_{i}": compute.list_element(column, i) for i in range(widths[0])}


def open_frame(frame: Any) -> DuckFrame:
    """Query any dataframe that narwhals knows."""
    import narwhals as nw

    try:
        native = nw.from_native(frame)
    except TypeError:
        raise InputError(
            f"source is {named(frame)}, expected a path, a dataframe, a Log, a DuckDB relation or "
            "an Ibis table: give one of these"
        ) from None
    except nw.exceptions.DuplicateError as error:
        reason = " ".join(str(error).split())
        raise InputError(f"two columns of the frame have the same name ({reason})") from None
    if not isinstance(native, nw.DataFrame | nw.LazyFrame):
        raise InputError(
            f"source is {named(frame)}, expected a path, a dataframe, a Log, a DuckDB relation or "
            "an Ibis table: give a dataframe with its columns"
        )
    return open_arrow(
        to_arrow_table(native.collect() if isinstance(native, nw.LazyFrame) else native)
    )


def open_relation(relation: Any) -> DuckRelation:
    """Query a DuckDB relation where it is."""
    kinds = {name: kind_of(str(kind)) for name, kind in zip(relation.columns, relation.types)}
    return DuckRelation(relation, kinds)


def kind_of(duckdb_type: str) -> str:
    """Our word for a type of DuckDB's."""
    name = duckdb_type.upper()
    if name in ("UBIGINT", "HUGEINT", "UHUGEINT", "BIGNUM"):
        return WIDE
    if re.fullmatch(r"U?(TINY|SMALL|BIG)?INT(EGER)?", name):
        return INTEGER
    if name in ("FLOAT", "DOUBLE") or name.startswith("DECIMAL"):
        return NUMBER
    if name == "BOOLEAN":
        return FLAG
    if name in ("VARCHAR", '"NULL"') or name.startswith("ENUM"):
        return TEXT
    return TIME if name.startswith(("DATE", "TIME", "INTERVAL")) else OTHER


def _run(connection: Any, source: str, sql: str, files: Files) -> pa.Table:
    log = f"WITH log AS NOT MATERIALIZED (SELECT * FROM {source})"
    return connection.sql(f"{log} {sql}", params={"files": _literal(files)}).to_arrow_table()


def _literal(files: Files) -> list[str]:
    """Names are taken as they are written, though DuckDB would expand patterns in them."""
    return [re.sub(r"([*?[])", r"[\1]", str(path)) for path in files.paths]


def _describe(connection: Any, source: str, files: Files) -> dict[str, str]:
    query = f"DESCRIBE SELECT * FROM {source}"
    rows = connection.execute(query, {"files": _literal(files)}).fetchall()
    return {name: kind for name, kind, *_ in rows}


@contextmanager
def readable(files: Files) -> Iterator[None]:
    """Turn DuckDB's complaints about files into one line with a remedy."""
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise InputError(f"cannot read {files.name} ({reason}): {REMEDIES[files.kind]}") from None


@contextmanager
def answered(source: str) -> Iterator[None]:
    """Turn the complaints of an engine into one line."""
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise InputError(f"cannot read {source} ({reason}): check its columns") from None


@contextmanager
def reported(connection: Any, progress: Progress | None) -> Iterator[None]:
    """Tell `progress` five times a second how far the running query is."""
    if progress is None:
        yield
        return
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.2):
            share = connection.query_progress()
            if share >= 0:
                progress(share / 100)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def _partitions(files: Files) -> frozenset[str]:
    return frozenset(
        part.split("=")[0] for path in files.paths for part in path.parts[:-1] if "=" in part
    )


def _repeated(connection: Any, files: Files) -> frozenset[str]:
    """Names that the first file has twice, in lower case; DuckDB renames the second."""
    if files.kind == ".csv":
        one = Files(files.paths[:1], files.kind)
        query = f"SELECT * FROM read_csv($files, {CSV.replace('header=true', 'header=false')})"
        cells = connection.execute(f"{query} LIMIT 1", {"files": _literal(one)}).fetchall()
        names = [name for row in cells for name in row if name]
    elif files.kind == ".parquet":
        query = "SELECT name, num_children FROM parquet_schema($files)"
        names = _outermost(connection.execute(query, {"files": _literal(files)[:1]}).fetchall())
    else:
        return frozenset()
    times = Counter(name.lower() for name in names)
    return frozenset(name for name, n in times.items() if n > 1)


def _outermost(schema: Sequence[tuple[str, int | None]]) -> list[str]:
    """The columns of a Parquet schema, which lists the root and below each name its parts."""
    names, inside = [], 0
    for name, children in schema[1:]:
        if inside == 0:
            names.append(name)
        inside = max(inside - 1, 0) + (children or 0)
    return names


def _check_separated(types: Mapping[str, str], files: Files) -> None:
    """DuckDB takes a file whose lines differ in length for one of a single column."""
    if files.kind == ".csv" and len(types) == 1 and re.search("[,;|\t]", next(iter(types))):
        reason = "its lines have different numbers of cells"
        raise InputError(f"cannot read {files.name} ({reason}): {REMEDIES['.csv']}")


def _check_schemas(connection: Any, files: Files) -> None:
    """DuckDB would take the first file's columns, and cast or drop what the others have."""
    if files.kind == ".jsonl" or len(files.paths) == 1:
        return
    first: tuple[Path, dict[str, str]] | None = None
    for path in files.paths:
        schema = _schema(connection, Files((path,), files.kind))
        first = first or (path, schema)
        if schema != first[1]:
            raise InputError(
                f"the files have different columns: {_difference(*first, path, schema)}; "
                "write them alike, or give those that are"
            )


def _schema(connection: Any, file: Files) -> dict[str, str]:
    reader = f"read_csv($files, {CSV})" if file.kind == ".csv" else "read_parquet($files)"
    return _describe(connection, reader, file)


def _difference(one: Path, mine: dict[str, str], other: Path, theirs: dict[str, str]) -> str:
    only = [name for name in mine if name not in theirs]
    extra = [name for name in theirs if name not in mine]
    if only or extra:
        where = one if only else other
        lacks = other if only else one
        return f"{lacks.name!r} has no column {some(only or extra, 3)}, {where.name!r} has"
    name = next(name for name in mine if mine[name] != theirs[name])
    return f"{name!r} is {mine[name]} in {one.name!r} and {theirs[name]} in {other.name!r}"
