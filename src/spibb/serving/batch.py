"""A file of cases, and the same with decisions: all rows, or none."""

from __future__ import annotations

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
    decided = loaded.act_many(table, seed=seed, deterministic=deterministic, unseen=unseen)
    write_rows(_with_decisions(table, decided, source.name), out)
    return decided


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
