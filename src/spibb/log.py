"""Log: the transitions of a decision process in named columns, by episode and step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from spibb.checks import InputError, did_you_mean, finite, same_length, some
from spibb.labels import Label, Vocabulary, encode, factorize, same_kind, translate, vocabulary

NO_STATE = -1

ALIASES: Mapping[str, tuple[str, ...]] = {
    "episode_id": ("episode",),
    "terminated": ("terminals", "terminal", "done"),
    "truncated": ("timeouts", "timeout"),
    "action_prob": ("pscore",),
}
REQUIRED = ("episode_id", "step", "state", "action", "reward", "terminated")
OPTIONAL = ("next_state", "truncated", "action_prob")

FLAGS = {"true": True, "t": True, "yes": True, "1": True,
         "false": False, "f": False, "no": False, "0": False}  # fmt: skip
EMPTY = "the log is empty: it needs at least one transition; check what wrote it"

Labels = Vocabulary | Sequence[Label]


@dataclass(frozen=True, eq=False)
class Log:
    """Transitions ⟨x_j, a_j, r_j, x'_j⟩ sorted by episode and step.

    `state`, `action` and `next_state` [N] are codes into the vocabularies `states` and `actions`.
    `next_state` is −1 where nothing follows: the process ended (`terminated`), or the record
    stops without saying what came next. `truncated` marks a record cut while the process went on;
    where both are set, terminated wins. `episode_starts` [E + 1] are row numbers, the last is N.
    """

    state: np.ndarray
    action: np.ndarray
    reward: np.ndarray
    next_state: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    episode_starts: np.ndarray
    states: Vocabulary
    actions: Vocabulary
    action_prob: np.ndarray | None = None

    def __post_init__(self) -> None:
        for column in (self.state, self.action, self.reward, self.next_state, self.terminated,
                       self.truncated, self.episode_starts, self.action_prob):  # fmt: skip
            if column is not None:
                column.flags.writeable = False

    def __len__(self) -> int:
        return len(self.state)

    def __repr__(self) -> str:
        return (
            f"Log({len(self)} transitions, {self.n_episodes} episodes, "
            f"{len(self.states)} states, {len(self.actions)} actions)"
        )

    @property
    def n_episodes(self) -> int:
        """Number of episodes E, or trajectories |D|."""
        return len(self.episode_starts) - 1

    @cached_property
    def known(self) -> np.ndarray:
        """bool [N]: the successor is known, so the transition can be counted."""
        return self.terminated | (self.next_state != NO_STATE)

    @classmethod
    def from_arrays(  # noqa: PLR0913 (one parameter per column)
        cls,
        states: Any,
        actions: Any,
        rewards: Any,
        next_states: Any = None,
        terminated: Any = None,
        truncated: Any = None,
        *,
        episodes: Any = None,
        steps: Any = None,
        action_prob: Any = None,
        state_labels: Labels | None = None,
        action_labels: Labels | None = None,
        n_states: int | None = None,
        n_actions: int | None = None,
    ) -> Log:
        """Build a log from one array per column; rows in any order if `episodes` and `steps` say.

        Without `episodes`, rows are in order and a new episode begins after each row that is
        terminated or truncated. Without `next_states`, the successor is the state of the next row
        of the same episode. `state_labels` or `n_states` (labels 0 … n−1) name states that the
        log may never visit; the same for actions. Labels are strings, whole numbers or tuples.
        """
        if steps is not None and episodes is None:
            raise InputError("steps are given without episodes: give both, or rows in order")
        columns = _Columns(
            state=_labels_column(states),
            action=_labels_column(actions),
            reward=_float_column(rewards, "reward"),
            next_state=None if next_states is None else _labels_column(next_states),
            terminated=_flag_column(terminated, "terminated"),
            truncated=_flag_column(truncated, "truncated"),
            episode=None if episodes is None else factorize(episodes, "episode_id")[1],
            step=None if steps is None else _step_column(steps),
            action_prob=None if action_prob is None else _float_column(action_prob, "action_prob"),
        )
        given_states = state_labels if state_labels is not None else n_states
        given_actions = action_labels if action_labels is not None else n_actions
        return _assemble(
            columns,
            None if given_states is None else vocabulary(given_states, "state"),
            None if given_actions is None else vocabulary(given_actions, "action"),
        )

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        columns: Mapping[str, str | Sequence[str]] | None = None,
        state_labels: Labels | None = None,
        action_labels: Labels | None = None,
    ) -> Log:
        """Build a log from any dataframe that narwhals knows (pandas, Polars, Arrow, DuckDB, …).

        Columns: episode_id, step, state, action, reward, terminated, and optionally next_state,
        truncated, action_prob. `columns` maps these names to yours; a state or action may span
        several: ``columns={"state": ["ward", "severity"], "action": "drug"}``. Successors are then
        found in `next_ward` and `next_severity` if these exist and no other mapping is given.
        """
        import narwhals as nw

        native = nw.from_native(frame)
        table = _arrow(native.collect() if isinstance(native, nw.LazyFrame) else native)
        names = _resolve(table.column_names, columns or {})
        if table.num_rows == 0:
            raise InputError(EMPTY)
        state, action = names["state"], names["action"]
        take = _Taker(table, names)
        parts = _Columns(
            state=take.labels("state"),
            action=take.labels("action"),
            reward=take.floats("reward"),
            next_state=take.labels("next_state", may_be_missing=True),
            terminated=_flag_column(take.numbers("terminated"), "terminated"),
            truncated=_flag_column(take.numbers("truncated"), "truncated"),
            episode=factorize(take.labels("episode_id"), "episode_id")[1],
            step=_step_column(take.numbers("step")),
            action_prob=take.floats("action_prob"),
        )
        return _assemble(
            parts,
            None if state_labels is None else vocabulary(state_labels, *state),
            None if action_labels is None else vocabulary(action_labels, *action),
            state_names=state,
            action_names=action,
        )

    def with_labels(self, states: Vocabulary, actions: Vocabulary) -> Log:
        """The same log with codes into larger vocabularies."""
        if states == self.states and actions == self.actions:
            return self
        rows, columns = states.codes(self.states), actions.codes(self.actions)
        if (rows < 0).any() or (columns < 0).any():
            raise InputError("the log has states or actions that the new vocabulary lacks")
        next_state = np.append(rows, np.int32(NO_STATE))[self.next_state]
        return replace(
            self, state=rows[self.state], action=columns[self.action], next_state=next_state,
            states=states, actions=actions,
        )  # fmt: skip

    def episodes(self, which: np.ndarray) -> Log:
        """The log of some episodes only, given by number."""
        lengths = np.diff(self.episode_starts)[which]
        starts = np.concatenate([[0], np.cumsum(lengths)])
        first = np.repeat(self.episode_starts[:-1][which] - starts[:-1], lengths)
        rows = first + np.arange(starts[-1])
        columns = {
            name: getattr(self, name)[rows]
            for name in ("state", "action", "reward", "next_state", "terminated", "truncated")
        }
        prob = None if self.action_prob is None else self.action_prob[rows]
        return replace(self, **columns, action_prob=prob, episode_starts=starts)


@dataclass(frozen=True)
class _Columns:
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


def _assemble(
    columns: _Columns,
    states: Vocabulary | None,
    actions: Vocabulary | None,
    state_names: Sequence[str] = ("state",),
    action_names: Sequence[str] = ("action",),
) -> Log:
    """Check, code, sort, and derive what the columns leave out."""
    states, state, next_state = _code_states(columns, states, state_names)
    if actions is None:
        actions, action = factorize(columns.action, *action_names)
    else:
        action = encode(columns.action, actions, "actions")
    n = same_length(
        state=state, action=action, reward=columns.reward, next_state=next_state,
        terminated=columns.terminated, truncated=columns.truncated, episode=columns.episode,
        step=columns.step, action_prob=columns.action_prob,
    )  # fmt: skip
    if n == 0:
        raise InputError(EMPTY)
    _no_missing(state=state, action=action)
    finite(columns.reward, "reward")
    _check_propensities(columns.action_prob)
    none = np.zeros(n, dtype=bool)
    terminated = none if columns.terminated is None else columns.terminated
    truncated = none if columns.truncated is None else columns.truncated & ~terminated
    order, starts = _episodes(columns, terminated | truncated)
    last = np.zeros(n, dtype=bool)
    last[starts[1:] - 1] = True
    terminated, truncated = terminated[order], truncated[order]
    _check_ends(terminated | truncated, last, order)
    state = state[order]
    if next_state is None:
        next_state = np.append(state[1:], np.int32(NO_STATE))
        next_state[last] = NO_STATE
    else:
        next_state = _explicit_successors(next_state[order], state, terminated, last)
    next_state[terminated] = NO_STATE
    return Log(
        state=state,
        action=action[order],
        reward=columns.reward[order],
        next_state=next_state,
        terminated=terminated,
        truncated=truncated | (last & ~terminated),
        episode_starts=starts,
        states=states,
        actions=actions,
        action_prob=None if columns.action_prob is None else columns.action_prob[order],
    )


def _code_states(
    columns: _Columns, states: Vocabulary | None, names: Sequence[str]
) -> tuple[Vocabulary, np.ndarray, np.ndarray | None]:
    """Code states and successors in one vocabulary: a state may occur only as a successor.

    A CSV file has no types: where one of the two columns reads as text, so does the other.
    """
    if states is None:
        found, state = factorize(columns.state, *names)
    else:
        found, state = states, encode(columns.state, states, "states")
    if columns.next_state is None:
        return found, state, None
    others, following = factorize(columns.next_state, *names)
    if columns.terminated is not None:  # what lies beyond the end is no state of the problem
        following = np.where(columns.terminated, np.int32(NO_STATE), following)
    if states is None:
        found, others = found.as_text_like(others), others.as_text_like(found)
        same_kind((*found.labels[:1], *others.labels[:1]), "state and next_state")
        reached = [others[code] for code in np.unique(following).tolist() if code >= 0]
        both = Vocabulary(sorted(set(found.labels).union(reached)), found.names)
        state, found = both.codes(found)[state], both
    return found, state, translate(others, following, found, "next states")


def _episodes(columns: _Columns, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Order of the rows [N] by episode and step, and where each episode starts [E + 1]."""
    n = len(ends)
    if columns.episode is None:
        starts = np.flatnonzero(np.concatenate([[True], ends[:-1]]))
        return np.arange(n), np.append(starts, n)
    episode = columns.episode
    _no_missing(episode_id=episode)
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


def _explicit_successors(
    next_state: np.ndarray, state: np.ndarray, terminated: np.ndarray, last: np.ndarray
) -> np.ndarray:
    """Fill a missing successor with the state of the next row, never across an episode's end."""
    gap = (next_state == NO_STATE) & ~terminated & ~last
    following = np.append(state[1:], np.int32(NO_STATE))
    return np.where(gap, following, next_state).astype(np.int32)


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
        raise InputError(
            f"action_prob in row {row} is {action_prob[row]:g}, expected a number in (0, 1]: "
            "the logged action must have been possible"
        )


def _no_missing(**codes: np.ndarray) -> None:
    for name, column in codes.items():
        missing = column < 0
        if missing.any():
            raise InputError(
                f"{name} is missing in row {int(np.argmax(missing))} "
                f"({int(missing.sum())} such rows): fill or drop them"
            )


def _labels_column(values: Any) -> Any:
    """Leave labels as they are, but let any array type through as NumPy."""
    if isinstance(values, np.ndarray | list | tuple) or type(values).__module__ == "pyarrow.lib":
        return values
    return values.to_numpy() if hasattr(values, "to_numpy") else list(values)


def _arrow(frame: Any) -> Any:
    import pyarrow as pa

    try:
        return frame.to_arrow()
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise InputError(
            f"a column of the log mixes types ({' '.join(str(error).split())}): "
            "make every value a string, or a number"
        ) from None


def _float_column(values: Any, name: str) -> np.ndarray:
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} holds something that is not a number: check the column") from None
    if array.ndim != 1:
        raise InputError(f"{name} has shape {array.shape}, expected one number per transition")
    return array


def _step_column(values: Any) -> np.ndarray:
    """Steps as numbers or times: sorted as text, 10 would come before 2."""
    array = np.asarray(values)
    for kind in ("float64", "datetime64[us]"):
        if array.dtype.kind in "OSUT":
            with suppress(TypeError, ValueError):
                array = array.astype(kind)
    if array.dtype.kind not in "biufmM":
        raise InputError(
            "step holds something that is neither a number nor a time: mend the column"
        )
    missing = array != array  # NaN and NaT
    if missing.any():
        raise InputError(
            f"step is missing in row {int(np.argmax(missing))} ({int(missing.sum())} such rows): "
            "fill or drop them"
        )
    return array


def _flag_column(values: Any, name: str) -> np.ndarray | None:
    if values is None:
        return None
    array = np.asarray(values)
    if array.dtype.kind in "OSUT":
        array = np.array([FLAGS.get(str(value).lower(), value) for value in array.tolist()])
    if array.dtype == bool:
        return array.copy()
    if array.dtype.kind in "iuf" and np.isin(array, (0, 1)).all():
        return array.astype(bool)
    raise InputError(f"{name} holds something other than true/false or 0/1: check the column")


def _resolve(
    present: Sequence[str], given: Mapping[str, str | Sequence[str]]
) -> dict[str, tuple[str, ...]]:
    """Map each of our column names to the caller's, by `given`, by itself, or by an alias."""
    for name in given:
        if name not in REQUIRED + OPTIONAL:
            hint = did_you_mean(name, REQUIRED + OPTIONAL)
            raise InputError(f"columns maps {name!r}, which is not a column of a log{hint}")
    found = {}
    for name in REQUIRED + OPTIONAL:
        if name in given:
            mine = given[name]
            found[name] = (mine,) if isinstance(mine, str) else tuple(mine)
        else:
            hits = [alias for alias in (name, *ALIASES.get(name, ())) if alias in present]
            found[name] = (hits[0],) if hits else _successors(name, found, present)
        missing = [column for column in found[name] if column not in present]
        if missing or (name in REQUIRED and not found[name]):
            wanted = missing[0] if missing else name
            hint = did_you_mean(wanted, present)
            raise InputError(
                f"the log has no column {wanted!r}{hint}: its columns are {some(present, 20)}; "
                "rename one or map it"
            )
    return found


def _successors(
    name: str, found: Mapping[str, tuple[str, ...]], present: Sequence[str]
) -> tuple[str, ...]:
    """A state in the columns `ward, age` has its successor in `next_ward, next_age`."""
    columns = tuple(f"next_{column}" for column in found.get("state", ()))
    return columns if name == "next_state" and set(columns) <= set(present) else ()


@dataclass(frozen=True)
class _Taker:
    """Takes columns out of an Arrow table by our names."""

    table: Any
    names: Mapping[str, tuple[str, ...]]

    def labels(self, name: str, may_be_missing: bool = False) -> Any:
        columns = [self.table.column(column) for column in self.names[name]]
        if not columns:
            return None
        for mine, column in zip(self.names[name], columns):
            if column.null_count and not may_be_missing:
                row = column.is_null().to_pylist().index(True)
                raise InputError(
                    f"column {mine!r} is missing in row {row} "
                    f"({column.null_count} such rows): fill or drop them"
                )
        return columns

    def numbers(self, name: str) -> np.ndarray | None:
        columns = self.labels(name)
        return None if columns is None else columns[0].to_numpy()

    def floats(self, name: str) -> Any:
        column = self.numbers(name)
        return None if column is None else _float_column(column, name)
