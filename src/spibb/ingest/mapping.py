"""Mapping: which of the caller's columns are the state, the action, … and which are binned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from spibb.binning import Bins, Request
from spibb.checks import InputError
from spibb.columns import OPTIONAL, REQUIRED
from spibb.loading import either, list_of, read_toml, real, record, table_of, text, whole

ColumnNames = Mapping[str, str | Sequence[str]]

_NAMES = either(text(), list_of(text(), least=1))
_BINS = either(whole(), list_of(real(), least=1))
MAPPING = record(
    {}, {"columns": record({}, dict.fromkeys(REQUIRED + OPTIONAL, _NAMES)), "bins": table_of(_BINS)}
)
"""The form of a mapping file."""


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
    content = read_toml(path, MAPPING, f"mapping {str(path)!r}", "fix it")
    return ColumnMap(content.get("columns", {}), content.get("bins", {}))


def split_names(text: str) -> str | tuple[str, ...]:
    """Read ``ward,severity`` as two columns, ``ward`` as one."""
    names = tuple(part.strip() for part in text.split(","))
    if not all(names):
        raise InputError(f"{text!r} has an empty column name: write ward,severity")
    return names if len(names) > 1 else names[0]
