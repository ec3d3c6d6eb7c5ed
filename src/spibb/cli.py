"""The command line: parse, call, print."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spibb import __version__
from spibb.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from spibb.algorithms.base import Improvement
    from spibb.demo import Demo
    from spibb.evaluate import Posterior
    from spibb.experiments.runner import Plan
    from spibb.ope import OffPolicyReport

app = typer.Typer(
    help="Improve a decision policy from its own log, without making it worse.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Run the command line; bad input ends in one line and exit code 2, never a traceback."""
    try:
        app()
    except InputError as error:
        print(f"spibb: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("spibb: interrupted", file=sys.stderr)
        sys.exit(130)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"spibb {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the picture, log and baseline.")] = Path(
        "spibb-demo"
    ),
    episodes: Annotated[int, typer.Option(help="Trajectories in the log.")] = 200,
    n_wedge: Annotated[float, typer.Option(help="Trust a pair seen at least this often.")] = 10,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the log.")] = 1,
) -> None:
    """Make a gridworld log, improve the policy that made it, and show the truth beside it."""
    console = _console()
    with console.status("drawing a log and improving its policy (the first run compiles: 30 s)"):
        from spibb.demo import run_demo, write_demo
        from spibb.report.folder import check_writable

        check_writable(out, force=True)
        result = run_demo(episodes, n_wedge, seed)
        paths = write_demo(result, out)
    console.print(_demo_table(result, n_wedge))
    for name, improvement in result.results.items():
        console.print(f"{name}: {improvement.certificate()}", highlight=False, markup=False)
    picture, log, baseline = paths
    _print_path(console, f"\nPicture of the policies: {picture}")
    _print_path(console, "The same from files:")
    _print_path(console, f"  spibb improve {log} --baseline {baseline} --out {out / 'improved'}")


@app.command()
def improve(  # noqa: PLR0913 (one parameter per option)
    log: Annotated[Path, typer.Argument(help="The log: a .csv or .parquet file.")],
    baseline: Annotated[
        Path, typer.Option(help="The policy that made the log: state, action, probability.")
    ],
    out: Annotated[Path, typer.Option(help="Folder for the new policy and the summary.")],
    algorithm: Annotated[str, typer.Option(help="pi-b, pi-leq-b, basic-rl, …")] = "pi-b",
    n_wedge: Annotated[
        float | None, typer.Option(help="Trust a pair seen at least this often (default 10).")
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(help="Another option of the algorithm, as name=value; repeatable."),
    ] = None,
    discount: Annotated[
        float, typer.Option(help="Discount γ of future rewards, in [0, 1).")
    ] = 0.95,
    delta: Annotated[float, typer.Option(help="Failure probability of the certificate.")] = 0.05,
    v_max: Annotated[
        float | None, typer.Option(help="Largest absolute return; derived from the log if absent.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the posterior draws.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Write into a non-empty folder.")] = False,
) -> None:
    """Improve a baseline policy from its log, departing from it only where the log has evidence.

    The log has the columns episode_id, step, state, action, reward, terminated, and optionally
    next_state, truncated, action_prob. Writes policy.csv, policy.parquet and summary.json.
    """
    from spibb.algorithms import Problem, make
    from spibb.checks import delta as check_delta
    from spibb.ingest import read_log, read_policy
    from spibb.report.folder import check_writable, write_folder

    console = _console()
    options = _parse_options(option or []) | ({} if n_wedge is None else {"n_wedge": n_wedge})
    chosen = make(algorithm, **options)
    check_delta(delta)
    check_writable(out, force)
    with console.status("reading, counting, improving"):
        records = read_log(log)
        policy = read_policy(baseline, records)
        problem = Problem.from_log(records, policy, discount=discount, v_max=v_max)
        result = chosen.improve(problem)
        posterior = _posterior(result, seed)
    write_folder(result, posterior, delta, out)
    _print_improvement(console, result, posterior, delta)
    _print_path(console, f"\nWritten: {out}/policy.csv, policy.parquet, summary.json")


@app.command()
def evaluate(
    log: Annotated[Path, typer.Argument(help="The log: a .csv or .parquet file.")],
    policy: Annotated[
        Path, typer.Option(help="The policy to evaluate: state, action, probability.")
    ],
    behaviour: Annotated[
        Path | None,
        typer.Option(help="The policy that made the log; the column action_prob if absent."),
    ] = None,
    discount: Annotated[
        float, typer.Option(help="Discount γ of future rewards, in [0, 1).")
    ] = 0.95,
    delta: Annotated[float, typer.Option(help="Failure probability of the lower bounds.")] = 0.05,
    lowest_return: Annotated[
        float, typer.Option(help="A number that no return can be below; Bernstein needs it.")
    ] = 0.0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the bootstrap.")] = 0,
) -> None:
    """Estimate what a policy would earn from a log that another policy made.

    Prints six off-policy estimators with three lower bounds each. A policy that was trained on this
    very log looks better than it is: keep some episodes apart for this.
    """
    import numpy as np

    from spibb.ingest import read_log, read_policy
    from spibb.ope import off_policy_estimates

    console = _console()
    with console.status("reading and evaluating"):
        records = read_log(log)
        made = None if behaviour is None else read_policy(behaviour, records)
        report = off_policy_estimates(
            records, read_policy(policy, records), made, discount, delta=delta,
            lowest_return=lowest_return, rng=np.random.default_rng(seed),
        )  # fmt: skip
    _print_estimates(console, report)


@app.command()
def experiment(  # noqa: PLR0913 (one parameter per option)
    suite: Annotated[str, typer.Argument(help="gridworld, gridworld-random or random-mdps.")],
    runs: Annotated[int, typer.Option(help="Repetitions; more can be added later.")],
    out: Annotated[Path, typer.Option(help="Folder for the rows.")],
    jobs: Annotated[int, typer.Option(help="Processes on this machine.")] = 0,
    dask: Annotated[str | None, typer.Option(help="Address of a Dask scheduler instead.")] = None,
    grid: Annotated[
        str, typer.Option(help="main: the paper's benchmark; search: its hyper-parameter search.")
    ] = "main",
    column: Annotated[
        list[str] | None,
        typer.Option(help="Only this algorithm, as name:option=value,…; repeatable."),
    ] = None,
    sizes: Annotated[str | None, typer.Option(help="Only these sizes, as 10,50,200.")] = None,
    etas: Annotated[str | None, typer.Option(help="Only these η, as 0.1,0.9.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the whole experiment.")] = 0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the cost and stop.")] = False,
) -> None:
    """Repeat a study of the paper; the same command continues a run that was stopped.

    Then `spibb figures` and `spibb claims` on the same folder.
    """
    import os

    from spibb.experiments.runner import plan
    from spibb.experiments.suites import select_experiment

    console = _console()
    spec = select_experiment(suite, grid, column or [], _numbers(sizes), _numbers(etas), seed)
    workers = jobs or os.cpu_count() or 1
    with console.status("looking at the folder and timing one run (the first time compiles)"):
        todo = plan(spec, out, runs, workers)
    for broken in todo.set_aside:
        _print_path(console, f"Set aside, cannot be read, done again: {broken}")
    _print_path(console, _cost(todo, workers, dask))
    if todo.chunks and not dry_run:
        _run_plan(console, todo, workers, dask)


def _numbers(text: str | None) -> tuple[float, ...]:
    """Read 10,50,200."""
    try:
        return tuple(float(part) for part in text.split(",")) if text else ()
    except ValueError:
        raise InputError(f"{text!r} is not a list of numbers: write 10,50,200") from None


def _cost(todo: Plan, workers: int, dask: str | None) -> str:
    seconds = todo.missing * todo.seconds_per_run / workers
    where = f"on the Dask cluster at {dask}" if dask else f"on {workers} processes"
    took = "" if dask else f", about {_duration(seconds)} {where}"
    return (
        f"{todo.experiment.suite}: {todo.done:,} of {todo.runs:,} runs are stored; "
        f"{todo.missing:,} to do, {todo.seconds_per_run * 1e3:.0f} ms each on one core{took}"
    )


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _run_plan(console: Console, todo: Plan, workers: int, dask: str | None) -> None:
    """Run with a progress bar; Ctrl-C keeps what is finished."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    from spibb.experiments.runner import execute

    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"), TimeElapsedColumn(), TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("runs", total=todo.missing, rate="")
        try:
            for chunk in execute(todo, jobs=workers, dask=dask):
                progress.advance(task, len(chunk))
                speed = progress.tasks[0].speed
                progress.update(task, rate=f"{speed:.1f}/s" if speed else "")
        except KeyboardInterrupt:
            done = todo.done + int(progress.tasks[0].completed)
            raise InputError(
                f"stopped: {done:,} of {todo.runs:,} runs are stored in {str(todo.folder)!r}; the "
                "same command continues"
            ) from None
    _print_path(console, f"Next: spibb figures {todo.folder} ; spibb claims {todo.folder}")


def _console() -> Console:
    from rich.console import Console

    return Console()


def _print_path(console: Console, text: str) -> None:
    """A line to copy from: neither wrapped nor read as markup."""
    console.print(text, highlight=False, markup=False, soft_wrap=True)


def _parse_options(pairs: list[str]) -> dict[str, Any]:
    """Read name=value pairs; values are numbers or booleans where they look like them."""
    options: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise InputError(f"--option {pair!r} has no '=': write name=value")
        options[name.replace("-", "_")] = _value(text)
    return options


def _value(text: str) -> bool | int | float | str:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _posterior(result: Improvement, seed: int) -> Posterior:
    import numpy as np

    from spibb.evaluate import posterior_improvement

    problem = result.problem
    return posterior_improvement(
        problem.counts, result.policy, problem.baseline, problem.discount,
        rng=np.random.default_rng(seed),
    )  # fmt: skip


def _table(title: str, *columns: str) -> Table:
    """A table whose first column is text and the others numbers."""
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number == 0 else "right")
    return table


def _print_estimates(console: Console, report: OffPolicyReport) -> None:
    cut = f", {report.n_truncated} of them cut short" if report.n_truncated else ""
    table = _table(
        f"{report.n_episodes:,} episodes{cut}; lower bounds fail with probability {report.delta:g}",
        "estimator", "estimate", *(bound.name for bound in report.rows[0].bounds),
    )  # fmt: skip
    refusals: dict[str, None] = {}
    for row in report.rows:
        cells = ["–" if bound.refusal else f"{bound.value:.4g}" for bound in row.bounds]
        table.add_row(row.estimate.name, f"{row.estimate.value:.4g}", *cells)
        refusals |= dict.fromkeys(bound.refusal for bound in row.bounds if bound.refusal)
    console.print(table)
    console.print(
        f"Effective sample size {report.effective_sample_size:.1f} of {report.n_episodes:,} episodes",
        highlight=False,
    )
    if report.warning:
        console.print(f"Warning: {report.warning}", style="bold", highlight=False, markup=False)
    for refusal in refusals:
        console.print(f"– {refusal}", highlight=False, markup=False)


def _demo_table(demo: Demo, n_wedge: float) -> Table:
    table = _table(
        f"Gridworld, {demo.log.n_episodes} trajectories, n_wedge {n_wedge:g}",
        "policy", "true value", "value in model", "P(no worse|log)", "pairs copied",
    )  # fmt: skip
    for row in demo.rows:
        probability = "" if row.probability is None else f"{row.probability:.3f}"
        copied = "" if row.pairs_copied is None else f"{row.pairs_copied:.0%}"
        table.add_row(
            row.name, f"{row.true_value:.4f}", f"{row.estimated_value:.4f}", probability, copied
        )
    return table


def _print_improvement(
    console: Console, result: Improvement, posterior: Posterior, delta: float
) -> None:
    from rich.markup import escape

    from spibb.report.changes import changes

    problem, changed = result.problem, changes(result)
    console.print(
        f"{int(problem.counts.pairs.sum()):,} transitions, {len(problem.states)} states, "
        f"{len(problem.actions)} actions; value in the model {result.value:.4g} "
        f"(baseline {result.baseline_value:.4g})",
        highlight=False,
        markup=False,
    )
    console.print(
        f"Probability, given the log, that the new policy is no worse: "
        f"{posterior.probability:.3f}; gain {posterior.gain:.4g} "
        f"[{posterior.interval[0]:.4g}, {posterior.interval[1]:.4g}]",
        highlight=False,
        markup=False,
    )
    console.print(str(result.certificate(delta)), highlight=False, markup=False)
    if reason := getattr(result, "reason", None):
        console.print(f"{result.algorithm.name}: {reason}", highlight=False, markup=False)
    if not changed:
        console.print(
            "No state changes: the policy written is the baseline.", highlight=False, markup=False
        )
        return
    table = _table(
        f"{len(changed)} of {len(problem.states)} states change; the first by visits × gain:",
        "state", "visits", "mass moved", "more of", "less of", "gain in the model",
    )  # fmt: skip
    for change in changed[:10]:
        table.add_row(
            escape(str(change.state)), f"{change.visits:,}", f"{change.moved:.2f}",
            escape(str(change.more)), escape(str(change.less)), f"{change.gain:.4g}",
        )  # fmt: skip
    console.print(table)
