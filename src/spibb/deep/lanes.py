"""Episodes in any Gymnasium environment, or in a batched simulator given as two functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from spibb import checks
from spibb.deep.log import DeepLog, StateFunction
from spibb.deep.policy import sample_rows
from spibb.errors import InputError

SIDE_BY_SIDE = 256
"""Episodes of a simulator that are collected at once."""


class Simulator(NamedTuple):
    """Many episodes side by side.

    `reset(rng, n)` gives states [n, d]; `step(states, actions, rng)` gives next states [n, d],
    rewards [n] and terminated [n] for n lanes. It keeps nothing between calls.
    """

    reset: Callable[[np.random.Generator, int], np.ndarray]
    step: Callable[[np.ndarray, np.ndarray, np.random.Generator], tuple[Any, Any, Any]]
    n_actions: int


class Collected(NamedTuple):
    """Whole episodes, one after the other: columns [N], `episode` numbers them."""

    state: np.ndarray
    action: np.ndarray
    reward: np.ndarray
    next_state: np.ndarray
    terminated: np.ndarray
    episode: np.ndarray


def collect(
    env: Any,
    policy: StateFunction,
    n_transitions: int,
    *,
    rng: np.random.Generator,
    max_steps: int = 100,
    baseline: StateFunction | None = None,
) -> DeepLog:
    """A log with this many transitions of whole episodes, the last one cut.

    The log's baseline is the policy that played, unless another is given. Stopping parallel
    episodes at a step budget would favour short ones; whole episodes do not.
    """
    checks.positive("n_transitions", n_transitions)
    at_once = SIDE_BY_SIDE if isinstance(env, Simulator) else 1
    parts: list[Collected] = []
    while sum(len(part.action) for part in parts) < n_transitions:
        parts.append(play(env, policy, at_once, rng=rng, max_steps=max_steps))
    whole = Collected(*(column[:n_transitions] for column in _join(parts)))
    return DeepLog(
        whole.state,
        whole.action,
        whole.reward,
        whole.next_state,
        whole.terminated,
        policy if baseline is None else baseline,
    )


def episode_returns(
    env: Any,
    policy: StateFunction,
    n_episodes: int,
    *,
    rng: np.random.Generator,
    max_steps: int = 100,
) -> np.ndarray:
    """Undiscounted returns [E] of a fixed number of whole episodes."""
    checks.positive("n_episodes", n_episodes)
    played = play(env, policy, n_episodes, rng=rng, max_steps=max_steps)
    return np.bincount(played.episode, played.reward, minlength=n_episodes)


def play(
    env: Any,
    policy: StateFunction,
    n_episodes: int,
    *,
    rng: np.random.Generator,
    max_steps: int = 100,
) -> Collected:
    """Whole episodes, each until it ends or `max_steps`; a simulator's all side by side."""
    checks.positive("max_steps", max_steps)
    if isinstance(env, Simulator):
        return _play_lanes(lanes_of(env, n_episodes, rng, max_steps), policy, rng)
    lanes = lanes_of(env, 1, rng, max_steps)
    parts = [_play_lanes(lanes, policy, rng) for _ in range(n_episodes)]
    lengths = [len(part.action) for part in parts]
    return _join(parts)._replace(episode=np.repeat(np.arange(n_episodes), lengths))


def _join(parts: Sequence[tuple[np.ndarray, ...]]) -> Collected:
    return Collected(*(np.concatenate(column) for column in zip(*parts)))


def _play_lanes(
    lanes: Lanes | GymLane, policy: StateFunction, rng: np.random.Generator
) -> Collected:
    """One episode per lane, in the order of the lanes."""
    running = np.arange(len(lanes.states))
    rows = []
    while len(running):
        states = lanes.states[running]
        actions = sample_rows(np.asarray(policy(states)), rng)
        step = lanes.step(actions, running)
        rows.append((states, actions, step.rewards, step.next_states, step.terminated, running))
        running = running[~step.ended]
    mixed = _join(rows)
    order = np.argsort(mixed.episode, kind="stable")
    return Collected(*(column[order] for column in mixed))


class Step(NamedTuple):
    """What one step of some lanes gave; `ended` is terminated or truncated."""

    next_states: np.ndarray
    rewards: np.ndarray
    terminated: np.ndarray
    ended: np.ndarray


@dataclass(eq=False)
class Lanes:
    """Simulator episodes side by side; a lane whose episode ended starts another one."""

    simulator: Simulator
    rng: np.random.Generator
    max_steps: int
    states: np.ndarray
    ages: np.ndarray

    @property
    def n_actions(self) -> int:
        """Number of actions A."""
        return self.simulator.n_actions

    def step(self, actions: np.ndarray, running: np.ndarray) -> Step:
        """Move the lanes `running` by one step."""
        outcome = self.simulator.step(self.states[running], actions, self.rng)
        following, rewards, terminated = (np.asarray(part) for part in outcome)
        self.ages[running] += 1
        ended = terminated | (self.ages[running] >= self.max_steps)
        self.states[running] = following
        if ended.any():
            fresh = running[ended]
            self.states[fresh] = self.simulator.reset(self.rng, len(fresh))
            self.ages[fresh] = 0
        return Step(following, rewards, terminated, ended)


@dataclass(eq=False)
class GymLane:
    """One Gymnasium environment as a single lane."""

    env: Any
    max_steps: int
    states: np.ndarray
    age: int = 0

    @property
    def n_actions(self) -> int:
        """Number of actions A."""
        return int(self.env.action_space.n)

    def step(self, actions: np.ndarray, running: np.ndarray) -> Step:
        """Move the environment by one step."""
        first = int(getattr(self.env.action_space, "start", 0))
        state, reward, terminated, truncated, _ = self.env.step(first + int(actions[0]))
        self.age += 1
        ended = bool(terminated or truncated or self.age >= self.max_steps)
        following = np.array([state], np.float64)
        self.states = following
        if ended:
            self.states, self.age = np.array([self.env.reset()[0]], np.float64), 0
        flags = np.array([[terminated], [ended]], bool)
        return Step(following, np.array([reward], np.float64), *flags)


def lanes_of(env: Any, n: int, rng: np.random.Generator, max_steps: int) -> Lanes | GymLane:
    """Lanes of a simulator, or the single lane of a Gymnasium environment."""
    if isinstance(env, Simulator):
        states = np.array(env.reset(rng, n), np.float64)
        return Lanes(env, rng, max_steps, states, np.zeros(n, np.int64))
    if not hasattr(getattr(env, "action_space", None), "n"):
        raise InputError(
            f"env is {env!r}, expected a Gymnasium environment with discrete actions, or a "
            "Simulator(reset, step, n_actions)"
        )
    state, _ = env.reset(seed=int(rng.integers(2**31)))
    states = np.array([state], np.float64)
    if states.ndim != 2:
        raise InputError(
            f"env gives states of shape {states.shape[1:]}, expected a vector: wrap it in "
            "gymnasium.wrappers.FlattenObservation"
        )
    return GymLane(env, max_steps, states)
