"""The stored rows of an experiment, aggregated: means and tail means per column, η and size.

Rows are read one column at a time by DuckDB, so that memory does not grow with the number of
columns, and for one column holds a few numbers per run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spibb.errors import InputError
from spibb.experiments.runner import read_spec, stored_chunks
from spibb.experiments.spec import Experiment
from spibb.stats import Interval, tail_intervals
from spibb.tables import write_whole

if TYPE_CHECKING:
    import pyarrow as pa

STATISTICS = {"mean": 1.0, "cvar10": 0.1, "cvar1": 0.01, "cvar0.1": 0.001}
"""Names of the statistics, and the share of the worst runs that each averages."""
SUMMARY = "summary.json"


@dataclass(frozen=True)
class Cell:
    """One column at one η (None for a gridworld) and size: the runs, and its statistics.

    Performances are normalised (Equation 9): 0 is the baseline's, 1 the optimum.
    """

    column: str
    eta: float | None
    size: int
    runs: int
    statistics: dict[str, Interval]


@dataclass(frozen=True, eq=False)
class Results:
    """All cells of an experiment; `baseline` and `optimal` are mean true performances."""

    experiment: Experiment
    runs: int
    baseline: float
    optimal: float
    cells: tuple[Cell, ...]

    @cached_property
    def _index(self) -> dict[tuple[str, float | None, int], Cell]:
        return {(c.column, c.eta, c.size): c for c in self.cells}

    def cell(self, column: str, size: int, eta: float | None = None) -> Cell | None:
        """The cell of a column, if the experiment has it."""
        return self._index.get((column, eta, size))

    def raw(self, interval: Interval) -> Interval:
        """A normalised interval in units of performance ρ; meaningful where there is one world."""
        scale = self.optimal - self.baseline
        values = (self.baseline + scale * x for x in (interval.value, interval.low, interval.high))
        return Interval(*values)


def load_results(folder: Path) -> Results:
    """Aggregate the rows of a folder, or read the aggregate if it is up to date."""
    experiment = read_spec(folder)
    chunks, _ = stored_chunks(folder)
    if not chunks:
        raise InputError(f"{str(folder)!r} holds no finished part yet: run the experiment first")
    done = sorted(chunk.file for chunk in chunks)
    path = folder / SUMMARY
    if path.is_file():
        stored = json.loads(path.read_text(encoding="utf-8"))
        if stored["parts"] == done:
            return _from_json(experiment, stored)
    results = aggregate(folder, experiment)
    text = json.dumps({"parts": done} | _to_json(results))
    write_whole(path, lambda name: Path(name).write_text(text, encoding="utf-8"))
    return results


def aggregate(folder: Path, experiment: Experiment) -> Results:
    """Statistics of every column at every η and size, from the stored rows."""
    import duckdb

    rng = np.random.default_rng(experiment.seed)
    parts = str(folder / "part-*.parquet")
    with duckdb.connect() as connection:
        known = connection.sql(
            "SELECT avg(baseline), avg(optimal), count(DISTINCT run) FROM read_parquet($parts)",
            params={"parts": parts},
        ).fetchall()[0]
        cells = [
            cell
            for column in experiment.columns
            for cell in _cells(connection, parts, column.key, rng)
        ]
    return Results(experiment, int(known[2]), float(known[0]), float(known[1]), tuple(cells))


def results_table(results: Results) -> pa.Table:
    """The cells in long form: column, eta, size, runs, statistic, value, low, high."""
    import pyarrow as pa

    rows = [
        (cell.column, cell.eta, cell.size, cell.runs, name, found.value, found.low, found.high)
        for cell in results.cells
        for name, found in cell.statistics.items()
    ]
    names = ("column", "eta", "size", "runs", "statistic", "value", "low", "high")
    return pa.table(dict(zip(names, (list(column) for column in zip(*rows)))))


def _cells(connection: Any, parts: str, column: str, rng: np.random.Generator) -> Iterator[Cell]:
    """The cells of one column; order of rows does not matter, so neither does that of the parts."""
    quoted = column.replace('"', '""')
    rows = connection.sql(
        f'SELECT eta, size, ("{quoted}"::DOUBLE - baseline) / (optimal - baseline) AS value '
        "FROM read_parquet($parts) ORDER BY eta, size, value",
        params={"parts": parts},
    ).fetchnumpy()
    eta, size, value = (np.asarray(rows[name]) for name in ("eta", "size", "value"))
    eta = np.nan_to_num(eta, nan=-1.0)
    borders = np.flatnonzero((np.diff(eta) != 0) | (np.diff(size) != 0)) + 1
    for block in np.split(np.arange(len(value)), borders):
        found = tail_intervals(value[block], list(STATISTICS.values()), rng=rng)
        yield Cell(
            column, float(eta[block[0]]) if eta[block[0]] >= 0 else None,
            int(size[block[0]]), len(block), dict(zip(STATISTICS, found)),
        )  # fmt: skip


def _to_json(results: Results) -> dict[str, Any]:
    return {
        "runs": results.runs,
        "baseline": results.baseline,
        "optimal": results.optimal,
        "cells": [
            [c.column, c.eta, c.size, c.runs]
            + [[i.value, i.low, i.high] for i in c.statistics.values()]
            for c in results.cells
        ],
    }


def _from_json(experiment: Experiment, stored: dict[str, Any]) -> Results:
    cells = tuple(
        Cell(
            column, eta, size, runs,
            {name: Interval(*numbers) for name, numbers in zip(STATISTICS, statistics)},
        )
        for column, eta, size, runs, *statistics in stored["cells"]
    )  # fmt: skip
    return Results(experiment, stored["runs"], stored["baseline"], stored["optimal"], cells)
