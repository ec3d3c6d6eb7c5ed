"""One row of every unit, drawn at random: the same one in every engine and any order of rows.

The rows of a unit stand in an order that their values alone decide, and a hash of the unit's name
and of the whole log says which of them counts. With names alone, users of the same names would have
the same places drawn in every log, and where rows are of few kinds a place tells the kind (as in
`arrays.fair_permutation`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spibb.arrays import GRID, NO_SPAN
from spibb.sql.engines import text_literal

DIGITS = 8
"""Hexadecimal digits of a hash that make a number: of n rows, a place is off by n / 2³² at most."""


@dataclass(frozen=True)
class Draw:
    """Which row of each unit counts; all parts but the salt are SQL.

    `unit` are the labels that name one, `order` is what its rows are sorted by, `salt` stands for
    the whole log.
    """

    unit: tuple[str, ...]
    order: tuple[str, ...]
    salt: str

    def rows(self, table: str, row: str, extra: Sequence[str]) -> str:
        """The drawn rows of a table; `row` numbers its rows, `extra` are three unused names."""
        place, size, drawn = extra
        units = ", ".join(self.unit)
        sorted_by = ", ".join([*self.order, row])  # equal rows may differ in columns not used
        return (
            f"SELECT * FROM (SELECT *, COUNT(*) OVER (PARTITION BY {units}) AS {size}, "
            f"ROW_NUMBER() OVER (PARTITION BY {units} ORDER BY {sorted_by}) - 1 AS {place}, "
            f"{_hash([text_literal(self.salt), *self.unit])} AS {drawn} FROM {table}) AS placed "
            f"WHERE {place} = {_number(drawn)} % {size}"
        )


def by_name(label: str) -> str:
    """Sorts labels alike in every engine and language, whatever their type."""
    return f"COALESCE({_hash([label])}, '')"


def salt_query(table: str, labels: Sequence[str], reward: str, low: float, high: float) -> str:
    """Two whole numbers that all rows decide, in any order: how many, and a sum of hashes.

    Rewards enter as parts of their span, on a grid (`arrays.on_grid`): engines write floats in
    different ways.
    """
    size = max(abs(low), abs(high)) or 1.0
    span = high / size - low / size
    scale = GRID / (span if span > NO_SPAN else 1.0)
    point = f"({reward} / {_double(size)} - {_double(low / size)}) * {_double(scale)}"
    inside = f"{reward} BETWEEN {_double(low)} AND {_double(high)}"
    grid = f"CASE WHEN {inside} THEN CAST(FLOOR({point} + 0.5) AS BIGINT) END"
    hashes = f"SELECT {_hash([*map(_present, labels), _present(grid)])} AS h FROM {table}"
    return f"SELECT COUNT(*) AS n, SUM({_number('h')}) AS total FROM ({hashes}) AS hashed"


def _present(label: str) -> str:
    return f"COALESCE(CAST({label} AS VARCHAR), '')"


def _hash(parts: Sequence[str]) -> str:
    joined = " || '|' || ".join(f"CAST({part} AS VARCHAR)" for part in parts)
    return f"MD5({joined})"


def _number(digits: str) -> str:
    """The first digits of a hash as a whole number: no two engines have the same function."""
    places = (
        f"CAST(STRPOS('0123456789abcdef', SUBSTR({digits}, {i + 1}, 1)) - 1 AS BIGINT)"
        f" * {16 ** (DIGITS - 1 - i)}"
        for i in range(DIGITS)
    )
    return f"({' + '.join(places)})"


def _double(value: float) -> str:
    return f"CAST('{value!r}' AS DOUBLE)"
