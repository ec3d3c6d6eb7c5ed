"""Options that several commands share: where the log is, and what its columns mean."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

if TYPE_CHECKING:
    from spibb.ingest.mapping import ColumnMap

LogArgument = Annotated[
    str,
    typer.Argument(
        help="The log: a file (.csv, .parquet, .json, .xlsx …; also compressed), a pattern, a "
        "folder, a database, or a web or cloud address."
    ),
]
PolicyArgument = Annotated[
    Path, typer.Argument(help="A policy file, or the folder that `spibb improve` wrote.")
]
BaselineOption = Annotated[
    str | None,
    typer.Option(
        help="The policy that made the log: a table of state, action, probability. Or "
        "recorded: use the column action_prob. Or estimate:SMOOTHING: estimate it from the "
        "log. Default: recorded if the log has that column, otherwise estimate."
    ),
]
BaselineTable = Annotated[
    str | None,
    typer.Option(help="Table of the baseline in the log's own database or workbook."),
]
ForceFile = Annotated[bool, typer.Option("--force", help="Overwrite the file of --out.")]
ForceFolder = Annotated[bool, typer.Option("--force", help="Write into a non-empty folder.")]
DiscountOption = Annotated[
    float | None,
    typer.Option(
        help="Discount γ of future rewards, in [0, 1). Default: the one the policy was trained "
        "with, or 0.95 if that is unknown."
    ),
]
Text = str | None
OPTIONS: dict[str, Any] = {
    "mapping": Annotated[
        Path | None, typer.Option(help="TOML file with [columns] and [bins]. Options override it.")
    ],
    "state": Annotated[Text, typer.Option(help="State column, or several: ward,severity.")],
    "action": Annotated[Text, typer.Option(help="Action column, or several: drug,dose.")],
    "reward": Annotated[Text, typer.Option(help="Reward column.")],
    "episode_id": Annotated[
        Text,
        typer.Option("--episode-id", "--episode", help="Column that identifies the episode."),
    ],
    "step": Annotated[
        Text, typer.Option(help="Column that orders the rows of an episode: a number or a time.")
    ],
    "next_state": Annotated[
        Text, typer.Option(help="Next-state column; as many columns as --state has.")
    ],
    "terminated": Annotated[
        Text, typer.Option(help="Column that is true where the process ended.")
    ],
    "truncated": Annotated[
        Text, typer.Option(help="Column that is true where the record was cut.")
    ],
    "action_prob": Annotated[
        Text, typer.Option(help="Column with the probability of the logged action.")
    ],
    "bin": Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN:BINS",
            help="Cut a numeric column into bins: age:10 by quantiles, age:18,40,65 at edges, "
            "age:18, at one edge. Repeatable.",
        ),
    ],
    "bandit": Annotated[
        bool | None,
        typer.Option(
            "--bandit", help="Every row is a separate decision: no episodes, steps or ends."
        ),
    ],
    "unit": Annotated[
        Text,
        typer.Option(
            help="With --bandit: column of the user, patient or machine that a decision is about, "
            "or several. One row of each counts, drawn at random; split keeps its rows together."
        ),
    ],
    "missing": Annotated[
        Text,
        typer.Option(
            help="Missing values: error (default); as-level makes them a label of their own in "
            "states and actions; drop leaves out the episodes that have them."
        ),
    ],
    "duplicates": Annotated[
        Text,
        typer.Option(help="Repeated steps: error (default); drop keeps one of several equal rows."),
    ],
}
HANDLING = ("bandit", "missing", "duplicates")
FORM: dict[str, Any] = {
    "table": Annotated[
        Text,
        typer.Option(help="Table of a database, sheet of an .xlsx, or file of a .zip to read."),
    ],
    "query": Annotated[
        Text, typer.Option(help="SELECT statement for a database, instead of --table.")
    ],
    "encoding": Annotated[
        Text, typer.Option(help="Encoding of text files, such as latin-1. Default: UTF-8.")
    ],
    "decimal": Annotated[Text, typer.Option(help="Decimal mark in text files: . or ,")],
    "separator": Annotated[
        Text,
        typer.Option(help="Column separator of text files, such as ';'. Default: detected."),
    ],
}
"""How the log is read; encoding, decimal and separator also hold for policies in text."""
POLICIES = ("baseline", "policy", "behaviour", "a", "b")


def with_columns(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options above; it takes them as one parameter, `column_map`."""
    hints = get_type_hints(command, localns={"ColumnMap": object}, include_extras=True)
    own = [
        parameter.replace(annotation=hints[name])
        for name, parameter in inspect.signature(command).parameters.items()
        if name != "column_map"
    ]
    more = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in {**OPTIONS, **FORM}.items()
    ]

    @functools.wraps(command)
    def run(**arguments: Any) -> None:
        given = {name: arguments.pop(name) for name in OPTIONS}
        form = {name: arguments.pop(name) for name in FORM}
        arguments = with_sources(arguments, **form)
        command(**arguments, column_map=column_map(given.pop("mapping"), given.pop("bin"), **given))

    run.__signature__ = inspect.Signature([*own, *more])  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in (*own, *more)}
    del run.__wrapped__  # type: ignore[attr-defined]
    return run


def with_sources(
    arguments: dict[str, Any], table: Text, query: Text, **text: Text
) -> dict[str, Any]:
    """The arguments with sources instead of names; policies are in text like the log's."""
    from spibb.errors import InputError
    from spibb.sql.sources import Source

    given = {name: value for name, value in text.items() if value is not None}
    if arguments["log"] is None and (table or query):
        raise InputError("--table and --query apply to the log, and none is given: add --log")
    found = {
        name: Source(arguments[name], **given).in_its_kind()
        for name in POLICIES
        if isinstance(arguments.get(name), str)
    }
    if arguments["log"] is not None:
        found["log"] = Source(arguments["log"], table, query, **given)
    return {**arguments, **found}


def baseline_of(log: Any, baseline: Any, table: str | None) -> Any:
    """The baseline as it is given, or a table beside the log's."""
    if table is None:
        return baseline
    from dataclasses import replace

    from spibb.errors import InputError

    if baseline is not None:
        raise InputError("--baseline and --baseline-table are both given: keep one of them")
    return replace(log, place=log.of(log).place, table=table, query=None)


def named(given: Any) -> str:
    """What a policy is called that was given as a source."""
    from spibb.sql.sources import Source

    return Source.of(given).name


def column_map(mapping: Path | None, bins: list[str] | None, **options: Any) -> ColumnMap:
    """The mapping file with the options put over it."""
    from spibb.binning import parse_bins
    from spibb.ingest.mapping import ColumnMap, read_mapping, split_names

    base = ColumnMap() if mapping is None else read_mapping(mapping)
    given = {name: text for name, text in options.items() if text is not None}
    said = {name: given.pop(name) for name in HANDLING if name in given}
    columns = {name: split_names(text) for name, text in given.items()}
    return base.updated(columns, parse_bins(bins or []), **said)
