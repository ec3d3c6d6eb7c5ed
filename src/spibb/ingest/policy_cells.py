"""A policy from a table with a row per pair: its columns, labels and probabilities, checked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spibb.arrays import as_floats
from spibb.checks import did_you_mean, some
from spibb.counts import Counts
from spibb.errors import InputError
from spibb.ingest.cells import Cells
from spibb.labels import Label, Vocabulary, factorize
from spibb.log import Log
from spibb.policy import Policy

if TYPE_CHECKING:
    import pyarrow as pa


MAPPING = "columns in Python; --state and --action of commands that read a log"


def policy_of_cells(
    cells: Cells,
    what: str,
    state_names: tuple[str, ...],
    action_names: tuple[str, ...],
    log: Log | Counts | None = None,
) -> Policy:
    """The policy of a table with columns of the state, of the action, and `probability`."""
    present = cells.table.column_names
    for name in (*state_names, *action_names, "probability"):
        if name.lower() in cells.repeated or present.count(name) > 1:
            raise InputError(f"{what} has the column {name!r} twice: keep one")
        if name not in present:
            hint = did_you_mean(name, present)
            others = "" if name == "probability" else f", or map it ({MAPPING})"
            raise InputError(
                f"{what} has no column {name!r}{hint}: its columns are {some(present, 20)}; "
                f"rename one{others}"
            )
    states, state = _read_labels(cells, state_names, log.states if log else None, what)
    actions, action = _read_labels(cells, action_names, log.actions if log else None, what)
    if log is not None:
        check_covers(states, log, what)
    probs = np.zeros((len(states), len(actions)))
    _check_unique(state, action, states, actions, what)
    probs[state, action] = _probabilities(cells, what)
    return Policy(probs, states, actions, what)


def _read_labels(
    cells: Cells, names: tuple[str, ...], like: Vocabulary | None, what: str
) -> tuple[Vocabulary, np.ndarray]:
    """Labels and codes of the rows, with the types of the log's labels."""
    columns = []
    for part, name in enumerate(names):
        known = like is not None and len(like) > 0
        label = (like[0][part] if len(names) > 1 else like[0]) if like and known else None
        column = cells.column(name, text=isinstance(label, str))
        if column.null_count:
            raise InputError(f"{what}: column {name!r} has {column.null_count} empty entries")
        columns.append(_cast(column, label, name, what) if known else column)
    return factorize(columns, *names)


def _cast(column: pa.ChunkedArray, label: Label, name: str, what: str) -> pa.ChunkedArray:
    """The column with the type of one of the log's labels."""
    import pyarrow as pa

    try:
        return column.cast(_arrow_type(label))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise InputError(
            f"{what}: column {name!r} is not of the type that the log has "
            f"({type(label).__name__}): write the labels as the log does"
        ) from None


def _arrow_type(label: Label) -> pa.DataType:
    import pyarrow as pa

    kinds = {str: pa.string(), bool: pa.bool_()}
    return kinds.get(type(label), pa.int64())


def _probabilities(cells: Cells, what: str) -> np.ndarray:
    """The column of probabilities; NaN where an entry is empty."""
    import pyarrow as pa

    try:
        return as_floats(cells.numbers("probability"))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise InputError(
            f"{what}: column 'probability' holds something other than numbers"
        ) from None


def check_covers(states: Vocabulary, log: Log | Counts, what: str) -> None:
    """Refuse a policy that lacks a state of the log."""
    known = states.named(log.states.names).index
    missing = [label for label in log.states.labels if label not in known]
    if missing:
        raise InputError(
            f"{what} has no row for state {some(missing)} ({len(missing)} of the log's "
            f"{len(log.states)} states): add the rows, or drop those states from the log"
        )


def _check_unique(
    state: np.ndarray, action: np.ndarray, states: Vocabulary, actions: Vocabulary, what: str
) -> None:
    pair = state.astype(np.int64) * len(actions) + action
    values, times = np.unique(pair, return_counts=True)
    if (times > 1).any():
        s, a = divmod(int(values[np.argmax(times > 1)]), len(actions))
        raise InputError(
            f"{what} lists state {states[s]!r}, action {actions[a]!r} more than once: keep one"
        )
