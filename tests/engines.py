"""DuckDB's engines are kept: to open one in memory takes 14 ms, and tests open thousands.

What runs in a process of its own, as all commands do that `commands.py` runs, opens its own.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Any

import duckdb

CONNECT = duckdb.connect


@cache
def engine(process: int, settings: tuple[tuple[str, str], ...]) -> Any:
    """The engine of a process for those who ask for the same settings."""
    return CONNECT(config=dict(settings))


def connect(
    database: str = ":memory:", read_only: bool = False, config: dict[str, str] | None = None
) -> Any:
    """A connection to a kept engine, with threads and a spill folder as a new one has them.

    Without settings it is a test that asks, which may leave tables behind: that gets its own.
    """
    if database != ":memory:" or not config:
        return CONNECT(database, read_only, config or {})
    settings = dict(config)
    spill = settings.pop("temp_directory")
    connection = engine(os.getpid(), tuple(sorted(settings.items()))).cursor()
    try:
        connection.execute(f"RESET threads; SET temp_directory = '{spill}'")
    except duckdb.Error:  # it has spilled, and stays with its folder
        engine.cache_clear()
        return connect(database, read_only, config)
    return connection


def keep_engines() -> None:
    """Have all that open DuckDB get a kept engine."""
    duckdb.connect = connect
