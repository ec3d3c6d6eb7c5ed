"""The studies, and what the runner and the aggregation need to know about each."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from spibb import checks
from spibb.errors import InputError
from spibb.experiments import assurance, finite, helicopter, helicopter_grids
from spibb.experiments.spec import FINITE, STUDY_NAMES, Column, Experiment, NetworkFile

Repeat = Callable[[Experiment, int], list[dict[str, Any]]]


@dataclass(frozen=True)
class Study:
    """A kind of experiment: its grids by name, and one repetition, from (experiment, run).

    `prepare` refuses what cannot run, before anything is written. `seconds` times one repetition.
    A part holds at most `largest_chunk` repetitions. Rows that agree in `settings` (columns of the
    rows) make a cell of the results. `normalised` values are put between the row's baseline and
    optimum; `measures` names columns beside those of the experiment that are aggregated too, and
    `shares` those that are true or false; `differences` names differences of two columns, log by
    log. `separate` cells have the same logs whatever other sizes and families there are.
    `usual_runs` are the repetitions of a grid that are made where no number is given.
    """

    grids: tuple[str, ...]
    default: Callable[[str, str], Experiment]
    repeat: Repeat
    seconds: Callable[[Experiment, int], float]
    largest_chunk: int
    settings: tuple[str, ...]
    normalised: bool
    prepare: Callable[[Experiment], None] = lambda experiment: None
    measures: Callable[[Experiment], list[str]] = lambda experiment: []
    shares: Callable[[Experiment], list[str]] | None = None
    differences: Callable[[Experiment], dict[str, tuple[str, str]]] = lambda experiment: {}
    separate: bool = False
    usual_runs: Mapping[str, int] = field(default_factory=dict)


def _seconds_of_second_run(experiment: Experiment, run: int) -> float:
    """Seconds of a core for one repetition, after another has compiled what it needs."""
    finite.repeat(experiment, run)
    begin = time.process_time()
    finite.repeat(experiment, run)
    return time.process_time() - begin


def _make_all(experiment: Experiment) -> None:
    for column in experiment.columns:
        column.make()


FINITE_STUDY = Study(
    grids=tuple(finite.GRIDS),
    default=finite.default_experiment,
    repeat=finite.repeat,
    seconds=_seconds_of_second_run,
    largest_chunk=200,
    settings=("eta", "size"),
    normalised=True,
    prepare=_make_all,
)
HELICOPTER = Study(
    grids=tuple(helicopter_grids.GRIDS),
    default=helicopter_grids.default_experiment,
    repeat=helicopter.repeat,
    seconds=helicopter.seconds,
    largest_chunk=1,
    settings=("noise", "size", "passes"),
    normalised=False,
    prepare=helicopter.prepare,
    measures=helicopter_grids.measures,
)
ASSURANCE = Study(
    grids=tuple(assurance.GRIDS),
    default=assurance.default_experiment,
    repeat=assurance.repeat,
    seconds=assurance.seconds,
    largest_chunk=1,
    settings=("family", "quality", "size"),
    normalised=False,
    prepare=_make_all,
    shares=assurance.shares,
    differences=assurance.differences,
    separate=True,
    usual_runs=assurance.USUAL_RUNS,
)
STUDIES = dict.fromkeys(FINITE, FINITE_STUDY) | {"helicopter": HELICOPTER, "assurance": ASSURANCE}


def study_of(experiment: Experiment) -> Study:
    """The study of an experiment."""
    return STUDIES[experiment.study]


def usual_runs(study: str, grid: str) -> int:
    """How many repetitions a grid has where no number is given."""
    known = STUDIES[checks.choice("study", study, STUDY_NAMES)].usual_runs
    if grid not in known:
        raise InputError(f"{study} has no default number of runs: give --runs")
    return known[grid]


def select_experiment(
    study: str,
    grid: str,
    columns: Sequence[str] = (),
    sizes: Sequence[float] = (),
    etas: Sequence[float] = (),
    seed: int = 0,
    also: Sequence[str] = (),
    families: Sequence[str] = (),
    baseline: str | None = None,
    without: Sequence[str] = (),
    **training: Any,
) -> Experiment:
    """The paper's grid of a study, cut down to what is named; nothing named keeps all.

    `also` are columns beside those, `without` those left out; `baseline` names that of a gridworld,
    or the file of the helicopter's. `training` are entries of `Training`; None and () keep those of
    the grid.
    """
    kind = STUDIES[checks.choice("study", study, STUDY_NAMES)]
    checks.choice("grid", grid, kind.grids)
    whole = kind.default(study, grid)
    chosen = _left(tuple(Column.parse(key) for key in columns) or whole.columns, without)
    named = {name: value for name, value in training.items() if value not in (None, ())}
    if etas and not whole.etas:
        raise InputError(f"{study} has no eta: it has one baseline; leave --etas out")
    if families and not whole.families:
        raise InputError(f"{study} has no families of worlds: leave --families out")
    if named and whole.training is None:
        raise InputError(f"{study} trains no networks: leave --{next(iter(named))} out")
    flies = study == "helicopter" and baseline is not None
    return replace(
        whole,
        columns=chosen + tuple(Column.parse(key) for key in also),
        sizes=tuple(checks.positive("size", size) for size in sizes) or whole.sizes,
        etas=tuple(etas) or whole.etas,
        families=tuple(families) or whole.families,
        seed=seed,
        baseline=None if flies or baseline == "authors" else baseline,
        network=NetworkFile.of(str(baseline)) if flies else None,
        training=None if whole.training is None else replace(whole.training, **named),
    )


def _left(columns: tuple[Column, ...], without: Sequence[str]) -> tuple[Column, ...]:
    """The columns but those of the given keys, each of which must be there."""
    out = {Column.parse(key) for key in without}
    for column in out - set(columns):
        raise InputError(f"column {column.key!r} is not in this grid: check --grid and --without")
    return tuple(column for column in columns if column not in out)
