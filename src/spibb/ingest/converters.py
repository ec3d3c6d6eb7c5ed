"""Other people's data as logs: Minari, d3rlpy, Gymnasium, bandit feedback."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from spibb.checks import callable_, positive, same_length, shown, takes
from spibb.columns import resolve, to_arrow_table
from spibb.errors import InputError
from spibb.ingest.mapping import ColumnNames
from spibb.labels import Label
from spibb.log import Log
from spibb.policy import Policy

Encode = Callable[[Any], Label]
"""What state an observation is: a label for each."""


def from_minari(dataset: Any, *, encode: Encode | None = None) -> Log:
    """A log from a Minari dataset (any object with `iterate_episodes`).

    Minari stores one observation more than there are actions, so every successor is known.

    Parameters:
        dataset: Minari's dataset.
        encode: turns an observation into a label; without it observations must be whole numbers, or
            short vectors of these, which become tuples.

    Returns:
        A log with an episode per episode of the dataset.

    >>> from types import SimpleNamespace as Namespace
    >>> episode = Namespace(observations=[0, 1, 0], actions=[1, 1], rewards=[0.0, 1.0],
    ...                     terminations=[False, True], truncations=[False, False])
    >>> spibb.from_minari(Namespace(iterate_episodes=lambda: [episode]))
    Log(transitions=2, episodes=1, states=2, actions=1, rewards=0 to 1)
    """
    _check_has("dataset", dataset, "iterate_episodes", "minari.load_dataset(name) makes one")
    _check_encode(encode)
    rows = _Gathered()
    for number, episode in enumerate(dataset.iterate_episodes()):
        labels = _labels(episode.observations, encode)
        actions = _labels(episode.actions, None)
        if len(labels) != len(actions) + 1:
            raise InputError(
                f"episode {number} has {len(labels)} observations and {len(actions)} actions, "
                "expected one observation more: record it with Minari's DataCollector"
            )
        ends = np.asarray(episode.terminations, bool), np.asarray(episode.truncations, bool)
        rows.add(number, labels[:-1], actions, episode.rewards, labels[1:], *ends)
    return rows.log()


def from_d3rlpy(dataset: Any, *, encode: Encode | None = None) -> Log:
    """A log from d3rlpy's `MDPDataset` (any object with `episodes`).

    d3rlpy stores as many observations as actions: what followed the last one of an episode that
    timed out is unknown, and d3rlpy drops that step from training. Here it is truncated without a
    successor, and left out of the counts likewise.

    Parameters:
        dataset: d3rlpy's dataset.
        encode: turns an observation into a label, as in `from_minari`.

    Returns:
        A log with an episode per episode of the dataset.

    >>> from types import SimpleNamespace as Namespace
    >>> episode = Namespace(observations=[0, 1], actions=[1, 1], rewards=[0.0, 1.0],
    ...                     terminated=True)
    >>> spibb.from_d3rlpy(Namespace(episodes=[episode]))
    Log(transitions=2, episodes=1, states=2, actions=1, rewards=0 to 1)
    """
    _check_has("dataset", dataset, "episodes", "d3rlpy.dataset.MDPDataset(…) makes one")
    _check_encode(encode)
    rows = _Gathered()
    for number, episode in enumerate(dataset.episodes):
        labels = _labels(episode.observations, encode)
        ended = getattr(episode, "terminated", getattr(episode, "terminal", None))
        if ended is None:
            raise InputError(f"episode {number} does not say if it terminated: check the dataset")
        last = np.arange(len(labels)) == len(labels) - 1
        following = [*labels[1:], None]
        rows.add(number, labels, _labels(episode.actions, None), episode.rewards, following,
                 last & bool(ended), last & (not ended))  # fmt: skip
    return rows.log()


@takes(policy=Policy, rng=np.random.Generator)
def collect(
    env: Any,
    policy: Policy,
    n_episodes: int,
    *,
    rng: np.random.Generator,
    encode: Encode | None = None,
    max_steps: int = 100_000,
) -> Log:
    """Let a policy act in a Gymnasium environment, and log what happens.

    States are the observations (through `encode`, as in `from_minari`), actions the policy's
    labels, which the environment must understand; `action_prob` is recorded.

    Parameters:
        env: a Gymnasium environment.
        policy: what acts.
        n_episodes: how many.
        rng: the source of random numbers.
        encode: turns an observation into a label.
        max_steps: after which an episode is cut.

    Returns:
        The log of the episodes.

    >>> from spibb.envs import Gridworld, gridworld_mdp
    >>> walk = spibb.Policy.uniform(25, range(4))
    >>> spibb.collect(Gridworld(), walk, 3, rng=np.random.default_rng(0)).n_episodes
    3
    """
    _check_has("env", env, "step", "gymnasium.make(name) makes one")
    _check_encode(encode)
    positive("n_episodes", n_episodes)
    positive("max_steps", max_steps)
    read = encode or (lambda observation: _labels(np.asarray([observation]), None)[0])
    rows = _Gathered()
    for number in range(n_episodes):
        observation, _ = env.reset(seed=int(rng.integers(2**31)))
        states: list[Label] = [read(observation)]
        actions: list[Label] = []
        rewards, probs, ends = [], [], []
        done = False
        while not done:
            action = policy.sample(states[-1], rng=rng)
            observation, reward, terminated, truncated, _ = env.step(action)
            truncated = truncated or len(actions) + 1 >= max_steps
            probs.append(policy.row(states[-1])[action])
            states.append(read(observation))
            actions.append(action)
            rewards.append(reward)
            ends.append((terminated, truncated))
            done = terminated or truncated
        flags = np.asarray(ends, dtype=bool).T
        rows.add(number, states[:-1], actions, rewards, states[1:], *flags, probs)
    return rows.log()


def from_bandit(
    frame: Any,
    *,
    state: str | Sequence[str],
    action: str | Sequence[str],
    reward: str,
    action_prob: str | None = None,
) -> Log:
    """A log of single decisions, as in the Open Bandit data: one per row, with its propensity.

    Every row is an episode that ends. `state`, `action`, `reward` and `action_prob` name columns of
    any dataframe, or of a mapping of arrays. It is `Log.from_frame` with `bandit`.

    Parameters:
        frame: the table.
        state: the column or columns of the context.
        action: the column or columns of the action.
        reward: the column of the reward.
        action_prob: the column of the action's probability; None takes `action_prob` or `pscore`
            if there is such a column.

    Returns:
        A log with as many episodes as rows.

    >>> clicks = {"user": ["new", "old"], "item": [1, 2], "click": [0, 1], "pscore": [0.5, 0.5]}
    >>> spibb.from_bandit(clicks, state="user", action="item", reward="click", action_prob="pscore")
    Log(transitions=2, episodes=2, states=2, actions=2, rewards=0 to 1)
    """
    columns: dict[str, str | Sequence[str]] = {
        "state": state, "action": action, "reward": reward,
    }  # fmt: skip
    if action_prob is not None:
        columns["action_prob"] = action_prob
    table = _table_of(frame, columns) if isinstance(frame, Mapping) else frame
    return Log.from_frame(table, columns=columns, bandit=True)


def _table_of(frame: Mapping[str, Any], columns: ColumnNames) -> Any:
    """Of a mapping of arrays, those that the log of a bandit reads, as a table."""
    present = [name for name in frame if isinstance(name, str)]
    names = resolve(present, columns, bandit=True)
    read = {name: frame[name] for mine in names.values() for name in mine}
    same_length(**read)
    return to_arrow_table(read)


class _Gathered:
    """Columns of a log, episode after episode."""

    def __init__(self) -> None:
        self.columns: list[list[Any]] = [[] for _ in range(8)]

    def add(self, number: int, *columns: Iterable[Any]) -> None:
        """Append an episode: states, actions, rewards, successors, ends, and propensities."""
        n = len(self.columns[0])
        for mine, values in zip(self.columns[1:], columns):
            mine.extend(np.ravel(values).tolist() if isinstance(values, np.ndarray) else values)
        self.columns[0].extend([number] * (len(self.columns[1]) - n))

    def log(self) -> Log:
        """The log of all episodes."""
        episode, states, actions, rewards, following, terminated, truncated, probs = self.columns
        if not states:
            raise InputError("the dataset has no episodes: check its name")
        return Log.from_arrays(
            states, actions, np.asarray(rewards, dtype=float).reshape(-1), following,
            np.asarray(terminated, bool), np.asarray(truncated, bool), episode_id=episode,
            step=_steps(episode), action_prob=probs or None,
        )  # fmt: skip


def _check_has(name: str, value: Any, part: str, remedy: str) -> None:
    """Refuse an object of another library without the part that is needed of it."""
    if not hasattr(value, part):
        raise InputError(f"{name} is {shown(value)}, expected an object with {part!r}: {remedy}")


def _check_encode(encode: Any) -> None:
    callable_("encode", encode, "encode=lambda observation: int(observation)")


def _steps(episode: Sequence[int]) -> np.ndarray:
    starts = np.concatenate([[0], np.cumsum(np.bincount(episode))])
    return np.arange(len(episode)) - starts[np.asarray(episode)]


def _labels(values: Any, encode: Encode | None) -> list[Label]:
    """One label per observation or action: whole numbers, text, or tuples of whole numbers."""
    if encode is not None:
        return [encode(value) for value in values]
    array = np.asarray(values)
    if array.dtype.kind == "f" and np.array_equal(array, np.floor(array)):
        array = array.astype(np.int64)
    if array.dtype.kind not in "iubU" or array.ndim > 2:
        raise InputError(
            f"observations are {array.dtype} of shape {array.shape}, expected whole numbers: give "
            "encode=, a function that turns an observation into a label (bin what is continuous)"
        )
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    rows: list[Any] = array.tolist()
    return [tuple(row) if isinstance(row, list) else row for row in rows]
