"""Mapping: which of the caller's columns are the state, the action, … and which are binned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spibb.binning import Bins, Request
from spibb.columns import ALIASES, OPTIONAL, REQUIRED, UNIT
from spibb.errors import InputError
from spibb.irregular_tables import DUPLICATES, ERROR, MISSING, Handling
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

if TYPE_CHECKING:
    from spibb.sql.typed import TypedTable

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


LABELLED = ("state", "action")
"""Whose columns a policy has of its own."""


@dataclass(frozen=True)
class ColumnMap:
    """`columns` maps our names to the caller's, `bins` names the numeric columns to be cut.

    `said` tells how rows are handled, in what was said about it. `asked` are the entries, such as
    ("columns", "state") and ("bins", "age"), that options ask for: they do not yield to a policy's.
    """

    columns: ColumnNames = field(default_factory=dict)
    bins: Mapping[str, Request | Bins] = field(default_factory=dict)
    said: Mapping[str, Any] = field(default_factory=dict)
    asked: frozenset[tuple[str, str]] = frozenset()

    def __post_init__(self) -> None:
        Handling(**self.said)

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> ColumnMap:
        """From a mapping file, or what `content` gave."""
        said = {name: value for name, value in content.items() if name not in ("columns", "bins")}
        return cls(content.get("columns", {}), content.get("bins", {}), said)

    @classmethod
    def read_by(cls, table: TypedTable) -> ColumnMap:
        """How a log was read: all but the columns of states and actions, which its labels have."""
        columns = {name: mine for name, mine in table.names.items() if mine}
        others = {name: mine for name, mine in columns.items() if name not in LABELLED}
        return cls(others, {}, asdict(table.handling))

    @property
    def content(self) -> dict[str, Any]:
        """All but the bins, as a mapping file has it."""
        columns = {name: list(_names(given)) for name, given in self.columns.items()}
        return {"columns": columns, **self.said}

    @property
    def handling(self) -> Handling:
        """How rows are handled, with the defaults."""
        return Handling(**self.said)

    def updated(self, columns: ColumnNames, bins: Mapping[str, Request], **said: Any) -> ColumnMap:
        """This map with the entries that options ask for in place of its own."""
        asked = [*(("columns", name) for name in columns), *(("bins", name) for name in bins)]
        return ColumnMap(
            {**self.columns, **columns}, {**self.bins, **bins}, {**self.said, **said},
            frozenset(asked),
        )  # fmt: skip

    def under(self, own: ColumnMap, present: Sequence[str]) -> ColumnMap:
        """How to read a log with the columns `present` as a policy's `own` log was read.

        Options win over the policy, and are refused where they contradict it. The policy wins over
        a mapping file: quantiles of another log would be other states. Only where the log lacks one
        of a policy's names the file says what it is called there, and the bins go with it.
        """
        columns = {**own._found(present), **self.columns}
        cut: dict[str, Any] = {}
        for name in LABELLED:
            theirs = _names(own.columns[name])
            columns[name] = here = self._called(name, theirs, present)
            cut |= {column: own.bins[old] for old, column in zip(theirs, here) if old in own.bins}
        self._check_bins(cut)
        self._check_bandit(own)
        return ColumnMap(columns, cut, {**own.said, **self.said}, self.asked)

    def agreeing(self, other: ColumnMap) -> ColumnMap:
        """How to read a log for two policies, A and B, which must not want different things.

        Where one refuses what the other one drops, or takes for a level, it had none of it.
        """
        _check_same(self.columns, other.columns)
        _check_same(self.bins, other.bins)
        left, right = (
            {name: value for name, value in said.items() if value != ERROR}
            for said in (self.said, other.said)
        )
        _check_same(left, right)
        said = {**other.said, **self.said, **right, **left}
        return ColumnMap(
            {**other.columns, **self.columns}, {**other.bins, **self.bins}, said, self.asked
        )

    def _found(self, present: Sequence[str]) -> dict[str, Any]:
        """The columns that a log has too, and those that it lacks and cannot do without."""
        needed = [name for name in REQUIRED if {name, *ALIASES.get(name, ())}.isdisjoint(present)]
        return {
            name: given
            for name, given in self.columns.items()
            if name in (*needed, UNIT) or all(column in present for column in _names(given))
        }

    def _called(self, name: str, own: tuple[str, ...], present: Sequence[str]) -> tuple[str, ...]:
        """What a policy's columns of the state or the action are called in this log."""
        mine = _names(self.columns.get(name, own))
        asked = ("columns", name) in self.asked
        if asked and len(mine) != len(own):
            raise InputError(
                f"--{name} names {len(mine)} columns, and the policy was made of {len(own)}: "
                f"{', '.join(own)}; leave it out, or say what each of them is called in this log"
            )
        if set(mine) == set(own) or len(mine) != len(own):
            return own
        return mine if asked or not all(column in present for column in own) else own

    def _check_bins(self, cut: Mapping[str, Bins]) -> None:
        """Refuse edges that are asked for and are not the policy's."""
        for column in (name for kind, name in sorted(self.asked) if kind == "bins"):
            request = self.bins[column]
            if column not in cut:
                raise InputError(
                    f"--bin cuts {column!r}, which the policy does not: leave it out, or name a "
                    "policy with these bins"
                )
            if isinstance(request, Sequence) and Bins(tuple(request)) != cut[column]:
                edges = ", ".join(f"{edge:g}" for edge in cut[column].edges)
                raise InputError(
                    f"--bin cuts {column!r} at other edges than the policy, which has the edges "
                    f"{edges}: leave it out"
                )

    def _check_bandit(self, own: ColumnMap) -> None:
        wanted, known = self.said.get("bandit"), own.said.get("bandit")
        if None not in (wanted, known) and wanted != known:
            kinds = ("single decisions", "episodes")
            made, read = kinds if known else kinds[::-1]
            raise InputError(
                f"the policy was made from {made}, and the log is to be read as {read}: leave "
                f"{'bandit = false' if known else '--bandit'} out, or name another policy"
            )

    @property
    def reading(self) -> dict[str, Any]:
        """All of it as `open_log`, `read_log` and `spibb.run` take it."""
        return {"columns": self.columns, "bins": self.bins, **asdict(self.handling)}


def _names(given: str | Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _check_same(mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> None:
    for name in sorted(mine.keys() & theirs.keys()):
        left, right = (_shown(part[name]) for part in (mine, theirs))
        if left != right:
            raise InputError(
                f"the logs of the two policies were read differently: {name} is {left} for A and "
                f"{right} for B; compare policies of one problem, or say how to read this log with "
                "an option"
            )


def _shown(value: Any) -> str:
    """A value in words; one column and a list of one are the same."""
    several = value.edges if isinstance(value, Bins) else value
    return ", ".join(map(str, several)) if isinstance(several, list | tuple) else str(several)


def read_mapping(path: str | Path) -> ColumnMap:
    """Read a TOML file with the tables ``[columns]`` and ``[bins]``, and how rows are handled.

    ::

        bandit = false      # true: every row is an episode of one step that ends
        missing = "error"   # or "as-level", "drop"
        duplicates = "error"  # or "drop"

        [columns]
        state = ["ward", "age"]
        action = "drug"
        unit = "patient"    # with bandit: one row of each counts

        [bins]
        age = 10            # quantiles; or edges: [18, 40, 65]
    """
    return ColumnMap.of(read_toml(path, MAPPING, f"mapping {str(path)!r}", "fix it"))


def split_names(text: str) -> str | tuple[str, ...]:
    """Read ``ward,severity`` as two columns, ``ward`` as one."""
    names = tuple(part.strip() for part in text.split(","))
    if not all(names):
        raise InputError(f"{text!r} has an empty column name: write ward,severity")
    return names if len(names) > 1 else names[0]
