"""VectorLog: a log whose states are vectors of numbers, read by the same rules as any other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from spibb.checks import callable_
from spibb.errors import InputError
from spibb.ingest import open_engine
from spibb.ingest.mapping import ColumnNames
from spibb.irregular_tables import AS_LEVEL, ERROR, Handling
from spibb.labels import Vocabulary
from spibb.log import Transitions
from spibb.sql.typed import TypedTable, floats
from spibb.tables import OnProgress
from spibb.time_order import TimeOrder


@dataclass(frozen=True, eq=False)
class VectorLog(Transitions):
    """Transitions ⟨x_j, a_j, r_j, x'_j⟩ with x in R^d, sorted by episode and step.

    `state` and `next_state` [N, d] have the columns `features`; a next state is NaN where nothing
    follows: the process ended (`terminated`), or the record stops without saying what came next.
    `action` [N] are codes into `actions`; `truncated`, `episode_starts` [E + 1], `action_prob`
    and `untimed` are those of a `Log`.

    >>> import pyarrow as pa
    >>> frame = pa.table({"episode_id": [1, 1], "step": [0, 1], "x": [0.5, 1.5], "action": [0, 1],
    ...                   "reward": [0, 1], "terminated": [False, True]})
    >>> found = spibb.read_vectors(frame, columns={"state": "x"})
    >>> found.state.tolist(), found.next_state.tolist()
    ([[0.5], [1.5]], [[1.5], [nan]])
    """

    state: np.ndarray
    action: np.ndarray
    reward: np.ndarray
    next_state: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    episode_starts: np.ndarray
    features: tuple[str, ...]
    actions: Vocabulary
    action_prob: np.ndarray | None = None
    untimed: bool = field(default=False, kw_only=True)

    def _facts(self) -> Mapping[str, Any]:
        return self._sized(features=len(self.features), actions=len(self.actions))

    @cached_property
    def known(self) -> np.ndarray:
        """bool [N]: what followed is known, so that the transition can be learnt from."""
        return np.asarray(self.terminated | np.isfinite(self.next_state).all(axis=1))


@dataclass(frozen=True, eq=False)
class VectorTable(TypedTable):
    """A log in place, whose states are numbers."""

    numbers: ClassVar[bool] = True

    def log(self, order: TimeOrder | None = None) -> VectorLog:
        """All rows: next states and cuts by the rules of `TypedTable.fields`.

        Episodes are in the order of time; None takes what the table tells of it.
        """
        found = self.ordered
        shared = self.shared(found)
        d = len(self.names["state"])
        width = d + len(self.names["action"])
        actions, action = self.coder.actions(found.columns[d:width])
        following = _matrix(found.columns[width : width + d])
        following[shared["terminated"]] = np.nan
        rows = VectorLog(
            state=_matrix(found.columns[:d]), action=action, next_state=following,
            features=self.names["state"], actions=actions, **shared,
        )  # fmt: skip
        return (order or self.time_order()).of(rows)


def read_vectors(
    source: Any,
    *,
    columns: ColumnNames | None = None,
    progress: OnProgress | None = None,
    bandit: bool = False,
    missing: str = ERROR,
    duplicates: str = ERROR,
) -> VectorLog:
    """Read a log whose states are vectors of numbers.

    Parameters:
        source: whatever `open_log` takes: a file, a pattern, a folder, a dataframe, a table.
        columns: our column names mapped to yours, as in `read_log`; the state's are numeric:
            ``{"state": ["x1", "x2"]}``. Next states are in `next_x1` and `next_x2`, in the columns
            mapped to `next_state`, or in the next row of the episode.
        progress: called now and then with the share of a query that is done, from 0 to 1.
        bandit: whether every row is an episode of one step that ends.
        missing: ``"error"`` or ``"drop"``, as in `count_log`; a missing number is not a level.
        duplicates: ``"error"`` or ``"drop"``, as in `count_log`.

    Returns:
        The rows by episode and step.

    >>> import pyarrow as pa
    >>> frame = pa.table({"episode_id": [1, 1], "step": [0, 1], "x": [0.5, 1.5], "y": [3, 4],
    ...                   "action": [0, 1], "reward": [0, 1], "terminated": [False, True]})
    >>> spibb.read_vectors(frame, columns={"state": ["x", "y"]})
    VectorLog(transitions=2, episodes=1, features=2, actions=2, rewards=0 to 1)
    """
    return open_vectors(
        source, columns=columns, progress=progress, bandit=bandit, missing=missing,
        duplicates=duplicates,
    ).log()  # fmt: skip


def open_vectors(
    source: Any,
    *,
    columns: ColumnNames | None = None,
    progress: OnProgress | None = None,
    bandit: bool = False,
    missing: str = ERROR,
    duplicates: str = ERROR,
) -> VectorTable:
    """Find the columns of a log of vectors in place; see `read_vectors`."""
    if missing == AS_LEVEL:
        raise InputError(
            "missing is 'as-level', which is for labels, and the columns of the state are numbers: "
            "fill them, or use 'drop'"
        )
    callable_("progress", progress, "progress=print")
    handling = Handling(bandit, missing, duplicates)
    columns = {} if columns is None else columns
    return VectorTable.open(open_engine(source, progress), columns, {}, handling)


def _matrix(columns: Any) -> np.ndarray:
    return np.column_stack([floats(column) for column in columns])
