"""Mapping: which of the caller's columns are the state, the action, … and which are binned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from spibb.binning import Bins, Request
from spibb.checks import InputError
from spibb.columns import OPTIONAL, REQUIRED
from spibb.handling import DUPLICATES, MISSING, STRICT, Handling
from spibb.loading import (
    either,
    flag,
    list_of,
    one_of,
    read_toml,
    real,
    record,
    table_of,
    text,
    whole,
)

ColumnNames = Mapping[str, str | Sequence[str]]

_NAMES = either(text(), list_of(text(), least=1))
_BINS = either(whole(), list_of(real(), least=1))
MAPPING = record(
    {},
    {
        "columns": record({}, dict.fromkeys(REQUIRED + OPTIONAL, _NAMES)),
        "bins": table_of(_BINS),
        "bandit": flag(),
        "missing": one_of(*MISSING),
        "duplicates": one_of(*DUPLICATES),
    },
)
"""The form of a mapping file."""


@dataclass(frozen=True)
class ColumnMap:
    """`columns` maps our names to the caller's, `bins` names the numeric columns to be cut.

    `handling` says whether rows are episodes of their own, and what is done with missing values and
    copies.
    """

    columns: ColumnNames = field(default_factory=dict)
    bins: Mapping[str, Request | Bins] = field(default_factory=dict)
    handling: Handling = STRICT

    def updated(
        self, columns: ColumnNames, bins: Mapping[str, Request], **handling: Any
    ) -> ColumnMap:
        """The same with some entries replaced."""
        how = replace(self.handling, **handling)
        return ColumnMap({**self.columns, **columns}, {**self.bins, **bins}, how)

    def under(
        self, names: Mapping[str, tuple[str, ...]], bins: Mapping[str, Bins], present: Sequence[str]
    ) -> ColumnMap:
        """The same under a policy's own `names` of state and action, and its bins.

        They win: quantiles of another log would be other states. Only where the log lacks (of
        `present` columns) one of a policy's names, the mapping says what it is called there, and
        the bins go with it.
        """
        columns, cut = dict(self.columns), dict(self.bins)
        for name, own in names.items():
            given = columns.get(name, own)
            mine = (given,) if isinstance(given, str) else tuple(given)
            if len(mine) != len(own) or all(column in present for column in own):
                mine = own
            columns[name] = mine
            cut = {column: edges for column, edges in cut.items() if column not in (*mine, *own)}
            cut |= {here: bins[column] for column, here in zip(own, mine) if column in bins}
        kept = {column for name in names for column in columns[name]}
        return ColumnMap(
            columns,
            {column: edges for column, edges in cut.items() if column in kept},
            self.handling,
        )

    @property
    def reading(self) -> dict[str, Any]:
        """All of it as `open_log`, `read_log` and `spibb.run` take it."""
        return {"columns": self.columns, "bins": self.bins, **asdict(self.handling)}


def read_mapping(path: str | Path) -> ColumnMap:
    """Read a TOML file with the tables ``[columns]`` and ``[bins]``, and how rows are handled.

    ::

        bandit = false      # true: every row is an episode of one step that ends
        missing = "error"   # or "as-level", "drop"
        duplicates = "error"  # or "drop"

        [columns]
        state = ["ward", "age"]
        action = "drug"

        [bins]
        age = 10            # quantiles; or edges: [18, 40, 65]
    """
    content = read_toml(path, MAPPING, f"mapping {str(path)!r}", "fix it")
    handling = {name: content[name] for name in content if name not in ("columns", "bins")}
    return ColumnMap(content.get("columns", {}), content.get("bins", {}), Handling(**handling))


def split_names(text: str) -> str | tuple[str, ...]:
    """Read ``ward,severity`` as two columns, ``ward`` as one."""
    names = tuple(part.strip() for part in text.split(","))
    if not all(names):
        raise InputError(f"{text!r} has an empty column name: write ward,severity")
    return names if len(names) > 1 else names[0]
