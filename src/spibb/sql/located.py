"""A log in place: the engine that has it, the columns behind our names, which rows count."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

from spibb.binning import Bins, Request, bins_at, check_requests, quantile_bins
from spibb.columns import UNIT, resolve
from spibb.errors import InputError
from spibb.irregular_tables import DROP, STRICT, Handling
from spibb.showing import Shown
from spibb.sql import queries
from spibb.sql.drawing import Draw, by_name, salt_query
from spibb.sql.engines import Engine, quoted
from spibb.sql.expressions import Reader
from spibb.sql.kept import Kept


@dataclass(frozen=True)
class LeftOut:
    """Rows and episodes of a table, how many were left out for missing values, and copies."""

    rows: int = 0
    incomplete: int = 0
    copies: int = 0
    episodes: int = 0
    incomplete_episodes: int = 0


@dataclass(frozen=True, eq=False)
class LocatedTable(Shown):
    """A log in place: an engine, the columns behind our names, bins, and which rows count.

    `copy` answers the same from a copy of those rows, where that is faster. Where one row of each
    unit counts, `draw` says which, and `undrawn` is a copy of all rows.
    """

    numbers: ClassVar[bool] = False
    """Whether states are vectors of numbers; otherwise they are labels."""

    engine: Engine
    names: Mapping[str, tuple[str, ...]]
    bins: Mapping[str, Bins]
    handling: Handling = STRICT
    copy: Engine | None = None
    draw: Draw | None = None
    undrawn: Engine | None = None

    def _facts(self) -> Mapping[str, Any]:
        """Where it is and which columns it has; no row is read for this."""
        return {
            "source": self.engine.called or type(self.engine).__name__,
            "state": ", ".join(self.names["state"]), "action": ", ".join(self.names["action"]),
            "bins": ", ".join(self.bins) or None,
        }  # fmt: skip

    @classmethod
    def open(
        cls,
        engine: Engine,
        columns: Mapping[str, Any],
        bins: Mapping[str, Request | Bins],
        handling: Handling = STRICT,
    ) -> Self:
        """Find the columns of a log, and the edges of its bins."""
        names = _names(engine, columns, handling.bandit)
        check_requests(bins, (*names["state"], *names["action"]))
        kept = _kept(engine, names, bins, handling)
        table = cls(engine, names, {}, handling, _copied(engine, kept.rows))
        if names[UNIT]:
            table = table._one_per_unit(kept, bins)
            kept = replace(kept, draw=table.draw)
        cut = {column: table._resolve_bins(kept, column, given) for column, given in bins.items()}
        return replace(table, bins=cut)

    def _one_per_unit(self, kept: Kept, cut: Collection[str]) -> Self:
        """This table with one row of each unit, before any column is `cut` into bins."""
        counted = kept if self.copy is None else kept.all
        draw = self._draw(counted, cut)
        source = self.engine if self.copy is None else self.copy
        drawn = _copied(source, replace(counted, draw=draw).rows, always=True)
        return replace(self, copy=drawn, draw=draw, undrawn=self.copy)

    def _draw(self, counted: Kept, cut: Collection[str]) -> Draw:
        """Which row of each unit counts."""
        read = Reader(self.engine, {})
        unit = tuple(map(read.label, self.names[UNIT]))
        labels, numbers = self._content(read, cut)
        ends = self.ask(queries.range_query(counted, numbers[0])).to_pylist()[0].values()
        low, high = (0.0 if end is None else float(end) for end in ends)
        salt = self.ask(salt_query(counted.table, [*unit, *labels], numbers[0], low, high))
        whole = " ".join(str(int(column[0].as_py() or 0)) for column in salt.columns)
        return Draw(unit, (*map(by_name, labels), *numbers), whole)

    def _content(self, read: Reader, cut: Collection[str]) -> tuple[list[str], list[str]]:
        """What a row holds besides its unit: labels, and numbers, the reward first."""
        inexact = {*cut, *(self.names["state"] if self.numbers else ())}
        columns = (*self.names["state"], *self.names["action"])
        labels = [read.label(column) for column in columns if column not in inexact]
        numbers = [
            read.number(column, name)
            for name in ("reward", "action_prob")
            for column in self.names[name]
        ]
        return labels, numbers + [read.number(one, one) for one in columns if one in inexact]

    @cached_property
    def whole(self) -> Self:
        """This table with all rows of each unit."""
        return replace(self, copy=self.undrawn, draw=None, undrawn=None) if self.draw else self

    def _resolve_bins(self, kept: Kept, column: str, given: Request | Bins) -> Bins:
        """Edges as they are given, or at quantiles of the rows that count."""
        if isinstance(given, Bins):
            return given
        if not isinstance(given, int):
            return bins_at(given, column)
        number = Reader(self.engine, {}).number(column, column)
        counted = kept if self.copy is None else kept.all
        row = self.ask(queries.quantile_query(counted, number, given)).to_pylist()[0]
        return quantile_bins((cut for cut in row.values() if cut is not None), column)

    @cached_property
    def kept(self) -> Kept:
        """The rows that count."""
        return replace(_kept(self.engine, self.names, self.bins, self.handling), draw=self.draw)

    @cached_property
    def counting(self) -> Kept:
        """The rows that count in what `ask` asks: all, of a copy."""
        return self.kept if self.copy is None else self.kept.all

    def ask(self, sql: str) -> Any:
        """The rows that a query gives: of the copy, where there is one."""
        return (self.engine if self.copy is None else self.copy).table(sql)

    @cached_property
    def rows(self) -> int:
        """How many count."""
        return self.number(f"SELECT COUNT(*) AS n FROM {self.counting.table}")

    @cached_property
    def left_out(self) -> LeftOut:
        """How many rows were left out because of their values, and of how many."""
        if self.draw is not None:
            return self.whole.left_out
        if self.handling == replace(STRICT, bandit=self.handling.bandit):
            return LeftOut()
        if self.handling.missing != DROP:
            rows = int(self.engine.table("SELECT COUNT(*) AS n FROM log").column(0)[0].as_py())
            return LeftOut(rows, 0, rows - self.rows)
        sizes = []
        for ask, table in (
            (self.engine.table, "log"), (self.engine.table, self.kept.repeating),
            (self.ask, self.counting.table),
        ):  # fmt: skip
            found = ask(queries.size_query(table, self.kept.episode)).to_pylist()[0]
            sizes.append((int(found["n"]), int(found["episodes"])))
        (rows, episodes), (complete, _), (stay, stay_episodes) = sizes
        return LeftOut(rows, rows - complete, complete - stay, episodes, episodes - stay_episodes)

    def number(self, query: str) -> int:
        """The one number that a query gives."""
        return int(self.ask(query).column(0)[0].as_py())


def at(engine: Engine) -> str:
    """The name of a log, before what is said of it as a whole."""
    return f"{engine.called}: " if engine.called else ""


def _copied(engine: Engine, sql: str, always: bool = False) -> Engine | None:
    """What a query gives, as a table of its own; None where the engine cannot make one."""
    copied = getattr(engine, "copied", None)
    return None if copied is None else copied(sql, always)


def _names(engine: Engine, columns: Mapping[str, Any], bandit: bool) -> dict[str, tuple[str, ...]]:
    """The columns of the engine behind each of our names."""
    found = resolve(list(engine.columns), columns, bandit)
    for column in (column for mine in found.values() for column in mine):
        if column.lower() in engine.repeated:
            raise InputError(
                f"{at(engine)}the log has several columns {column!r}: rename or drop all but one"
            )
    names = {
        name: tuple(part for column in mine for part in engine.columns[column])
        for name, mine in found.items()
    }
    if len(names["next_state"]) not in (0, len(names["state"])):
        raise InputError(
            f"next_state spans {len(names['next_state'])} columns and state "
            f"{len(names['state'])}: map as many"
        )
    return names


def _kept(
    engine: Engine,
    names: Mapping[str, tuple[str, ...]],
    bins: Mapping[str, Any],
    handling: Handling,
) -> Kept:
    """The rows that count, given how missing values and copies are handled."""
    read = Reader(engine, dict.fromkeys(bins), handling=handling)
    episode = quoted(names["episode_id"][0]) if names["episode_id"] else None
    return Kept.of(
        [column for mine in names.values() for column in mine], engine.kinds,
        read.incomplete(names) if handling.missing == DROP else None, episode,
        handling.duplicates == DROP,
    )  # fmt: skip
