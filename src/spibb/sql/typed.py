"""The columns of a log, typed and checked by SQL: one definition for rows and for counts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from spibb.arrays import from_arrow, to_arrow
from spibb.binning import Bins, Request, check_requests, quantile_bins
from spibb.checks import InputError, did_you_mean, some
from spibb.columns import EMPTY, code_states, resolve
from spibb.handling import AS_LEVEL, DROP, STRICT, Handling
from spibb.labels import Label, Vocabulary, encode, factorize, vocabulary
from spibb.sql import queries
from spibb.sql.engines import TEXT, TIME, Engine, quoted
from spibb.sql.expressions import (
    STEP_NUMBER,
    STEP_TYPES,
    Expressions,
    Reader,
    expressions,
    finite,
    possible,
)
from spibb.sql.faults import Faults
from spibb.sql.kept import Kept
from spibb.sql.reading import label_type

Labels = Vocabulary | Sequence[Label]
FIX = "fix or drop the row"
A_NUMBER, A_FLAG = f"a number: {FIX}", f"true/false or 0/1: {FIX}"
WANTED = {
    "step": f"a finite number, or a time, all with a time zone or none: {FIX}", "reward": A_NUMBER,
    "action_prob": A_NUMBER, "terminated": A_FLAG, "truncated": A_FLAG,
}  # fmt: skip
A_LABEL = "text, or a whole number of 64 bits that is exact: bin the column or turn it into text"
A_NUMBER_TO_BIN = f"a number to bin: {FIX}"
FINITE = f"a finite number: {FIX}"
STATES = ("state", "next_state")
POSSIBLE = "a number in (0, 1]: the logged action must have been possible"


ALL_LEFT_OUT = (
    "every episode has a missing value, so that none is left: fill them, or map fewer columns"
)


@dataclass(frozen=True)
class LeftOut:
    """Rows and episodes of a table, how many were left out for missing values, and copies."""

    rows: int = 0
    incomplete: int = 0
    copies: int = 0
    episodes: int = 0
    incomplete_episodes: int = 0


@dataclass(frozen=True)
class Profile:
    """How many rows there are, how many values each column has and can be read, and ranges."""

    found: Mapping[str, Any]

    @property
    def rows(self) -> int:
        """How many there are."""
        return int(self.found["rows"])

    @property
    def reward_range(self) -> tuple[float, float]:
        """The smallest and the largest reward."""
        return _float(self.found["low"]), _float(self.found["high"])

    @property
    def first_step(self) -> str:
        """The smallest step as an SQL literal."""
        step = self.found["first"]
        return str(step) if isinstance(step, int | Decimal) else f"CAST('{step}' AS DOUBLE)"

    def there(self, column: str) -> int:
        """How many values a column has."""
        return int(self.found.get(f"there {column}", 0))

    def read(self, column: str) -> int:
        """How many of them can be read."""
        return int(self.found.get(f"read {column}", self.there(column)))


@dataclass(frozen=True)
class CodedRows:
    """Codes of typed rows: those of states and actions are ≥ 0, successors may be NO_STATE.

    `types` are those that the values of each column of the state decided, None for text.
    """

    states: Vocabulary
    actions: Vocabulary
    state: np.ndarray
    action: np.ndarray
    successor: np.ndarray
    types: tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class TypedTable:
    """A log where it lies: an engine, the columns behind our names, bins, and which rows count.

    `copy` answers the same from a copy of those rows, where that is faster.
    """

    engine: Engine
    names: Mapping[str, tuple[str, ...]]
    bins: Mapping[str, Bins]
    handling: Handling = STRICT
    copy: Engine | None = None

    numbers: ClassVar[bool] = False
    """Whether states are vectors of numbers; else they are labels."""

    @classmethod
    def open(
        cls,
        engine: Engine,
        columns: Mapping[str, Any],
        bins: Mapping[str, Request | Bins],
        handling: Handling = STRICT,
    ) -> Self:
        """Find the columns of a log, and the edges of its bins."""
        found = resolve(list(engine.columns), columns, handling.bandit)
        names = {
            name: tuple(part for column in mine for part in engine.columns[column])
            for name, mine in found.items()
        }
        for column in (column for mine in found.values() for column in mine):
            if column.lower() in engine.repeated:
                raise InputError(
                    f"the log has several columns {column!r}: rename or drop all but one"
                )
        check_requests(bins, (*names["state"], *names["action"]))
        if len(names["next_state"]) not in (0, len(names["state"])):
            raise InputError(
                f"next_state spans {len(names['next_state'])} columns and state "
                f"{len(names['state'])}: map as many"
            )
        kept = _kept(engine, names, bins, handling)
        copied = getattr(engine, "copied", None)
        copy = None if copied is None else copied(kept.rows)
        table = cls(engine, names, {}, handling, copy)
        cut = {column: table._resolve_bins(kept, column, given) for column, given in bins.items()}
        return replace(table, bins=cut)

    def _resolve_bins(self, kept: Kept, column: str, given: Request | Bins) -> Bins:
        """Edges as they are given, or at quantiles of the rows that count."""
        if isinstance(given, Bins):
            return given
        if not isinstance(given, int):
            return Bins(tuple(given))
        number = Reader(self.engine, {}).number(column, column)
        counting = kept if self.copy is None else kept.all
        row = self.ask(queries.quantile_query(counting, number, given)).to_pylist()[0]
        return quantile_bins((cut for cut in row.values() if cut is not None), column)

    @cached_property
    def kept(self) -> Kept:
        """The rows that count."""
        return _kept(self.engine, self.names, self.bins, self.handling)

    @cached_property
    def _counting(self) -> Kept:
        """The rows that count in what `ask` asks: all, of a copy."""
        return self.kept if self.copy is None else self.kept.all

    def ask(self, sql: str) -> Any:
        """The rows that a query gives: of the copy, where there is one."""
        return (self.engine if self.copy is None else self.copy).table(sql)

    @cached_property
    def rows(self) -> int:
        """How many count."""
        return self.number(f"SELECT COUNT(*) AS n FROM {self._counting.table}")

    @cached_property
    def left_out(self) -> LeftOut:
        """What was left out, and of how much."""
        if self.handling == replace(STRICT, bandit=self.handling.bandit):
            return LeftOut()
        if self.handling.missing != DROP:
            rows = int(self.engine.table("SELECT COUNT(*) AS n FROM log").column(0)[0].as_py())
            return LeftOut(rows, 0, rows - self.rows)
        sizes = []
        for ask, table in (
            (self.engine.table, "log"), (self.engine.table, self.kept.repeating),
            (self.ask, self._counting.table),
        ):  # fmt: skip
            found = ask(queries.size_query(table, self.kept.episode)).to_pylist()[0]
            sizes.append((int(found["n"]), int(found["episodes"])))
        (rows, episodes), (complete, _), (stay, stay_episodes) = sizes
        return LeftOut(rows, rows - complete, complete - stay, episodes, episodes - stay_episodes)

    @cached_property
    def x(self) -> Expressions:
        """The columns as SQL expressions; steps in text are numbers, or else times."""
        return self._profiled[0]

    @cached_property
    def profile(self) -> Profile:
        """Row count and ranges, after the check that every value is there and of its kind."""
        return self._profiled[1]

    @cached_property
    def _profiled(self) -> tuple[Expressions, Profile]:
        tried = []
        for step_type in self._step_types:
            read = Reader(self.engine, self.bins, step_type, self.handling)
            tried.append((read, self._ask(read)))
            if self._unread_steps(tried[-1][1]) == 0:
                break
        read, profile = min(tried, key=lambda one: self._unread_steps(one[1]))
        self._check(read, profile)
        return self._expressions(replace(read, levels=self._levels(profile))), profile

    @property
    def _step_types(self) -> Sequence[str]:
        """As what steps may be read, that of the first one's first."""
        if self._step_kind != TEXT:
            return STEP_TYPES[:1]
        read = Reader(self.engine, {}, STEP_NUMBER).step(self.names["step"][0])
        first = self.ask(f"SELECT {read} AS t FROM {self._counting.table} LIMIT 1").column(0)
        is_number = len(first) == 0 or first[0].as_py() is not None
        return STEP_TYPES if is_number else (*STEP_TYPES[1:], STEP_NUMBER)

    @property
    def levels(self) -> frozenset[str]:
        """The columns in which a missing value is a label of its own."""
        return self._levels(self.profile)

    def _expressions(self, read: Reader) -> Expressions:
        return expressions(read, self.names, self._counting, numbers=self.numbers)

    @property
    def _step_kind(self) -> str | None:
        """The kind of the column of the steps, None without one."""
        return self.engine.kinds[self.names["step"][0]] if self.names["step"] else None

    def _unread_steps(self, profile: Profile) -> int:
        return sum(profile.there(c) - profile.read(c) for c in self.names["step"])

    def _levels(self, profile: Profile) -> frozenset[str]:
        if self.handling.missing != AS_LEVEL or self.numbers:
            return frozenset()
        return self._lacking(profile) & {*self.names["state"], *self.names["action"]}

    def _lacking(self, profile: Profile) -> frozenset[str]:
        """The columns that lack values; the next state may."""
        return frozenset(
            column
            for name, columns in self.names.items()
            for column in columns
            if name != "next_state" and profile.there(column) < profile.rows
        )

    def _ask(self, read: Reader) -> Profile:
        fields, query = queries.profile_query(self._expressions(read), self.names, read)
        values = [column[0].as_py() for column in self.ask(query).columns]
        profile = Profile(dict(zip(fields, values)))
        if profile.rows == 0:
            raise InputError(EMPTY if not self.left_out.rows else ALL_LEFT_OUT)
        return profile

    @property
    def steps_are_times(self) -> bool:
        """Whether steps in text read as times."""
        return self._step_kind == TEXT and STEP_NUMBER not in self.x.step

    def number(self, query: str) -> int:
        """The one number that a query gives."""
        return int(self.ask(query).column(0)[0].as_py())

    def _check(self, read: Reader, profile: Profile) -> None:
        """Refuse what is missing or cannot be read, and name its first row."""
        x = self._expressions(read)
        lacking, levels = self._lacking(profile), self._levels(profile)
        for name, column, expression in x.by_column(self.names):
            there = read.present(name, column)
            if column in lacking - levels:
                self._faults.refuse_missing(column, f"{there} IS NULL", lacking)
            if profile.read(column) < profile.there(column):
                label = FINITE if self.numbers and name in STATES else A_LABEL
                wanted = A_NUMBER_TO_BIN if column in self.bins else WANTED.get(name, label)
                unread = f"{there} IS NOT NULL AND ({expression}) IS NULL"
                self._faults.refuse(name, column, unread, wanted)
        if x.action_prob is not None and profile.found["possible"] < profile.rows:
            impossible = f"NOT ({possible(x.action_prob)})"
            self._faults.refuse("action_prob", self.names["action_prob"][0], impossible, POSSIBLE)
        self.check_rewards(profile.reward_range)

    def check_rewards(self, numbers: Any) -> None:
        """Refuse rewards that are not finite, told by themselves, their extremes or their sums.

        The extremes in a Parquet file's footer overlook NaN; finite rewards may add up to infinity.
        """
        reward = Reader(self.engine, {}).number(self.names["reward"][0], "reward")
        bad = f"NOT ({finite(reward)})"
        if not np.isfinite(numbers).all() and self.number(queries.times_query(self._counting, bad)):
            self._faults.refuse("reward", self.names["reward"][0], bad, FINITE)

    def check_order(self, repeated: int, goes_on: int) -> None:
        """Refuse a step that occurs twice in its episode, and rows after an end."""
        if repeated:
            self._faults.refuse_repeated(replace(self.x, kept=self.kept), repeated)
        if goes_on:
            self._faults.refuse_rows_after_an_end(replace(self.x, kept=self.kept), goes_on)

    @property
    def _faults(self) -> Faults:
        return Faults(self.engine, self.names, self.handling, self.kept, self.numbers)

    def code(
        self,
        found: Any,
        terminated: np.ndarray,
        state_labels: Labels | None = None,
        action_labels: Labels | None = None,
    ) -> CodedRows:
        """Code the first columns of a table: those of states, actions and successors."""
        names = self.names["state"]
        width = len(names) + len(self.names["action"])
        state, action = found.columns[: len(names)], found.columns[len(names) : width]
        following = found.columns[width : width + len(names)]
        types = self._state_types(state, following, terminated)
        given = None if state_labels is None else vocabulary(state_labels, *names)
        states, codes, successor = code_states(
            [cast(column, kind) for column, kind in zip(state, types)],
            [cast(column, kind) for column, kind in zip(following, types)],
            terminated, given, names,
        )  # fmt: skip
        assert successor is not None
        plays, played = self.code_actions(action, action_labels)
        return CodedRows(states, plays, codes, played, successor, tuple(types))

    def code_actions(
        self, columns: Sequence[Any], labels: Labels | None = None
    ) -> tuple[Vocabulary, np.ndarray]:
        """Code the columns of the actions."""
        names = self.names["action"]
        typed = [
            cast(column, _label_type([column], name) if self._is_loose(name) else None)
            for column, name in zip(columns, names)
        ]
        return _coded(typed, labels, names)

    def _state_types(
        self, state: list[Any], following: list[Any], terminated: np.ndarray
    ) -> list[Any]:
        """The type that the values of each part of the state decide, None where it has one.

        A CSV file has no types: states and successors show one together. What lies beyond an end is
        no state, and decides nothing; it is dropped from `following`.
        """
        import pyarrow as pa
        from pyarrow import compute

        beyond = terminated | np.logical_or.reduce(
            [from_arrow(column.is_null()) for column in following]
        )
        ended = to_arrow(beyond)
        types: list[Any] = [None] * len(state)
        names = self.names["state"]
        for i, other in enumerate(self.names["next_state"] or names):
            if self._is_loose(names[i], other):
                nothing = pa.nulls(len(beyond), following[i].type)
                following[i] = compute.if_else(ended, nothing, following[i])
                types[i] = _label_type([state[i], following[i]], names[i])
        return types

    def _is_loose(self, *columns: str) -> bool:
        """Whether values decide the type of columns that share their labels."""
        return any(column in self.engine.loose for column in columns) and not any(
            column in self.bins
            or (self.engine.kinds[column] == TEXT and column not in self.engine.loose)
            for column in columns
        )

    def fields(
        self, state_labels: Labels | None = None, action_labels: Labels | None = None
    ) -> dict[str, Any]:
        """All rows by episode and step: the fields of a Log."""
        found = self._ordered
        shared = self._shared(found)
        coded = self.code(found, shared["terminated"], state_labels, action_labels)
        return shared | {
            "state": coded.state,
            "action": coded.action,
            "next_state": coded.successor,
            "states": coded.states,
            "actions": coded.actions,
            "bins": self.bins,
        }

    @property
    def _ordered(self) -> Any:
        """All rows by episode and step: see `queries.rows_query`."""
        return self.ask(queries.rows_query(self.x, self._by_number))

    @property
    def _by_number(self) -> bool:
        """Whether episodes are named by text that may show numbers."""
        return not self.engine.loose.isdisjoint(self.names["episode_id"])

    def _shared(self, found: Any) -> dict[str, Any]:
        """What rows have whether their states are labels or vectors, checked for their order."""
        first, repeated, goes_on = (_flags(column) for column in found.columns[-3:])
        self.check_order(int(repeated.sum()), int(goes_on.sum()))
        ended, cut, reward, prob = found.columns[-7:-3]
        rewards = floats(reward)
        self.check_rewards(rewards)
        terminated = _flags(ended)
        last = np.append(first[1:], True)
        return {
            "reward": rewards,
            "terminated": terminated,
            "truncated": (_flags(cut) | last) & ~terminated,
            "episode_starts": np.append(np.flatnonzero(first), len(first)),
            "action_prob": None if self.x.action_prob is None else floats(prob),
        }

    @property
    def time_column(self) -> str | None:
        """The column of the steps if they are times, which then order the episodes too."""
        times = self._step_kind == TIME or self.steps_are_times
        return self.names["step"][0] if times else None

    def episode_order(self, column: str) -> np.ndarray:
        """Numbers of the episodes [E], as `fields` has them, by the first value of a column.

        Numbers or times; episodes of equal value stay in the order of their names.
        """
        if column not in self.engine.kinds:
            columns = list(self.engine.columns)
            raise InputError(
                f"the log has no column {column!r}{did_you_mean(column, columns)}: its columns are "
                f"{some(columns, 20)}; name one that orders the episodes"
            )
        for step_type in STEP_TYPES:
            value = Reader(self.engine, {}, step_type).step(column)
            whole = replace(self.x, kept=self.kept)
            found = self.engine.table(queries.places_query(whole, value, self._by_number))
            place, bad = (from_arrow(column.cast("int64")) for column in found.columns)
            if not bad.any():
                return np.argsort(place, kind="stable")
        raise InputError(
            f"column {column!r} orders the episodes, but {int(bad.sum())} of its values are "
            f"missing or neither numbers nor times: fix or drop those rows, or name another column"
        )


def _kept(
    engine: Engine,
    names: Mapping[str, tuple[str, ...]],
    bins: Mapping[str, Any],
    handling: Handling,
) -> Kept:
    """The rows that count, by what is to be done with missing values and copies."""
    read = Reader(engine, dict.fromkeys(bins), handling=handling)
    episode = quoted(names["episode_id"][0]) if names["episode_id"] else None
    return Kept.of(
        [column for mine in names.values() for column in mine], engine.kinds,
        read.incomplete(names) if handling.missing == DROP else None, episode,
        handling.duplicates == DROP,
    )  # fmt: skip


def _coded(
    columns: Sequence[Any], labels: Labels | None, names: Sequence[str]
) -> tuple[Vocabulary, np.ndarray]:
    if labels is None:
        return factorize(list(columns), *names)
    given = vocabulary(labels, *names)
    return given, encode(list(columns), given, "actions")


def _label_type(columns: Sequence[Any], name: str) -> Any:
    """The type of whole numbers that labels show; none among numbers may be NaN."""
    import pyarrow.compute as pc

    kind = label_type(columns)
    if kind == "double" and any(pc.any(pc.is_nan(c.cast(kind))).as_py() for c in columns):
        raise InputError(
            f"column {name!r} holds nan among numbers, expected whole numbers: fill or drop those "
            "rows"
        )
    return kind


def cast(column: Any, kind: Any) -> Any:
    """A column of text as the numbers it shows, unchanged where `kind` is None."""
    return column if kind is None else column.cast(kind)


def _flags(column: Any) -> np.ndarray:
    return from_arrow(column.cast("bool"), missing=False)


def floats(column: Any) -> np.ndarray:
    """A column of numbers in 64 bits, NaN where there is none."""
    return np.array(from_arrow(column.cast("float64")))


def _float(value: Any) -> float:
    return math.nan if value is None else float(value)
