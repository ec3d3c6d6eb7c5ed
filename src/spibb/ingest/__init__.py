"""From a table of any size to a log or its counts: files, dataframes, SQL engines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from spibb.binning import Bins, Request
from spibb.checks import callable_
from spibb.counts import Counts
from spibb.errors import InputError
from spibb.ingest.aggregate import LogTable
from spibb.ingest.mapping import ColumnNames
from spibb.ingest.policy_files import read_policy as read_policy
from spibb.irregular_tables import ERROR, STRICT, Handling
from spibb.labels import Label, Vocabulary
from spibb.log import Log
from spibb.sql import engines
from spibb.sql.engines import Engine
from spibb.sql.opening import open_source
from spibb.sql.reading import read_table as read_table
from spibb.sql.sources import Source
from spibb.tables import OnProgress


def read_log(
    source: Any,
    *,
    columns: ColumnNames | None = None,
    bins: Mapping[str, Request | Bins] | None = None,
    state_labels: Vocabulary | Sequence[Label] | None = None,
    action_labels: Vocabulary | Sequence[Label] | None = None,
    bandit: bool = False,
    missing: str = ERROR,
    duplicates: str = ERROR,
) -> Log:
    """Read all rows of a log from files with the columns that `Log.from_frame` lists.

    `source` and `bins` are those of `count_log`; the rows must fit into memory.

    Parameters:
        source: as in `count_log`.
        columns: our column names mapped to yours, as in `Log.from_frame`.
        bins: numeric columns to cut, as in `count_log`.
        state_labels: labels that the log may never show, in the order of their codes.
        action_labels: the same for actions.
        bandit: whether every row is an episode of one step that ends; columns of episodes, steps
            and ends are not needed then.
        missing: ``"error"``, ``"as-level"`` or ``"drop"``, as in `count_log`.
        duplicates: ``"error"`` or ``"drop"``, as in `count_log`.

    Returns:
        The log, sorted by episode and step.

    >>> _ = log.save("log.csv")
    >>> spibb.read_log("log.csv")
    Log(transitions=6, episodes=3, states=2, actions=2, rewards=0 to 1)
    """
    table = open_log(
        source, columns=columns, bins=bins, bandit=bandit, missing=missing, duplicates=duplicates
    )
    return table.log(state_labels, action_labels)


def count_log(
    source: Any,
    *,
    columns: ColumnNames | None = None,
    bins: Mapping[str, Request | Bins] | None = None,
    progress: OnProgress | None = None,
    bandit: bool = False,
    missing: str = ERROR,
    duplicates: str = ERROR,
) -> Counts:
    """Count a log of any size where it is stored: only the counts come back.

    `source` is a file (.csv, .parquet, .jsonl), a pattern, a folder of partitions, a list of
    these; a pandas, Polars, Arrow, DuckDB or PySpark frame; or an Ibis table. `columns` maps our
    column names to yours as in `Log.from_frame`; `bins` cuts numeric columns of the state or the
    action, into a number of quantiles or at edges: ``bins={"age": 10, "dose": [0.5, 1]}``.

    Where `next_state` is absent it is the state of the episode's next row. Logs of up to
    2,000,000 rows, and all without `next_state`, are put in order by (episode_id, step), and every
    row is checked. Longer logs are not sorted if the sums agree: each episode begins once, as many
    begin as end, the lengths taken from the ends add up to the number of rows, and every row that
    does not end an episode has a successor. Two mistakes can go unnoticed: a repeated row that
    compensates for a missing one elsewhere, and rows with the name of another episode if the sums
    still agree.

    With `bandit`, `columns` may name a `unit`, such as ``{"unit": "user_id"}``: who a decision is
    about, in one column or several. One row of each unit counts, drawn at random, because rows of
    one user are not independent. The log's contents decide the draw, not the order of its rows.

    Parameters:
        source: where the log is.
        columns: our column names mapped to yours.
        bins: numeric columns to cut.
        progress: called now and then with the share of a query that is done, from 0 to 1.
        bandit: whether every row is an episode of one step that ends; columns of episodes, steps
            and ends are not needed then.
        missing: ``"error"`` refuses missing values; ``"drop"`` leaves out the episodes that have
            one, since what is left of them would be wrong; ``"as-level"`` makes them a label of
            their own, ``(missing)``, in columns of the state and of the action.
        duplicates: ``"error"`` refuses an (episode_id, step) that occurs twice; ``"drop"`` keeps
            one of rows that are equal in all columns that are used.

    Returns:
        The counts; rows stay where they are.

    >>> _ = log.save("log.parquet")
    >>> spibb.count_log("log.parquet")
    Counts(transitions=6, episodes=3, states=2, actions=2, pairs_seen=4, rewards=0 to 1)
    """
    table = open_log(
        source, columns=columns, bins=bins, progress=progress, bandit=bandit, missing=missing,
        duplicates=duplicates,
    )  # fmt: skip
    return table.counts()


def open_log(
    source: Any,
    *,
    columns: ColumnNames | None = None,
    bins: Mapping[str, Request | Bins] | None = None,
    progress: OnProgress | None = None,
    bandit: bool = False,
    missing: str = ERROR,
    duplicates: str = ERROR,
) -> LogTable:
    """Open a log: find its columns, type and bin them, and check that no value is missing.

    Parameters:
        source: as in `count_log`, or a `Log`.
        columns: our column names mapped to yours.
        bins: numeric columns to cut.
        progress: called now and then with the share of a query that is done, from 0 to 1.
        bandit: whether every row is an episode of one step that ends; columns of episodes, steps
            and ends are not needed then.
        missing: ``"error"``, ``"as-level"`` or ``"drop"``, as in `count_log`.
        duplicates: ``"error"`` or ``"drop"``, as in `count_log`.

    Returns:
        A table with `log()`, `counts()`, `rows` and the `names` of its columns.

    >>> _ = log.save("log.csv")
    >>> table = spibb.open_log("log.csv")
    >>> table.rows, table.names["state"]
    (6, ('state',))
    """
    callable_("progress", progress, "progress=print")
    handling = Handling(bandit, missing, duplicates)
    if isinstance(source, Log):
        _check_plain(columns, bins, handling)
        return LogTable.of(source)
    columns, bins = {} if columns is None else columns, {} if bins is None else bins
    return LogTable.open(open_engine(source, progress), columns, bins, handling)


def column_names(source: Any) -> list[str]:
    """The columns that a source of a log has."""
    return list(open_engine(source).columns)


def _check_plain(columns: Any, bins: Any, handling: Handling) -> None:
    if not all(given is None or (isinstance(given, Mapping) and not given)
               for given in (columns, bins)):  # fmt: skip
        raise InputError(
            "columns and bins are for tables, and the source is a Log, which already has them: "
            "leave them out, or give the table"
        )
    if handling != STRICT:
        raise InputError(
            f"{handling.options} applies to reading a table, and the source is a Log, which was "
            "read already: leave it out, or give the table"
        )


def open_engine(source: Any, progress: OnProgress | None = None) -> Engine:
    """What answers SQL over a source of a log."""
    if isinstance(source, str | Path | Source) or (
        isinstance(source, list | tuple) and all(isinstance(part, str | Path) for part in source)
    ):
        return open_source(source, progress)
    kind = type(source).__module__.split(".")[0]
    if kind in ("ibis", "pyspark"):
        from spibb.sql.warehouse import open_table

        return open_table(source)
    if "duckdb" in kind:
        return engines.open_relation(source)
    return engines.open_frame(source)
