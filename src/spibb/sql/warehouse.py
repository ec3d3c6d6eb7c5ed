"""Tables in a warehouse, counted there: Ibis translates the queries, only the counts come back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from spibb.checks import InputError
from spibb.errors import install
from spibb.sql.engines import FLAG, INTEGER, NUMBER, OTHER, TEXT, TIME, WIDE

if TYPE_CHECKING:
    import pyarrow as pa

INSTALL = f"Ibis is not installed: {install('warehouse')}"


@dataclass(frozen=True, eq=False)
class Warehouse:
    """An Ibis table; the SQL is ours, in DuckDB's dialect, translated to the backend's."""

    expression: Any
    kinds: Mapping[str, str]
    loose: frozenset[str] = frozenset()
    repeated: frozenset[str] = frozenset()
    casts_text: bool = field(default=False, init=False)
    streams: bool = field(default=False, init=False)

    @property
    def columns(self) -> Mapping[str, tuple[str, ...]]:
        """Each column is its own only part."""
        return {name: (name,) for name in self.kinds}

    def table(self, sql: str) -> pa.Table:
        """The rows that a query gives."""
        try:
            return self.expression.alias("log").sql(sql, dialect="duckdb").to_pyarrow()
        except Exception as error:  # every driver has its own
            reason = " ".join(str(error).split()) or type(error).__name__
            raise InputError(
                f"the warehouse did not answer a query ({reason}): check the table and the "
                "connection"
            ) from None


def open_table(table: Any) -> Warehouse:
    """Query an Ibis table, or a PySpark frame through Ibis, where it lies."""
    expression = table if type(table).__module__.startswith("ibis") else _from_spark(table)
    kinds = {name: _kind(dtype) for name, dtype in expression.schema().items()}
    return Warehouse(expression, kinds)


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
