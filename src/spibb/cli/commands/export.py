"""`spibb export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spibb.cli.commands.act import say_doubt
from spibb.cli.options import ForceFile, PolicyArgument
from spibb.cli.progress import new_console

Out = Annotated[Path, typer.Option(help="The file to write; with --as file, it ends in .spibb.")]
Kind = Annotated[
    str,
    typer.Option(
        "--as",
        help="file: one .spibb file with everything; sql: a SELECT with CASE; rules: text for "
        "people; tree: a decision tree.",
    ),
]
Dialect = Annotated[str | None, typer.Option(help="For sql: duckdb (the default) or postgres.")]
Table = Annotated[str | None, typer.Option(help="For sql: the table of cases.")]
Uniform = Annotated[
    str | None,
    typer.Option(
        help="For sql: column of uniform numbers in [0, 1) to draw with. Default: random()."
    ),
]
Deterministic = Annotated[
    bool,
    typer.Option("--deterministic", help="For sql and rules: take the most probable action."),
]
Depth = Annotated[int | None, typer.Option(help="For tree: maximum depth (default 4).")]


def export(
    policy: PolicyArgument,
    out: Out,
    kind: Kind = "file",
    dialect: Dialect = None,
    table: Table = None,
    uniform: Uniform = None,
    deterministic: Deterministic = False,
    depth: Depth = None,
    force: ForceFile = False,
) -> None:
    """Write a policy for use elsewhere: as one file, as SQL, as rules, or as a decision tree."""
    from spibb.cli import terminal
    from spibb.ingest.policy_files import load_policy
    from spibb.serving.export import export_policy

    loaded = load_policy(policy)
    export_policy(
        loaded, kind, out, dialect=dialect, table=table, uniform=uniform,
        deterministic=deterministic, depth=depth, force=force,
    )  # fmt: skip
    say_doubt(loaded)
    terminal.say_path(new_console(), f"Written: {out}")
