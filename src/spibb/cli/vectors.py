"""The command line on logs of vectors: what `improve --algorithm dqn` and others do and print."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spibb.cli.waiting import ESTIMATORS, new_console, progress, stages
from spibb.errors import InputError, masked

if TYPE_CHECKING:
    from rich.console import Console

    from spibb.deep.improving import VectorImprovement
    from spibb.deep.judging import VectorDepartures
    from spibb.deep.vector_policy import VectorPolicy
    from spibb.ingest.mapping import ColumnMap
    from spibb.sql.sources import Source

ALGORITHM = "dqn"
HOLDOUT = 0.3
FILE = "policy.npz"


def is_vector_policy(given: str | Path | Source) -> bool:
    """Whether a policy is one on vectors: an .npz file, or a folder that has one."""
    path = given if isinstance(given, Path) else _path(given)
    file = path / FILE if path is not None and path.is_dir() else path
    return file is not None and file.suffix == ".npz" and file.is_file()


def _path(given: str | Path | Source) -> Path | None:
    from spibb.sql.sources import Source

    return Source.of(given).path


def improve_dqn(
    log: str | Source, out: Path, options: Mapping[str, Any], column_map: ColumnMap, **given: Any
) -> None:
    """Train SPIBB-DQN on numeric columns, and print what came of it."""
    _need_extra()
    from spibb.cli import terminal
    from spibb.vector_running import run_vectors

    if column_map.bins:
        column = next(iter(column_map.bins))
        raise InputError(
            f"--bin cuts the column {column!r}, and dqn takes it as a number: leave --bin out, or "
            "choose another algorithm"
        )
    settings = _settings(options)
    console = new_console()
    with stages(console) as tell:
        result = run_vectors(
            log, out, settings, reading=_reading(column_map), progress=tell,
            announce=lambda text: terminal.say_path(console, text),
            command=shlex.join(["spibb", *map(masked, sys.argv[1:])]),
            **{name: value for name, value in given.items() if value is not None},
        )  # fmt: skip
    print_vectors(console, result)
    terminal.say_path(console, f"\nWritten: {out}/policy.npz, policy.onnx, summary.json")
    terminal.say_path(console, f"Report: {out / 'report.html'}")


def _need_extra() -> None:
    try:
        import spibb.deep  # noqa: F401
    except ImportError as error:
        raise InputError(str(error)) from None


def _settings(options: Mapping[str, Any]) -> Any:
    import dataclasses

    from spibb.checks import did_you_mean
    from spibb.deep.improving import VectorDQN

    known = [field.name for field in dataclasses.fields(VectorDQN)]
    for name in options:
        if name not in known:
            raise InputError(
                f"dqn has no option {name!r}{did_you_mean(name, known)}: its options are "
                f"{', '.join(known)}"
            )
    return VectorDQN(**options)


def print_vectors(console: Console, result: VectorImprovement) -> None:
    """The verdict, the settings, the current policy, and the most typical changes."""
    from spibb.cli import terminal
    from spibb.deep.cases import coverage
    from spibb.words import number, percent

    policy, covered = result.policy, coverage(result)
    terminal.print_verdict(console, result.verdict)
    terminal.say(
        console,
        f"{len(result.log):,} transitions in {result.log.n_episodes:,} episodes train, "
        f"{len(policy.features)} columns, {len(policy.actions)} actions; radius "
        f"{policy.radius:.3g} deviations, n_wedge {policy.n_wedge:g}: {percent(covered.changed)} "
        f"of the decisions change, {percent(covered.copied)} are copied because evidence is too "
        "thin",
    )
    if result.clone is None:
        terminal.say(console, "The current policy is the one given.")
    else:
        source = "recorded probabilities" if result.log.action_prob is not None else "the log"
        terminal.say(
            console,
            f"The current policy was cloned from {source} ({result.clone.kind}): log-loss "
            f"{number(result.clone.log_loss)} nats on decisions that it was not fitted to, against "
            f"{number(result.clone.marginal_loss)} for the frequencies alone",
        )
    if result.held_out is not None:
        terminal.print_differences(console, result.held_out)
        if result.held_out.warning:
            terminal.say(console, f"Careful: {result.held_out.warning}; single departures decide.")
    _print_cases(console, result)


def _print_cases(console: Console, result: VectorImprovement) -> None:
    from rich.markup import escape

    from spibb.cli import terminal
    from spibb.deep.cases import typical_cases
    from spibb.words import clipped, number

    cases = typical_cases(result)
    if not cases:
        terminal.say(console, "No decision changes: the new policy is the current one.")
        return
    table = terminal.numbers_table(
        "Changed decisions by kind, each with its most typical case:",
        "less of", "more of", "share", "mass moved", "typically",
    )  # fmt: skip
    for case in cases:
        where = ", ".join(f"{clipped(k)} {number(v)}" for k, v in case.state.items())
        table.add_row(
            escape(clipped(case.less)), escape(clipped(case.more)), f"{case.share:.1%}",
            f"{case.moved:.2f}", escape(where),
        )  # fmt: skip
    console.print(table)


def evaluate_vectors(
    log: str | Source, policy: str | Source, behaviour: Any, discount: float | None,
    column_map: ColumnMap, **given: Any,
) -> None:  # fmt: skip
    """Off-policy estimates of a policy on vectors."""
    _need_extra()
    import numpy as np

    from spibb.cli import terminal
    from spibb.deep.estimates import estimate_on
    from spibb.deep.judging import departures
    from spibb.deep.vector_policy import load_vector_policy
    from spibb.ingest.vectors import read_vectors

    if behaviour is not None:
        raise InputError(
            "--behaviour is for tables: a policy on vectors is judged by the column action_prob, "
            "or by the baseline that is stored with it; leave it out"
        )
    console = new_console()
    rng = np.random.default_rng(given.pop("seed"))
    with progress(console, "reading and evaluating", compiles=ESTIMATORS):
        path = _path(policy)
        assert path is not None
        loaded = load_vector_policy(path)
        how = _reading(column_map) | {"columns": _columns(loaded, column_map)}
        records = read_vectors(log, **how)
        gamma = loaded.discount if discount is None else discount
        report = estimate_on(records, loaded, gamma, rng=rng, **given)
        single = departures(records, loaded, gamma, delta=report.delta, rng=rng)
    terminal.print_estimates(console, report)
    terminal.say(console, departures_line(single))
    made = "action_prob" if records.action_prob is not None else "the baseline stored with it"
    source = "as given" if discount is not None else "the one that the policy was made with"
    terminal.say_path(console, f"Probabilities of the logged actions: {made}")
    terminal.say_path(console, f"Discount {gamma:g}, {source}")


def departures_line(found: VectorDepartures) -> str:
    """What single departures gain, in a sentence."""
    from spibb.words import signed

    return (
        f"Departing once and following the current policy otherwise gains {signed(found.gain)} per "
        f"episode; lower bounds {signed(found.student_t)} (student-t), {signed(found.bca)} (bca)"
    )


def _reading(column_map: ColumnMap) -> dict[str, Any]:
    """The mapping as `read_vectors` takes it."""
    return {name: value for name, value in column_map.reading.items() if name != "bins"}


def _columns(policy: VectorPolicy, column_map: ColumnMap) -> Mapping[str, Any]:
    """Read a log as the policy's was read, in all that the options leave open."""
    if column_map.bins:
        raise InputError("--bin is for tables: a policy on vectors takes numbers; leave it out")
    columns = {"state": policy.features, "action": policy.actions.names, **column_map.columns}
    state = columns["state"]
    named = (state,) if isinstance(state, str) else tuple(state)
    if len(named) != len(policy.features):
        raise InputError(
            f"--state names {len(named)} columns, and the policy was made of "
            f"{len(policy.features)}: {', '.join(policy.features)}"
        )
    return columns


def act_on_vector(policy: Path, state: list[str]) -> None:
    """Print the distribution over actions for one vector."""
    _need_extra()
    from spibb.cli.tables import print_actions
    from spibb.deep.vector_policy import load_vector_policy
    from spibb.ingest.policy_files import parse_case

    loaded = load_vector_policy(policy)
    case = parse_case(state, loaded.features)
    label = tuple(case[name] for name in loaded.features if name in case)
    print_actions(new_console(), label if len(label) > 1 else label[0], loaded.row(case))
