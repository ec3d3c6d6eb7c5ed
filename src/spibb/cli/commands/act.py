"""`spibb act`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spibb.cli.options import ForceFile, PolicyArgument
from spibb.cli.progress import new_console, progress
from spibb.errors import InputError

if TYPE_CHECKING:
    from spibb.ingest.loaded import Loaded
    from spibb.sql.sources import Source

State = Annotated[
    list[str] | None,
    typer.Option(
        metavar="LABEL",
        help="Label of the state, or column=value for each column. Repeatable.",
    ),
]
Cases = Annotated[
    Path | None,
    typer.Option(
        help="File of cases to decide: .csv, .parquet or .jsonl, with the state's columns."
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(help="With --cases: file for the cases with their decisions."),
]
Seed = Annotated[int, typer.Option(min=0, help="With --cases: seed of the draws.")]
Deterministic = Annotated[
    bool,
    typer.Option("--deterministic", help="With --cases: take the most probable action."),
]
Unseen = Annotated[
    str,
    typer.Option(help="With --cases, for unknown states: error, or empty to leave them undecided."),
]
Encoding = Annotated[
    str | None, typer.Option(help="With --cases: encoding, such as latin-1. Default: UTF-8.")
]
Separator = Annotated[
    str | None,
    typer.Option(help="With --cases: column separator, such as ';'. Default: detected."),
]
Decimal = Annotated[
    str | None, typer.Option(help="With --cases: decimal mark in text files, . or ,")
]


def act(  # noqa: PLR0913 (one parameter per option)
    policy: PolicyArgument,
    state: State = None,
    cases: Cases = None,
    out: Out = None,
    seed: Seed = 0,
    deterministic: Deterministic = False,
    unseen: Unseen = "error",
    encoding: Encoding = None,
    separator: Separator = None,
    decimal: Decimal = None,
    force: ForceFile = False,
) -> None:
    """Print the distribution over actions for a new case, or decide a whole file of cases.

    Give raw values: binned columns are binned as in training. The file of decisions has the columns
    of the cases, `decision` and `decision_probability`. If the policy does not know a state,
    nothing is written, unless you give --unseen empty.
    """
    for_many = {
        "out": out is not None, "seed": seed != 0, "deterministic": deterministic,
        "unseen": unseen != "error", "encoding": encoding is not None,
        "separator": separator is not None, "decimal": decimal is not None, "force": force,
    }  # fmt: skip
    if cases is None:
        _check_single(state, for_many)
        _decide_one(policy, state or [])
        return
    if state or out is None:
        problem = "--state and --cases ask for different things" if state else "--cases lacks --out"
        raise InputError(f"{problem}: write --cases FILE --out FILE, or --state alone")
    from spibb.sql.sources import Source

    source = Source(str(cases), encoding=encoding, separator=separator, decimal=decimal or ".")
    _decide_file(policy, source, out, seed, deterministic, unseen, force)


def _check_single(state: list[str] | None, for_many: Mapping[str, bool]) -> None:
    if not state:
        raise InputError("neither --state nor --cases is given: give the cases to decide")
    for name, used in for_many.items():
        if used:
            raise InputError(f"--{name} is for --cases, which is not given: leave it out")


def _decide_one(policy: Path, state: list[str]) -> None:
    from spibb.cli.tables import print_actions
    from spibb.ingest.loaded import LoadedPolicy
    from spibb.ingest.policy_files import parse_case
    from spibb.stored_policies import load_any

    loaded = load_any(policy)
    known = loaded.encoder.values if isinstance(loaded, LoadedPolicy) else lambda name: ()
    empty = [name for name in loaded.state_names if "" in known(name)]
    label = loaded.encode(parse_case(state, loaded.state_names, empty))
    row = loaded.row(label)
    say_doubt(loaded)
    print_actions(new_console(), label, row)


def _decide_file(
    policy: Path, cases: Source, out: Path, seed: int, deterministic: bool, unseen: str, force: bool
) -> None:
    from spibb.cli import terminal
    from spibb.serving.batch import decide_file
    from spibb.stored_policies import load_any

    console = new_console()
    with progress(console, "reading and deciding"):
        loaded = load_any(policy)
        decided = decide_file(
            loaded, cases, out, seed=seed, deterministic=deterministic, unseen=unseen, force=force
        )
    say_doubt(loaded)
    empty = int((decided.codes < 0).sum())
    rest = f"; {empty:,} left empty: the policy does not know their states" if empty else ""
    of = f" of {len(decided):,}" if empty else ""
    terminal.say_path(console, f"{len(decided) - empty:,}{of} cases decided{rest}. Written: {out}")


def say_doubt(loaded: Loaded) -> None:
    """One line on stderr where the verdict on a policy was "not supported"."""
    if loaded.doubt is not None:
        print(f"spibb: {' '.join(loaded.doubt.split())}", file=sys.stderr)
