"""Results without their rows: the table of a folder, and several folders of one study together."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from spibb.errors import InputError
from spibb.experiments.finite import gridworld
from spibb.experiments.parts import part_files
from spibb.experiments.results import Cell, Results, load_results
from spibb.experiments.runner import SPEC, read_spec
from spibb.experiments.spec import GRIDWORLDS, Experiment
from spibb.experiments.studies import study_of
from spibb.stats import Interval
from spibb.tables import OnProgress

NUMBERS = "table.csv"
READ = {"eta": float, "size": int, "noise": float, "passes": int, "family": str, "quality": str}


def read_results(folder: Path, progress: OnProgress | None = None) -> Results:
    """The results of a folder, from its rows, or from table.csv where it has none.

    A folder of folders of one study with separate cells is read as their union.
    """
    if found := members(folder):
        return joined([read_results(member, progress) for member in found])
    if part_files(folder) or not (folder / NUMBERS).is_file():
        return load_results(folder, progress)
    experiment = read_spec(folder)
    try:
        with (folder / NUMBERS).open(encoding="utf-8", newline="") as file:
            cells = tuple(_cells(experiment, list(csv.DictReader(file))))
    except (KeyError, ValueError) as error:
        raise InputError(
            f"{str(folder / NUMBERS)!r} is not a table of `spibb figures` ({error}): make it again"
        ) from None
    known = (math.nan, math.nan)
    if experiment.study in GRIDWORLDS:
        world = gridworld(experiment.study == "gridworld-random", experiment.baseline or "authors")
        known = world.baseline_value, world.optimal_value
    networks = experiment.training.seeds if experiment.training else 1
    return Results(experiment, max(cell.runs for cell in cells) // networks, *known, cells)


def members(folder: Path, *, separate: bool = True) -> list[Path]:
    """The folders of rows within a folder that holds no rows itself: those of a study with
    separate cells, which are read together, or those of other studies, which are not."""
    if (folder / SPEC).is_file():
        return []
    found = sorted(path.parent for path in folder.glob(f"*/{SPEC}"))
    return [path for path in found if study_of(read_spec(path)).separate == separate]


def _cells(experiment: Experiment, rows: list[dict[str, str]]) -> list[Cell]:
    """Rows that agree in column and settings are one cell."""
    settings = study_of(experiment).settings

    def setting(row: dict[str, str]) -> tuple[str, ...]:
        return row["column"], row["runs"], *(row[name] for name in settings)

    found = []
    for (column, runs, *values), group in groupby(rows, setting):
        named = {name: READ[name](text) for name, text in zip(settings, values) if text}
        statistics = {
            row["statistic"]: Interval(*(float(row[name]) for name in ("value", "low", "high")))
            for row in group
        }
        here: dict[str, object] = {"eta": None} | named
        found.append(Cell(column, runs=int(runs), statistics=statistics, **here))  # type: ignore[arg-type]
    return found


def joined(results: Sequence[Results]) -> Results:
    """Results of one study with different columns; where two have a cell, that of more runs.

    The sizes and η are those of the folder with most runs, which the others may have in part. In
    studies with separate cells the sizes and families are those of all folders.
    """
    most = sorted(results, key=lambda r: r.runs, reverse=True)
    first = most[0]
    for other in most[1:]:
        _check_same(first.experiment, other.experiment)
    cells: dict[tuple[object, ...], Cell] = {}
    columns = {column.key: column for r in most for column in r.experiment.columns}
    for result in most:
        for c in result.cells:
            place = (c.column, c.eta, c.size, c.noise, c.passes, c.family, c.quality)
            cells.setdefault(place, c)
    experiment = replace(first.experiment, columns=tuple(columns.values()))
    if study_of(experiment).separate:
        sizes = {size for result in most for size in result.experiment.sizes}
        families = dict.fromkeys(name for result in most for name in result.experiment.families)
        experiment = replace(experiment, sizes=tuple(sorted(sizes)), families=tuple(families))
    return replace(first, experiment=experiment, cells=tuple(cells.values()))


def same_runs(results: Sequence[tuple[Path, Results]]) -> list[tuple[Path, Results]]:
    """Folders of networks, joined where they differ in their columns alone."""
    groups: dict[tuple[object, ...], list[tuple[Path, Results]]] = {}
    for folder, found in results:
        spec = found.experiment
        key = found.runs, spec.sizes, spec.seed, spec.max_steps, spec.training, spec.network
        groups.setdefault(key, []).append((folder, found))
    return [(group[0][0], joined([found for _, found in group])) for group in groups.values()]


def _check_same(first: Experiment, other: Experiment) -> None:
    """Refuse experiments of which one does not repeat the other's data sets."""
    separate = study_of(first).separate
    inside = separate or ({*other.sizes} <= {*first.sizes} and {*other.etas} <= {*first.etas})
    like = replace(other, columns=first.columns, sizes=first.sizes, etas=first.etas)
    like = replace(like, families=first.families) if separate else like
    if not inside or like != first:
        raise InputError(
            f"two folders of {first.study} differ in more than their columns: name folders of one "
            "seed, one baseline and the same sizes"
        )
