"""SQL for the rows that are used: complete episodes, each row once, with row numbers."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from spibb.sql.drawing import Draw
from spibb.sql.engines import quoted


@dataclass(frozen=True)
class Kept:
    """A table `log` in which only some rows count; all parts are SQL.

    `columns` are those that are used. Rows that are `incomplete` are left out, with all rows of
    their `episode` where there is a column of episodes. With `distinct`, rows that are equal in the
    columns used count once. Of every unit only the row that `draw` says counts. `row` is a name
    that no column begins with: the number of the row, from 0.
    """

    columns: tuple[str, ...]
    row: str
    incomplete: str | None = None
    episode: str | None = None
    distinct: bool = False
    draw: Draw | None = None

    @classmethod
    def of(
        cls, columns: Collection[str], present: Collection[str], incomplete: str | None,
        episode: str | None, distinct: bool,
    ) -> Kept:  # fmt: skip
        """From the names of the columns that are used, and of all that are present."""
        row = "spibb row"
        while any(name.lower().startswith(row) for name in present):
            row += "_"
        used = tuple(quoted(column) for column in dict.fromkeys(columns))
        return cls(used, quoted(row), incomplete, episode, distinct)

    @property
    def all(self) -> Kept:
        """This table with all of its rows."""
        return replace(self, incomplete=None, distinct=False, draw=None)

    @property
    def rows(self) -> str:
        """The rows in the columns that are used, in their order."""
        order = "" if self.draw is None else f" ORDER BY {self.row}"
        return f"SELECT {', '.join(self.columns)} FROM {self.table}{order}"

    @property
    def table(self) -> str:
        """The rows, as what follows FROM."""
        if self.draw is not None:
            return self.numbered
        if self.distinct:
            return f"(SELECT DISTINCT {', '.join(self.columns)} FROM log{self._where}) AS log"
        return f"(SELECT * FROM log{self._where}) AS log" if self.incomplete else "log"

    @property
    def repeating(self) -> str:
        """The rows with all columns, those that `distinct` leaves out included."""
        return f"(SELECT * FROM log{self._where}) AS log" if self.incomplete else "log"

    @property
    def numbered(self) -> str:
        """The rows with their numbers; equal rows have the number of the first."""
        rows = f"(SELECT *, ROW_NUMBER() OVER () - 1 AS {self.row} FROM log) AS log{self._where}"
        if self.draw is not None:
            extra = [f'{self.row[:-1]} {name}"' for name in ("place", "size", "drawn")]
            return f"({self.draw.rows(f'(SELECT * FROM {rows}) AS log', self.row, extra)}) AS log"
        if not self.distinct:
            return f"(SELECT * FROM {rows}) AS log"
        used = ", ".join(self.columns)
        return f"(SELECT {used}, MIN({self.row}) AS {self.row} FROM {rows} GROUP BY {used}) AS log"

    @property
    def _where(self) -> str:
        if self.incomplete is None:
            return ""
        if self.episode is None:
            return f" WHERE NOT ({self.incomplete})"
        e = self.episode
        bad = f"SELECT {e} FROM log WHERE {e} IS NOT NULL AND ({self.incomplete})"
        return f" WHERE {e} IS NOT NULL AND {e} NOT IN ({bad})"
