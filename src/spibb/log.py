"""Log: the transitions of a decision process in named columns, by episode and step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from spibb.binning import Bins
from spibb.checks import codes as check_codes
from spibb.checks import positive, shown, takes, whole_array
from spibb.columns import (
    NO_STATE,
    Columns,
    assemble,
    flag_column,
    float_column,
    labels_column,
    recode_successors,
    step_column,
)
from spibb.errors import InputError
from spibb.frozen import Frozen
from spibb.irregular_tables import ERROR, Handling
from spibb.labels import Labels, Vocabulary, factorize, vocabulary
from spibb.showing import Range
from spibb.time_order import TimeOrder, by_names

BLOCK = 1 << 18
"""Rows that are worked on at a time."""


class Transitions(Frozen):
    """Rows by episode and step, whatever their states are; `by_row` names the fields [N]."""

    by_row: ClassVar[tuple[str, ...]] = (
        "state", "action", "reward", "next_state", "terminated", "truncated", "action_prob",
    )  # fmt: skip
    action: np.ndarray
    reward: np.ndarray
    truncated: np.ndarray
    episode_starts: np.ndarray

    def __len__(self) -> int:
        return len(self.action)

    @property
    def n_episodes(self) -> int:
        """Number of episodes E, or trajectories |D|."""
        return len(self.episode_starts) - 1

    @property
    def lengths(self) -> np.ndarray:
        """Number of rows of each episode [E]."""
        return np.diff(self.episode_starts)

    @property
    def last_rows(self) -> np.ndarray:
        """Number of each episode's last row [E]."""
        return self.episode_starts[1:] - 1

    @property
    def episode(self) -> np.ndarray:
        """Number of the episode of each row [N]: 0 … E − 1."""
        return np.repeat(np.arange(self.n_episodes), self.lengths)

    @property
    def step(self) -> np.ndarray:
        """Number of rows of its episode before each row [N], whatever its steps were called."""
        return np.arange(len(self)) - np.repeat(self.episode_starts[:-1], self.lengths)

    @property
    def remaining(self) -> np.ndarray:
        """Number of steps from each row to the end of its episode's record, itself included [N]."""
        return np.repeat(self.episode_starts[1:], self.lengths) - np.arange(len(self))

    def episodes(self, which: np.ndarray) -> Self:
        """The log of some episodes only, given by number, in that order.

        >>> log.episodes(np.array([2, 0])).reward.tolist()
        [0.0, 0.0, 0.0, 1.0]
        """
        which = self._numbers(which)
        lengths = self.lengths[which]
        starts = np.concatenate([[0], np.cumsum(lengths)])
        first = np.repeat(self.episode_starts[:-1][which] - starts[:-1], lengths)
        rows = first + np.arange(starts[-1])
        columns = {name: getattr(self, name) for name in self.by_row}
        chosen = {
            name: None if column is None else column[rows] for name, column in columns.items()
        }
        return replace(self, **chosen, episode_starts=starts)  # type: ignore[type-var]

    def _numbers(self, which: Any) -> np.ndarray:
        """Numbers of episodes, or a mask [E] of them, checked."""
        if np.shape(which) == (self.n_episodes,) and np.asarray(which).dtype == bool:
            return np.flatnonzero(which)
        numbers = whole_array("which", which)
        check_codes("numbers of episodes", numbers, self.n_episodes)
        return numbers

    def blocks(self) -> Iterator[Self]:
        """The log in parts of whole episodes, of about `BLOCK` rows each; they share its arrays."""
        starts = self.episode_starts
        cuts = np.searchsorted(starts, np.arange(BLOCK, len(self), BLOCK))
        for begin, end in pairwise(np.unique([0, *cuts, self.n_episodes])):
            rows = slice(starts[begin], starts[end])
            columns = {name: getattr(self, name) for name in self.by_row}
            mine = {name: None if column is None else column[rows]
                    for name, column in columns.items()}  # fmt: skip
            yield replace(self, **mine, episode_starts=starts[begin : end + 1] - starts[begin])  # type: ignore[type-var]

    def by_blocks(self, function: Callable[[Self], np.ndarray]) -> np.ndarray:
        """What a function gives for every row [N], without temporary arrays of the log's size."""
        return np.concatenate([function(part) for part in self.blocks()])

    def _sized(self, **sizes: int) -> Mapping[str, Any]:
        """Sizes, those of the states among them, and the range of the rewards."""
        rewards = Range(self.reward.min(), self.reward.max())
        return {
            "transitions": len(self), "episodes": self.n_episodes, **sizes, "rewards": rewards,
        }  # fmt: skip


@dataclass(frozen=True, eq=False)
class Log(Transitions):
    """A log: transitions ⟨x_j, a_j, r_j, x'_j⟩ sorted by episode and step.

    `read_log`, `Log.from_frame` and `Log.from_arrays` make one. All arrays are read-only.

    Attributes:
        state: codes x_j into `states` [N].
        action: codes a_j into `actions` [N].
        reward: r_j [N].
        next_state: codes x'_j [N]; −1 where nothing follows, because the process ended
            (`terminated`) or the record stops without saying what came next.
        terminated: whether the process ended with this row [N].
        truncated: whether the record was cut here while the process went on [N]; where both are
            set, terminated wins.
        episode_starts: row numbers [E + 1]; the last is N.
        states: the labels of the states.
        actions: the labels of the actions.
        action_prob: recorded probability of the logged action [N]; None if it was not recorded.
        bins: the intervals of the columns that were cut.
        ends_assumed: no column told what terminated, so the last row of every episode that is not
            truncated was taken to end it.
        one_per: columns of the unit, such as a user, of which only one row was read.
        untimed: the time order of the episodes is unknown.

    >>> log
    Log(transitions=6, episodes=3, states=2, actions=2, rewards=0 to 1)
    >>> log.states[log.state[1]], log.actions[log.action[1]], float(log.reward[1])
    ('severe', 'treat', 1.0)
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
    bins: Mapping[str, Bins] = field(default_factory=dict, kw_only=True)
    ends_assumed: bool = field(default=False, kw_only=True)
    one_per: tuple[str, ...] = field(default=(), kw_only=True)
    untimed: bool = field(default=False, kw_only=True)

    def _facts(self) -> Mapping[str, Any]:
        return self._sized(states=len(self.states), actions=len(self.actions))

    @property
    def columns(self) -> dict[str, tuple[str, ...]]:
        """The columns that states and actions span: what `read_log` needs to read them back."""
        return {"state": self.states.names, "action": self.actions.names}

    @property
    def hides_time(self) -> bool:
        """Whether all episodes have as many steps, and a state does not say which step it is."""
        lengths = self.lengths
        if lengths[0] == 1 or (lengths != lengths[0]).any():
            return False
        seen = np.unique(self.state.astype(np.int64) * lengths[0] + self.step)
        return len(seen) > len(np.unique(self.state))

    @property
    def pair(self) -> np.ndarray:
        """State and action of each row as one code x·A + a [N]."""
        return np.asarray(self.state.astype(np.int64) * len(self.actions) + self.action)

    def taken_probs(self, policy: np.ndarray) -> np.ndarray:
        """The probability with which each action was taken [N], as recorded where it is.

        Parameters:
            policy: the probabilities [S, A] that count where the log records none.

        >>> log.taken_probs(np.full((2, 2), 0.5)).tolist()
        [0.5, 0.5, 0.5, 0.5, 0.5, 0.5]
        """
        return policy[self.state, self.action] if self.action_prob is None else self.action_prob

    @cached_property
    def known(self) -> np.ndarray:
        """bool [N]: the successor is known, so the transition can be counted."""
        return self.terminated | (self.next_state != NO_STATE)

    @classmethod
    def from_arrays(  # noqa: PLR0913 (one parameter per column)
        cls,
        state: Any,
        action: Any,
        reward: Any,
        next_state: Any = None,
        terminated: Any = None,
        truncated: Any = None,
        *,
        episode_id: Any = None,
        step: Any = None,
        action_prob: Any = None,
        state_labels: Labels | None = None,
        action_labels: Labels | None = None,
        n_states: int | None = None,
        n_actions: int | None = None,
    ) -> Log:
        """Build a log from one array per column, each with one value per row.

        Labels are strings, whole numbers or tuples.

        Parameters:
            state: labels of the states.
            action: labels of the actions.
            reward: the rewards.
            next_state: labels of the successors; if None, the successor is the state of the next
                row of the same episode.
            terminated: where the process ended; if None, the last row of every episode that is not
                truncated ends it, and `ends_assumed` says so.
            truncated: where the record was cut while the process went on.
            episode_id: names of the episodes; if None, a new one begins after each row that is
                terminated or truncated.
            step: numbers or times that order the rows of an episode; if None, they are in order.
            action_prob: the probability of each action taken, if it was recorded.
            state_labels: all states in the order of their codes, also those never visited.
            action_labels: all actions in the order of their codes.
            n_states: a number of states instead of their labels, which are then 0 … n − 1.
            n_actions: a number of actions instead of their labels.

        Returns:
            The log, sorted by episode and step.

        >>> spibb.Log.from_arrays(["mild", "severe"], ["wait", "treat"], [0, 1],
        ...                       terminated=[False, True])
        Log(transitions=2, episodes=1, states=2, actions=2, rewards=0 to 1)
        """
        if step is not None and episode_id is None:
            raise InputError("step is given without episode_id: give both, or rows in order")
        names = codes = None
        if episode_id is not None:
            names, codes = factorize(labels_column(episode_id, "episode_id"), "episode_id")
        columns = Columns(
            state=labels_column(state, "state"),
            action=labels_column(action, "action"),
            reward=float_column(reward, "reward"),
            next_state=None if next_state is None else labels_column(next_state, "next_state"),
            terminated=flag_column(terminated, "terminated"),
            truncated=flag_column(truncated, "truncated"),
            episode=codes,
            step=None if step is None else step_column(step),
            action_prob=None if action_prob is None else float_column(action_prob, "action_prob"),
        )
        fields = assemble(
            columns, _given("state", state_labels, n_states),
            _given("action", action_labels, n_actions),
        )  # fmt: skip
        order = TimeOrder(None, "by row") if names is None else _in_time(names, columns)
        return order.of(cls(**fields))

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        columns: Mapping[str, str | Sequence[str]] | None = None,
        state_labels: Labels | None = None,
        action_labels: Labels | None = None,
        bandit: bool = False,
        missing: str = ERROR,
        duplicates: str = ERROR,
    ) -> Log:
        """Build a log from any dataframe that narwhals knows (pandas, Polars, Arrow, DuckDB, …).

        Columns: episode_id, step, state, action, reward, and optionally next_state, terminated,
        truncated, action_prob. Without a column `terminated`, the last row of every episode that is
        not truncated ends the process; `ends_assumed` then says so.

        Parameters:
            frame: the dataframe.
            columns: these names mapped to yours; a state or action may span several columns:
                ``{"state": ["ward", "severity"], "action": "drug"}``. Successors are then found in
                `next_ward` and `next_severity` if these exist and no other mapping is given.
            state_labels: labels that the log may never show, in the order of their codes.
            action_labels: the same for actions.
            bandit: whether every row is an episode of one step that ends; columns of episodes,
                steps and ends are not needed then, and there may be a unit, as in `count_log`.
            missing: ``"error"``, ``"as-level"`` or ``"drop"``, as in `count_log`.
            duplicates: ``"error"`` or ``"drop"``, as in `count_log`.

        Returns:
            The log, sorted by episode and step.

        >>> import pyarrow as pa
        >>> frame = pa.table({"episode_id": [1, 1], "step": [0, 1], "ward": ["a", "b"],
        ...                   "action": [0, 1], "reward": [0, 1], "terminated": [False, True]})
        >>> spibb.Log.from_frame(frame, columns={"state": "ward"}).states
        Vocabulary(size=2, begins='a', 'b', columns=ward)
        """
        from spibb.sql.engines import open_frame
        from spibb.sql.typed import TypedTable

        if isinstance(frame, str | Path):
            raise InputError(
                f"frame is {shown(str(frame))}, expected a dataframe: spibb.read_log reads files"
            )
        handling = Handling(bandit, missing, duplicates)
        columns = {} if columns is None else columns
        table = TypedTable.open(open_frame(frame, "frame"), columns, {}, handling)
        return table.time_order().of(cls(**table.fields(state_labels, action_labels)))

    @takes(path=(str, Path))
    def save(self, path: str | Path) -> Path:
        """Write the log as .csv or .parquet, by the ending of the name.

        ``spibb.read_log(path, columns=log.columns)`` reads the same log back: the same rows in the
        same order, with the states and actions that occur in it. Bins are in its labels, but a
        table does not keep their edges. A CSV file has no types: labels that it would give back as
        others (true and false, text that reads as whole numbers, empty text) need .parquet.

        Parameters:
            path: the file.

        Returns:
            The path of the file.

        >>> path = log.save("log.csv")
        >>> spibb.read_log(path, columns=log.columns)
        Log(transitions=6, episodes=3, states=2, actions=2, rewards=0 to 1)
        """
        from spibb import tables
        from spibb.sql.reading import check_untyped

        table = tables.log_table(self)
        if Path(path).suffix.lower() == ".csv":
            check_untyped(table.select([*self.states.names, *self.actions.names]))
        return tables.write_table(table, Path(path))

    @takes(states=Vocabulary, actions=Vocabulary)
    def with_labels(self, states: Vocabulary, actions: Vocabulary) -> Log:
        """The same log with codes into vocabularies that hold all of its labels, and perhaps more.

        Parameters:
            states: labels of the states.
            actions: labels of the actions.

        >>> wider = spibb.Vocabulary(["healed", "mild", "severe"])
        >>> log.with_labels(wider, log.actions).state[:2].tolist()
        [1, 2]
        """
        if states == self.states and actions == self.actions:
            return self
        rows, columns = self.states.codes_in(states), self.actions.codes_in(actions)
        return replace(
            self, state=rows[self.state], action=columns[self.action], states=states,
            actions=actions, next_state=recode_successors(self.next_state, rows),
        )  # fmt: skip


def _given(name: str, labels: Labels | None, n: int | None) -> Vocabulary | None:
    """The labels, or those of as many as are said; None where neither is given."""
    if labels is not None:
        return vocabulary(labels, name, argument=f"{name}_labels")
    return None if n is None else vocabulary(positive(f"n_{name}s", n), name)


def _in_time(names: Vocabulary, columns: Columns) -> TimeOrder:
    """The order of the episodes in time: by steps that are times, and else by names."""
    step, episode = columns.step, columns.episode
    if step is not None and episode is not None and step.dtype.kind == "M":
        rows = np.lexsort((step, episode))
        first = rows[np.flatnonzero(np.diff(episode[rows], prepend=-1))]
        return TimeOrder(np.argsort(step[first], kind="stable"), "by the first step of each")
    text = [name for name in names.labels if isinstance(name, str)]
    return by_names(text, "by episode_id") if text else TimeOrder(None, "by episode_id")


class Rewarded(Protocol):
    """Rewards [N] by episode and step, and how many steps remain at each [N]."""

    @property
    def reward(self) -> np.ndarray:
        """The reward of every row."""

    @property
    def remaining(self) -> np.ndarray:
        """Steps to the end of the episode's record, this one included."""


def returns_to_go(log: Rewarded, discount: float) -> np.ndarray:
    """Σ_{u ≥ t} γ^{u−t} r_u from every row to the end of its episode's record [N].

    Each pass doubles the number of steps added up.
    """
    found, remaining, reach = log.reward.copy(), log.remaining, 1
    longest = int(remaining.max(initial=0))
    while reach < longest:
        later = discount**reach * found[reach:]
        later[remaining[:-reach] <= reach] = 0.0
        found[:-reach] += later
        reach *= 2
    return found
