"""Files to logs and policies, read by DuckDB."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spibb.checks import InputError, did_you_mean, some
from spibb.labels import Label, Vocabulary, factorize
from spibb.log import Log
from spibb.policy import Policy

if TYPE_CHECKING:
    import pyarrow as pa

CSV = "header=true, skip=0, comment='', quote='\"', escape='\"', all_varchar=true"
"""All that DuckDB would guess but the separator: it drops lines that it takes for comments."""
READERS = {".csv": f"read_csv($path, {CSV})", ".parquet": "read_parquet($path)"}
REMEDIES = {
    ".csv": "check that it is whole, text in UTF-8, with one line of names, separated by commas",
    ".parquet": "check that it is a Parquet file, and whole",
}


def read_log(
    path: str | Path,
    *,
    columns: Mapping[str, str | Sequence[str]] | None = None,
    state_labels: Vocabulary | Sequence[Label] | None = None,
    action_labels: Vocabulary | Sequence[Label] | None = None,
) -> Log:
    """Read a log from a .csv or .parquet file with the columns that `Log.from_frame` lists."""
    return Log.from_frame(
        read_table(path), columns=columns, state_labels=state_labels, action_labels=action_labels
    )


def read_policy(path: str | Path, log: Log | None = None) -> Policy:
    """Read a policy from a .csv or .parquet table `state, action, probability`.

    Pairs left out have probability 0; other columns are ignored. With a log, labels take the types
    and the column names of the log's, and every state of the log must have a row.
    """
    table = read_table(path)
    if table.num_rows == 0:
        raise InputError(f"policy file {str(path)!r} is empty: it needs one row per pair played")
    what = f"policy file {Path(path).name!r}"
    state_names, action_names = _label_columns(table.column_names, log)
    for name in (*state_names, *action_names, "probability"):
        if name not in table.column_names:
            hint = did_you_mean(name, table.column_names)
            raise InputError(
                f"{what} has no column {name!r}{hint}: its columns are "
                f"{some(table.column_names, 20)}; rename one"
            )
    states, state = _read_labels(table, state_names, log.states if log else None, what)
    actions, action = _read_labels(table, action_names, log.actions if log else None, what)
    if log is not None:
        _check_covers(states, log, what)
    probs = np.zeros((len(states), len(actions)))
    _check_unique(state, action, states, actions, what)
    probs[state, action] = _numbers(table, "probability", what)
    return Policy(probs, states, actions, what)


def read_table(path: str | Path) -> pa.Table:
    """Read a whole .csv or .parquet file."""
    import duckdb

    path = Path(path)
    kind = path.suffix.lower()
    if kind not in READERS:
        raise InputError(f"cannot read {str(path)!r}: the name must end in .csv or .parquet")
    _check_readable(path)
    try:
        table = _query(path, READERS[kind])
    except duckdb.Error as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise InputError(f"cannot read {str(path)!r} ({reason}): {REMEDIES[kind]}") from None
    return _typed(table, path) if kind == ".csv" else table


def _query(path: Path, source: str) -> pa.Table:
    """Rows of one file; its name is taken as it is written, though DuckDB would expand patterns."""
    import duckdb

    literal = re.sub(r"([*?[])", r"[\1]", str(path))
    with duckdb.connect() as connection:
        rows = connection.sql(f"SELECT * FROM {source}", params={"path": literal})
        return rows.to_arrow_table()


def _typed(table: pa.Table, path: Path) -> pa.Table:
    """Numbers in the columns of a CSV file that hold nothing else; the rest stays text.

    DuckDB would guess types from the first 20,480 rows, round a later 0.5 in a column that began
    with whole numbers, and turn the labels yes and 12:00 into others.
    """
    import pyarrow as pa

    if table.num_columns == 1 and re.search("[,;|\t]", table.column_names[0]):
        reason = "its lines have different numbers of cells"
        raise InputError(f"cannot read {str(path)!r} ({reason}): {REMEDIES['.csv']}")
    columns = (_numbers_if_all(table.column(name)) for name in table.column_names)
    return pa.table(list(columns), names=table.column_names)


def _numbers_if_all(column: pa.ChunkedArray) -> pa.ChunkedArray:
    import pyarrow as pa
    from pyarrow import compute

    with suppress(pa.ArrowInvalid):
        numbers = column.cast(pa.int64())
        as_written = compute.equal(numbers.cast(column.type), column)
        return numbers if compute.all(as_written, min_count=0).as_py() else column  # 007 is a name
    with suppress(pa.ArrowInvalid):
        numbers = column.cast(pa.float64())
        point = compute.match_substring_regex(column, "[.eEnN]")
        return numbers if compute.any(point).as_py() else column  # so are 20 digits
    return column


def _check_readable(path: Path) -> None:
    try:
        size = path.stat().st_size if path.is_file() else None
        allowed = size is None or os.access(path, os.R_OK)
    except PermissionError:
        allowed = False
    if not allowed:
        raise InputError(f"cannot read {str(path)!r}: permission denied; check its permissions")
    if size is None:
        raise InputError(f"cannot read {str(path)!r}: there is no such file; check the name")
    if size == 0:
        raise InputError(f"cannot read {str(path)!r}: the file is empty; check what wrote it")


def _label_columns(
    present: Sequence[str], log: Log | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The columns of states and actions: the log's, or those to the left of `action`."""
    if log is not None:
        return log.states.names, log.actions.names
    left = present[: list(present).index("action")] if "action" in present else ()
    return tuple(name for name in left if name != "probability") or ("state",), ("action",)


def _read_labels(
    table: pa.Table, names: tuple[str, ...], like: Vocabulary | None, what: str
) -> tuple[Vocabulary, np.ndarray]:
    """Labels and codes of the rows, with the types of the log's labels."""
    import pyarrow as pa

    columns = []
    for part, name in enumerate(names):
        column = table.column(name)
        if column.null_count:
            raise InputError(f"{what}: column {name!r} has {column.null_count} empty entries")
        if like is not None and len(like):
            label = like[0][part] if len(names) > 1 else like[0]
            try:
                column = column.cast(_arrow_type(label))
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                raise InputError(
                    f"{what}: column {name!r} is not of the type that the log has "
                    f"({type(label).__name__}): write the labels as the log does"
                ) from None
        columns.append(column)
    return factorize(columns, *names)


def _arrow_type(label: Label) -> pa.DataType:
    import pyarrow as pa

    kinds = {str: pa.string(), bool: pa.bool_()}
    return kinds.get(type(label), pa.int64())


def _numbers(table: Any, name: str, what: str) -> np.ndarray:
    try:
        return table.column(name).cast("float64").to_numpy()
    except ValueError:
        raise InputError(f"{what}: column {name!r} holds something other than numbers") from None


def _check_covers(states: Vocabulary, log: Log, what: str) -> None:
    missing = [label for label in log.states.labels if label not in states.index]
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
