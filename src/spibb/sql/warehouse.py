"""Tables in a warehouse, counted there: Ibis translates the queries, only the counts come back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from spibb.errors import InputError, cause_of, install, without_people
from spibb.sql.engines import FLAG, INTEGER, NUMBER, OTHER, TEXT, TIME, WIDE

if TYPE_CHECKING:
    import pyarrow as pa

ORDERED = ("pyspark", "databricks")
"""Backends that number rows only where an order is given, be it any."""
INSTALL = f"Ibis is not installed: {install('warehouse')}"


@dataclass(frozen=True, eq=False)
class Warehouse:
    """An Ibis table; the SQL is ours, in DuckDB's dialect, translated to the backend's."""

    expression: Any
    kinds: Mapping[str, str]
    called: str = ""
    loose: frozenset[str] = frozenset()
    repeated: frozenset[str] = frozenset()
    decimal: str = field(default=".", init=False)
    casts_text: bool = field(default=False, init=False)
    streams: bool = field(default=False, init=False)
    keeps_order: bool = field(default=False, init=False)

    @property
    def columns(self) -> Mapping[str, tuple[str, ...]]:
        """Each column is its own only part."""
        return {name: (name,) for name in self.kinds}

    def table(self, sql: str) -> pa.Table:
        """The rows that a query gives: `log` is a subquery, so that reading it is all it takes."""
        try:
            backend = self.expression.get_backend()
            text = backend.compiler.add_query_to_expr(
                name="log", table=self.expression, query=_translated(sql, backend)
            )
            return table_of_query(backend, text).to_pyarrow()
        except Exception as error:  # every driver has its own
            reason = cause_of(error)
            raise InputError(
                f"the warehouse did not answer a query ({without_people(reason)}): check the table "
                "and the connection"
            ) from None

    def rows(self, sql: str) -> pa.Table:
        """The rows that a query gives: warehouses send text as it is."""
        return self.table(sql)


def _translated(sql: str, backend: Any) -> str:
    """Our SQL, which is DuckDB's, as the backend writes it."""
    import sqlglot

    tree = sqlglot.parse_one(sql, read="duckdb")
    if backend.name in ORDERED:
        for window in tree.find_all(sqlglot.exp.Window):
            if not window.args.get("order") and isinstance(window.this, sqlglot.exp.RowNumber):
                window.set("order", sqlglot.exp.Order(expressions=[sqlglot.exp.Null()]))
    return tree.sql(backend.dialect)


def table_of_query(backend: Any, sql: str) -> Any:
    """The Ibis table of a query in the backend's SQL.

    Ibis finds the types of a query's columns in PostgreSQL by making a view of it, which one who
    may only read cannot: there the database describes them.
    """
    schema = _described(backend, sql) if backend.name == "postgres" else None
    return backend.sql(sql, schema=schema)


def _described(backend: Any, sql: str) -> dict[str, Any]:
    """Names and types of the columns of a query, which PostgreSQL does not run for that."""
    from ibis.backends.sql.datatypes import PostgresType

    with backend.con.cursor() as cursor:
        found = cursor.execute(f"SELECT * FROM ({sql}) AS asked LIMIT 0").description
        kinds = dict(cursor.execute(TYPES, [[column.type_code for column in found]]).fetchall())
    return {column.name: PostgresType.from_string(kinds[column.type_code]) for column in found}


TYPES = """
SELECT oid, CASE typtype WHEN 'e' THEN 'text' WHEN 'd' THEN format_type(typbasetype, typtypmod)
ELSE format_type(oid, NULL) END FROM pg_type WHERE oid = ANY(%s)
"""
"""Names of types by their numbers; enumerations are text, and domains have their base type."""


def open_table(table: Any, called: str = "") -> Warehouse:
    """Query an Ibis table, or a PySpark frame through Ibis, where it is stored."""
    expression = table if type(table).__module__.startswith("ibis") else _from_spark(table)
    kinds = {name: _kind(dtype) for name, dtype in expression.schema().items()}
    return Warehouse(expression, kinds, called)


def _from_spark(frame: Any) -> Any:
    """A PySpark frame as an Ibis table, by way of a temporary view."""
    try:
        import ibis
    except ImportError:
        raise InputError(f"cannot count a PySpark frame: {INSTALL}") from None
    name = f"spibb_{uuid4().hex}"
    frame.createOrReplaceTempView(name)
    return ibis.pyspark.connect(frame.sparkSession).table(name)


def _kind(dtype: Any) -> str:
    """Our word for a type of Ibis's."""
    tests = (("uint64", WIDE), ("integer", INTEGER), ("floating", NUMBER), ("decimal", NUMBER),
             ("boolean", FLAG), ("string", TEXT), ("temporal", TIME))  # fmt: skip
    return next((kind for test, kind in tests if getattr(dtype, f"is_{test}")()), OTHER)
