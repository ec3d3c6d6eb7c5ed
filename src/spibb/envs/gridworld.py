"""The 5×5 stochastic gridworld of section 3.1."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import gymnasium
import numpy as np

from spibb.labels import Vocabulary
from spibb.mdp import MDP
from spibb.showing import Shown

SIZE = 5
N_STATES = SIZE * SIZE
START, GOAL = 0, N_STATES - 1
DISCOUNT = 0.95
ACTIONS = ("up", "right", "down", "left")
MOVES = np.array([(0, 1), (1, 0), (0, -1), (-1, 0)])
SLIPS = ((0, 0.75), (2, 0.05), (1, 0.1), (3, 0.1))
"""Turn from the direction asked for (in quarter turns), and its probability."""
WALLS = frozenset({(2, 0), (2, 1), (2, 2), (3, 2), (3, 3)})
"""Cells (x, y) that have a wall on their right side."""


def cell(state: int) -> tuple[int, int]:
    """(x, y) of a state x + 5y; (0, 0) is the bottom left corner."""
    return state % SIZE, state // SIZE


def blocked(x: int, y: int, direction: int) -> bool:
    """Whether the border or a wall stops a move."""
    dx, dy = MOVES[direction]
    if not (0 <= x + dx < SIZE and 0 <= y + dy < SIZE):
        return True
    return bool(dx) and (min(x, x + dx), y) in WALLS


def step_to(state: int, direction: int) -> int:
    """The state after a move in a direction; a bump stays in place."""
    x, y = cell(state)
    if blocked(x, y, direction):
        return state
    dx, dy = MOVES[direction]
    return int(x + dx + SIZE * (y + dy))


@cache
def gridworld_mdp() -> MDP:
    """The exact MDP: +1 on reaching the goal, which ends the episode; ρ* = 0.597742."""
    outcomes = [
        (state, action, prob, step_to(state, (action + turn) % 4))
        for state in range(N_STATES)
        if state != GOAL
        for action in range(4)
        for turn, prob in SLIPS
    ]
    state, action, prob, following = (np.array(column) for column in zip(*outcomes))
    reached = following == GOAL
    return MDP.from_outcomes(
        state, action, prob, following, reached.astype(np.float64), reached,
        initial=np.eye(N_STATES)[START], n_actions=4, discount=DISCOUNT,
        actions=Vocabulary(ACTIONS, ("action",)),
    )  # fmt: skip


class Gridworld(Shown, gymnasium.Env[Any, Any]):
    """Walk from the bottom left to the top right corner of a 5×5 grid with two walls.

    Actions: 0 up, 1 right, 2 down, 3 left. A move goes as asked with 75 %, to either side with
    10 % each, backwards with 5 %. Reward +1 on reaching the goal.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 4}  # noqa: RUF012 (Gymnasium's name)

    def __init__(self, render_mode: str | None = None) -> None:
        self.render_mode = render_mode
        self.observation_space = gymnasium.spaces.Discrete(N_STATES)
        self.action_space = gymnasium.spaces.Discrete(4)
        self._state = START

    def _facts(self) -> Mapping[str, Any]:
        """Its size, and where it is."""
        return {"states": N_STATES, "actions": 4, "state": self._state}

    @property
    def mdp(self) -> MDP:
        """The exact MDP."""
        return gridworld_mdp()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Back to the start."""
        super().reset(seed=seed)
        self._state = START
        return self._state, {}

    def step(self, action: Any) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Move, perhaps slipping."""
        turns, probs = zip(*SLIPS)
        turn = int(self.np_random.choice(turns, p=probs))
        self._state = step_to(self._state, (int(action) + turn) % 4)
        reached = self._state == GOAL
        return self._state, float(reached), reached, False, {}

    def render(self) -> np.ndarray | None:  # type: ignore[override]
        """An image of the grid, or nothing without a render mode."""
        return _image(self._state) if self.render_mode == "rgb_array" else None


PIXELS = 48
"""Side of a cell in the image."""
WHITE, GREY, RED, GREEN, BLUE = (
    (255, 255, 255), (200, 200, 200), (190, 40, 40), (120, 190, 120), (40, 80, 180)
)  # fmt: skip


def _image(state: int) -> np.ndarray:
    """Draw cells, walls, goal and agent, with y pointing up."""
    side = SIZE * PIXELS
    image = np.full((side, side, 3), WHITE, dtype=np.uint8)
    _square(image, GOAL, GREEN, 0)
    image[::PIXELS] = image[:, ::PIXELS] = GREY
    for s in range(N_STATES):
        x, y = cell(s)
        for direction in range(4):
            if blocked(x, y, direction):
                _edge(image, x, y, direction)
    _square(image, state, BLUE, PIXELS // 4)
    return image


def _square(image: np.ndarray, state: int, colour: tuple[int, int, int], margin: int) -> None:
    x, y = cell(state)
    top, left = (SIZE - 1 - y) * PIXELS, x * PIXELS
    image[top + margin : top + PIXELS - margin, left + margin : left + PIXELS - margin] = colour


def _edge(image: np.ndarray, x: int, y: int, direction: int) -> None:
    top, left = (SIZE - 1 - y) * PIXELS, x * PIXELS
    rows: dict[int, tuple[slice, slice]] = {
        0: (slice(top, top + 2), slice(left, left + PIXELS)),
        1: (slice(top, top + PIXELS), slice(left + PIXELS - 2, left + PIXELS)),
        2: (slice(top + PIXELS - 2, top + PIXELS), slice(left, left + PIXELS)),
        3: (slice(top, top + PIXELS), slice(left, left + 2)),
    }
    image[rows[direction]] = RED
