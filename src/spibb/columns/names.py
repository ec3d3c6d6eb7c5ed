"""Which of a caller's columns is which: by a mapping, by our own names, or by an alias."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from spibb.checks import did_you_mean, mapping, shown, some
from spibb.errors import FixableError, InputError

ALIASES: Mapping[str, tuple[str, ...]] = {
    "episode_id": ("episode",),
    "terminated": ("terminals", "terminal", "done"),
    "truncated": ("timeouts", "timeout"),
    "action_prob": ("pscore",),
}
REQUIRED = ("episode_id", "step", "state", "action", "reward")
UNIT = "unit"
"""Who a decision is about: of the rows of one user, only one counts. Never found by its name."""
OPTIONAL = ("next_state", "terminated", "truncated", "action_prob", UNIT)
EPISODES = ("episode_id", "step", "next_state", "terminated", "truncated")
"""What a log of single steps has no columns for."""

SEPARATORS = re.compile(r"[^\w\s.\"'-]")
"""Signs that may separate columns, in a line that was taken for the name of one."""


def resolve(
    present: Sequence[str], given: Mapping[str, str | Sequence[str]], bandit: bool = False
) -> dict[str, tuple[str, ...]]:
    """Map each of our column names to the caller's, by `given`, by itself, or by an alias.

    In the log of a `bandit`, every row is an episode, and what tells episodes has no columns.
    """
    check_given(given)
    for name in given:
        if bandit and name in EPISODES:
            raise InputError(
                f"{name} is mapped to {given[name]!r}, but every row of a bandit's log is an "
                "episode of its own: leave the column out, or bandit"
            )
    check_unit(given, bandit)
    found: dict[str, tuple[str, ...]] = {}
    for name in REQUIRED + OPTIONAL:
        if (bandit and name in EPISODES) or (name == UNIT and name not in given):
            found[name] = ()
            continue
        if name in given:
            found[name] = _given(name, given[name])
        else:
            found[name] = _by_itself(name, found, present)
        missing = [column for column in found[name] if column not in present]
        if missing or (name in REQUIRED and not found[name]):
            raise _absent(missing[0] if missing else name, present)
    _check_mapped_once(found)
    _check_not_misspelt("terminated", found, present)
    return found


def check_given(given: Any) -> None:
    """Our names, and for each the name of one column or of several."""
    for name, mine in mapping("columns", given, '{"state": ["ward", "age"]}').items():
        if name not in REQUIRED + OPTIONAL:
            hint = did_you_mean(name, REQUIRED + OPTIONAL) if isinstance(name, str) else ""
            raise InputError(f"columns maps {shown(name)}, which is not a column of a log{hint}")
        listed = isinstance(mine, Sequence) and all(isinstance(part, str) for part in mine)
        if not (listed and mine):
            raise InputError(
                f"columns maps {name!r} to {shown(mine)}, expected the name of a column, or several"
            )


def check_unit(given: Mapping[str, Any], bandit: bool) -> None:
    """Only rows that are decisions of their own have units."""
    if UNIT in given and not bandit:
        raise InputError(
            f"unit is mapped to {given[UNIT]!r}, and in a log of episodes the episode is the unit: "
            "leave it out, or add --bandit if every row is a decision"
        )


def _given(name: str, mine: Any) -> tuple[str, ...]:
    """The columns that a caller names."""
    found = tuple(mine) if isinstance(mine, list | tuple) else (mine,)
    if not all(isinstance(column, str) for column in found):
        raise InputError(
            f"{name} is mapped to {shown(mine)}, expected the name of a column, or a list of "
            "names: give text"
        )
    return found


def _by_itself(
    name: str, found: Mapping[str, tuple[str, ...]], present: Sequence[str]
) -> tuple[str, ...]:
    """The columns that have our name, or an alias of it."""
    hits = [alias for alias in (name, *ALIASES.get(name, ())) if alias in present]
    return (hits[0],) if hits else _successors(name, found, present)


def ignored(present: Sequence[str], found: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """The columns of episodes that are there, and that the log of a bandit does not read.

    >>> names = resolve(["state", "action", "reward", "done"], {}, bandit=True)
    >>> ignored(["state", "action", "reward", "done"], names)
    ('done',)
    """
    read = {column for mine in found.values() for column in mine}
    there = [column for name in EPISODES for column in _by_itself(name, found, present)]
    return tuple(column for column in there if column not in read)


def _absent(wanted: str, present: Sequence[str]) -> InputError:
    """The error for a column that is not there; without episodes it may be a bandit's log."""
    if len(present) == 1:
        return _single(wanted, present[0])
    line = (
        f"the log has no column {wanted!r}{did_you_mean(wanted, present)}: its columns are "
        f"{some(present, 20)}; rename one or map it"
    )
    alone = {"episode_id", *ALIASES["episode_id"], "step", "terminated"}.isdisjoint(present)
    if wanted == "episode_id" and alone:
        return FixableError(f"{line}, or add --bandit if every row is a decision", bandit=True)
    return InputError(line)


def _single(wanted: str, name: str) -> InputError:
    """The error where the first line is one name: a title, or names with an unknown separator."""
    line = (
        f"the log has no column {wanted!r}: it has one only, {name!r}; in a text file the names of "
        "the columns belong in the first line: remove lines above them, or name the separator"
    )
    signs = SEPARATORS.findall(name)
    return FixableError(line, separator=max(signs, key=signs.count)) if signs else InputError(line)


def _check_not_misspelt(
    name: str, found: Mapping[str, tuple[str, ...]], present: Sequence[str]
) -> None:
    """Refuse a column of almost this name: without the column, its values would be assumed."""
    used = {column for mine in found.values() for column in mine}
    hint = did_you_mean(name, [column for column in present if column not in used])
    if found["episode_id"] and not found[name] and hint:
        raise InputError(f"the log has no column {name!r}{hint}: rename it, map it, or drop it")


def _check_mapped_once(found: Mapping[str, tuple[str, ...]]) -> None:
    """A column has one meaning; only step and unit may also be a part of the state."""
    uses: dict[str, list[str]] = {}
    for name, columns in found.items():
        for column in columns:
            uses.setdefault(column, []).append(name)
    for column, names in uses.items():
        if len(names) > 1 and sorted(names) not in (["state", "step"], ["state", UNIT]):
            raise InputError(
                f"column {column!r} is mapped twice, to {' and '.join(names)}: map it once"
            )


def _successors(
    name: str, found: Mapping[str, tuple[str, ...]], present: Sequence[str]
) -> tuple[str, ...]:
    """A state in the columns `ward, age` has its successor in `next_ward, next_age`."""
    columns = tuple(f"next_{column}" for column in found.get("state", ()))
    return columns if name == "next_state" and set(columns) <= set(present) else ()
