"""A log where it lies, counted by SQL: only as many rows come back as there are outcomes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np

from spibb.binning import Bins
from spibb.checks import InputError, some
from spibb.columns import EMPTY, NO_STATE, Columns, code_states
from spibb.counts import Counts
from spibb.ingest import queries
from spibb.ingest.engines import TIME, Engine, quoted
from spibb.ingest.reading import numbers_if_all
from spibb.labels import Label, Vocabulary, factorize
from spibb.log import Log

ORDER_UP_TO = 2_000_000
"""Rows up to which a log is always put in order, which checks every single row."""


@dataclass(frozen=True, eq=False)
class LogTable:
    """A log where it lies: an engine, the columns behind our names, and bins."""

    engine: Engine
    names: Mapping[str, tuple[str, ...]]
    bins: Mapping[str, Bins]

    @cached_property
    def rows(self) -> int:
        """How many there are."""
        return self._number("SELECT COUNT(*) AS n FROM log")

    @cached_property
    def x(self) -> queries.Expressions:
        """The columns as SQL expressions; steps in text are numbers, or else times."""
        return self._profiled[0]

    @cached_property
    def profile(self) -> Profile:
        """Row count and ranges, after the check that no value is missing."""
        return self._profiled[1]

    @cached_property
    def _profiled(self) -> tuple[queries.Expressions, Profile]:
        x = queries.expressions(self.engine, self.names, self.bins)
        profile = self._ask(x)
        if profile.read["step"] < profile.there[self.names["step"][0]]:
            by_time = queries.expressions(
                self.engine, self.names, self.bins, step_type=queries.STEP_TIME
            )
            timed = self._ask(by_time)
            if timed.read["step"] > profile.read["step"]:
                x, profile = by_time, timed
        profile.check(self.names)
        return x, profile

    def _ask(self, x: queries.Expressions) -> Profile:
        names = {name: columns for name, columns in self.names.items() if name != "next_state"}
        columns = tuple((name, column) for name in names for column in names[name])
        fields, query = queries.profile_query(x, tuple(column for _, column in columns))
        values = [column[0].as_py() for column in self.engine.table(query).columns]
        return Profile.of(dict(zip(fields, values)), columns)

    def counts(self) -> Counts:
        """Count, in the order of the rows where that is needed."""
        if self.profile.rows > ORDER_UP_TO:
            counted = self._in_any_order()
            if counted is not None:
                return counted
        return self._in_order()

    def _in_any_order(self) -> Counts | None:
        """One aggregation without sorting, None where the books do not balance."""
        step = self.engine.kinds[self.names["step"][0]]
        if not self.x.next_state or step == TIME or queries.STEP_TIME in self.x.step:
            return None
        first = self.profile.first_step
        started = self.engine.table(queries.starts_query(self.x, first, self.engine.streams))
        n_starts, descents = (
            sum(started.column(name).cast("int64").to_pylist()) for name in ("n", "descents")
        )
        if descents and self._number(queries.beginnings_query(self.x, first)) > 1:
            return None
        found = self.engine.table(queries.outcomes_query(self.x, first))
        outcomes = self._outcomes(found, len(self.x.ends), 4)
        if not outcomes.balance(n_starts, self.profile.rows):
            return None
        return self._assemble(outcomes, self._starts(started, outcomes))

    def _number(self, query: str) -> int:
        return int(self.engine.table(query).column(0)[0].as_py())

    def _in_order(self) -> Counts:
        outcomes = self._outcomes(self.engine.table(queries.ordered_query(self.x)), 1, 6)
        repeated, inside = outcomes.sums[:, 4].sum(), outcomes.sums[:, 5].sum()
        if repeated:
            raise InputError(
                f"{repeated:.0f} rows repeat a step of their episode, expected each (episode_id, "
                "step) once: drop or renumber them"
            )
        if inside:
            raise InputError(
                f"{inside:.0f} rows are terminated or truncated, but their episodes go on: give "
                "what follows its own episode_id"
            )
        starts = np.bincount(
            outcomes.state, weights=outcomes.sums[:, 3], minlength=len(outcomes.states)
        )
        return self._assemble(outcomes, starts.astype(np.int64))

    def _outcomes(self, found: Any, n_flags: int, n_sums: int) -> _Outcomes:
        width = len(self.names["state"])
        ends = [width, width + len(self.names["action"])]
        ends.append(ends[1] + width)
        labels = [self._labels(found.column(i), i, ends) for i in range(ends[2])]
        flags = [np.asarray(found.column(ends[2] + i).to_pylist(), bool) for i in range(n_flags)]
        terminated = flags[0]
        columns = Columns(labels[: ends[0]], None, np.empty(0), labels[ends[1] :], terminated,
                          None, None, None, None)  # fmt: skip
        states, state, following = code_states(columns, None, self.names["state"])
        actions, action = factorize(labels[ends[0] : ends[1]], *self.names["action"])
        assert following is not None
        sums = [column.cast("float64").to_numpy() for column in found.columns[-n_sums:]]
        return _Outcomes(state, action, following, terminated, np.logical_or.reduce(flags),
                         np.column_stack(sums), states, actions)  # fmt: skip

    def _labels(self, column: Any, position: int, ends: Sequence[int]) -> Any:
        """A column of labels, typed by its values where the file has no types."""
        names = (*self.names["state"], *self.names["action"], *self.names["next_state"])
        if not self.names["next_state"]:
            names = (*names, *self.names["state"])
        name = names[position]
        like = name if position < ends[1] else self.names["state"][position - ends[1]]
        loose = name in self.engine.loose and name not in self.bins and like not in self.bins
        return numbers_if_all(column) if loose else column

    def _starts(self, started: Any, outcomes: _Outcomes) -> np.ndarray:
        width = len(self.names["state"])
        labels = [self._labels(started.column(i), i, [width, width]) for i in range(width)]
        found, codes = factorize(labels, *self.names["state"])
        where = outcomes.states.codes(found.as_text_like(outcomes.states))[codes]
        n = started.column("n").cast("float64").to_numpy()
        return np.bincount(where, weights=n, minlength=len(outcomes.states)).astype(np.int64)

    def _assemble(self, outcomes: _Outcomes, starts: np.ndarray) -> Counts:
        if not np.isfinite(outcomes.sums[:, :3]).all():
            raise InputError(
                "reward holds NaN or numbers whose sum is infinite, expected finite numbers: mend "
                "or drop those rows"
            )
        known = outcomes.known
        pair = outcomes.state.astype(np.int64) * len(outcomes.actions) + outcomes.action
        return Counts.from_outcomes(
            pair[known], outcomes.successor[known], outcomes.sums[known, :3], starts=starts,
            reward_range=self.profile.reward_range, states=outcomes.states,
            actions=outcomes.actions, bins=self.bins,
        )  # fmt: skip

    def log(
        self,
        state_labels: Vocabulary | Sequence[Label] | None = None,
        action_labels: Vocabulary | Sequence[Label] | None = None,
    ) -> Log:
        """All rows."""
        import pyarrow as pa

        read = queries.Reader(self.engine, self.bins)
        parts = {column: quoted(column) for columns in self.names.values() for column in columns}
        for name in ("state", "action", "next_state"):
            like = self.names["action" if name == "action" else "state"]
            parts |= {c: read.label(c, other) for c, other in zip(self.names[name], like)}
        query = ", ".join(f"{text} AS {quoted(column)}" for column, text in parts.items())
        table = self.engine.table(f"SELECT {query} FROM log")
        loose = self.engine.loose
        typed = [numbers_if_all(table.column(c)) if c in loose else table.column(c) for c in parts]
        given = {name: columns for name, columns in self.names.items() if columns}
        log = Log.from_frame(
            pa.table(typed, names=list(parts)), columns=given, state_labels=state_labels,
            action_labels=action_labels,
        )  # fmt: skip
        return replace(log, bins=self.bins)


@dataclass(frozen=True)
class Profile:
    """How many rows there are, how many values each column has, and ranges.

    `read` counts the values that could be read, by our names and by columns of labels; `there`
    counts what the caller's columns hold.
    """

    rows: int
    reward_range: tuple[float, float]
    first_step: str
    read: Mapping[str, int]
    there: Mapping[str, int]
    prob_range: tuple[float, float]

    @classmethod
    def of(cls, found: Mapping[str, Any], columns: Sequence[tuple[str, str]]) -> Profile:
        """Read the one row of the profile query."""
        if found["rows"] == 0:
            raise InputError(EMPTY)
        readable = ("step", "reward", "terminated", "truncated", "action_prob")
        there = {column: found[f"column {column}"] for _, column in columns}
        labels = [column for name, column in columns if name in ("state", "action")]
        return cls(
            rows=found["rows"],
            reward_range=(_float(found["low"]), _float(found["high"])),
            first_step=_literal(found["first"]),
            read={name: found[name] for name in readable if name in found}
            | {column: found[f"label {i}"] for i, column in enumerate(labels)},
            there=there,
            prob_range=(_float(found.get("least", 1)), _float(found.get("most", 1))),
        )

    def check(self, names: Mapping[str, tuple[str, ...]]) -> None:
        """Name the column in which values are missing or not what they should be."""
        for column, n in self.there.items():
            if n < self.rows:
                raise InputError(
                    f"column {column!r} is missing in {self.rows - n} of {self.rows} rows: fill or "
                    "drop them"
                )
        wanted = {"step": "a number or a time", "reward": "a number", "action_prob": "a number",
                  "terminated": "true/false or 0/1", "truncated": "true/false or 0/1"}  # fmt: skip
        for name, n in self.read.items():
            if n < self.rows:
                raise InputError(
                    f"{name} holds something other than {wanted.get(name, 'a number to bin')} in "
                    f"{self.rows - n} of {self.rows} rows: mend the column "
                    f"{some(names.get(name, [name]))}"
                )
        self._check_ranges()

    def _check_ranges(self) -> None:
        if not all(map(math.isfinite, self.reward_range)):
            bad = next(x for x in self.reward_range if not math.isfinite(x))
            raise InputError(f"reward holds {bad}, expected finite numbers: mend or drop the rows")
        low, high = self.prob_range
        if not 0 < low <= high <= 1:
            bad = low if low <= 0 else high
            raise InputError(
                f"action_prob holds {bad:g}, expected numbers in (0, 1]: the logged action must "
                "have been possible"
            )


@dataclass(frozen=True)
class _Outcomes:
    """Coded rows of an aggregation: (state, action, successor), ends, and their sums [K, …].

    The sums are N, Σr, Σr², and what else the query asks for.
    """

    state: np.ndarray
    action: np.ndarray
    successor: np.ndarray
    terminated: np.ndarray
    ended: np.ndarray
    sums: np.ndarray
    states: Vocabulary
    actions: Vocabulary

    @property
    def known(self) -> np.ndarray:
        return self.terminated | (self.successor != NO_STATE)

    def balance(self, n_starts: int, rows: int) -> bool:
        """Whether as many begin as end, the lengths that the ends tell add up, and all go on."""
        n, steps = self.sums[self.ended, 0], self.sums[self.ended, 3]
        return bool(
            n.sum() == n_starts
            and n.sum() + steps.sum() == rows
            and (self.known | self.ended).all()
        )


def _float(value: Any) -> float:
    return math.nan if value is None else float(value)


def _literal(step: Any) -> str:
    return str(step) if isinstance(step, int | Decimal) else f"CAST('{step}' AS DOUBLE)"
