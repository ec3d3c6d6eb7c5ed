"""Tables on disk: long-form rows per (state, action), written whole or not at all."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spibb.checks import InputError
from spibb.files import write_whole
from spibb.labels import Label, Vocabulary

if TYPE_CHECKING:
    import pyarrow as pa

    from spibb.log import Log

Progress = Callable[[float], None]
"""Told now and then which share of the work is done, from 0 to 1."""

MEMORY = "700MB"
"""What DuckDB may hold before it writes to temporary files."""


def open_duckdb() -> Any:
    """A connection to DuckDB with bounded memory, which knows its progress but does not draw it.

    Each has a temporary folder of its own, which it removes: one that all share would belong to the
    user who came first.
    """
    import duckdb

    spill = Path(tempfile.gettempdir()) / f"spibb-{uuid.uuid4().hex}"
    connection = duckdb.connect(config={"memory_limit": MEMORY, "temp_directory": str(spill)})
    connection.execute("SET enable_progress_bar = true; SET enable_progress_bar_print = false")
    return connection


def long_form(states: Vocabulary, actions: Vocabulary, **columns: np.ndarray) -> pa.Table:
    """One row per (state, action), with the label columns and any arrays [S, A]."""
    import pyarrow as pa

    names = {}
    for vocabulary, repeats, times in (
        (states, len(actions), 1),
        (actions, 1, len(states)),
    ):
        codes = np.tile(np.repeat(np.arange(len(vocabulary)), repeats), times)
        for name, values in zip(vocabulary.names, _parts(vocabulary)):
            names[name] = pa.array(values).take(pa.array(codes))
    return pa.table(names | {name: array.reshape(-1) for name, array in columns.items()})


def log_table(log: Log) -> pa.Table:
    """A log as the table that `read_log` reads."""
    import pyarrow as pa

    lengths = np.diff(log.episode_starts)
    columns: dict[str, object] = {
        "episode_id": np.repeat(np.arange(log.n_episodes), lengths),
        "step": np.arange(len(log)) - np.repeat(log.episode_starts[:-1], lengths),
    }
    for vocabulary, codes in ((log.states, log.state), (log.actions, log.action)):
        for name, values in zip(vocabulary.names, _parts(vocabulary)):
            columns[name] = pa.array(values).take(pa.array(codes))
    columns["reward"] = log.reward
    none = log.next_state < 0
    for name, values in zip(log.states.names, _parts(log.states)):
        columns[f"next_{name}"] = pa.array(values).take(pa.array(log.next_state, mask=none))
    columns |= {"terminated": log.terminated, "truncated": log.truncated}
    if log.action_prob is not None:
        columns["action_prob"] = log.action_prob
    return pa.table(columns)


def write_table(table: pa.Table, path: Path) -> None:
    """Write .csv or .parquet, by the ending of the name."""
    import pyarrow.csv
    import pyarrow.parquet

    writers = {".csv": pyarrow.csv.write_csv, ".parquet": pyarrow.parquet.write_table}
    write = writers.get(path.suffix.lower())
    if write is None:
        raise InputError(f"cannot write {path.name!r}: the name must end in .csv or .parquet")
    write_whole(path, lambda temporary: write(table, str(temporary)))


def _parts(vocabulary: Vocabulary) -> list[list[Label]]:
    if len(vocabulary.names) == 1:
        return [list(vocabulary.labels)]
    return [list(part) for part in zip(*vocabulary.labels)]
