"""Engines: what answers SQL over a table called `log` — DuckDB on frames and relations."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

from spibb.checks import named, some
from spibb.columns import to_arrow_table
from spibb.errors import InputError
from spibb.sql.duck import open_duckdb

if TYPE_CHECKING:
    import pyarrow as pa

INTEGER, WIDE, NUMBER, FLAG = "integer", "wide integer", "number", "flag"
TEXT, TIME, OTHER = "text", "time", "other"
"""Kinds of columns; wide integers may be beyond 64 bits."""
BATCH = 1 << 17
"""Rows that are fetched at a time."""


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
    def called(self) -> str:
        """How messages call the table; "" where it has no name, as in memory."""

    @property
    def loose(self) -> frozenset[str]:
        """Columns whose values decide their types."""

    @property
    def decimal(self) -> str:
        """What is between whole and part of a number in text."""

    @property
    def casts_text(self) -> bool:
        """Whether text that is not a number can become NULL instead of an error."""

    @property
    def streams(self) -> bool:
        """Whether a row can be compared with the one that came before it at no cost."""

    @property
    def keeps_order(self) -> bool:
        """Whether a query on a query that sorts has the rows in that order."""

    def table(self, sql: str) -> pa.Table:
        """The rows that a query gives."""

    def rows(self, sql: str) -> pa.Table:
        """The rows that a query gives; columns of text may come as codes of a dictionary."""


def quoted(name: str) -> str:
    """A column name as an SQL identifier: nothing in it is executed."""
    return '"' + name.replace('"', '""') + '"'


def text_literal(value: str) -> str:
    """A text as an SQL literal."""
    return "'" + value.replace("'", "''") + "'"


@dataclass(frozen=True, eq=False)
class DuckFrame:
    """An Arrow table (or what can be seen as one) registered with a connection of our own."""

    connection: Any
    kinds: Mapping[str, str]
    columns: Mapping[str, tuple[str, ...]]
    loose: frozenset[str] = frozenset()
    called: str = ""
    repeated: frozenset[str] = frozenset()
    decimal: str = field(default=".", init=False)
    casts_text: bool = field(default=True, init=False)
    streams: bool = field(default=True, init=False)
    keeps_order: bool = field(default=True, init=False)

    def table(self, sql: str) -> pa.Table:
        """The rows that a query gives."""
        with answered("the frame"):
            return self.connection.sql(sql).to_arrow_table()

    def rows(self, sql: str) -> pa.Table:
        """The rows that a query gives, with codes in place of text."""
        with answered("the frame"):
            return narrow_table(self.connection.sql(sql)).unify_dictionaries()

    def copied(self, sql: str, always: bool = False) -> DuckFrame | None:
        """The rows that a query gives, where that takes long; the frame itself is in memory."""
        if not always:
            return None
        connection = open_duckdb()
        connection.register("log", self.table(sql))
        return replace(self, connection=connection)


@dataclass(frozen=True, eq=False)
class DuckRelation:
    """A relation of the caller's own DuckDB connection, which may be set not to keep any order."""

    relation: Any
    kinds: Mapping[str, str]
    called: str = ""
    loose: frozenset[str] = frozenset()
    repeated: frozenset[str] = frozenset()
    decimal: str = field(default=".", init=False)
    casts_text: bool = field(default=True, init=False)
    streams: bool = field(default=True, init=False)
    keeps_order: bool = field(default=False, init=False)

    @property
    def columns(self) -> Mapping[str, tuple[str, ...]]:
        """Each column is its own only part."""
        return {name: (name,) for name in self.kinds}

    def table(self, sql: str) -> pa.Table:
        """The rows that a query gives."""
        with answered("the DuckDB relation"):
            return self.relation.query("log", sql).to_arrow_table()

    def rows(self, sql: str) -> pa.Table:
        """The rows that a query gives, with codes in place of text."""
        with answered("the DuckDB relation"):
            return narrow_table(self.relation.query("log", sql)).unify_dictionaries()


def narrow_table(relation: Any) -> pa.Table:
    """The rows of a relation, batch by batch, with codes of a dictionary in the place of text.

    Labels are repeated on many rows; every batch has a dictionary of its own. What is left of a
    batch is copied, since it is freed as a whole: one column that is kept would keep its text too.
    """
    import pyarrow as pa

    def narrow(column: pa.Array) -> pa.Array:
        if pa.types.is_string(column.type):
            return column.dictionary_encode()
        return pa.concat_arrays([column, column[:0]])

    batches = relation.to_arrow_reader(BATCH)
    columns: list[list[pa.Array]] = [[] for _ in batches.schema]
    for batch in batches:
        for mine, column in zip(columns, batch.columns):
            mine.append(narrow(column))
    fields = [
        pa.chunked_array(mine, None if mine else field.type)
        for mine, field in zip(columns, batches.schema)
    ]
    return pa.table(fields, names=batches.schema.names)


def open_arrow(table: pa.Table, loose: frozenset[str] = frozenset(), called: str = "") -> DuckFrame:
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
    parts = {name: tuple(parts) for name, parts in columns.items()}
    return DuckFrame(connection, kinds, parts, loose, called)


def _check_distinct(names: Sequence[str]) -> None:
    """SQL takes State and state for one name."""
    name, times = Counter(name.lower() for name in names).most_common(1)[0]
    if times > 1:
        alike = some(other for other in names if other.lower() == name)
        raise InputError(f"the frame has {times} columns with the same name, {alike}: rename them")


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


def open_frame(frame: Any, argument: str = "source") -> DuckFrame:
    """Query any dataframe that narwhals knows; messages call it `argument`."""
    import narwhals as nw

    try:
        native = nw.from_native(frame)
    except TypeError:
        raise InputError(
            f"{argument} is {named(frame)}, expected {_tables(argument)}: give one of these"
        ) from None
    except nw.exceptions.DuplicateError as error:
        reason = " ".join(str(error).split())
        raise InputError(f"two columns of the frame have the same name ({reason})") from None
    if not isinstance(native, nw.DataFrame | nw.LazyFrame):
        raise InputError(
            f"{argument} is {named(frame)}, expected {_tables(argument)}: give a dataframe with "
            "its columns"
        )
    return open_arrow(
        to_arrow_table(native.collect() if isinstance(native, nw.LazyFrame) else native)
    )


def _tables(argument: str) -> str:
    """What an argument may be."""
    more = "a path, a dataframe, a Log," if argument == "source" else "a dataframe,"
    return f"{more} a DuckDB relation or an Ibis table"


def open_relation(relation: Any, called: str = "") -> DuckRelation:
    """Query a DuckDB relation where it is."""
    kinds = {name: kind_of(str(kind)) for name, kind in zip(relation.columns, relation.types)}
    return DuckRelation(relation, kinds, called)


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


@contextmanager
def answered(source: str) -> Iterator[None]:
    """Turn the complaints of an engine into one line."""
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise InputError(f"cannot read {source} ({reason}): check its columns") from None
