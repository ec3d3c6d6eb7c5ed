"""Split a table into two tables of whole episodes, without changing any cell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np

from spibb import checks
from spibb.columns import ALIASES, UNIT, check_unit
from spibb.errors import InputError
from spibb.ingest.mapping import ColumnMap, ColumnNames
from spibb.labels import Label, factorize
from spibb.sql.duck_files import DuckFiles
from spibb.sql.engines import Engine, quoted
from spibb.sql.expressions import Reader
from spibb.sql.writing import check_distinct
from spibb.words import listed

if TYPE_CHECKING:
    import pyarrow as pa

EPISODE = "episode_id"
TAG = "a name, as spibb reads it"


@dataclass(frozen=True, eq=False)
class Parts:
    """Rows to train with and rows kept apart, in their order, and how many episodes each has.

    `ending` is that of the files: .csv for a log in text, else .parquet, which keeps types. `what`
    says what is counted: episodes, or units whose rows stay together.
    """

    train: pa.Table
    test: pa.Table
    train_episodes: int
    test_episodes: int
    ending: str
    what: str


def split_table(engine: Engine, column_map: ColumnMap, share: float, seed: int) -> Parts:
    """Keep a share of the episodes apart, at least one, and leave at least one.

    Which ones depends on the seed and on the names of the episodes alone: not on the order of the
    rows, nor on the kind of the file. Where rows are episodes of their own (a bandit log), it is
    what a row holds that counts, and which of several equal rows it is; rows of one unit stay
    together.
    """
    checks.number("share", share, 0, 1, "()")
    checks.seed(seed)
    check_distinct(engine, "the log")
    columns, single = column_map.columns, column_map.handling.bandit
    check_unit(columns, single)
    together = _unit_columns(engine, columns)
    if single and not together:
        rows, names, codes = _rows(engine)
    else:
        rows, names, codes = _named(engine, together or [_episode_column(engine, columns)])
    noun, by = ("unit", f" ({listed(together)})") if together else ("episode", "")
    if len(names) < 2:
        raise InputError(f"the log has only one {noun}{by}, and a split needs at least 2: add some")
    chosen = _held_out(names, share, seed)
    held_out = np.isin(codes, chosen)
    csv = isinstance(engine, DuckFiles) and engine.files.untyped
    return Parts(
        _where(rows, ~held_out), _where(rows, held_out), len(names) - len(chosen), len(chosen),
        ".csv" if csv else ".parquet", f"{noun}s{by}",
    )  # fmt: skip


Named = tuple["pa.Table", Sequence[Label], np.ndarray]
"""Rows, the distinct names of their episodes, and the code of each row's name [N]."""


def _named(engine: Engine, columns: Sequence[str]) -> Named:
    """Rows that belong together by the values of some columns."""
    for name in columns:
        if len(engine.columns[name]) > 1:
            raise InputError(f"column {name!r} names rows by lists: name them by text or numbers")
    labels = [Reader(engine, {}).label(engine.columns[name][0]) for name in columns]
    tags = {f"{TAG} {i}": label for i, label in enumerate(labels)}
    tagged = ", ".join(f"{label} AS {quoted(tag)}" for tag, label in tags.items())
    table = engine.table(f"SELECT *, {tagged} FROM log")
    found, codes = factorize([table.column(tag) for tag in tags], *columns)
    return table.drop_columns(list(tags)), found.labels, codes


def _unit_columns(engine: Engine, columns: ColumnNames) -> list[str]:
    """The columns that name units; none where rows have no unit."""
    given = columns.get(UNIT, ())
    names = [given] if isinstance(given, str) else list(given)
    present = list(engine.columns)
    for name in names:
        if name not in present:
            raise InputError(
                f"the log has no column {name!r}{checks.did_you_mean(name, present)}: its columns "
                f"are {checks.some(present, 20)}; name that of the unit with --unit"
            )
    return names


def _episode_column(engine: Engine, columns: ColumnNames) -> str:
    return episode_column(list(engine.columns), columns)


def _rows(engine: Engine) -> Named:
    """Every row by itself, named by what it holds and by its number among equal rows."""
    table = engine.table("SELECT * FROM log")
    times: Counter[str] = Counter()
    names = []
    for row in zip(*(column.cast("string").to_pylist() for column in table.columns)):
        held = repr(row)
        times[held] += 1
        names.append(f"{times[held]} {held}")
    return table, names, np.arange(len(names))


def episode_column(present: Sequence[str], columns: ColumnNames) -> str:
    """The column that names the episodes: as mapped, ours, or an alias."""
    given: Any = columns.get(EPISODE)
    if given is not None and not isinstance(given, str):
        raise InputError(f"episode_id is {list(given)}, expected one column: name one")
    names = (given,) if given is not None else (EPISODE, *ALIASES[EPISODE])
    for name in names:
        if name in present:
            return str(name)
    hint = checks.did_you_mean(names[0], present)
    raise InputError(
        f"the log has no column {names[0]!r}{hint}: its columns are {checks.some(present, 20)}; "
        "name that of the episode with --episode-id"
    )


def _held_out(episodes: Sequence[Label], share: float, seed: int) -> np.ndarray:
    """Codes of the episodes to keep apart: those whose names, mixed with the seed, come first."""
    mixed = [sha256(f"{seed} {label}".encode()).digest() for label in episodes]
    n = min(max(round(share * len(episodes)), 1), len(episodes) - 1)
    return np.array(sorted(range(len(episodes)), key=lambda code: mixed[code])[:n])


def _where(table: pa.Table, mask: np.ndarray) -> pa.Table:
    import pyarrow as pa

    return table.filter(pa.array(mask))
