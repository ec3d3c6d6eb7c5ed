"""The stored rows of an experiment, aggregated: means and tail means per column and setting.

DuckDB sorts one column at a time, on disk if it must, and hands it over in blocks: memory grows
neither with the number of columns nor with the number of runs.
"""

from __future__ import annotations

import hashlib
import json
import math
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import spibb
from spibb.errors import InputError
from spibb.experiments.parts import part_files, stored_parts
from spibb.experiments.runner import read_spec
from spibb.experiments.spec import Experiment
from spibb.experiments.studies import Study, study_of
from spibb.files import write_text
from spibb.loading import (
    either,
    list_of,
    nan,
    read_json,
    real,
    record,
    row,
    table_of,
    text,
    whole,
)
from spibb.sql.duck import open_duckdb
from spibb.sql.engines import quoted
from spibb.stats import (
    BOOTSTRAP_UP_TO,
    Interval,
    ordered_tail_intervals,
    share_interval,
    tail_intervals,
)
from spibb.tables import OnProgress

if TYPE_CHECKING:
    import pyarrow as pa

STATISTICS = {"mean": 1.0, "cvar10": 0.1, "cvar1": 0.01, "cvar0.1": 0.001}
"""Names of the statistics, and the share of the worst runs that each averages."""
SETTINGS = ("eta", "size", "noise", "passes", "family", "quality")
"""Fields of a cell that say which rows are in it."""
SUMMARY = "summary.json"
SEAL = "sha256"
_KNOWN = either(real(), nan())
_CELL = row(
    text(), table_of(either(real(), text())), whole(1), table_of(row(_KNOWN, _KNOWN, _KNOWN))
)
FORM = record(
    {
        "parts": table_of(whole()),
        "experiment": text(),
        "spibb": text(),
        SEAL: text(),
        "runs": whole(1),
        "baseline": _KNOWN,
        "optimal": _KNOWN,
        "cells": list_of(_CELL),
    }
)
"""The form of summary.json; a cell is [column, settings, runs, intervals by statistic]."""
BLOCK = 100_000
"""Rows of a column that are held at a time."""


@dataclass(frozen=True)
class Cell:
    """One column at one setting: the rows, and its statistics.

    A setting is a size, with η for random MDPs, with noise factor and passes for the helicopter,
    with family and quality of the baseline for the assurance benchmark. Shares have a mean only.
    Performances of finite MDPs are normalised (Equation 9): 0 is the baseline's, 1 the optimum.
    Those of the helicopter are mean undiscounted returns.
    """

    column: str
    eta: float | None
    size: int
    runs: int
    statistics: dict[str, Interval]
    noise: float | None = None
    passes: int | None = None
    family: str | None = None
    quality: str | None = None


@dataclass(frozen=True, eq=False)
class Results:
    """All cells of an experiment; `baseline` and `optimal` are mean true performances.

    The helicopter's optimum is not known (NaN), and its baseline a mean over the rows.
    """

    experiment: Experiment
    runs: int
    baseline: float
    optimal: float
    cells: tuple[Cell, ...]

    @cached_property
    def _index(self) -> dict[tuple[Any, ...], Cell]:
        return {
            (c.column, c.size, c.eta, c.noise, c.passes, c.family, c.quality): c for c in self.cells
        }

    def cell(
        self,
        column: str,
        size: int,
        eta: float | None = None,
        noise: float | None = None,
        passes: int | None = None,
        family: str | None = None,
        quality: str | None = None,
    ) -> Cell | None:
        """The cell of a column, if the experiment has it."""
        return self._index.get((column, size, eta, noise, passes, family, quality))

    def raw(self, interval: Interval) -> Interval:
        """A normalised interval in units of performance ρ; meaningful where there is one world."""
        scale = self.optimal - self.baseline
        values = (self.baseline + scale * x for x in (interval.value, interval.low, interval.high))
        return Interval(*values)


def load_results(folder: Path, progress: OnProgress | None = None) -> Results:
    """Aggregate the rows of a folder, or read the aggregate if it is up to date."""
    experiment = read_spec(folder)
    parts = {file.name: file.stat().st_mtime_ns for file in part_files(folder)}
    if not parts:
        raise InputError(f"{str(folder)!r} holds no finished part yet: run the experiment first")
    path = folder / SUMMARY
    if path.is_file():
        stored = read_json(path, FORM, repr(str(path)), "remove it, and it is computed again")
        if _made_of(experiment, parts).items() <= stored.items() and _seal(stored) == stored[SEAL]:
            return _from_json(experiment, stored)
    files = _whole_parts(experiment, folder)
    parts = {file.name: file.stat().st_mtime_ns for file in files}
    with _readable(files):
        results = aggregate([str(file) for file in files], experiment, progress)
    found = _made_of(experiment, parts) | _to_json(results)
    write_text(path, json.dumps(found | {SEAL: _seal(found)}))
    return results


def _made_of(experiment: Experiment, parts: dict[str, int]) -> dict[str, Any]:
    """What an aggregate depends on."""
    return {"parts": parts, "experiment": experiment.fingerprint, "spibb": spibb.__version__}


def _whole_parts(experiment: Experiment, folder: Path) -> list[Path]:
    """The parts of a folder, all of which must be as they were written."""
    stored = stored_parts(experiment, folder)
    for path in stored.damaged:
        raise InputError(
            f"{str(path)!r} is damaged: run the command of the experiment again, which sets it "
            "aside and recomputes it"
        )
    return [part.path for part in stored.parts]


def _seal(stored: dict[str, Any]) -> str:
    """A hash of all other entries of an aggregate."""
    rest = {name: value for name, value in stored.items() if name != SEAL}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def aggregate(
    parts: list[str], experiment: Experiment, progress: OnProgress | None = None
) -> Results:
    """Statistics of every column at every setting, from the rows of Parquet files."""
    study = study_of(experiment)
    rng = np.random.default_rng(experiment.seed)
    optimal = "avg(optimal)" if study.normalised else "'nan'::DOUBLE"
    names = ", ".join(study.settings)
    columns = study.measures(experiment) + [column.key for column in experiment.columns]
    values = {column: _value(study, column) for column in columns}
    for name, (one, other) in study.differences(experiment).items():
        values[name] = f"{_value(study, one)} - {_value(study, other)}"
    with open_duckdb() as connection:
        known = connection.sql(
            f"SELECT avg(baseline), {optimal}, count(DISTINCT run) FROM read_parquet($parts)",
            params={"parts": parts},
        ).fetchall()[0]
        settings = connection.sql(
            f"SELECT {names}, count(*) FROM read_parquet($parts) GROUP BY {names} ORDER BY {names}",
            params={"parts": parts},
        ).fetchall()
        cells: list[Cell] = []
        for done, (column, value) in enumerate(values.items()):
            if progress:
                progress(done / len(values))
            with _sorted(connection, parts, study, value) as stream:
                cells += _cells(SortedValues(stream), settings, experiment, column, rng)
        if study.shares is not None:
            cells += _shares(connection, parts, study, study.shares(experiment))
    return Results(experiment, int(known[2]), float(known[0]), float(known[1]), tuple(cells))


def results_table(results: Results) -> pa.Table:
    """The cells in long form: column, settings, runs, statistic, value, low, high."""
    import pyarrow as pa

    settings = study_of(results.experiment).settings
    rows = [
        (
            cell.column, *(getattr(cell, setting) for setting in settings), cell.runs,
            name, found.value, found.low, found.high,
        )
        for cell in results.cells
        for name, found in cell.statistics.items()
    ]  # fmt: skip
    names = ("column", *settings, "runs", "statistic", "value", "low", "high")
    return pa.table(dict(zip(names, (list(column) for column in zip(*rows)))))


@contextmanager
def _readable(files: list[Path]) -> Iterator[None]:
    """Say what DuckDB lacked, which reads parts that are known to be whole."""
    import duckdb
    import pyarrow as pa

    try:
        yield
    except (duckdb.Error, pa.ArrowException, OSError, UnicodeError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(
            f"cannot sort the rows of {str(files[0].parent)!r} ({reason}): is there space in "
            f"{tempfile.gettempdir()!r}?"
        ) from None


class SortedValues:
    """Values of a column with their runs, read in blocks from a stream."""

    def __init__(self, stream: Iterable[pa.RecordBatch]) -> None:
        self._stream = iter(stream)
        self._values, self._runs = np.empty(0), np.empty(0, dtype=np.int32)

    def take(self, n: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The next n values, in blocks."""
        while n > 0:
            if len(self._values) == 0:
                self._values, self._runs = (c.to_numpy() for c in next(self._stream).columns)
            values, runs = self._values[:n], self._runs[:n]
            self._values, self._runs = self._values[n:], self._runs[n:]
            n -= len(values)
            yield values, runs


def _cells(
    rows: SortedValues,
    settings: list[tuple[Any, ...]],
    experiment: Experiment,
    column: str,
    rng: np.random.Generator,
) -> Iterator[Cell]:
    """The cells of one column, whose `settings` come with their numbers of rows.

    Networks that were trained on one data set are not independent: intervals then come from
    drawing whole data sets anew.
    """
    together = experiment.training is not None and not experiment.training.one_log
    shares = list(STATISTICS.values())
    for *setting, n in settings:
        if n > BOOTSTRAP_UP_TO and not together:
            found = ordered_tail_intervals((values for values, _ in rows.take(n)), n, shares)
        else:
            values, runs = map(np.concatenate, zip(*rows.take(n)))
            found = tail_intervals(values, shares, rng=rng, groups=runs if together else None)
        here = dict(zip(study_of(experiment).settings, setting))
        eta = here.pop("eta", math.nan)
        yield Cell(
            column, None if math.isnan(eta) else eta, runs=n,
            statistics=dict(zip(STATISTICS, found)), **here,
        )  # fmt: skip


def _shares(connection: Any, parts: list[str], study: Study, names: list[str]) -> Iterator[Cell]:
    """The cells of columns that are true (1), false (0) or do not apply (NaN), by setting."""
    # DuckDB trusts footers, which tell no NaN: only computed differences find it
    numbers = [_number(name) for name in names]
    known = [f"CASE WHEN {name} - {name} = 0 THEN {name} END" for name in numbers]
    counted = ", ".join(f"sum({value}), count({value})" for value in known)
    grouped = ", ".join(study.settings)
    rows = connection.sql(
        f"SELECT {grouped}, {counted} FROM read_parquet($parts) GROUP BY {grouped} "
        f"ORDER BY {grouped}",
        params={"parts": parts},
    ).fetchall()
    n = len(study.settings)
    for found in rows:
        here = dict(zip(study.settings, found))
        for name, hits, trials in zip(names, found[n::2], found[n + 1 :: 2]):
            if trials:
                share = {"mean": share_interval(hits, trials)}
                yield Cell(name, None, runs=trials, statistics=share, **here)


def _value(study: Study, column: str) -> str:
    """What a row counts as the value of a column, in SQL."""
    value = _number(column)
    return f"({value} - baseline) / (optimal - baseline)" if study.normalised else value


def _number(column: str) -> str:
    return f"{quoted(column)}::DOUBLE"


def _sorted(connection: Any, parts: list[str], study: Study, value: str) -> pa.RecordBatchReader:
    """Values of an expression and their runs, in an order that the parts do not change."""
    return connection.sql(
        f"SELECT {value} AS value, run FROM read_parquet($parts) "
        f"ORDER BY {', '.join(study.settings)}, value, run",
        params={"parts": parts},
    ).to_arrow_reader(BLOCK)


def _to_json(results: Results) -> dict[str, Any]:
    return {
        "runs": results.runs,
        "baseline": results.baseline,
        "optimal": results.optimal,
        "cells": [
            [
                c.column,
                {name: value for name in SETTINGS if (value := getattr(c, name)) is not None},
                c.runs,
                {name: [i.value, i.low, i.high] for name, i in c.statistics.items()},
            ]
            for c in results.cells
        ],
    }


def _from_json(experiment: Experiment, stored: dict[str, Any]) -> Results:
    cells = tuple(
        Cell(
            column, runs=runs, **({"eta": None} | settings),
            statistics={name: Interval(*numbers) for name, numbers in found.items()},
        )
        for column, settings, runs, found in stored["cells"]
    )  # fmt: skip
    return Results(experiment, stored["runs"], stored["baseline"], stored["optimal"], cells)
