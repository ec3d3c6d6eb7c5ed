"""A file of cases, and the same with decisions: all rows, or none."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from spibb.decisions import Decisions, settled
from spibb.errors import InputError
from spibb.ingest.loaded import Loaded
from spibb.sql.commas import cells_with_points
from spibb.sql.engines import Engine
from spibb.sql.opening import open_source
from spibb.sql.sources import Source
from spibb.sql.writing import check_distinct, check_target, write_rows

if TYPE_CHECKING:
    import pyarrow as pa

COMMA_IN_MESSAGE = re.compile(r" is '[+-]?[0-9]*,[0-9]+',")
DECIMAL_COMMAS = "; or read decimal commas with --decimal ,"
DECISION = "decision"
PROBABILITY = "decision_probability"


def decide_file(
    loaded: Loaded,
    cases: Path | Source,
    out: Path,
    *,
    seed: int = 0,
    deterministic: bool = False,
    unseen: str = "error",
    force: bool = False,
) -> Decisions:
    """Write the rows of a file with an action each, in their order; nothing if any is refused.

    The column of the action is `decision`; where an action spans columns such as drug and dose,
    they are `decision_drug` and `decision_dose`.
    """
    check_target(out, force=force)
    source = Source.of(cases)
    engine = open_source(source, csv="allow_quoted_nulls=false")
    check_distinct(engine, f"{source.name!r}")
    table = engine.table("SELECT * FROM log")
    given = _as_in_logs(table, engine, loaded)
    try:
        decided = loaded.act_many(given, seed=seed, deterministic=deterministic, unseen=unseen)
    except InputError as error:
        comma = COMMA_IN_MESSAGE.search(str(error)) and source.decimal == "."
        raise InputError(f"{error}{DECIMAL_COMMAS if comma else ''}") from None
    written = _with_decisions(table, decided, source.name)
    if engine.decimal == "," and out.suffix == ".csv":
        written = _with_commas(written)
    write_rows(written, out)
    return decided


def _as_in_logs(table: pa.Table, engine: Engine, loaded: Loaded) -> pa.Table:
    """The cases as a log with these rows is read; the file that is written keeps its cells."""
    import pyarrow as pa

    for place, name in enumerate(table.column_names):
        column = table.column(name)
        if name not in loaded.state_names or not pa.types.is_string(column.type):
            continue
        if name in engine.loose and name not in loaded.empty_names:
            column = _without_empty(column)
        if engine.decimal == ",":
            column = _with_points(column, name, loaded, loose=name in engine.loose)
        table = table.set_column(place, name, column)
    return table


def _without_empty(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """An empty cell of a CSV file is missing, in quotes or not."""
    import pyarrow as pa
    from pyarrow import compute

    return compute.if_else(compute.equal(column, ""), pa.scalar(None, column.type), column)


def _with_points(
    column: pa.ChunkedArray, name: str, loaded: Loaded, *, loose: bool
) -> pa.ChunkedArray:
    """Points in the place of decimal commas; a number that has a point might be thousands."""
    from pyarrow import compute

    if name not in loaded.number_names:
        return cells_with_points(column, loaded.values(name)) if loose else column
    pointed = compute.index(compute.match_substring(column, "."), True).as_py()
    if pointed >= 0:
        raise InputError(
            f"{name} is {column[pointed].as_py()!r}, in row {pointed} of the cases: with "
            "decimal commas a number has no point"
        )
    return compute.replace_substring(column, ",", ".")


def _with_commas(table: pa.Table) -> pa.Table:
    """The probabilities with decimal commas, as the other numbers of the file."""
    from pyarrow import compute

    text = compute.replace_substring(table.column(PROBABILITY).cast("string"), ".", ",")
    return table.set_column(table.column_names.index(PROBABILITY), PROBABILITY, text)


def _with_decisions(table: pa.Table, decided: Decisions, cases: str) -> pa.Table:
    import pyarrow as pa

    columns = decided.columns
    names = [DECISION] if len(columns) == 1 else [f"{DECISION}_{name}" for name in columns]
    present = {name.lower() for name in table.column_names}
    for name in (*names, PROBABILITY):
        if name.lower() in present:
            raise InputError(
                f"{cases!r} has a column {name!r} already: rename or drop it, since the "
                "decisions go there"
            )
    chance = pa.array(settled(decided.probability), mask=decided.codes < 0)
    for name, column in (*zip(names, columns.values()), (PROBABILITY, chance)):
        table = table.append_column(name, column)
    return table
