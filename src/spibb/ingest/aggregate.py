"""A log where it lies, counted by SQL: only as many rows come back as there are outcomes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from spibb.arrays import from_arrow
from spibb.columns import NO_STATE
from spibb.counts import Counts
from spibb.kernels.units import centre_and_unit
from spibb.labels import factorize, translate
from spibb.log import Log
from spibb.sql import queries
from spibb.sql.coding import CodedRows, Labels, cast
from spibb.sql.engines import open_arrow
from spibb.sql.typed import TypedTable
from spibb.tables import log_table

ORDER_UP_TO = 2_000_000
"""Rows up to which a log is always put in order, which checks every single row."""


@dataclass(frozen=True, eq=False)
class LogTable(TypedTable):
    """A log where it lies, as rows or as counts."""

    @classmethod
    def of(cls, log: Log) -> LogTable:
        """The table of a log in memory."""
        return cls.open(open_arrow(log_table(log)), log.columns, {})

    def log(self, state_labels: Labels | None = None, action_labels: Labels | None = None) -> Log:
        """All rows."""
        return Log(**self.fields(state_labels, action_labels))

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
        outcomes = self._outcomes(found, len(self.x.ends), 4)
        if not outcomes.balance(n_starts, self.profile.rows):
            return None
        return self._assemble(outcomes, self._starts(started, outcomes.coded))

    def _in_order(self) -> Counts:
        outcomes = self._outcomes(self.ask(queries.ordered_query(self.x, *self._scale)), 1, 6)
        self.check_order(int(outcomes.sums[:, 4].sum()), int(outcomes.sums[:, 5].sum()))
        starts = np.bincount(
            outcomes.coded.state, weights=outcomes.sums[:, 3], minlength=len(outcomes.coded.states)
        )
        return self._assemble(outcomes, starts.astype(np.int64))

    @property
    def _scale(self) -> tuple[float, float]:
        """Centre and unit of the rewards."""
        return centre_and_unit(*self.profile.reward_range)

    def _outcomes(self, found: Any, n_flags: int, n_sums: int) -> _Outcomes:
        flags = [
            np.asarray(column.to_pylist(), bool)
            for column in found.columns[-n_sums - n_flags : -n_sums]
        ]
        sums = [from_arrow(column.cast("float64")) for column in found.columns[-n_sums:]]
        return _Outcomes(self.coder.rows(found, flags[0]), flags[0], np.logical_or.reduce(flags),
                         np.column_stack(sums))  # fmt: skip

    def _starts(self, started: Any, coded: CodedRows) -> np.ndarray:
        """Episodes that begin in each state [S]."""
        columns = [cast(column, kind) for column, kind in zip(started.columns, coded.types)]
        where = translate(*factorize(columns, *self.names["state"]), coded.states, "states")
        n = from_arrow(started.column("n").cast("float64"))
        return np.bincount(where, weights=n, minlength=len(coded.states)).astype(np.int64)

    def _assemble(self, outcomes: _Outcomes, starts: np.ndarray) -> Counts:
        self.check_rewards(outcomes.sums[:, 1])
        coded, known = outcomes.coded, outcomes.known
        pair = coded.state.astype(np.int64) * len(coded.actions) + coded.action
        return Counts.from_outcomes(
            pair[known], coded.successor[known], outcomes.sums[known, :3], starts=starts,
            reward_range=self.profile.reward_range, states=coded.states, actions=coded.actions,
            bins=self.bins,
        )  # fmt: skip


@dataclass(frozen=True)
class _Outcomes:
    """Coded rows of an aggregation, their ends, and sums [K, …]: N, Σr, Σ((r − c)/u)², others."""

    coded: CodedRows
    terminated: np.ndarray
    ended: np.ndarray
    sums: np.ndarray

    @property
    def known(self) -> np.ndarray:
        return self.terminated | (self.coded.successor != NO_STATE)

    def balance(self, n_starts: int, rows: int) -> bool:
        """Whether as many begin as end, the lengths that the ends tell add up, and all go on."""
        n, steps = self.sums[self.ended, 0], self.sums[self.ended, 3]
        return bool(
            n.sum() == n_starts
            and n.sum() + steps.sum() == rows
            and (self.known | self.ended).all()
        )
