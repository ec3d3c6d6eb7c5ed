"""Tables on disk: long-form rows per (state, action), written whole or not at all."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from spibb.arrays import texts_to_arrow, to_arrow
from spibb.checks import shown
from spibb.errors import InputError
from spibb.files import write_whole
from spibb.labels import Label, Vocabulary
from spibb.loading import encodable

if TYPE_CHECKING:
    import pyarrow as pa

    from spibb.log import Log

SPREADSHEET_SAFE = "spreadsheet_safe"
EXECUTED = "=+@\t\r\n＝＋－＠-"
"""How a text begins that a spreadsheet may take for a formula."""
LONGEST_LABEL = 100_000
"""Bytes of text that a file keeps; a longer one is a mistake rather than a label."""

OnProgress = Callable[[float], None]
"""Told now and then which share of the work is done, from 0 to 1."""
Stage = Callable[[str, float], None]
"""Told the stage of the work, and which share of it is done, from 0 to 1."""


def long_form(states: Vocabulary, actions: Vocabulary, **columns: np.ndarray) -> pa.Table:
    """One row per (state, action), with the label columns and any arrays [S, A]."""
    import pyarrow as pa

    _check_names([*states.names, *actions.names, *columns, SPREADSHEET_SAFE])
    names = {}
    for vocabulary, repeats, times in (
        (states, len(actions), 1),
        (actions, 1, len(states)),
    ):
        codes = np.tile(np.repeat(np.arange(len(vocabulary)), repeats), times)
        for name, values in label_columns(vocabulary).items():
            names[name] = values.take(to_arrow(codes))
    return pa.table(names | {name: to_arrow(array.reshape(-1)) for name, array in columns.items()})


def label_columns(vocabulary: Vocabulary) -> dict[str, pa.Array]:
    """The columns of a vocabulary's labels; labels that no file gives back as they are, refused."""
    columns = {}
    for name, values in zip(vocabulary.names, _parts(vocabulary)):
        kinds = {_storable(value, name) for value in values}
        if len(kinds) > 1:
            raise InputError(f"{name} mixes text, numbers and true/false: make all labels text")
        kind = kinds.pop() if kinds else "text"
        columns[name] = (
            texts_to_arrow(values) if kind == "text"
            else to_arrow(np.array(values, np.int64 if kind == "number" else bool))
        )  # fmt: skip
    return columns


def _storable(label: Label, name: str) -> str:
    """Which of the kinds that a file can keep a label is."""
    if isinstance(label, str) and len(label.encode(errors="replace")) <= LONGEST_LABEL:
        if encodable(label):
            return "text"
    elif isinstance(label, bool):
        return "flag"
    elif isinstance(label, int | float) and label == label // 1 and -(2**63) <= label < 2**63:
        return "number"
    raise InputError(
        f"cannot write {name} {shown(label)}: a file keeps text of up to {LONGEST_LABEL} bytes, "
        "whole numbers of 64 bits, true and false; give the state or action another label"
    )


def _check_names(names: list[str]) -> None:
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise InputError(f"cannot write two columns named {repeated[0]!r}: rename the log's column")


def spreadsheet_safe(table: pa.Table) -> pa.Table:
    """Put an apostrophe before each text and each name that a spreadsheet might execute.

    The column `spreadsheet_safe` says so, and `read_policy` then takes the apostrophes away.
    """
    import pyarrow as pa
    from pyarrow import compute

    columns = [
        compute.replace_substring_regex(column, f"^(['{EXECUTED}])", r"'\1", max_replacements=1)
        if pa.types.is_string(column.type)
        else column
        for column in table.columns
    ]
    names = [re.sub(f"^(['{EXECUTED}])", r"'\1", name) for name in table.column_names]
    marked = to_arrow(np.ones(table.num_rows, dtype=bool))
    return pa.table([*columns, marked], names=[*names, SPREADSHEET_SAFE])


def log_table(log: Log) -> pa.Table:
    """A log as the table that `read_log` reads; ends that were assumed are left to be assumed."""
    import pyarrow as pa

    columns: list[tuple[str, pa.Array]] = [
        ("episode_id", to_arrow(log.episode)),
        ("step", to_arrow(log.step)),
    ]
    for vocabulary, codes in ((log.states, log.state), (log.actions, log.action)):
        for name, values in label_columns(vocabulary).items():
            columns.append((name, values.take(to_arrow(codes))))
    columns.append(("reward", to_arrow(log.reward)))
    none = log.next_state < 0
    for name, values in label_columns(log.states).items():
        columns.append((f"next_{name}", values.take(to_arrow(log.next_state, none))))
    if not log.ends_assumed:
        columns.append(("terminated", to_arrow(log.terminated)))
    columns.append(("truncated", to_arrow(log.truncated)))
    if log.action_prob is not None:
        columns.append(("action_prob", to_arrow(log.action_prob)))
    _check_names([name for name, _ in columns])
    return pa.table(dict(columns))


def write_table(table: pa.Table, path: Path) -> Path:
    """Write .csv or .parquet, by the ending of the name; the path."""
    import pyarrow.csv
    import pyarrow.parquet

    writers = {".csv": pyarrow.csv.write_csv, ".parquet": pyarrow.parquet.write_table}
    write = writers.get(path.suffix.lower())
    if write is None:
        raise InputError(f"cannot write {path.name!r}: the name must end in .csv or .parquet")
    write_whole(path, lambda temporary: write(table, str(temporary)))
    return path


def _parts(vocabulary: Vocabulary) -> list[list[Label]]:
    if len(vocabulary.names) == 1:
        return [list(vocabulary.labels)]
    return [list(part) for part in zip(*vocabulary.labels)]
