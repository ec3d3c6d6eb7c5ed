"""The helicopter of section 3.4 and appendix D.1: land close to the corner (1, 1).

>>> from spibb.envs.helicopter import N_ACTIONS, collect
>>> drawn = collect(lambda states: np.full((len(states), N_ACTIONS), 1 / N_ACTIONS), 100,
...                 rng=np.random.default_rng(0))
>>> drawn.state.shape, drawn.action.shape
((100, 4), (100,))
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import gymnasium
import numpy as np

from spibb.checks import number, positive
from spibb.errors import InputError
from spibb.frozen import Frozen
from spibb.kernels import helicopter as kernel
from spibb.showing import Shown

N_ACTIONS = 9
FEATURES = ("s_x", "s_y", "v_x", "v_y")
DISCOUNT = 0.9
MAX_STEPS = 100
"""Default cap on the length of an episode; a cut episode is truncated, not terminated."""
NOISE = np.array([0.025, 0.025, 0.05, 0.05])
"""σ_s of the positions and σ_v of the velocities at noise factor 1."""
START_LOW, START_HIGH = np.array([0, 0, -1, -1]), np.array([1 / 3, 1 / 3, 1, 1])
"""The box in which episodes start, uniformly."""
SUM_TOLERANCE = 1e-4
"""How far a policy's rows may be from 1: networks answer in single precision."""
BATCH_EPISODES = 1 << 14
"""Most episodes that run at once: bounds the rows that a policy is asked for in one call."""

ProbabilityFunction = Callable[[np.ndarray], Any]
"""A policy: states [N, 4] to probabilities [N, 9]."""


def initial_states(n: int, rng: np.random.Generator) -> np.ndarray:
    """Starts of n episodes [n, 4]: uniform in (0, 1/3)² × (−1, 1)²."""
    return rng.uniform(START_LOW, START_HIGH, size=(n, 4))


def draw_noise(n: int, noise_factor: float, rng: np.random.Generator) -> np.ndarray:
    """What one time step adds to n states [n, 4]: Gaussian, σ_s and σ_v times the factor."""
    return rng.standard_normal((n, 4)) * (noise_factor * NOISE)


@dataclass(frozen=True, eq=False)
class Rollouts(Frozen):
    """Undiscounted returns [E] and lengths [E] of whole episodes."""

    returns: np.ndarray
    lengths: np.ndarray

    @property
    def mean(self) -> float:
        """The mean undiscounted return."""
        return float(self.returns.mean())

    @property
    def standard_error(self) -> float:
        """The standard error of that mean."""
        n = len(self.returns)
        return float(self.returns.std(ddof=1) / np.sqrt(n)) if n > 1 else np.inf


@dataclass(frozen=True, eq=False)
class HelicopterLog(Frozen):
    """N transitions, episode after episode, each in order of time; or those of one time step.

    state [N, 4], action [N], reward [N], next_state [N, 4], terminated [N], truncated [N],
    episode_id [N] numbered from 0, action_prob [N]: the policy's probability of the action taken.
    """

    state: np.ndarray
    action: np.ndarray
    reward: np.ndarray
    next_state: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    episode_id: np.ndarray
    action_prob: np.ndarray

    def __len__(self) -> int:
        return len(self.action)


def play(
    policy: ProbabilityFunction,
    n_episodes: int,
    *,
    rng: np.random.Generator,
    noise_factor: float = 1.0,
    max_steps: int = MAX_STEPS,
) -> Rollouts:
    """Play `n_episodes` whole episodes side by side and return what each earned.

    The policy is asked once per time step for all running episodes (at most `BATCH_EPISODES`).
    The number of episodes is fixed and all of them finish: a budget of steps would favour short
    episodes.
    """
    positive("n_episodes", n_episodes)
    returns, lengths = np.zeros(n_episodes), np.zeros(n_episodes, dtype=np.int64)
    for first in range(0, n_episodes, BATCH_EPISODES):
        size = min(BATCH_EPISODES, n_episodes - first)
        for step in _steps(policy, size, rng, noise_factor, max_steps):
            returns[first + step.episode_id] += step.reward
            lengths[first + step.episode_id] += 1
    return Rollouts(returns, lengths)


def collect(
    policy: ProbabilityFunction,
    n_transitions: int,
    *,
    rng: np.random.Generator,
    noise_factor: float = 1.0,
    max_steps: int = MAX_STEPS,
) -> HelicopterLog:
    """Play numbered episodes and record the first `n_transitions` steps of them.

    All episodes that were begun are finished, then laid one after another in the order of their
    numbers, and the record is cut to exactly `n_transitions`: long episodes are as likely to be in
    it as short ones. The cut may fall inside the last episode, whose last row is then truncated.
    """
    positive("n_transitions", n_transitions)
    batch = max(1, min(BATCH_EPISODES, n_transitions // 8))
    parts: list[HelicopterLog] = []
    begun = recorded = 0
    while recorded < n_transitions:
        for step in _steps(policy, batch, rng, noise_factor, max_steps):
            parts.append(replace(step, episode_id=step.episode_id + begun))
            recorded += len(step.action)
        begun += batch
    order = np.argsort(np.concatenate([part.episode_id for part in parts]), kind="stable")
    first = order[:n_transitions]
    columns = {
        column.name: np.concatenate([getattr(part, column.name) for part in parts])[first]
        for column in fields(HelicopterLog)
    }
    columns["truncated"][-1] = not columns["terminated"][-1]
    return HelicopterLog(**columns)


def _steps(
    policy: ProbabilityFunction,
    n_episodes: int,
    rng: np.random.Generator,
    noise_factor: float,
    max_steps: int,
) -> Iterator[HelicopterLog]:
    """Run episodes side by side until the last one has ended: the rows of one time step each."""
    number("noise_factor", noise_factor, 0, np.inf, "[)")
    positive("max_steps", max_steps)
    running, states = np.arange(n_episodes), initial_states(n_episodes, rng)
    for t in range(1, max_steps + 1):
        probs = _ask(policy, states)
        actions = _draw_actions(probs, rng.random(len(states)))
        noise = draw_noise(len(states), noise_factor, rng)
        following, rewards, terminated = kernel.step(states, actions, noise)
        truncated = ~terminated if t == max_steps else np.zeros(len(states), dtype=bool)
        taken = probs[np.arange(len(actions)), actions]
        yield HelicopterLog(
            states, actions, rewards, following, terminated, truncated, running, taken
        )
        goes_on = ~terminated
        running, states = running[goes_on], following[goes_on]
        if not len(running):
            return


def _ask(policy: ProbabilityFunction, states: np.ndarray) -> np.ndarray:
    """The policy's probabilities [N, 9] at states [N, 4]."""
    probs = np.asarray(policy(states), dtype=np.float64)
    if probs.shape != (len(states), N_ACTIONS):
        raise InputError(
            f"the policy answered {len(states)} states with an array of shape {probs.shape}, "
            f"expected {(len(states), N_ACTIONS)}: return one row of probabilities per state"
        )
    return probs


def _draw_actions(probs: np.ndarray, uniforms: np.ndarray) -> np.ndarray:
    """One action per row of probabilities."""
    actions = np.empty(len(probs), dtype=np.int64)
    bad = kernel.choose(probs, uniforms, SUM_TOLERANCE, actions)
    if bad >= 0:
        row = ", ".join(f"{p:.6g}" for p in probs[bad])
        raise InputError(
            f"the policy's row {bad} is [{row}] with sum {probs[bad].sum():.6g}, "
            "expected non-negative numbers with sum 1: normalise what the policy returns"
        )
    return actions


class Helicopter(Shown, gymnasium.Env[Any, Any]):
    """Fly from the bottom left and leave the unit square as close to (1, 1) as possible.

    Observations are (s_x, s_y, v_x, v_y); action a is the thrust (a // 3 − 1, a % 3 − 1). Leaving
    the square pays min(10, max(−1, 1/d − 4)), d being the distance to (1, 1); a velocity outside
    (−1, 1) melts the motor and pays −1. Either ends the episode; `max_steps` steps truncate it.
    `noise_factor` multiplies the noise of positions (σ_s = 0.025) and velocities (σ_v = 0.05).
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012 (Gymnasium's name)

    def __init__(
        self,
        noise_factor: float = 1.0,
        render_mode: str | None = None,
        max_steps: int = MAX_STEPS,
    ) -> None:
        self.noise_factor = number("noise_factor", noise_factor, 0, np.inf, "[)")
        self.max_steps = positive("max_steps", max_steps)
        self.render_mode = render_mode
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (4,), np.float64)
        self.action_space = gymnasium.spaces.Discrete(N_ACTIONS)
        self._state, self._time = np.zeros(4), 0

    def _facts(self) -> Mapping[str, Any]:
        """Its noise, and how long it has flown."""
        return {"noise_factor": self.noise_factor, "max_steps": self.max_steps, "step": self._time}

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Start again, at a random place with a random velocity."""
        super().reset(seed=seed)
        self._state, self._time = initial_states(1, self.np_random)[0], 0
        return self._state.copy(), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Apply a thrust for one time step."""
        if not self.action_space.contains(action):
            raise InputError(
                f"action is {action!r}, expected a whole number from 0 to {N_ACTIONS - 1}"
            )
        noise = draw_noise(1, self.noise_factor, self.np_random)
        following, rewards, ended = kernel.step(self._state[None], np.array([action]), noise)
        self._state, self._time = following[0], self._time + 1
        truncated = not ended[0] and self._time >= self.max_steps
        return self._state.copy(), float(rewards[0]), bool(ended[0]), truncated, {}

    def render(self) -> np.ndarray | None:  # type: ignore[override]
        """An image of the square and its surroundings, or nothing without a render mode."""
        return _image(self._state) if self.render_mode == "rgb_array" else None


PIXELS = 360
"""Side of the image."""
BORDER = 0.25
"""Width of the surroundings that the image shows on each side of the unit square."""
PALETTE = {-1.0: (190, 85, 15), 1.0: (245, 170, 90), 4.0: (255, 247, 222), 10.0: (15, 75, 140)}
"""Colours of final rewards, orange to blue for all eyes; in between they are mixed."""
GREY, TEAL, DARK, WHITE = (222, 226, 230), (130, 200, 190), (25, 25, 35), (255, 255, 255)


def _image(state: np.ndarray) -> np.ndarray:
    """Draw final rewards, flying and starting areas, helicopter and velocity; y points up."""
    x, y = _pixel_places()
    image = _reward_colours(x, y)
    image[(x > 0) & (x < 1) & (y > 0) & (y < 1)] = GREY
    image[(x > 0) & (x < 1 / 3) & (y > 0) & (y < 1 / 3)] = TEAL
    image[np.hypot(x - 1, y - 1) < 0.012] = WHITE
    image[_from_segment(x, y, state) < 0.008] = DARK
    image[np.hypot(x - state[0], y - state[1]) < 0.025] = DARK
    return image


def _pixel_places() -> tuple[np.ndarray, np.ndarray]:
    """The place (x, y) of every pixel of the image."""
    places = -BORDER + (np.arange(PIXELS) + 0.5) * (1 + 2 * BORDER) / PIXELS
    x, y = np.meshgrid(places, places[::-1])
    return x, y


def _reward_colours(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The colour of landing at each place."""
    reward = np.clip(1 / np.maximum(np.hypot(x - 1, y - 1), kernel.CLOSEST) - 4, -1, 10)
    levels, colours = list(PALETTE), np.array(list(PALETTE.values()))
    channels = [np.interp(reward, levels, colours[:, c]) for c in range(3)]
    return np.stack(channels, axis=-1).astype(np.uint8)


def _from_segment(x: np.ndarray, y: np.ndarray, state: np.ndarray) -> np.ndarray:
    """Distance of each pixel from the way that the velocity leads in three time steps."""
    d_x, d_y = 3 * kernel.TAU * state[2:]
    length = max(d_x**2 + d_y**2, 1e-12)
    share = np.clip(((x - state[0]) * d_x + (y - state[1]) * d_y) / length, 0, 1)
    return np.hypot(x - state[0] - share * d_x, y - state[1] - share * d_y)
