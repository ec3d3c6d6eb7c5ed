"""Which command made a folder of results."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

from spibb.experiments.results import Results
from spibb.experiments.spec import Column, Experiment, Training
from spibb.experiments.studies import study_of

FEW = 4
"""Columns from which on those that are there are listed, not those that are left out."""


def experiment_commands(results: Results, folder: Path) -> list[str]:
    """The commands that make the same rows, as they are typed.

    Usually one; where columns or sizes were repeated differently often and joined, one for each
    such group.
    """
    whole = results.experiment
    if not study_of(whole).separate:
        return [_command(whole, results.runs, folder)]
    groups: dict[tuple[int, tuple[int, ...]], list[Column]] = {}
    for column in whole.columns:
        runs = {c.size: c.runs for c in results.cells if c.column == column.key}
        for n in dict.fromkeys(runs[size] for size in sorted(runs)):
            sizes = tuple(size for size in sorted(runs) if runs[size] == n)
            groups.setdefault((n, sizes), []).append(column)
    return [
        _command(replace(whole, sizes=sizes, columns=tuple(columns)), n,
                 folder / str(n) if len(groups) > 1 else folder)
        for (n, sizes), columns in groups.items()
    ]  # fmt: skip


def _command(experiment: Experiment, runs: int, folder: Path) -> str:
    words = ["spibb", "experiment", experiment.study, "--runs", str(runs)]
    return shlex.join([*words, "--out", str(folder), *_selection(experiment)])


def _selection(experiment: Experiment) -> list[str]:
    """Options for what differs from the paper's benchmark."""
    study = study_of(experiment)
    grids = {name: study.default(experiment.study, name) for name in study.grids}
    kind = [name for name, grid in grids.items() if _one_log(grid) == _one_log(experiment)]
    whole = [name for name in kind if _begins(experiment.columns, grids[name].columns)]
    same = [name for name in whole if grids[name].families == experiment.families]
    name = max(same or whole or kind[:1], key=lambda name: len(grids[name].columns))
    words, grid = [] if name == "main" else ["--grid", name], grids[name]
    option, columns = "--column", experiment.columns
    absent = tuple(column for column in grid.columns if column not in columns)
    if whole:
        option, columns = "--also", columns[len(grid.columns) :]
    elif columns == tuple(c for c in grid.columns if c not in absent) and len(absent) < FEW:
        option, columns = "--without", absent
    words += [word for column in columns for word in (option, column.key)]
    if experiment.sizes != grid.sizes:
        words += ["--sizes", _listed(experiment.sizes)]
    if experiment.etas != grid.etas:
        words += ["--etas", _listed(experiment.etas)]
    if experiment.baseline is not None:
        words += ["--baseline", experiment.baseline]
    if experiment.network is not None:
        words += ["--baseline", experiment.network.path]
    if experiment.families != grid.families:
        words += ["--families", ",".join(experiment.families)]
    words += _training(experiment.training, grid.training)
    return words + (["--seed", str(experiment.seed)] if experiment.seed else [])


def _begins(columns: tuple[Column, ...], start: tuple[Column, ...]) -> bool:
    return columns[: len(start)] == start


def _one_log(experiment: Experiment) -> bool:
    """Whether all runs share one data set."""
    return experiment.training is not None and experiment.training.one_log


def _training(mine: Training | None, usual: Training | None) -> list[str]:
    """Options for what differs in the training of networks."""
    if mine is None or usual is None:
        return []
    words = []
    for name in ("noises", "passes", "seeds", "episodes"):
        value = getattr(mine, name)
        if value != getattr(usual, name):
            words += [f"--{name}", _listed(value if isinstance(value, tuple) else (value,))]
    return words


def _listed(values: tuple[float, ...]) -> str:
    return ",".join(str(v) if isinstance(v, int) else f"{v:g}" for v in values)
