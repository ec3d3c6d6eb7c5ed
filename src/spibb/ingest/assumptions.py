"""What a log does not say itself, what was left out of it, and what makes bounds doubtful."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from spibb.checks import some
from spibb.columns import UNIT, ignored
from spibb.irregular_tables import MISSING_LABEL
from spibb.showing import Shown
from spibb.sql import queries
from spibb.sql.typed import TypedTable
from spibb.words import listed

ENDS = "Ends"
"""What is assumed where no column says what terminated."""
WARNING = "Warning"
"""What makes every bound doubtful: it stands beside each verdict on the log."""
UNITS = re.compile(
    "(user|customer|client|patient|person|member|visitor|subject|participant|player|student|guest|"
    "account|session|cookie|household|driver|employee|device|machine)([ _-]?(id|key|no|nr|number|"
    "uuid|hash))?",
    re.IGNORECASE,
)
"""Names of columns that say who a decision is about; without "id" they may name groups of users."""


@dataclass(frozen=True)
class Finding(Shown):
    """One thing to know about the data: what was looked at, what was found, what to do.

    >>> finding = spibb.inspect_log(log).findings[0]
    >>> finding.what, finding.value, finding.remedy
    ('Transitions', '6', '')
    """

    what: str
    value: str
    remedy: str = ""


def assumptions(table: TypedTable) -> tuple[Finding, ...]:
    """What a log does not say itself, and what was left out of it."""
    return tuple(_assumptions(table))


def doubts(findings: Iterable[Finding]) -> tuple[str, ...]:
    """The warnings among findings, as they stand beside a verdict."""
    return tuple(f"{one.value}; {one.remedy}" for one in findings if one.what == WARNING)


def _assumptions(table: TypedTable) -> Iterator[Finding]:
    if table.handling.bandit:
        yield Finding("Rows", "each is an episode of one step (bandit)")
        if unread := ignored(list(table.engine.columns), table.names):
            yield Finding(
                WARNING, f"--bandit ignores {listed(unread)}: a decision has no consequences "
                "beyond its reward", "leave --bandit out if it has",
            )  # fmt: skip
        yield from _about_units(table)
    elif table.x.terminated is None:
        cut = " that is not truncated" if table.x.truncated else ""
        yield Finding(
            ENDS, f"no column says which episodes terminated: assumed that every episode{cut} did, "
            "at its last row"
        )  # fmt: skip
    left = table.left_out
    if left.incomplete:
        episodes = f", {left.incomplete_episodes:,} of {left.episodes:,} episodes"
        yield Finding(
            "Left out for missing values",
            f"{left.incomplete:,} of {left.rows:,} rows{episodes if left.episodes else ''}",
        )
    if left.copies:
        yield Finding("Left out as copies", f"{left.copies:,} of {left.rows:,} rows")
    if levels := table.levels:
        yield Finding(
            "Missing values",
            f"are a label of their own, {MISSING_LABEL}, in {some(sorted(levels), 10)}",
        )


def _about_units(table: TypedTable) -> Iterator[Finding]:
    """How many rows of how many units count, or that rows of one unit may."""
    if table.draw is not None:
        unit, rows, units = listed(table.names[UNIT]), table.whole.rows, table.rows
        counts = f"{units:,} of {rows:,} rows: one per {unit}, drawn at random"
        if units == rows:
            counts = f"all {rows:,} rows: every {unit} has one"
        yield Finding("What counts", counts)
    elif not table.names[UNIT] and (repeated := _repeated_unit(table)):
        column, units = repeated
        yield Finding(
            WARNING, f"the {table.rows:,} rows have only {units:,} different values of {column}, "
            "and every bound assumes independent rows", f"add --unit {shlex.quote(column)}",
        )  # fmt: skip


def _repeated_unit(table: TypedTable) -> tuple[str, int] | None:
    """A column that is not read, names who a decision is about, and repeats, with its values."""
    read = {column for mine in table.names.values() for column in mine}
    likely = [one for one in table.engine.kinds if one not in read and UNITS.fullmatch(one)]
    if not likely:
        return None
    found = table.engine.table(queries.distinct_query(table.kept, likely)).to_pylist()[0]
    units = {column: int(n) for column, n in zip(likely, found.values())}
    several = {column: n for column, n in units.items() if _is_unit(column, n, table.rows)}
    return min(several.items(), key=lambda unit: unit[1], default=None)


def _is_unit(column: str, values: int, rows: int) -> bool:
    """Whether rows repeat units; a few values that have many rows each are groups."""
    named = UNITS.fullmatch(column)
    sure = named is not None and named[2] is not None
    return 1 < values < rows and (sure or values**2 >= rows)
