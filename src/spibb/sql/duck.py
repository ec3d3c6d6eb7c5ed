"""DuckDB as we run it: bounded memory, no extensions from outside, spill files of our own."""

from __future__ import annotations

import errno
import os
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

MEMORY = 700
"""Megabytes that DuckDB may hold before it writes to temporary files."""
PER_THREAD = 75
"""Megabytes that each of its threads needs: with less a query may give up."""

SETTINGS = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
}


def open_duckdb(least: int = MEMORY, most: int = MEMORY) -> Any:
    """A connection to DuckDB, which knows its progress but does not draw it.

    It neither installs nor loads extensions, and reads times as UTC wherever it runs. It may hold
    from `least` to `most` megabytes, as its threads need, and has no more threads than fit in.
    """
    import duckdb

    spill = Path(_private_folder(os.getpid()).name) / uuid.uuid4().hex
    connection = duckdb.connect(config={**SETTINGS, "temp_directory": str(spill)})
    cores = connection.execute("SELECT current_setting('threads')").fetchall()[0][0]
    threads, megabytes = shared(int(cores), least, most)
    connection.execute(
        f"SET threads = {threads}; SET memory_limit = '{megabytes}MB'; "
        "SET TimeZone = 'UTC'; SET enable_progress_bar = true; "
        "SET enable_progress_bar_print = false"
    )
    return connection


def shared(cores: int, least: int, most: int) -> tuple[int, int]:
    """Threads, and the megabytes for all of them."""
    threads = min(cores, most // PER_THREAD)
    return threads, max(least, threads * PER_THREAD)


def give_back(connection: Any) -> None:
    """Have freed memory given back to the system: DuckDB 1.5 keeps it until its limit is set."""
    connection.execute("SET memory_limit = current_setting('memory_limit')")


@contextmanager
def os_errors() -> Iterator[None]:
    """Report what the system refused DuckDB in the system's own words."""
    import duckdb

    try:
        yield
    except duckdb.IOException as error:
        text = str(error)
        named = [number for number in errno.errorcode if os.strerror(number) in text]
        number = max(named, key=lambda number: len(os.strerror(number)), default=errno.EIO)
        raise OSError(number, os.strerror(number)) from None


def private_path(ending: str) -> Path:
    """The name of a new file in a folder that only we may open, and that goes at exit."""
    return Path(_private_folder(os.getpid()).name) / f"{uuid.uuid4().hex}{ending}"


@cache
def _private_folder(process: int) -> tempfile.TemporaryDirectory[str]:
    """A folder for one process's spill files: nobody else may look in, and it goes at exit."""
    return tempfile.TemporaryDirectory(prefix=f"spibb-{process}-")
