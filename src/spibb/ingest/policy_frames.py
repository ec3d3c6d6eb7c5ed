"""A policy given as a table in memory: its labels are read, never its order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spibb.columns import to_arrow_table
from spibb.counts import Counts
from spibb.errors import InputError
from spibb.ingest.cells import Cells
from spibb.ingest.policy_cells import policy_of_cells
from spibb.labels import Label
from spibb.log import Log
from spibb.policy import Policy

WHAT = "baseline table"
FORMS = (
    "give the columns state, action and probability, or one row per state and one column per "
    "action, with the states in the index or in a column 'state'"
)


def is_frame(given: Any) -> bool:
    """Whether something is a table with named columns (pandas, Polars, Arrow …)."""
    return hasattr(type(given), "columns")


def policy_from_frame(frame: Any, log: Log | Counts) -> Policy:
    """Read any dataframe that narwhals knows, with the labels of a log.

    Long: columns of the state and of the action, as in the log, and `probability` (or `prob`).
    Wide: one column per action, and the states in columns of their own or in pandas' index.
    """
    import narwhals as nw

    try:
        native = nw.from_native(frame)
    except TypeError:
        raise InputError(f"{WHAT} is a {type(frame).__name__}, not a dataframe: {FORMS}") from None
    eager = native.collect() if isinstance(native, nw.LazyFrame) else native
    states, actions = log.states.names, log.actions.names
    if {*states, *actions} <= set(eager.columns):
        table = to_arrow_table(eager)
        if "probability" not in table.column_names and "prob" in table.column_names:
            places = ["probability" if c == "prob" else c for c in table.column_names]
            table = table.rename_columns(places)
    else:
        table = _long(*_wide(eager, states), states, actions)
    return policy_of_cells(Cells(table, frozenset()), WHAT, states, actions, log)


def _wide(eager: Any, names: Sequence[str]) -> tuple[list[Label], list[Label], list[list[float]]]:
    """States, actions and the columns of a wide table."""
    import narwhals as nw

    columns = {name: series.to_list() for name, series in zip(eager.columns, eager.iter_columns())}
    if set(names) <= set(columns):
        parts = [columns.pop(name) for name in names]
        states = parts[0] if len(parts) == 1 else list(zip(*parts))
    else:
        index = nw.maybe_get_index(eager)
        if index is None:
            raise InputError(f"{WHAT} does not say which state a row belongs to: {FORMS}")
        states = list(index)
    if not columns:
        raise InputError(f"{WHAT} has no column for any action: {FORMS}")
    return states, list(columns), list(columns.values())


def _long(
    states: list[Label],
    actions: list[Label],
    columns: list[list[float]],
    state_names: Sequence[str],
    action_names: Sequence[str],
) -> Any:
    """The table `state, action, probability` of a wide one."""
    import pyarrow as pa

    state = [label for _ in actions for label in states]
    action = [label for label in actions for _ in states]
    parts = {**_parts(state, state_names), **_parts(action, action_names)}
    try:
        numbers = pa.array(
            [p for column in columns for p in column], pa.float64(), from_pandas=True
        )
        return pa.table(parts | {"probability": numbers})
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        raise InputError(f"{WHAT} holds something other than numbers: {FORMS}") from None


def _parts(labels: list[Label], names: Sequence[str]) -> dict[str, list[Label]]:
    """One list per column that a label spans."""
    if len(names) == 1:
        return {names[0]: labels}
    if any(not isinstance(label, tuple) or len(label) != len(names) for label in labels):
        raise InputError(
            f"{WHAT} names {labels[0]!r} where the log has {' and '.join(names)}: {FORMS}"
        )
    return dict(zip(names, map(list, zip(*labels))))
