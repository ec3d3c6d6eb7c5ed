"""`spibb experiment`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spibb.cli.waiting import STUDY, new_console, progress
from spibb.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from spibb.experiments.spec import Experiment

FAMILY = "gridworld-baselines"


def experiment(  # noqa: PLR0913 (one parameter per option)
    study: Annotated[
        str,
        typer.Argument(
            help="gridworld, gridworld-random, random-mdps or helicopter; gridworld-baselines: the "
            "gridworld with each of 22 baselines; assurance: how often is a policy said to be safe "
            "truly worse?"
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder for the rows.")],
    runs: Annotated[
        int | None,
        typer.Option(help="Repetitions; more can be added later. assurance: else 1,000 or 200."),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(help="Processes on this machine; else one per core, or one for short work."),
    ] = None,
    dask: Annotated[str | None, typer.Option(help="Address of a Dask scheduler instead.")] = None,
    grid: Annotated[
        str,
        typer.Option(
            help="main: the paper's benchmark; search: its hyper-parameter search; "
            "search-released: that with Robust MDP and HCPI as released; ours: the benchmark with "
            "auto and certified; helicopter: main, noise, ramdp, single or passes; assurance: "
            "main, or large worlds."
        ),
    ] = "main",
    column: Annotated[
        list[str] | None,
        typer.Option(help="Only this algorithm, as name:option=value,…; repeatable."),
    ] = None,
    also: Annotated[
        list[str] | None,
        typer.Option(
            help="This algorithm beside the others; your own class as module.Class:option=value,…"
        ),
    ] = None,
    without: Annotated[
        list[str] | None, typer.Option(help="Leave this algorithm of the grid out; repeatable.")
    ] = None,
    sizes: Annotated[str | None, typer.Option(help="Only these sizes, as 10,50,200.")] = None,
    etas: Annotated[str | None, typer.Option(help="Only these η, as 0.1,0.9.")] = None,
    families: Annotated[
        str | None, typer.Option(help="Assurance: only these worlds, as river-swim,taxi.")
    ] = None,
    noises: Annotated[
        str | None, typer.Option(help="Helicopter: these noise factors, as 0.5,1.")
    ] = None,
    passes: Annotated[
        str | None, typer.Option(help="Helicopter: test after these passes, as 200,2000.")
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Helicopter: networks per column and data set.")
    ] = None,
    episodes: Annotated[
        int | None, typer.Option(min=1, help="Helicopter: episodes that test a network.")
    ] = None,
    baseline: Annotated[
        str | None, typer.Option(help="Gridworlds: authors (default), spibb or drawn-0 … drawn-19.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the whole experiment.")] = 0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the cost and stop.")] = False,
) -> None:
    """Repeat a study of the paper; the same command continues a run that was stopped.

    Then `spibb figures` and `spibb claims` on the same folder.
    """
    from spibb.cli import terminal
    from spibb.envs.baselines import GRIDWORLD_BASELINES
    from spibb.experiments.studies import select_experiment, usual_runs

    console = new_console()
    family = study == FAMILY
    study = "gridworld" if family else study
    names = GRIDWORLD_BASELINES if family and baseline is None else (baseline,)
    specs = [
        select_experiment(
            study, grid, column or [], _numbers(sizes), _numbers(etas), seed, also or [],
            tuple(families.split(",")) if families else (), name, without or [],
            noises=_numbers(noises), passes=_numbers(passes), seeds=seeds, episodes=episodes,
        )
        for name in names
    ]  # fmt: skip
    runs = usual_runs(study, grid) if runs is None else runs
    for name, spec in zip(names, specs):
        _run_study(console, spec, out / str(name) if family else out, runs, jobs, dask, dry_run)
    if not dry_run:
        drawn = f"spibb claims {out}" if family else f"spibb figures {out} ; spibb claims {out}"
        terminal.say_path(console, f"Next: {drawn}")


def _run_study(
    console: Console,
    spec: Experiment,
    out: Path,
    runs: int,
    jobs: int | None,
    dask: str | None,
    dry_run: bool,
) -> None:
    """Run what is missing of one experiment, with its cost and progress."""
    from spibb.cli import studies, terminal
    from spibb.experiments.runner import execute, plan

    cores = os.cpu_count() or 1
    with progress(console, "looking at the folder and timing one run", compiles=STUDY):
        todo = plan(spec, out, runs, cores if jobs is None else jobs, dry=dry_run)
    workers = todo.processes(cores) if jobs is None else jobs
    for broken in todo.set_aside:
        fate = "will be set aside" if dry_run else "set aside"
        terminal.say_path(console, f"Cannot be read, {fate} and done again: {broken}")
    terminal.say_path(console, studies.cost(todo, workers, dask))
    if todo.chunks and not dry_run:
        studies.show_progress(console, todo, execute(todo, jobs=workers, dask=dask))


def _numbers(text: str | None) -> tuple[float, ...]:
    """Read 10,50,200."""
    try:
        return tuple(float(part) for part in text.split(",")) if text else ()
    except ValueError:
        raise InputError(f"{text!r} is not a list of numbers: write 10,50,200") from None
