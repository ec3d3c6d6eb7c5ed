"""The columns of a log, typed and checked by SQL: one definition for rows and for counts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np

from spibb.arrays import from_arrow
from spibb.checks import did_you_mean, per_cent, some
from spibb.columns import EMPTY, UNIT
from spibb.errors import InputError
from spibb.irregular_tables import AS_LEVEL
from spibb.labels import Labels, factorize
from spibb.sql import queries
from spibb.sql.coding import Coder
from spibb.sql.engines import TEXT, TIME
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
from spibb.sql.located import LocatedTable, at
from spibb.time_order import TimeOrder, by_names

FIX = "fix or drop the row"
A_NUMBER, A_FLAG = f"a number: {FIX}", f"true/false, yes/no, t/f or 0/1: {FIX}"
WANTED = {
    "step": "a finite number, or a time like 2024-05-14 04:36:00, all with a time zone or none: "
    + FIX,
    "reward": A_NUMBER, "action_prob": A_NUMBER, "terminated": A_FLAG, "truncated": A_FLAG,
    UNIT: "text, or a whole number of 64 bits that is exact: turn the column into text",
}  # fmt: skip
A_LABEL = "text, or a whole number of 64 bits that is exact: bin the column or turn it into text"
A_NUMBER_TO_BIN = f"a number to bin: {FIX}"
FINITE = f"a finite number: {FIX}"
NUMBERS = (
    "numbers: dqn learns from numeric columns; name others as --state, or use an algorithm for "
    "labels, such as pi-b"
)
ONE_NAME = (
    "the number without .0, as other rows write it: they would be two episodes; write all of them "
    "alike"
)
STATES = ("state", "next_state")
POSSIBLE = "a number in (0, 1]: the logged action must have been possible"
ALL_LEFT_OUT = (
    "every episode has a missing value, so that none is left: fill them, or map fewer columns"
)


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

    def there(self, name: str, column: str) -> int:
        """How many values a column has that is called `name` with us."""
        return int(self.found.get(f"there {name} {column}", 0))

    def read(self, name: str, column: str) -> int:
        """How many of them can be read as what that is."""
        return int(self.found.get(f"read {name} {column}", self.there(name, column)))


@dataclass(frozen=True, eq=False)
class TypedTable(LocatedTable):
    """The columns of a log as typed SQL expressions, its values checked, its rows coded."""

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
        if self.draw is not None:
            _ = self.whole.profile  # rows that were not drawn are checked too
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
        """The types that steps may be read as; that of the first step comes first."""
        if self._step_kind != TEXT:
            return STEP_TYPES[:1]
        read = Reader(self.engine, {}, STEP_NUMBER).step(self.names["step"][0])
        first = self.ask(f"SELECT {read} AS t FROM {self.counting.table} LIMIT 1").column(0)
        is_number = len(first) == 0 or first[0].as_py() is not None
        return STEP_TYPES if is_number else (*STEP_TYPES[1:], STEP_NUMBER)

    @property
    def levels(self) -> frozenset[str]:
        """The columns in which a missing value is a label of its own."""
        return self._levels(self.profile)

    def _expressions(self, read: Reader) -> Expressions:
        return expressions(read, self.names, self.counting, numbers=self.numbers)

    @property
    def _step_kind(self) -> str | None:
        """The kind of the column of the steps, None without one."""
        return self.engine.kinds[self.names["step"][0]] if self.names["step"] else None

    def _unread_steps(self, profile: Profile) -> int:
        return sum(profile.there("step", c) - profile.read("step", c) for c in self.names["step"])

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
            if name != "next_state" and profile.there(name, column) < profile.rows
        )

    def _ask(self, read: Reader) -> Profile:
        fields, query = queries.profile_query(self._expressions(read), self.names, read)
        values = [column[0].as_py() for column in self.ask(query).columns]
        profile = Profile(dict(zip(fields, values)))
        if profile.rows == 0:
            reason = EMPTY if not self.left_out.rows else ALL_LEFT_OUT
            raise InputError(f"{at(self.engine)}{reason}")
        return profile

    @property
    def steps_are_times(self) -> bool:
        """Whether steps in text read as times."""
        return self._step_kind == TEXT and STEP_NUMBER not in self.x.step

    def _check(self, read: Reader, profile: Profile) -> None:
        """Refuse what is missing or cannot be read, and name its first row."""
        x = self._expressions(read)
        lacking, levels = self._lacking(profile), self._levels(profile)
        for name, column, expression in x.by_column(self.names):
            there = read.present(name, column)
            if column in lacking and (column not in levels or name == UNIT):
                self._faults.refuse_missing(column, f"{there} IS NULL", lacking)
            if profile.read(name, column) < profile.there(name, column):
                label = (
                    self._wanted_state(profile.read(name, column)) if name in STATES else A_LABEL
                )
                wanted = A_NUMBER_TO_BIN if column in self.bins else WANTED.get(name, label)
                unread = f"{there} IS NOT NULL AND ({expression}) IS NULL"
                self._faults.refuse(name, column, unread, wanted)
        if x.action_prob is not None and profile.found["possible"] < profile.rows:
            impossible = f"NOT ({possible(x.action_prob)})"
            largest = self.ask(f"SELECT MAX({x.action_prob}) AS p FROM {self.counting.table}")
            wanted = POSSIBLE + per_cent(_float(largest.column(0)[0].as_py()))
            self._faults.refuse("action_prob", self.names["action_prob"][0], impossible, wanted)
        self.check_rewards(profile.reward_range)
        if 0 < profile.found.get("pointed", 0) < profile.rows:
            self._check_names(self.names["episode_id"][0])

    def _check_names(self, column: str) -> None:
        """Refuse a number that names an episode in two ways: one episode would be two."""
        written = queries.twice_written(self.counting.table, column)
        if self.ask(queries.times_query(self.counting, written)).column(0)[0].as_py():
            self._faults.refuse("episode_id", column, written, ONE_NAME)

    def _wanted_state(self, read: int) -> str:
        """What a state's column should hold, of which as many values could be `read`."""
        if not self.numbers:
            return A_LABEL
        return FINITE if read else NUMBERS

    def check_rewards(self, numbers: Any) -> None:
        """Refuse rewards that are not finite, found by themselves, their extremes or their sums.

        The extremes in a Parquet file's footer overlook NaN; finite rewards may add up to infinity.
        """
        reward = Reader(self.engine, {}).number(self.names["reward"][0], "reward")
        bad = f"NOT ({finite(reward)})"
        if not np.isfinite(numbers).all() and self.number(queries.times_query(self.counting, bad)):
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

    @property
    def coder(self) -> Coder:
        """What turns labels into codes."""
        return Coder(self.engine, self.names, self.bins, self.handling.missing == AS_LEVEL)

    def fields(
        self, state_labels: Labels | None = None, action_labels: Labels | None = None
    ) -> dict[str, Any]:
        """All rows by episode and step: the fields of a Log."""
        found = self.ordered
        shared = self.shared(found)
        coded = self.coder.rows(found, shared["terminated"], state_labels, action_labels)
        return shared | {
            "state": coded.state,
            "action": coded.action,
            "next_state": coded.successor,
            "states": coded.states,
            "actions": coded.actions,
            "bins": self.bins,
            "one_per": self.names[UNIT],
            "ends_assumed": self.x.terminated is None,
        }

    @property
    def ordered(self) -> Any:
        """All rows by episode and step: see `queries.rows_query`."""
        engine = self.engine if self.copy is None else self.copy
        return engine.rows(queries.rows_query(self.x, self._by_number, engine.keeps_order))

    @property
    def _by_number(self) -> bool:
        """Whether episodes are named by text, which may show numbers."""
        kinds = [self.engine.kinds.get(name) for name in self.names["episode_id"]]
        return self.engine.casts_text and TEXT in kinds

    def shared(self, found: Any) -> dict[str, Any]:
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

    def time_order(self, column: str | None = None) -> TimeOrder:
        """The order of the episodes in time, as far as the table tells it.

        By the first value of a column in each episode; without one by the step where steps are
        times, and else by the names of the episodes.
        """
        column = column or self.time_column
        if column is not None:
            return TimeOrder(self.episode_order(column), f"by the first {column} of each")
        how = f"by {(*self.names['episode_id'], 'row')[0]}"
        return by_names(self.episode_names(), how) if self._text_names else TimeOrder(None, how)

    @property
    def _text_names(self) -> bool:
        """Whether the names of the episodes are neither numbers nor times."""
        found = self.names["episode_id"]
        return len(found) == 1 and self.engine.kinds.get(found[0]) == TEXT

    def episode_names(self) -> list[str]:
        """The names of the episodes [E] as text, in the order that `fields` has them."""
        whole = replace(self.x, kept=self.kept)
        found = self.engine.table(queries.names_query(whole, self._by_number))
        return [str(name) for name in found.columns[0].to_pylist()]

    def units(self) -> np.ndarray:
        """Codes of the units [E] of single decisions, in the order that `fields` has them."""
        found = self.ask(queries.units_query(self.x))
        return factorize(found.columns, *self.names[UNIT])[1]

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


def _flags(column: Any) -> np.ndarray:
    return from_arrow(column.cast("bool"), missing=False)


def floats(column: Any) -> np.ndarray:
    """A column of numbers in 64 bits, NaN where there is none."""
    return np.array(from_arrow(column.cast("float64")))


def _float(value: Any) -> float:
    return math.nan if value is None else float(value)
