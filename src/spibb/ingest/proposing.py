"""Which options to add to a command so that a log with problems can be read."""

from __future__ import annotations

from dataclasses import asdict, fields, replace
from typing import Any

from spibb.errors import FixableError, InputError
from spibb.ingest import open_log
from spibb.ingest.mapping import ColumnMap
from spibb.irregular_tables import Handling
from spibb.sql.sources import WRITTEN, Source


def proposed(source: Any, column_map: ColumnMap) -> list[str]:
    """The options that let a table be read that is refused as it is; none where nothing helps.

    One thing is changed after the other, until the table can be read: what is proposed was tried.
    """
    handling, written = column_map.handling, Source.of(source)
    tried: list[tuple[Handling, Source]] = []
    while (handling, written) not in tried:
        tried.append((handling, written))
        try:
            open_log(written, **replace(column_map, said=asdict(handling)).reading).counts()
            return [
                *handling.options_from(column_map.handling).split(),
                *_encoding_options(written, source),
            ]
        except FixableError as error:
            handling = replace(handling, **_those_of(Handling, error.changes))
            written = replace(written, **_those_of(Source, error.changes))
        except InputError:
            break
    return []


def _those_of(kind: type, changes: dict[str, Any]) -> dict[str, Any]:
    names = {field.name for field in fields(kind)}
    return {name: value for name, value in changes.items() if name in names}


def _encoding_options(written: Source, before: Any) -> list[str]:
    """The options that say how text is written, where `before` did not say so."""
    old = Source.of(before)
    changed = [name for name in WRITTEN if getattr(written, name) != getattr(old, name)]
    return [word for name in changed for word in (f"--{name}", getattr(written, name))]
