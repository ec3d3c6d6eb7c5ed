"""From a source to an engine: the one way in for every log and every policy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from spibb.checks import some
from spibb.errors import InputError
from spibb.sql.duck_files import open_files
from spibb.sql.engines import Engine, open_arrow
from spibb.sql.remote import SCHEMES, fetched
from spibb.sql.sources import Files, Source, find_files
from spibb.sql.staging import staged
from spibb.tables import OnProgress

DUCKDB_READS = (".csv", ".tsv", ".json", ".jsonl", ".parquet")


def open_source(given: Any, progress: OnProgress | None = None, csv: str = "") -> Engine:
    """Open a source; `csv` are more options of DuckDB's reader of CSV files."""
    source, called = Source.of(given), ""
    if source.scheme in SCHEMES:
        source, called = fetched(source)
    if source.scheme is not None:
        return _open_address(source, source.scheme)
    found = replace(find_files(_paths(source)), called=called)
    with _renamed(found):
        files = staged(found, source)
    with _renamed(files):
        return _open_files(files, source, progress, csv)


def _open_files(files: Files, source: Source, progress: OnProgress | None, csv: str) -> Engine:
    if files.kind in (".duckdb", ".sqlite"):
        return _open_database_file(files, source)
    if files.kind in DUCKDB_READS:
        _check_no_table(source, files)
        return open_files(files, progress, csv if files.untyped else "")
    from spibb.sql.converted import convert

    return open_arrow(*convert(files, source), files.name)


@contextmanager
def _renamed(files: Files) -> Iterator[None]:
    """Call our copies what they are copies of."""
    try:
        yield
    except InputError as error:
        error.args = (files.renamed(str(error)),)
        raise


def _paths(source: Source) -> Any:
    return list(source.place) if isinstance(source.place, tuple) else source.place


def _check_no_table(source: Source, files: Files) -> None:
    if source.query or (source.table and not files.unpacked):
        raise InputError(f"{files.name} is one table, not a database: leave table and query out")


def _open_database_file(files: Files, source: Source) -> Engine:
    from spibb.sql.databases import open_database

    if len(files.paths) > 1:
        raise InputError(f"{files.name} are several databases: give one")
    return open_database(replace(source, place=files.paths[0]), files.kind.removeprefix("."))


def _open_address(source: Source, scheme: str) -> Engine:
    from spibb.sql.databases import OPENERS, open_database

    if source.written:
        raise InputError(
            f"{source.name!r} is not text, so encoding, decimal and separator do not apply: leave "
            "them out"
        )
    if scheme == "minari":
        from spibb.sql.converted import read_minari

        return open_arrow(*read_minari(str(source.place).partition(":")[2]), repr(source.name))
    if scheme in OPENERS:
        return open_database(source, scheme)
    known = some([*OPENERS, *SCHEMES, "minari"], 20)
    raise InputError(
        f"cannot read {source.name!r}: an address begins with one of {known}; otherwise name a file"
    )
