"""`spibb improve`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spibb.cli.options import (
    BaselineOption,
    BaselineTable,
    ForceFolder,
    LogArgument,
    baseline_of,
    with_columns,
)
from spibb.cli.progress import SOLVER, new_console, stages
from spibb.defaults import DISCOUNT
from spibb.errors import InputError, masked
from spibb.names import ALGORITHMS, DQN

if TYPE_CHECKING:
    from rich.console import Console

    from spibb.ingest.mapping import ColumnMap
    from spibb.running import Run, VectorRun

REPORT = "report.html"

Out = Annotated[Path, typer.Option(help="Folder for the new policy, the summary and the report.")]
Algorithm = Annotated[
    str,
    typer.Option(
        help=f"{', '.join(ALGORITHMS)}; {DQN} for numeric columns; or your own, as module.Class."
    ),
]
NWedge = Annotated[
    str | None,
    typer.Option(
        help="Minimum visits before a state–action pair is trusted (default 10), or auto."
    ),
]
Option = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=VALUE", help="Another option of the algorithm. Repeatable."),
]
Discount = Annotated[float, typer.Option(help="Discount γ of future rewards, in [0, 1).")]
Delta = Annotated[
    float | None,
    typer.Option(help="Failure probability of the certificate and of all bounds (default 0.05)."),
]
VMax = Annotated[
    float | None, typer.Option(help="Largest absolute return. Default: derived from the log.")
]
Holdout = Annotated[
    float | None,
    typer.Option(
        help="Share of the episodes to hold out for a test of the result (default for dqn: 0.3)."
    ),
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the posterior draws and of --holdout.")]
Sceptic = Annotated[
    bool,
    typer.Option(
        "--sceptic",
        help="Add a section for sceptics to the report: hidden causes, memory, drift, overlap, "
        "rehearsals. Takes some seconds, at most ten of them for rehearsals.",
    ),
]
SpreadsheetSafe = Annotated[
    bool,
    typer.Option(
        "--spreadsheet-safe",
        help="Put an apostrophe before labels in policy.csv that begin with =, +, - or @.",
    ),
]
Checkpoint = Annotated[
    Path | None,
    typer.Option(
        help="For dqn: .npz file with the state of training, so that a stopped run can continue."
    ),
]


@with_columns
def improve(  # noqa: PLR0913 (one parameter per option)
    log: LogArgument,
    out: Out,
    baseline: BaselineOption = None,
    baseline_table: BaselineTable = None,
    algorithm: Algorithm = "pi-b",
    n_wedge: NWedge = None,
    option: Option = None,
    discount: Discount = DISCOUNT,
    delta: Delta = None,
    v_max: VMax = None,
    holdout: Holdout = None,
    seed: Seed = 0,
    sceptic: Sceptic = False,
    force: ForceFolder = False,
    spreadsheet_safe: SpreadsheetSafe = False,
    checkpoint: Checkpoint = None,
    *,
    column_map: ColumnMap,
) -> None:
    """Improve a baseline policy from its log, departing from it only where the log has evidence.

    The log has the columns episode_id, step, state, action, reward, and optionally next_state,
    terminated, truncated, action_prob. With --bandit it needs only state, action, reward, and
    optionally action_prob. If your columns have other names, give them as options or in a mapping
    file.

    Writes policy.csv, policy.parquet, policy.json, summary.json and report.html. --algorithm dqn
    trains a network on numeric --state columns instead, and writes policy.npz and policy.onnx.
    """
    import shlex

    from spibb.cli import terminal
    from spibb.cli.logs import NO_DISCOUNT
    from spibb.running import VectorRun, run

    console = new_console()
    deep = algorithm.lower() == DQN
    chosen, delta = _chosen(algorithm, _parse_options(option or [], n_wedge, delta), delta)
    with stages(console, compiles=None if deep else SOLVER) as tell:
        done: Run | VectorRun = run(
            log, out, baseline=baseline_of(log, baseline, baseline_table), algorithm=chosen,
            **column_map.reading, discount=discount, delta=delta, v_max=v_max, holdout=holdout,
            seed=seed, sceptic=sceptic, force=force, spreadsheet_safe=spreadsheet_safe,
            checkpoint=checkpoint, progress=tell,
            announce=lambda text: terminal.say_path(console, text),
            command=shlex.join(["spibb", *map(masked, sys.argv[1:])]),
        )  # fmt: skip
    if isinstance(done, VectorRun):
        from spibb.cli.vectors import print_vectors

        print_vectors(console, done.improvement, done.verdict)
    else:
        terminal.print_improvement(console, done.assessment)
    if column_map.handling.bandit:
        terminal.say(console, NO_DISCOUNT)
    _say_written(console, done, out)


def _say_written(console: Console, done: Run | VectorRun, out: Path) -> None:
    """What was assumed about the log, and where the files are."""
    from spibb.cli import terminal
    from spibb.cli.logs import say_findings
    from spibb.files import read_manifest

    say_findings(console, done.assumptions)
    files = ", ".join(name for name in sorted(read_manifest(out)) if name != REPORT)
    terminal.say_path(console, f"\nWritten: {out}/{files}")
    terminal.say_path(console, f"Report: {out / REPORT}")


def _chosen(
    algorithm: str, options: dict[str, Any], delta: float | None
) -> tuple[Any, float | None]:
    """The configured algorithm and its δ, from its own options and those of `run`."""
    if algorithm.lower() != DQN:
        from spibb.algorithms import configured

        return configured(algorithm, options, delta)
    from spibb.stored_policies import need_deep

    need_deep()
    from spibb.running.vector_work import settings_of

    return settings_of(algorithm, options), delta


def _parse_options(
    pairs: list[str], n_wedge: str | None, delta: float | None = None
) -> dict[str, Any]:
    """Read name=value pairs; values are numbers or booleans where they look like them, or several
    of these, as 5,10,20 or (5, 10, 20)."""
    from spibb.checks import parse_value, parse_values

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
        options[name], source[name] = parse_values(text), f"--option {pair}"
    return options
