"""From a caller's columns to the coded, sorted arrays of a Log."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, ValuesView
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from spibb.arrays import densify
from spibb.checks import (
    InputError,
    check_present,
    did_you_mean,
    finite,
    per_cent,
    same_length,
    shown,
    some,
    unmasked,
)
from spibb.errors import FixableError
from spibb.labels import (
    Vocabulary,
    encode,
    factorize,
    factorize_present,
    same_kind,
    translate,
)  # fmt: skip
from spibb.words import apart

NO_STATE = -1
"""The one code that is not ≥ 0: the successor of a row that none follows."""

ALIASES: Mapping[str, tuple[str, ...]] = {
    "episode_id": ("episode",),
    "terminated": ("terminals", "terminal", "done"),
    "truncated": ("timeouts", "timeout"),
    "action_prob": ("pscore",),
}
REQUIRED = ("episode_id", "step", "state", "action", "reward")
OPTIONAL = ("next_state", "terminated", "truncated", "action_prob")
EPISODES = ("episode_id", "step", "next_state", "terminated", "truncated")
"""What a log of single steps has no columns for."""

FLAGS = {"true": True, "t": True, "yes": True, "1": True, "1.0": True,
         "false": False, "f": False, "no": False, "0": False, "0.0": False}  # fmt: skip
SEPARATORS = re.compile(r"[^\w\s.\"'-]")
"""Signs that may separate columns, in a line that was taken for the name of one."""
EMPTY = "the log is empty: it needs at least one transition; check what wrote it"


@dataclass(frozen=True)
class Columns:
    """Columns as the caller gave them, before sorting and coding."""

    state: Any
    action: Any
    reward: np.ndarray
    next_state: Any
    terminated: np.ndarray | None
    truncated: np.ndarray | None
    episode: np.ndarray | None
    step: np.ndarray | None
    action_prob: np.ndarray | None


def assemble(
    columns: Columns, states: Vocabulary | None, actions: Vocabulary | None
) -> dict[str, Any]:
    """Check, code, sort, and derive what the columns leave out: the fields of a Log."""
    _check_rows(columns)
    none = np.zeros(len(columns.reward), dtype=bool)
    cut = none if columns.truncated is None else columns.truncated
    told = cut if columns.terminated is None else cut | columns.terminated
    order, starts = _episodes(columns, told)
    last = none.copy()
    last[order[starts[1:] - 1]] = True
    terminated = last & ~cut if columns.terminated is None else columns.terminated
    states, state, next_state = code_states(
        columns.state, columns.next_state, terminated, states, ("state",)
    )
    if actions is None:
        actions, action = factorize(columns.action, "action")
    else:
        action = encode(columns.action, actions, "actions")
    last, terminated, cut, state = last[order], terminated[order], cut[order], state[order]
    _check_ends(terminated | cut, last, order)
    given = None if next_state is None else next_state[order]
    return {
        "state": state,
        "action": action[order],
        "reward": columns.reward[order],
        "next_state": _successor_codes(given, state, terminated, last),
        "terminated": terminated,
        "truncated": (cut | last) & ~terminated,
        "episode_starts": starts,
        "states": states,
        "actions": actions,
        "action_prob": None if columns.action_prob is None else columns.action_prob[order],
        "ends_assumed": columns.terminated is None,
    }


def _check_rows(columns: Columns) -> None:
    """Every column has as many rows as the others, at least one, and numbers in its limits."""
    n = same_length(
        state=columns.state, action=columns.action, reward=columns.reward,
        next_state=columns.next_state, terminated=columns.terminated, truncated=columns.truncated,
        episode=columns.episode, step=columns.step, action_prob=columns.action_prob,
    )  # fmt: skip
    if n == 0:
        raise InputError(EMPTY)
    finite(columns.reward, "reward")
    _check_propensities(columns.action_prob)


def code_states(
    state: Any,
    following: Any,
    terminated: np.ndarray | None,
    states: Vocabulary | None,
    names: Sequence[str],
) -> tuple[Vocabulary, np.ndarray, np.ndarray | None]:
    """Code states and successors in one vocabulary: a state may occur only as a successor.

    States are codes ≥ 0. Successors are NO_STATE where none is given, and beyond the end: what lies
    there is no state of the problem. Where one of the two columns is text, so is the other.
    """
    if states is None:
        found, codes = factorize(state, *names)
    else:
        found, codes = states, encode(state, states, "states")
    if following is None:
        return found, codes, None
    others, reached, present = factorize_present(following, *names)
    same_length(state=codes, next_state=present, terminated=terminated)
    if terminated is not None:
        reached, present = reached[~terminated[present]], present & ~terminated
    used, reached = densify(reached, len(others))
    others = Vocabulary(tuple(others[code] for code in used.tolist()), others.names)
    if states is None:
        found, others = found.as_text_like(others), others.as_text_like(found)
        same_kind((*found.labels[:1], *others.labels[:1]), "state and next_state")
        both = Vocabulary(sorted(set(found.labels).union(others.labels)), found.names)
        codes, found = both.codes(found)[codes], both
    successor = np.full(len(codes), NO_STATE, dtype=np.int32)
    successor[present] = translate(others, reached, found, "next states")
    return found, codes, successor


def recode_successors(successor: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Successors in another vocabulary, given the code there of each label; NO_STATE stays."""
    moved = np.full(len(successor), NO_STATE, dtype=np.int32)
    known = successor != NO_STATE
    moved[known] = codes[successor[known]]
    return moved


def _episodes(columns: Columns, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Order of the rows [N] by episode and step, and where each episode starts [E + 1]."""
    n = len(ends)
    if columns.episode is None:
        starts = np.flatnonzero(np.concatenate([[True], ends[:-1]]))
        return np.arange(n), np.append(starts, n)
    episode = columns.episode
    step = np.arange(n) if columns.step is None else columns.step
    order = np.lexsort((step, episode))
    new = np.diff(episode[order]) != 0
    repeated = ~new & (np.diff(step[order]) == 0)
    if repeated.any():
        row = int(order[np.argmax(repeated) + 1])
        raise InputError(
            f"row {row} repeats step {step[row]} of its episode, expected each (episode_id, step) "
            f"once ({int(repeated.sum())} repeated): drop or renumber the row"
        )
    starts = np.concatenate([[0], np.flatnonzero(new) + 1, [n]])
    return order, starts


def _successor_codes(
    given: np.ndarray | None, state: np.ndarray, terminated: np.ndarray, last: np.ndarray
) -> np.ndarray:
    """Successors as given, otherwise the state of the next row, never across an episode's end."""
    following = np.append(state[1:], np.int32(NO_STATE))
    following[last] = NO_STATE
    found = following if given is None else np.where(given == NO_STATE, following, given)
    found[terminated] = NO_STATE
    return found.astype(np.int32)


def _check_ends(ends: np.ndarray, last: np.ndarray, order: np.ndarray) -> None:
    inside = ends & ~last
    if inside.any():
        raise InputError(
            f"row {int(order[np.argmax(inside)])} is terminated or truncated, but its episode goes "
            f"on ({int(inside.sum())} such rows): give what follows its own episode_id"
        )


def _check_propensities(action_prob: np.ndarray | None) -> None:
    if action_prob is None:
        return
    bad = ~((action_prob > 0) & (action_prob <= 1))
    if bad.any():
        row = int(np.argmax(bad))
        found = apart(float(action_prob[row]), 1.0)[0]
        raise InputError(
            f"action_prob in row {row} is {found}, expected a number in (0, 1]: "
            f"the logged action must have been possible{per_cent(action_prob.max())}"
        )


def labels_column(values: Any, name: str) -> Any:
    """Leave labels as they are, but let any array type through as NumPy."""
    if isinstance(values, np.ndarray | list | tuple) or type(values).__module__ == "pyarrow.lib":
        return values
    if not isinstance(values, Iterable):
        raise InputError(f"{name} is {shown(values)}, expected one value per row")
    return values.to_numpy() if hasattr(values, "to_numpy") else list(values)


def to_arrow_table(frame: Any) -> Any:
    """An eager narwhals frame as an Arrow table."""
    import pyarrow as pa

    try:
        return frame.to_arrow()
    except UnicodeError:
        raise InputError(
            "a column of the log holds text that is not valid Unicode: fix the column"
        ) from None
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        raise InputError(
            f"a column of the log mixes types ({' '.join(str(error).split())}): "
            "make every value a string, or a number"
        ) from None


def _array(values: Any, name: str) -> np.ndarray:
    """Values as an array [N], of an iterator too, as labels; a masked entry is missing."""
    array = unmasked(name, list(values) if isinstance(values, Iterator | ValuesView) else values)
    if array.ndim != 1:
        raise InputError(f"{name} has shape {array.shape}, expected one number per transition")
    return array


def float_column(values: Any, name: str) -> np.ndarray:
    """A column of numbers [N]; complex numbers and times are none."""
    array = _array(values, name)
    try:
        if array.dtype.kind not in "biufOSUT" or _has_underscores(array):
            raise TypeError
        return array.astype(np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} holds something that is not a number: check the column") from None


def _has_underscores(array: np.ndarray) -> bool:
    """Python and NumPy would read 1_000 as 1000."""
    if array.dtype.kind == "S":
        return any(b"_" in value for value in array.tolist())
    if array.dtype.kind not in "OUT":
        return False
    return any(isinstance(value, str) and "_" in value for value in array.tolist())


def step_column(values: Any) -> np.ndarray:
    """Steps as finite numbers or times: sorted as text, 10 would come before 2."""
    array = _array(values, "step")
    for kind in ("float64", "datetime64[us]"):
        if array.dtype.kind in "OSUT" and not _has_underscores(array):
            with suppress(TypeError, ValueError):
                array = array.astype(kind)
    if array.dtype.kind not in "biufmM":
        raise InputError("step holds something that is neither a number nor a time: fix the column")
    missing: np.ndarray = np.isnat(array) if array.dtype.kind in "mM" else np.isnan(array)
    check_present(~missing, "step")
    if array.dtype.kind == "f":
        finite(array, "step")
    return array


def flag_column(values: Any, name: str) -> np.ndarray | None:
    """A column of booleans [N]: true/false, 0/1 or such words; None stays None."""
    if values is None:
        return None
    array = _array(values, name)
    if array.dtype.kind in "OSUT":
        meaning = [FLAGS.get(str(word).lower()) for word in array.tolist()]
        if None not in meaning:
            return np.array(meaning, dtype=bool)
    if array.dtype == bool:
        return array.copy()
    if array.dtype.kind in "iuf" and np.isin(array, (0, 1)).all():
        return array.astype(bool)
    raise InputError(f"{name} holds something other than true/false or 0/1: check the column")


def resolve(
    present: Sequence[str], given: Mapping[str, str | Sequence[str]], bandit: bool = False
) -> dict[str, tuple[str, ...]]:
    """Map each of our column names to the caller's, by `given`, by itself, or by an alias.

    In the log of a `bandit`, every row is an episode, and what tells episodes has no columns.
    """
    for name in given:
        if name not in REQUIRED + OPTIONAL:
            hint = did_you_mean(name, REQUIRED + OPTIONAL)
            raise InputError(f"columns maps {name!r}, which is not a column of a log{hint}")
        if bandit and name in EPISODES:
            raise InputError(
                f"{name} is mapped to {given[name]!r}, but every row of a bandit's log is an "
                "episode of its own: leave the column out, or bandit"
            )
    found: dict[str, tuple[str, ...]] = {}
    for name in REQUIRED + OPTIONAL:
        if bandit and name in EPISODES:
            found[name] = ()
            continue
        if name in given:
            mine = given[name]
            found[name] = (mine,) if isinstance(mine, str) else tuple(mine)
        else:
            found[name] = _by_itself(name, found, present)
        missing = [column for column in found[name] if column not in present]
        if missing or (name in REQUIRED and not found[name]):
            raise _absent(missing[0] if missing else name, present)
    _check_mapped_once(found)
    _check_not_misspelt("terminated", found, present)
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
    """The same where the first line is one name: a title, or names with an unknown sign between."""
    line = (
        f"the log has no column {wanted!r}: its first line has one name only, {name!r}; the names "
        "of the columns belong there: remove lines above them, or name the separator"
    )
    signs = SEPARATORS.findall(name)
    return FixableError(line, separator=max(signs, key=signs.count)) if signs else InputError(line)


def _check_not_misspelt(
    name: str, found: Mapping[str, tuple[str, ...]], present: Sequence[str]
) -> None:
    """What is assumed without a column must not be in one of almost the same name."""
    used = {column for mine in found.values() for column in mine}
    hint = did_you_mean(name, [column for column in present if column not in used])
    if found["episode_id"] and not found[name] and hint:
        raise InputError(f"the log has no column {name!r}{hint}: rename it, map it, or drop it")


def _check_mapped_once(found: Mapping[str, tuple[str, ...]]) -> None:
    """A column has one meaning; only the step may also be a part of the state."""
    uses: dict[str, list[str]] = {}
    for name, columns in found.items():
        for column in columns:
            uses.setdefault(column, []).append(name)
    for column, names in uses.items():
        if len(names) > 1 and sorted(names) != ["state", "step"]:
            raise InputError(
                f"column {column!r} is mapped twice, to {' and '.join(names)}: map it once"
            )


def _successors(
    name: str, found: Mapping[str, tuple[str, ...]], present: Sequence[str]
) -> tuple[str, ...]:
    """A state in the columns `ward, age` has its successor in `next_ward, next_age`."""
    columns = tuple(f"next_{column}" for column in found.get("state", ()))
    return columns if name == "next_state" and set(columns) <= set(present) else ()
