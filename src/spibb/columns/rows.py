"""From typed columns to the coded, sorted rows of a log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spibb.arrays import densify
from spibb.checks import finite, per_cent, same_length, such_rows
from spibb.errors import InputError
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
    there is no state of the problem. Where one of the two columns is text, so is the other; where
    one has true and false and the other numbers, both have numbers.
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
        found, others = found.in_form_of(others), others.in_form_of(found)
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
            f"on ({such_rows(inside.sum())}): give what follows its own episode_id"
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
