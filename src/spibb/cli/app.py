"""The command line: parse, call, print."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from spibb import __version__
from spibb.cli.options import DiscountOption, LogArgument, with_columns
from spibb.cli.stopping import Stopped, stoppable
from spibb.cli.waiting import progress
from spibb.errors import InputError
from spibb.files import is_full

if TYPE_CHECKING:
    from rich.console import Console

    from spibb.experiments.spec import Experiment
    from spibb.ingest.mapping import ColumnMap

ALGORITHMS = (
    "pi-b, pi-leq-b, auto, certified, basic-rl, hcpi, ramdp, robust-mdp, arbrm or model-free"
)

SOLVER = ("dense.policy_iteration", 12.0)
ESTIMATORS = ("ope.step_sums", 5.0)
STUDY = ("study.train", 30.0)
"""A kernel of each kind of work, and seconds of compiling (python -m benchmarks start)."""

app = typer.Typer(
    help="Improve a decision policy from its own log, without making it worse.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help starts twice as fast
    context_settings={"help_option_names": ["-h", "--help"]},
)


USAGE: Any = next(k for k in typer.BadParameter.__mro__ if k.__name__ == "ClickException")
"""What a wrong command line raises; Typer brings its own copy of Click."""


LONGEST = 500
"""Characters of a message; a hostile file may have column names of any length."""


def main() -> None:
    """Run the command line; bad input ends in one line and exit code 2, never a traceback.

    So does a full disk. A signal ends in one line and its own exit code.
    """
    try:
        with stoppable():
            code = app(standalone_mode=False, prog_name="spibb")
            sys.stdout.flush()
        sys.exit(code)
    except Stopped as stop:
        _refuse(str(stop), stop.code)
    except InputError as error:
        _refuse(str(error))
    except USAGE as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            error.show()
            sys.exit(2)
        context = getattr(error, "ctx", None)
        command = context.command_path if context else "spibb"
        _refuse(f"{error.format_message()} (see {command} --help)")
    except MemoryError:
        _refuse("there is not enough memory: ask for less, or cut states and actions into fewer")
    except BrokenPipeError:  # as in `spibb inspect log.csv | head`
        _discard_output()
        sys.exit(1)
    except OSError as error:
        _discard_output()
        remedy = "free some space" if is_full(error) else "check file and disk"
        _refuse(f"{error.strerror or error} ({error.filename or 'no file'}): {remedy}")


def _refuse(message: str, code: Any = 2) -> NoReturn:
    line = " ".join(message.split())
    if len(line) > LONGEST:
        line = f"{line[: LONGEST // 2]} … {line[-LONGEST // 2 :]}"
    print("spibb:", line, file=sys.stderr)
    sys.exit(code)


def _discard_output() -> None:
    """Drop what could not be printed; Python would try again at the end."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


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


@app.command(short_help="Start here: a synthetic log, improved and compared with the truth.")
def demo(
    out: Annotated[Path, typer.Option(help="Folder for report, picture, log and baseline.")] = Path(
        "spibb-demo"
    ),
    episodes: Annotated[
        int, typer.Option(min=1, max=1_000_000, help="Trajectories in the log.")
    ] = 200,
    n_wedge: Annotated[
        float, typer.Option(help="Minimum visits before a state–action pair is trusted.")
    ] = 10,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the log.")] = 1,
) -> None:
    """Make a gridworld log, improve the policy that made it, and show the truth beside it."""
    console = _console()
    with progress(console, "drawing a log and improving its policy", compiles=SOLVER):
        from spibb.cli import terminal
        from spibb.cli.demo import run_demo, write_demo
        from spibb.report.folder import claim

        with claim(out, force=True) as held:
            result = run_demo(episodes, n_wedge, seed)
            files = write_demo(result, held)
    title = f"Gridworld, {episodes} trajectories, n_wedge {n_wedge:g}"
    console.print(terminal.demo_table(result.rows, title))
    for name, improvement in result.results.items():
        terminal.say(console, f"{name}: {improvement.certificate()}")
    terminal.say_path(console, f"\nPicture of the policies: {files.picture}")
    terminal.say_path(console, f"Report of pi-b: {files.report}")
    terminal.say_path(console, "The same from files:")
    terminal.say_path(console, f"  {files.command}")
    terminal.say_path(console, "Then, with episodes that the new policy made:")
    terminal.say_path(console, f"  {files.monitor}")


@app.command(short_help="Improve a policy from its own log.")
@with_columns
def improve(  # noqa: PLR0913 (one parameter per option)
    log: LogArgument,
    out: Annotated[Path, typer.Option(help="Folder for the new policy and the summary.")],
    baseline: Annotated[
        str | None,
        typer.Option(
            help="The policy that made the log: state, action, probability. Without it, or with "
            "estimate:SMOOTHING, it is read off the log."
        ),
    ] = None,
    algorithm: Annotated[str, typer.Option(help=f"{ALGORITHMS}; or module.Class.")] = "pi-b",
    n_wedge: Annotated[
        str | None,
        typer.Option(
            help="Minimum visits before a state–action pair is trusted (default 10), or auto."
        ),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(help="Another option of the algorithm, as name=value; repeatable."),
    ] = None,
    discount: Annotated[
        float, typer.Option(help="Discount γ of future rewards, in [0, 1).")
    ] = 0.95,
    delta: Annotated[
        float | None, typer.Option(help="Failure probability of the certificate (default 0.05).")
    ] = None,
    v_max: Annotated[
        float | None, typer.Option(help="Largest absolute return; derived from the log if absent.")
    ] = None,
    holdout: Annotated[
        float, typer.Option(help="Share of the episodes that is kept apart to test the result.")
    ] = 0.0,
    seed: Annotated[
        int, typer.Option(min=0, help="Seed of the posterior draws and of --holdout.")
    ] = 0,
    sceptic: Annotated[
        bool,
        typer.Option(
            "--sceptic",
            help="Add a page for sceptics to the report: hidden causes, memory, drift, overlap, "
            "rehearsals. Takes some ten seconds.",
        ),
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Write into a non-empty folder.")] = False,
    spreadsheet_safe: Annotated[
        bool,
        typer.Option(
            "--spreadsheet-safe",
            help="Put an apostrophe before labels of policy.csv that begin with =, +, - or @.",
        ),
    ] = False,
    *,
    column_map: ColumnMap,
) -> None:
    """Improve a baseline policy from its log, departing from it only where the log has evidence.

    The log has the columns episode_id, step, state, action, reward, terminated, and optionally
    next_state, truncated, action_prob; options or a mapping file name your own columns. Writes
    policy.csv, policy.parquet, policy.json, summary.json and report.html.
    """
    import shlex

    from spibb.algorithms import configured
    from spibb.cli import terminal
    from spibb.running import run

    console = _console()
    chosen, delta = configured(algorithm, _parse_options(option or [], n_wedge, delta), delta)
    with progress(console, "reading, counting, improving", compiles=SOLVER) as tell:
        done = run(
            log, out, baseline=baseline, algorithm=chosen, columns=column_map.columns,
            bins=column_map.bins, discount=discount, delta=delta, v_max=v_max, holdout=holdout,
            seed=seed, sceptic=sceptic, force=force, spreadsheet_safe=spreadsheet_safe,
            progress=tell,
            command=shlex.join(["spibb", *sys.argv[1:]]),
        )  # fmt: skip
    terminal.print_improvement(console, done.assessment)
    terminal.say_path(console, f"\nWritten: {out}/policy.csv, policy.parquet, summary.json")
    terminal.say_path(console, f"Report: {out / 'report.html'}")


@app.command(short_help="Estimate what a policy would earn, from a log.")
@with_columns
def evaluate(
    log: LogArgument,
    policy: Annotated[
        Path, typer.Option(help="The policy to evaluate: state, action, probability.")
    ],
    behaviour: Annotated[
        Path | None,
        typer.Option(help="The policy that made the log; the column action_prob if absent."),
    ] = None,
    discount: DiscountOption = None,
    delta: Annotated[float, typer.Option(help="Failure probability of the lower bounds.")] = 0.05,
    lowest_return: Annotated[
        float, typer.Option(help="A number that no return can be below; exact bounds need it.")
    ] = 0.0,
    highest_return: Annotated[
        float,
        typer.Option(help="One that none can exceed; exact bounds of the difference need it."),
    ] = float("inf"),
    seed: Annotated[int, typer.Option(min=0, help="Seed of the bootstrap.")] = 0,
    *,
    column_map: ColumnMap,
) -> None:
    """Estimate what a policy would earn from a log that another policy made.

    Prints six off-policy estimators with four lower bounds each, and the same for the difference to
    the policy that made the log. A policy that was trained on this
    very log looks better than it is: keep some episodes apart for this.
    """
    import numpy as np

    from spibb.cli import terminal
    from spibb.ingest import read_log, read_policy
    from spibb.ingest.policy_files import load_policy
    from spibb.monitoring.deployed import discount_for
    from spibb.ope import off_policy_estimates

    console = _console()
    with progress(console, "reading and evaluating", compiles=ESTIMATORS):
        column_map = load_policy(policy).complete(column_map)
        gamma, source = discount_for(discount, policy)
        records = read_log(log, columns=column_map.columns, bins=column_map.bins)
        made = None if behaviour is None else read_policy(behaviour, records)
        report = off_policy_estimates(
            records, read_policy(policy, records), made, gamma, delta=delta,
            lowest_return=lowest_return, highest_return=highest_return,
            rng=np.random.default_rng(seed),
        )  # fmt: skip
    terminal.print_estimates(console, report)
    terminal.say_path(console, f"Discount {gamma:g}, {source}")


@app.command(short_help="After deployment: is the new policy no worse?")
@with_columns
def monitor(
    policy: Annotated[
        Path, typer.Argument(metavar="POLICY", help="The folder that `spibb improve` wrote.")
    ],
    log: Annotated[
        str,
        typer.Argument(
            metavar="LOG", help="Episodes of the new policy, all since the start: as any log."
        ),
    ],
    lowest_return: Annotated[
        float | None, typer.Option(help="A number that no return of an episode can be below.")
    ] = None,
    highest_return: Annotated[
        float | None, typer.Option(help="One that none can exceed; else those given to improve.")
    ] = None,
    delta: Annotated[
        float, typer.Option(help="Probability of a false alarm, ever; and of a false all-clear.")
    ] = 0.05,
    margin: Annotated[float, typer.Option(help="How much worse is tolerated.")] = 0.0,
    drop: Annotated[
        float | None, typer.Option(help="How many more episodes would show a drop of this size?")
    ] = None,
    order: Annotated[
        str | None,
        typer.Option(
            help="Column that orders the episodes: number or time. Else the step where it is a "
            "time, and the episode's name where it is not."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
    *,
    column_map: ColumnMap,
) -> None:
    """Test on episodes of the new policy whether it is worse than the baseline was.

    Ask as often as you like: the error probability is for all looks together. The exit code is 1
    for an alarm (roll back), 0 for "no worse" and "undecided", 2 for bad input.
    """
    from spibb.ingest import open_log
    from spibb.monitoring.deployed import load_deployed
    from spibb.monitoring.watch import chronological
    from spibb.monitoring.watch import monitor as test_for_loss

    console = _console()
    with progress(console, "reading and comparing"):
        deployed = load_deployed(policy)
        column_map = deployed.loaded.complete(column_map)
        table = open_log(log, columns=column_map.columns, bins=column_map.bins)
        records, how = chronological(table, order)
        found = test_for_loss(
            deployed, records, delta=delta, margin=margin, lowest_return=lowest_return,
            highest_return=highest_return, drop=drop, order=how,
        )  # fmt: skip
    if as_json:
        import json

        print(json.dumps(found.summary, indent=2, ensure_ascii=False))
    else:
        from spibb.cli.watching import print_monitoring

        print_monitoring(console, found)
    if found.alarm:
        raise typer.Exit(1)


@app.command(short_help="Look at a log: is it good enough?")
@with_columns
def inspect(log: LogArgument, *, column_map: ColumnMap) -> None:
    """Look at a log before anything is trained: sizes, coverage, and what is suspicious.

    The last lines say in how many states it could certify a change, up to 200,000 rows.
    """
    from spibb.cli.tables import print_inspection
    from spibb.counts import Counts
    from spibb.forecast import LARGEST, forecast
    from spibb.ingest import open_log
    from spibb.ingest.inspection import inspect_log

    console = _console()
    with progress(console, "reading and counting") as tell:
        table = open_log(log, columns=column_map.columns, bins=column_map.bins, progress=tell)
        rows = table.log() if table.rows <= LARGEST else None
        inspection = inspect_log(table, None if rows is None else Counts.from_log(rows))
        found = None if rows is None else forecast(rows)
    print_inspection(console, inspection, found)


@app.command(short_help="What a policy does in a state.")
def act(
    policy: Annotated[
        Path, typer.Argument(help="A policy file, or the folder that `spibb improve` wrote.")
    ],
    state: Annotated[
        list[str],
        typer.Option(help="The state's label, or column=value for each column; repeatable."),
    ],
) -> None:
    """Print the distribution over actions for a new case.

    Raw values of columns that were cut into bins are encoded as they were in training.
    """
    from spibb.cli.tables import print_actions
    from spibb.ingest.policy_files import load_policy, parse_case

    loaded = load_policy(policy)
    label = loaded.encode(parse_case(state, loaded.policy.states.names))
    print_actions(_console(), label, loaded.row(label))


@app.command(short_help="Say where two policies differ, and which is better.")
@with_columns
def compare(
    a: Annotated[Path, typer.Argument(metavar="A", help="A policy: a file, or improve's folder.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="Another, or the baseline.")],
    log: Annotated[
        str | None, typer.Option(help="A log: adds visits, values and which is better.")
    ] = None,
    discount: DiscountOption = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the posterior draws.")] = 0,
    *,
    column_map: ColumnMap,
) -> None:
    """Say in which states two policies differ and by how much.

    With a log, also what both are worth in its models, and the verdict on A in the place of B.
    """
    from spibb.cli import terminal
    from spibb.ingest import read_log, read_policy
    from spibb.ingest.policy_files import load_policy
    from spibb.monitoring.deployed import discount_for
    from spibb.report.comparison import compare as compare_policies

    console = _console()
    with progress(console, "reading and comparing"):
        first, second = load_policy(a), load_policy(b)
        left, right, records = first.policy, second.policy, None
        gamma, source = discount_for(discount, *((a, b) if log is not None else ()))
        if log is not None:
            column_map = second.complete(first.complete(column_map))
            records = read_log(log, columns=column_map.columns, bins=column_map.bins)
            left, right = read_policy(a, records), read_policy(b, records)
        found = compare_policies(left, right, records, discount=gamma, seed=seed)
    terminal.print_comparison(console, found)
    if log is not None:
        terminal.say_path(console, f"Discount {gamma:g}, {source}")


@app.command(short_help="Repeat a study of the paper; continues if stopped.")
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
            help="main: the paper's benchmark; search: its hyper-parameter search; helicopter: "
            "main, noise, ramdp, single or passes; assurance: main, or large worlds."
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

    console = _console()
    family = study == FAMILY
    study = "gridworld" if family else study
    names = GRIDWORLD_BASELINES if family and baseline is None else (baseline,)
    specs = [
        select_experiment(
            study, grid, column or [], _numbers(sizes), _numbers(etas), seed, also or [],
            tuple(families.split(",")) if families else (), name,
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


FAMILY = "gridworld-baselines"


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
    import os

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


@app.command(short_help="Draw the paper's figures from a study's rows.")
def figures(
    folder: Annotated[Path, typer.Argument(help="A folder that `spibb experiment` wrote.")],
) -> None:
    """Draw every figure of the paper that the stored rows can give, and a page that shows them."""
    from spibb.cli import terminal
    from spibb.experiments.results import results_table
    from spibb.paper.figures import write_figures
    from spibb.paper.stored import read_results
    from spibb.tables import write_table

    console = _console()
    with progress(console, "aggregating the rows", "of the columns") as tell:
        results = read_results(folder, tell)
    with progress(console, "drawing"):
        write_table(results_table(results), folder / "table.csv")
        paths = write_figures(results, folder)
    terminal.say_path(console, f"Numbers: {folder / 'table.csv'}")
    terminal.say_path(console, f"{len(paths) - 1} figures; open {paths[-1]}")


@app.command(short_help="Decide the paper's claims from studies' rows.")
def claims(
    folders: Annotated[
        list[Path],
        typer.Argument(help="Folders that `spibb experiment` wrote; or their stored tables."),
    ],
    html: Annotated[
        Path | None, typer.Option(help="Write the page “Does the paper hold?” to this file.")
    ] = None,
) -> None:
    """Say, claim by claim, what the paper states and whether the stored rows show it.

    Several folders of one study are read together; a folder of `gridworld-baselines` says on how
    many baselines each claim holds.
    """
    from spibb.cli import terminal
    from spibb.experiments.runner import SPEC
    from spibb.files import write_text
    from spibb.paper import holds
    from spibb.paper.claims import MARKDOWN, TABLE, write_claims
    from spibb.paper.stored import read_results

    console = _console()
    for place, folder in enumerate(folders):
        if folder.resolve() in {other.resolve() for other in folders[:place]}:
            raise InputError(f"{str(folder)!r} is given twice: its rows would count twice")
    single, family = [], []
    with progress(console, "aggregating the rows", "of the columns") as tell:
        for folder in folders:
            members = sorted(path.parent for path in folder.glob(f"*/{SPEC}"))
            if members and not (folder / SPEC).is_file():
                family += [(member, read_results(member, tell)) for member in members]
            else:
                single.append((folder, read_results(folder, tell)))
    page = holds.gather(single, family)
    console.print(holds.terminal(page), markup=False, highlight=False)
    if html is not None:
        suffix = holds.markdown if html.suffix == ".md" else holds.web
        write_text(html, suffix(page, html.parent))
        terminal.say_path(console, f"Written: {html}")
        return
    for folder, results in single:
        write_claims(results, folder)
        terminal.say_path(console, f"Written: {folder / MARKDOWN}, {folder / TABLE}")


def _console() -> Console:
    from rich.console import Console

    return Console()


def _parse_options(
    pairs: list[str], n_wedge: str | None, delta: float | None = None
) -> dict[str, Any]:
    """Read name=value pairs; values are numbers or booleans where they look like them."""
    from spibb.checks import parse_value

    options: dict[str, Any] = {}
    source: dict[str, str] = {} if delta is None else {"delta": f"--delta {delta:g}"}
    if n_wedge is not None:
        options["n_wedge"], source["n_wedge"] = parse_value(n_wedge), f"--n-wedge {n_wedge}"
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise InputError(f"--option {pair!r} has no '=': write name=value")
        name = name.replace("-", "_")
        if name in source:
            raise InputError(
                f"{source[name]} and --option {pair} give one option twice: keep one of them"
            )
        options[name], source[name] = parse_value(text), f"--option {pair}"
    return options
