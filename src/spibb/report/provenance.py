"""Which command made a folder of results."""

from __future__ import annotations

import shlex
from pathlib import Path

from spibb.experiments.results import Results
from spibb.experiments.spec import Experiment
from spibb.experiments.suites import GRIDS, default_experiment


def experiment_command(results: Results, folder: Path) -> str:
    """The command that makes the same rows, as it is typed."""
    experiment = results.experiment
    words = ["spibb", "experiment", experiment.suite, "--runs", str(results.runs)]
    words += ["--out", str(folder), *_selection(experiment)]
    return shlex.join(words)


def _selection(experiment: Experiment) -> list[str]:
    """Options for what differs from the paper's benchmark."""
    grids = {name: default_experiment(experiment.suite, name) for name in GRIDS}
    same = [name for name, grid in grids.items() if grid.columns == experiment.columns]
    words = [] if same == ["main"] else ["--grid", same[0]] if same else []
    if not same:
        words += [word for column in experiment.columns for word in ("--column", column.key)]
    if experiment.sizes != grids["main"].sizes:
        words += ["--sizes", ",".join(str(size) for size in experiment.sizes)]
    if experiment.etas != grids["main"].etas:
        words += ["--etas", ",".join(f"{eta:g}" for eta in experiment.etas)]
    return words + (["--seed", str(experiment.seed)] if experiment.seed else [])
