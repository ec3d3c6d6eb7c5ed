"""`spibb experiment`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spibb.cli.progress import STUDY, new_console, progress
from spibb.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from spibb.experiments.runner import Plan
    from spibb.experiments.spec import Experiment

FAMILY, PAPER = "gridworld-baselines", "paper"
PAGE = "paper.html"

StudyArgument = Annotated[
    str,
    typer.Argument(
        help="gridworld, gridworld-random, random-mdps or helicopter: the paper's studies; "
        "paper: the first three, and a page that says which claims hold; gridworld-baselines: the "
        "gridworld with each of 22 baselines; assurance: how often a policy that is called safe "
        "is truly worse."
    ),
]
Out = Annotated[Path, typer.Option(help="Folder for the rows.")]
Runs = Annotated[
    int | None,
    typer.Option(help="Repetitions. You can add more later. Default for assurance: 1,000 or 200."),
]
Jobs = Annotated[
    int | None,
    typer.Option(help="Processes on this machine. Default: one per core, or one for short work."),
]
Dask = Annotated[str | None, typer.Option(help="Address of a Dask scheduler, instead of --jobs.")]
Grid = Annotated[
    str,
    typer.Option(
        help="main: the paper's benchmark; search: its hyper-parameter search; "
        "search-released: the search with Robust MDP and HCPI as released; ours: the benchmark "
        "with auto and certified; helicopter: main, noise, ramdp, single or passes; assurance: "
        "main, or large worlds."
    ),
]
Column = Annotated[
    list[str] | None,
    typer.Option(
        metavar="ALGORITHM",
        help="Run only this algorithm, as name:option=value,… Repeatable.",
    ),
]
Also = Annotated[
    list[str] | None,
    typer.Option(
        metavar="ALGORITHM",
        help="Add this algorithm to the others; your own as module.Class:option=value,… "
        "Repeatable.",
    ),
]
Without = Annotated[
    list[str] | None,
    typer.Option(metavar="ALGORITHM", help="Leave out this algorithm of the grid. Repeatable."),
]
Sizes = Annotated[
    str | None,
    typer.Option(
        help="Only these sizes, such as 10,50,200. In finite studies another list gives other logs."
    ),
]
Etas = Annotated[
    str | None, typer.Option(help="Only these η, such as 0.1,0.9. Another list gives other logs.")
]
Families = Annotated[
    str | None, typer.Option(help="Assurance: only these worlds, such as river-swim,taxi.")
]
Noises = Annotated[
    str | None, typer.Option(help="Helicopter: only these noise factors, such as 0.5,1.")
]
Passes = Annotated[
    str | None, typer.Option(help="Helicopter: test after these passes, such as 200,2000.")
]
Seeds = Annotated[
    int | None, typer.Option(min=1, help="Helicopter: networks per column and data set.")
]
Episodes = Annotated[
    int | None, typer.Option(min=1, help="Helicopter: episodes that test a network.")
]
Baseline = Annotated[
    str | None,
    typer.Option(
        help="Gridworlds: authors (default), spibb or drawn-0 … drawn-19. Helicopter: a "
        "network, in an .npz file that SoftmaxBaseline.save wrote."
    ),
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the whole experiment.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the cost, and run nothing.")]


def experiment(  # noqa: PLR0913 (one parameter per option)
    study: StudyArgument,
    out: Out,
    runs: Runs = None,
    jobs: Jobs = None,
    dask: Dask = None,
    grid: Grid = "main",
    column: Column = None,
    also: Also = None,
    without: Without = None,
    sizes: Sizes = None,
    etas: Etas = None,
    families: Families = None,
    noises: Noises = None,
    passes: Passes = None,
    seeds: Seeds = None,
    episodes: Episodes = None,
    baseline: Baseline = None,
    seed: Seed = 0,
    dry_run: DryRun = False,
) -> None:
    """Repeat a study of the paper; the same command continues a run that was stopped.

    Afterwards run `spibb figures` and `spibb claims` on the same folder.
    """
    from spibb.experiments.studies import select_experiment, usual_runs

    console = new_console()
    places = _places(study, out, baseline)
    specs = {
        folder: select_experiment(
            name, grid, column or [], _numbers(sizes), _etas(name, study, etas), seed, also or [],
            tuple(families.split(",")) if families else (), table, without or [],
            noises=_numbers(noises), passes=_numbers(passes), seeds=seeds, episodes=episodes,
        )
        for folder, (name, table) in places.items()
    }  # fmt: skip
    first = next(iter(specs.values())).study
    runs = usual_runs(first, grid) if runs is None else runs
    todo = {
        folder: _plan(console, spec, folder, runs, jobs, dask, dry_run)
        for folder, spec in specs.items()
    }
    if dry_run:
        return
    for planned, workers in todo.values():
        _execute(console, planned, workers, dask)
    _say_next(console, study, out)


def _places(study: str, out: Path, baseline: str | None) -> dict[Path, tuple[str, str | None]]:
    """Folders of what is run, with study and baseline: one, or one each of several."""
    from spibb.checks import choice
    from spibb.envs.baselines import GRIDWORLD_BASELINES
    from spibb.experiments.spec import FINITE, STUDY_NAMES

    choice("study", study, (*STUDY_NAMES, FAMILY, PAPER))
    if study == PAPER and baseline is not None:
        raise InputError(f"{PAPER} runs the authors' baseline: leave --baseline out")
    if study == PAPER:
        return {out / name: (name, None) for name in FINITE}
    if study == FAMILY:
        names = GRIDWORLD_BASELINES if baseline is None else (baseline,)
        return {out / name: ("gridworld", name) for name in names}
    return {out: (study, baseline)}


def _etas(name: str, study: str, etas: str | None) -> tuple[float, ...]:
    """The η that are asked for, which of the paper's studies only the random MDPs have."""
    return () if study == PAPER and name != "random-mdps" else _numbers(etas)


def _say_next(console: Console, study: str, out: Path) -> None:
    """What to type next; for the whole paper, the page itself."""
    from spibb.cli import terminal
    from spibb.cli.commands.claims import claims
    from spibb.cli.commands.figures import figures
    from spibb.experiments.spec import FINITE

    if study == PAPER:
        from spibb.paper.plot import has_matplotlib

        for name in FINITE if has_matplotlib() else ():
            figures(out / name, small=True)
        claims([out / name for name in FINITE], html=out / PAGE)
        return
    drawn = f"spibb figures {out} ; " if study != FAMILY else ""
    terminal.say_path(console, f"Next: {drawn}spibb claims {out}")


def _plan(
    console: Console,
    spec: Experiment,
    out: Path,
    runs: int,
    jobs: int | None,
    dask: str | None,
    dry_run: bool,
) -> tuple[Plan, int]:
    """Look at what is missing of one experiment, and say what it costs; with the processes."""
    from spibb.cli import studies, terminal
    from spibb.experiments.runner import plan

    cores = os.cpu_count() or 1
    with progress(console, "looking at the folder and timing one run", compiles=STUDY):
        todo = plan(spec, out, runs, cores if jobs is None else jobs, dry=dry_run)
    workers = todo.processes(cores) if jobs is None else jobs
    for broken in todo.set_aside:
        fate = "will be set aside" if dry_run else "set aside"
        terminal.say_path(console, f"Cannot be read, {fate} and done again: {broken}")
    terminal.say_path(console, studies.cost(todo, workers, dask))
    return todo, workers


def _execute(console: Console, todo: Plan, workers: int, dask: str | None) -> None:
    """Run what is missing, with progress."""
    from spibb.cli import studies
    from spibb.experiments.runner import execute

    if todo.chunks:
        studies.show_progress(console, todo, execute(todo, jobs=workers, dask=dask))


def _numbers(text: str | None) -> tuple[float, ...]:
    """Read 10,50,200."""
    try:
        return tuple(float(part) for part in text.split(",")) if text else ()
    except ValueError:
        raise InputError(f"{text!r} is not a list of numbers: write 10,50,200") from None
