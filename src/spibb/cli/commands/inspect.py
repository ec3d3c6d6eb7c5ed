"""`spibb inspect`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from spibb.cli.options import (
    BaselineOption,
    BaselineTable,
    LogArgument,
    baseline_of,
    with_columns,
)
from spibb.cli.progress import new_console, progress
from spibb.errors import FixableError, InputError, masked

if TYPE_CHECKING:
    from spibb.ingest.mapping import ColumnMap

Discount = Annotated[
    float | None,
    typer.Option(
        help="Discount γ of the forecast, in [0, 1). Default: 0.95, and 0 for single steps."
    ),
]


@with_columns
def inspect(
    log: LogArgument,
    baseline: BaselineOption = None,
    baseline_table: BaselineTable = None,
    discount: Discount = None,
    *,
    column_map: ColumnMap,
) -> None:
    """Look at a log before anything is trained: sizes, coverage, and what is suspicious.

    The first line says in how many states a change could be certified (logs of up to 200,000 rows).
    --baseline often raises this number.
    """
    from spibb.cli.tables import print_inspection
    from spibb.ingest import open_log
    from spibb.inspection import inspect_log

    console, given = new_console(), baseline_of(log, baseline, baseline_table)
    try:
        with progress(console, "reading and counting") as tell:
            table = open_log(log, **column_map.reading, progress=tell)
            inspection = inspect_log(table, baseline=given, discount=discount)
    except FixableError as error:
        raise InputError(f"{error}{_proposal(log, column_map)}") from None
    print_inspection(console, inspection)


def _proposal(log: str, column_map: ColumnMap) -> str:
    """This command with the options that let it read the log, if there are any.

    Of a command that names somebody, only the options: masked, it could not be copied.
    """
    import shlex

    from spibb.ingest.proposing import proposed

    options = proposed(log, column_map)
    if not options:
        return ""
    words = _without(options, sys.argv[1:])
    if any(masked(word) != word for word in words):
        return f"; try to add: {shlex.join(options)}"
    return f"; try: {shlex.join(['spibb', *words, *options])}"


def _without(options: list[str], words: list[str]) -> list[str]:
    """The words of a command without these options and their values."""
    replaced = {option for option in options if option.startswith("--")}
    pairs = zip(words, ["", *words])
    return [word for word, before in pairs if replaced.isdisjoint((word.partition("=")[0], before))]
