"""Files that DuckDB reads itself, as often as there are queries."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spibb.checks import some
from spibb.errors import FixableError, InputError
from spibb.sql.duck import give_back, open_duckdb, private_path
from spibb.sql.engines import TIME, kind_of, narrow_table, text_literal
from spibb.sql.sources import TEXTS, Files
from spibb.sql.staging import likely_encoding
from spibb.tables import OnProgress

if TYPE_CHECKING:
    import pyarrow as pa

CSV = "comment='', quote='\"', escape='\"', all_varchar=true, buffer_size=8388608"
"""All that DuckDB would guess but the separator: it drops lines that it takes for comments. Its
buffers of 32 MB are most of what it holds of a small file."""
SMALL_MEMORY = 150, 300
"""Megabytes that DuckDB may hold of files that are not large."""
WORTH_A_COPY, LARGEST_COPY = 16 * 2**20, 2**30
"""Bytes of text that are parsed once, into a copy of the columns that are used."""
JSON = {
    ".jsonl": "format='newline_delimited', sample_size=-1",
    ".json": "format='auto', sample_size=-1",
}
HIVE = "hive_partitioning=true, hive_types_autocast=false"
NO_HIVE = "hive_partitioning=false"
"""DuckDB would take any ``ward=3`` in a path for a column, above the source too."""
OTHER_TEXT = "text in UTF-8 (or name its encoding, as --encoding latin-1)"
REMEDIES = {
    ".csv": f"check that it is complete, {OTHER_TEXT}, with one line of names, separated by commas "
    "(or name the --separator)",
    ".tsv": f"check that it is complete, {OTHER_TEXT}, with one line of names, separated by tabs",
    ".parquet": "check that it is a complete Parquet file",
    ".json": f"check that it is complete, {OTHER_TEXT}, an array of objects or one object per line",
    ".jsonl": f"check that it is complete, {OTHER_TEXT}, with one JSON object per line",
}
SEPARATOR = re.compile(rb"(?:\xef\xbb\xbf)?sep=([,;|\t])\r?\n")
CAUSE = re.compile("Invalid unicode|Maximum line size")
"""What DuckDB says of a line that it cannot read."""


@dataclass(frozen=True, eq=False)
class DuckFiles:
    """Files, read by DuckDB as often as there are queries, never held whole.

    `options` are more of DuckDB's reader than the files themselves ask for.
    """

    files: Files
    connection: Any
    options: str
    kinds: Mapping[str, str]
    loose: frozenset[str]
    repeated: frozenset[str]
    progress: OnProgress | None = None
    casts_text: bool = field(default=True, init=False)
    streams: bool = field(default=True, init=False)
    keeps_order: bool = field(default=True, init=False)

    @property
    def columns(self) -> Mapping[str, tuple[str, ...]]:
        """Each column is its own only part."""
        return {name: (name,) for name in self.kinds}

    @property
    def called(self) -> str:
        """How messages call the files."""
        return self.files.name

    @property
    def decimal(self) -> str:
        """What is between whole and part of a number."""
        return self.files.decimal

    def table(self, sql: str) -> pa.Table:
        """The rows that a query gives."""
        with self._asking():
            return self._run(sql).to_arrow_table()

    def rows(self, sql: str) -> pa.Table:
        """The rows that a query gives, with codes in place of text."""
        with self._asking():
            found = narrow_table(self._run(sql))
        return found.unify_dictionaries()  # a copy, made when the query has let go of its memory

    def place(self, row: int) -> tuple[str, int]:
        """The file that a row is in, and the row's number there, from 0."""
        paths = self.files.paths
        if len(paths) == 1:
            return self.files.name, row
        with readable(self.files):
            for path in paths:
                one = replace(self, files=replace(self.files, paths=(path,)))
                n = int(one._run("SELECT COUNT(*) FROM log").fetchall()[0][0])
                if row < n:
                    break
                row -= n
        return repr(str(path)), row

    def copied(self, sql: str, always: bool = False) -> DuckFiles | None:
        """The rows that a query gives in a private Parquet file, None where that saves nothing.

        Text of some size is parsed for every query, and takes longer than all else. `always` is for
        queries that take long themselves.
        """
        worth = self.files.untyped and WORTH_A_COPY <= self.files.size <= LARGEST_COPY
        if not (always or worth):
            return None
        path = private_path(".parquet")
        with self._asking():
            self._run(sql).write_parquet(str(path))
        copy = replace(
            self.files, paths=(path,), kind=".parquet", hive=False, called=self.files.name
        )
        return replace(self, files=copy, options="")

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """Say what goes wrong and how far a query is, and then let go of what it needed."""
        with readable(self.files), reported(self.connection, self.progress):
            yield
        give_back(self.connection)

    def _run(self, sql: str) -> Any:
        """A relation that is computed when its rows are fetched."""
        log = f"WITH log AS NOT MATERIALIZED (SELECT * FROM {_reader(self.files, self.options)})"
        return self.connection.sql(f"{log} {sql}")


def open_files(files: Files, progress: OnProgress | None = None, csv: str = "") -> DuckFiles:
    """Look at the files' columns; they must agree. `csv` are more options of DuckDB's reader."""
    connection = open_duckdb(*SMALL_MEMORY if files.size <= LARGEST_COPY else ())
    options = csv
    with readable(files):
        _check_schemas(connection, files)
        types = _describe(connection, files, options)
    _check_separated(types, files)
    with readable(files):
        repeated = _repeated(connection, files)
    if files.kind in JSON:
        types = {name: _as_written(kind) for name, kind in types.items()}
        columns = ", ".join(
            f"{text_literal(name)}: {text_literal(kind)}" for name, kind in types.items()
        )
        options = f"columns={{{columns}}}"
    partitions = _partitions(files) if files.hive else frozenset()
    loose = frozenset(types) if files.untyped else partitions & types.keys()
    kinds = {name: kind_of(kind) for name, kind in types.items()}
    return DuckFiles(files, connection, options, kinds, loose, repeated, progress)


def _reader(files: Files, more: str = "", header: bool = True) -> str:
    """The call that reads the files; `more` are options of it."""
    options = [HIVE if files.hive else NO_HIVE]
    if files.untyped:
        said = _said_separator(files)
        separator = files.separator or said or ("\t" if files.kind == ".tsv" else "")
        options += [CSV, f"skip={int(bool(said))}", f"header={header}"]
        options += [f"delim={text_literal(separator)}"] if separator else []
    options += [JSON[files.kind]] if files.kind in JSON else []
    call = "read_csv" if files.untyped else "read_json" if files.kind in JSON else "read_parquet"
    return f"{call}({', '.join([_names(files), *options, *([more] if more else [])])})"


def _said_separator(files: Files) -> str:
    """The separator that a line ``sep=;`` above the names says, as Excel writes it; "" if none."""
    said = set()
    for path in files.paths:
        with path.open("rb") as file:
            line = SEPARATOR.match(file.read(16))
        said.add(line[1].decode() if line else "")
        if said == {""}:
            return ""
    if len(said) > 1:
        raise InputError(
            f"the files use different separators in their first lines: {REMEDIES['.csv']}"
        )
    return said.pop()


def _as_written(kind: str) -> str:
    """DuckDB would turn the labels 12:00 and 2020-01-01 of a JSON file into times and dates."""
    return "VARCHAR" if kind == "UUID" or kind_of(kind) == TIME else kind


def _names(files: Files) -> str:
    """The files as an SQL literal; as a parameter, DuckDB 1.5 would hold all rows of the answer.

    Names are taken as they are written, though DuckDB would expand patterns in them.
    """
    plain = (re.sub(r"([*?[])", r"[\1]", str(path)) for path in files.paths)
    return f"[{', '.join(map(text_literal, plain))}]"


def _describe(connection: Any, files: Files, options: str = "") -> dict[str, str]:
    rows = connection.execute(f"DESCRIBE SELECT * FROM {_reader(files, options)}").fetchall()
    return {name: kind for name, kind, *_ in rows}


@contextmanager
def readable(files: Files) -> Iterator[None]:
    """Turn DuckDB's complaints about files into one line with a remedy."""
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        reason = files.renamed(_reason(str(error)))
        line = f"cannot read {files.name} ({reason}): {REMEDIES[files.kind]}"
        if files.kind in TEXTS and (written := likely_encoding(files.paths)):
            raise FixableError(line, encoding=written) from None
        raise InputError(line) from None


def _reason(complaint: str) -> str:
    """The first line of what DuckDB says, and the cause, which may be further down."""
    first, *rest = complaint.splitlines()
    causes = [line.split(". ")[0] for line in rest if CAUSE.match(line)]
    return ": ".join([first.rstrip("."), *causes[:1]])


@contextmanager
def reported(connection: Any, progress: OnProgress | None) -> Iterator[None]:
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
    if files.untyped:
        one = replace(files, paths=files.paths[:1], hive=False)
        query = f"SELECT * FROM {_reader(one, header=False)}"
        cells = connection.execute(f"{query} LIMIT 1").fetchall()
        names = [name for row in cells for name in row if name]
    elif files.kind == ".parquet":
        one = replace(files, paths=files.paths[:1])
        query = f"SELECT name, num_children FROM parquet_schema({_names(one)})"
        names = _outermost(connection.execute(query).fetchall())
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
    if files.untyped and len(types) == 1 and re.search("[,;|\t]", next(iter(types))):
        reason = f"its lines have different numbers of cells{_uneven(files.paths[0])}"
        if files.separator or files.kind == ".tsv":
            reason = "no line has the separator in it"
        raise InputError(f"cannot read {files.name} ({reason}): {REMEDIES[files.kind]}")


def _uneven(path: Path) -> str:
    """The first line with another number of cells than there are names, in words."""
    import csv
    import io

    import pyarrow as pa

    with pa.input_stream(path, compression="detect") as packed, suppress(csv.Error):
        text = io.TextIOWrapper(packed, "utf-8", errors="replace", newline="")
        first = text.readline()
        separator = max(",;|\t", key=first.count)
        n = len(next(csv.reader([first], delimiter=separator)))
        rows = csv.reader(text, delimiter=separator)
        for row in rows:
            if row and len(row) != n:
                return f": line {rows.line_num + 1} has {len(row)}, and there are {n} names"
    return ""


def _check_schemas(connection: Any, files: Files) -> None:
    """DuckDB would take the first file's columns, and cast or drop what the others have."""
    if files.kind in JSON or len(files.paths) == 1:
        return
    first: tuple[Path, dict[str, str]] | None = None
    for path in files.paths:
        one = replace(files, paths=(path,), hive=False)
        schema = _describe(connection, one)
        first = first or (path, schema)
        if schema != first[1]:
            raise InputError(
                f"the files have different columns: {_difference(*first, path, schema)}; "
                "give them the same columns, or leave out those that differ"
            )


def _difference(one: Path, mine: dict[str, str], other: Path, theirs: dict[str, str]) -> str:
    only = [name for name in mine if name not in theirs]
    extra = [name for name in theirs if name not in mine]
    if only or extra:
        where = one if only else other
        lacks = other if only else one
        return f"{lacks.name!r} has no column {some(only or extra, 3)}, {where.name!r} has"
    name = next(name for name in mine if mine[name] != theirs[name])
    return f"{name!r} is {mine[name]} in {one.name!r} and {theirs[name]} in {other.name!r}"
