"""Mapping: which of the caller's columns are the state, the action, … and which are binned."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spibb.binning import Bins, Request
from spibb.checks import InputError, did_you_mean
from spibb.columns import OPTIONAL, REQUIRED

ColumnNames = Mapping[str, str | Sequence[str]]


@dataclass(frozen=True)
class ColumnMap:
    """`columns` maps our names to the caller's, `bins` names the numeric columns to be cut."""

    columns: ColumnNames = field(default_factory=dict)
    bins: Mapping[str, Request | Bins] = field(default_factory=dict)

    def updated(self, columns: ColumnNames, bins: Mapping[str, Request]) -> ColumnMap:
        """The same with some entries replaced."""
        return ColumnMap({**self.columns, **columns}, {**self.bins, **bins})

    def completed(self, columns: ColumnNames, bins: Mapping[str, Bins]) -> ColumnMap:
        """The same with entries where it has none."""
        return ColumnMap({**columns, **self.columns}, {**bins, **self.bins})


def read_mapping(path: str | Path) -> ColumnMap:
    """Read a TOML file with the tables ``[columns]`` and ``[bins]``.

    ::

        [columns]
        state = ["ward", "age"]
        action = "drug"

        [bins]
        age = 10            # quantiles; or edges: [18, 40, 65]
    """
    what = f"mapping {str(path)!r}"
    try:
        content = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not text in UTF-8"
        raise InputError(f"cannot read {what}: {reason}; check the file") from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{what} is not TOML: {error}; mend that line") from None
    for name in content:
        if name not in ("columns", "bins"):
            hint = did_you_mean(name, ("columns", "bins"))
            raise InputError(f"{what} has {name!r}{hint}: its tables are [columns] and [bins]")
    columns, bins = (_table(content, name, what) for name in ("columns", "bins"))
    for name, value in columns.items():
        if name not in REQUIRED + OPTIONAL:
            hint = did_you_mean(name, REQUIRED + OPTIONAL)
            raise InputError(f"{what} maps {name!r}{hint}: no column of a log has this name")
        if not _is_names(value):
            raise InputError(f"{what}: {name} is {value!r}, expected one name or a list of names")
    for name, value in bins.items():
        if not _is_request(value):
            raise InputError(f"{what}: bins of {name!r} are {value!r}, expected 10 or [18, 40, 65]")
    return ColumnMap(columns, bins)


def split_names(text: str) -> str | tuple[str, ...]:
    """Read ``ward,severity`` as two columns, ``ward`` as one."""
    names = tuple(part.strip() for part in text.split(","))
    if not all(names):
        raise InputError(f"{text!r} has an empty column name: write ward,severity")
    return names if len(names) > 1 else names[0]


def _table(content: Mapping[str, Any], name: str, what: str) -> Mapping[str, Any]:
    table = content.get(name, {})
    if not isinstance(table, dict):
        raise InputError(f"{what}: {name!r} is {table!r}, expected a table [{name}]")
    return table


def _is_names(value: Any) -> bool:
    if isinstance(value, list):
        return bool(value) and all(isinstance(part, str) for part in value)
    return isinstance(value, str)


def _is_request(value: Any) -> bool:
    if isinstance(value, list):
        return all(isinstance(x, int | float) and not isinstance(x, bool) for x in value)
    return isinstance(value, int) and not isinstance(value, bool)
