"""A file of cases, and the same with decisions: all rows, or none."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from spibb.checks import InputError
from spibb.deciding import Decisions
from spibb.ingest.loaded import Loaded
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
    given = _with_points(table, loaded.number_names) if source.decimal == "," else table
    try:
        decided = loaded.act_many(given, seed=seed, deterministic=deterministic, unseen=unseen)
    except InputError as error:
        comma = COMMA_IN_MESSAGE.search(str(error)) and source.decimal == "."
        raise InputError(f"{error}{DECIMAL_COMMAS if comma else ''}") from None
    write_rows(_with_decisions(table, decided, source.name), out)
    return decided


def _with_points(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """The cases with points in the place of decimal commas; a number that has a point is refused.

    It might be thousands: 1.234.
    """
    import pyarrow as pa
    from pyarrow import compute

    for name in names:
        if name not in table.column_names or not pa.types.is_string(table.schema.field(name).type):
            continue
        place, column = table.column_names.index(name), table.column(name)
        pointed = compute.index(compute.match_substring(column, "."), True).as_py()
        if pointed >= 0:
            raise InputError(
                f"{name} is {column[pointed].as_py()!r}, in row {pointed} of the cases: with "
                "decimal commas a number has no point"
            )
        table = table.set_column(place, name, compute.replace_substring(column, ",", "."))
    return table


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
    chance = pa.array(decided.probability, mask=decided.codes < 0)
    for name, column in (*zip(names, columns.values()), (PROBABILITY, chance)):
        table = table.append_column(name, column)
    return table
