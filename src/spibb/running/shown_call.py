"""A call of `spibb.run` as a report shows it, and the files behind its arguments."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spibb.algorithms import Algorithm
from spibb.errors import masked
from spibb.ingest.baselines import is_of_log
from spibb.irregular_tables import ERROR
from spibb.sql.sources import Source


def files_of(role: str, given: Any) -> list[tuple[str, Any]]:
    """The sources behind an argument; none where it is in memory."""
    if isinstance(given, str | Path | Source):
        return [(role, given)]
    several = isinstance(given, list | tuple) and all(isinstance(g, str | Path) for g in given)
    return [(role, one) for one in given] if several else []


def baseline_files(given: Any) -> list[tuple[str, Any]]:
    """The file of a baseline; none where it was estimated."""
    return [] if is_of_log(given) else files_of("baseline", given)


def telling(named: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that say something: not false, and not what raises an error by default."""
    usual = (False, ERROR)
    return {
        name: value
        for name, value in named.items()
        if not (isinstance(value, bool | str) and value in usual)
    }


def shown_call(*given: Any, **named: Any) -> str:
    """A call of `spibb.run` as it is written; what is in memory is shown by its type."""
    parts = [_written(value) for value in given]
    parts += [f"{name}={_written(value)}" for name, value in named.items() if value is not None]
    return f"spibb.run({', '.join(parts)})"


def _written(value: Any) -> str:
    """A value in full: numbers, text, algorithms, and lists and mappings of them."""
    if isinstance(value, str | Path):
        return repr(masked(value)) if isinstance(value, str) else repr(str(value))
    if isinstance(value, type):
        return value.__name__
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_written(k)}: {_written(v)}' for k, v in value.items())}}}"
    if isinstance(value, list | tuple) and not _is_table(value):
        parts = ", ".join(map(_written, value))
        return f"[{parts}]" if isinstance(value, list) else f"({parts}{',' * (len(value) == 1)})"
    plain = isinstance(value, Source | int | float | Algorithm | None)
    configured = getattr(value, "learns_from_vectors", False)
    return repr(value) if plain or configured else f"<{type(value).__name__}>"


def _is_table(value: Any) -> bool:
    """Whether a list has the rows of a table: that is data in memory."""
    return any(isinstance(row, list | tuple | dict) for row in value)
