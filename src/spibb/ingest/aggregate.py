"""A log in place, counted by SQL: only as many rows come back as there are outcomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spibb.arrays import from_arrow, release_memory
from spibb.columns import NO_STATE, UNIT
from spibb.counts import Counts
from spibb.kernels.units import centre_and_unit
from spibb.labels import Labels, factorize, translate
from spibb.log import Log
from spibb.sql import queries
from spibb.sql.coding import CodedRows, cast
from spibb.sql.engines import open_arrow
from spibb.sql.typed import TypedTable
from spibb.tables import log_table
from spibb.time_order import TimeOrder

ORDER_UP_TO = 2_000_000
"""Rows up to which a log is always put in order, which checks every single row."""


@dataclass(frozen=True, eq=False)
class LogTable(TypedTable):
    """A log where it is stored; read it as rows or as counts.

    >>> _ = log.save("log.csv")
    >>> table = spibb.open_log("log.csv")
    >>> table.counts().pairs.tolist(), table.log().n_episodes
    ([[1, 2], [2, 1]], 3)
    """

    @classmethod
    def of(cls, log: Log) -> LogTable:
        """The table of a log in memory."""
        return cls.open(open_arrow(log_table(log)), log.columns, {})

    def log(
        self,
        state_labels: Labels | None = None,
        action_labels: Labels | None = None,
        order: TimeOrder | None = None,
    ) -> Log:
        """All rows, with the episodes in the order of time; None takes what the table tells."""
        found = Log(**self.fields(state_labels, action_labels))
        release_memory()
        return (order or self.time_order()).of(found)

    def counts(self) -> Counts:
        """Count, in the order of the rows where that is needed."""
        if self.profile.rows > ORDER_UP_TO and not self.x.single:
            counted = self._in_any_order()
            if counted is not None:
                return counted
        return self._in_order()

    def _in_any_order(self) -> Counts | None:
        """One aggregation without sorting, None where the consistency checks fail."""
        if not self.x.next_state or self.x.terminated is None or self.time_column is not None:
            return None
        first = self.profile.first_step
        started = self.ask(queries.starts_query(self.x, first, self.engine.streams))
        n_starts, descents = (
            sum(started.column(name).cast("int64").to_pylist()) for name in ("n", "descents")
        )
        if descents and self.number(queries.beginnings_query(self.x, first)) > 1:
            return None
        found = self.ask(queries.outcomes_query(self.x, first, *self._scale))
        outcomes = self._outcomes(found, len(self.x.ends), queries.OUTCOME_SUMS)
        if not outcomes.balance(n_starts, self.profile.rows):
            return None
        return self._assemble(outcomes, self._starts(started, outcomes.coded))

    def _in_order(self) -> Counts:
        found = self.ask(queries.ordered_query(self.x, *self._scale))
        outcomes = self._outcomes(found, 1, queries.ORDERED_SUMS)
        sums, coded = outcomes.sums, outcomes.coded
        self.check_order(int(sums["repeated"].sum()), int(sums["goes_on"].sum()))
        starts = np.bincount(coded.state, weights=sums["starts"], minlength=len(coded.states))
        return self._assemble(outcomes, starts.astype(np.int64))

    @property
    def _scale(self) -> tuple[float, float]:
        """Centre and unit of the rewards."""
        return centre_and_unit(*self.profile.reward_range)

    def _outcomes(self, found: Any, n_flags: int, names: Sequence[str]) -> _Aggregated:
        """What an aggregation found: labels, flags, and last the sums of these names."""
        keys = len(found.columns) - len(names)
        flags = [np.asarray(c.to_pylist(), bool) for c in found.columns[keys - n_flags : keys]]
        sums = (from_arrow(column.cast("float64")) for column in found.columns[keys:])
        return _Aggregated(self.coder.rows(found, flags[0]), flags[0], np.logical_or.reduce(flags),
                         dict(zip(names, sums, strict=True)))  # fmt: skip

    def _starts(self, started: Any, coded: CodedRows) -> np.ndarray:
        """Episodes that begin in each state [S]."""
        columns = [cast(column, kind) for column, kind in zip(started.columns, coded.types)]
        where = translate(*factorize(columns, *self.names["state"]), coded.states, "states")
        n = from_arrow(started.column("n").cast("float64"))
        return np.bincount(where, weights=n, minlength=len(coded.states)).astype(np.int64)

    def _assemble(self, outcomes: _Aggregated, starts: np.ndarray) -> Counts:
        self.check_rewards(outcomes.sums["reward"])
        coded, known = outcomes.coded, outcomes.known
        moments = np.column_stack([outcomes.sums[name] for name in ("n", "reward", "squares")])
        pair = coded.state.astype(np.int64) * len(coded.actions) + coded.action
        return Counts.from_outcomes(
            pair[known], coded.successor[known], moments[known], starts=starts,
            reward_range=self.profile.reward_range, states=coded.states, actions=coded.actions,
            bins=self.bins, one_per=self.names[UNIT],
        )  # fmt: skip


@dataclass(frozen=True)
class _Aggregated:
    """Coded rows of an aggregation, their ends, and sums [K] by name."""

    coded: CodedRows
    terminated: np.ndarray
    ended: np.ndarray
    sums: Mapping[str, np.ndarray]

    @property
    def known(self) -> np.ndarray:
        return self.terminated | (self.coded.successor != NO_STATE)

    def balance(self, n_starts: int, rows: int) -> bool:
        """Whether as many begin as end, the lengths that the ends tell add up, and all go on."""
        n, steps = self.sums["n"][self.ended], self.sums["steps"][self.ended]
        return bool(
            n.sum() == n_starts
            and n.sum() + steps.sum() == rows
            and (self.known | self.ended).all()
        )
