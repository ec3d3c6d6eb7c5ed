"""Random MDPs (Garnets) with one far terminal state: section 3.3 and appendix B.1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np

from spibb.checks import number, positive
from spibb.checks import seed as check_seed
from spibb.defaults import DISCOUNT
from spibb.errors import InputError
from spibb.frozen import Frozen
from spibb.kernels import garnet
from spibb.kernels.tuples import Rows
from spibb.labels import vocabulary
from spibb.mdp import MDP
from spibb.outcomes import Outcomes
from spibb.showing import Shown

START = garnet.START
ATTEMPTS = 100
"""Draws before giving up on parameters that leave every state out of reach."""


@dataclass(frozen=True, eq=False)
class GarnetDraw(Frozen):
    """A random MDP, its terminal state x_f and, a by-product of the search, Q* [S, A]."""

    mdp: MDP
    terminal: int
    optimal_q: np.ndarray


def draw_garnet(
    rng: np.random.Generator,
    n_states: int = 50,
    n_actions: int = 4,
    connectivity: int = 4,
    discount: float = DISCOUNT,
) -> GarnetDraw:
    """Draw a random MDP (appendix B.1.3): Garnet(|X|, |A|, connectivity) with a far goal.

    Each pair has `connectivity` distinct successors, their probabilities are the spacings of sorted
    uniforms. Entering x_f = argmin_x V*_x(x_0) pays 1 and ends, where V*_x is the optimal value
    when x is the goal; all else pays 0.

    1. x_f must satisfy V*(x_0) > γ⁵⁰, so that it can be reached; where no state does, the MDP is
       drawn again.
    2. The appendix prints 25 states, section 3.3 and the released code 50.
    """
    _check(n_states, n_actions, connectivity, discount)
    shape = (n_states * n_actions, 2 * connectivity - 1)
    for _ in range(ATTEMPTS):
        successors, probs = garnet.draw_rows(rng.random(shape), n_states)
        drawn = garnet.FarGoal(*garnet.farthest(successors, probs, discount, n_states))
        if drawn.terminal >= 0:
            return _wrap(drawn, discount)
    raise InputError(
        f"none of {ATTEMPTS} random MDPs of {n_states} states, {n_actions} actions and "
        f"connectivity {connectivity} has a terminal state worth more than "
        f"discount**{garnet.HORIZON}: raise connectivity, n_actions or discount"
    )


def _check(n_states: int, n_actions: int, connectivity: int, discount: float) -> None:
    positive("n_actions", n_actions)
    number("n_states", positive("n_states", n_states), 2, np.inf, "[)")
    number("connectivity", positive("connectivity", connectivity), 1, n_states)
    number("discount", discount, 0, 1, "()")


def _wrap(drawn: garnet.FarGoal, discount: float) -> GarnetDraw:
    rows, rewards = Rows(*drawn.rows), drawn.rewards
    n_states, n_actions = rewards.shape
    initial = np.zeros(n_states)
    initial[START] = 1.0
    ending = (rewards > 0).reshape(-1).astype(np.float64)
    mdp = MDP.paying(
        Outcomes.from_rows(rows, np.zeros(len(rows[1])), ending, rewards.shape),
        initial,
        discount,
        vocabulary(n_states, "state"),
        vocabulary(n_actions, "action"),
    )
    return GarnetDraw(mdp, int(drawn.terminal), drawn.q)


class Garnet(Shown, gymnasium.Env[Any, Any]):
    """Find the far state of a random MDP: reward +1 on entering it, which ends the episode.

    `seed` says which MDP, the seed given to `reset` which episodes.
    """

    metadata = {"render_modes": []}  # noqa: RUF012 (Gymnasium's name)

    def __init__(
        self,
        seed: int = 0,
        n_states: int = 50,
        n_actions: int = 4,
        connectivity: int = 4,
        discount: float = DISCOUNT,
        render_mode: str | None = None,
    ) -> None:
        self.render_mode = render_mode
        rng = np.random.default_rng(check_seed(seed))
        self._draw = draw_garnet(rng, n_states, n_actions, connectivity, discount)
        self.observation_space = gymnasium.spaces.Discrete(n_states)
        self.action_space = gymnasium.spaces.Discrete(n_actions)
        self._state = START

    def _facts(self) -> Mapping[str, Any]:
        """Its size, and where it is."""
        n_states, n_actions = self.mdp.shape
        return {"states": n_states, "actions": n_actions, "state": self._state}

    @property
    def mdp(self) -> MDP:
        """The exact MDP."""
        return self._draw.mdp

    @property
    def terminal(self) -> int:
        """The state whose entry pays 1 and ends the episode."""
        return self._draw.terminal

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Back to the start."""
        super().reset(seed=seed)
        self._state = START
        return self._state, {}

    def step(self, action: Any) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Draw a successor; what the row leaves out leads to the terminal state."""
        pair = self._state * self.mdp.shape[1] + int(action)
        row = slice(self.mdp.indptr[pair], self.mdp.indptr[pair + 1])
        cumulative = np.append(np.cumsum(self.mdp.probs[row]), 1.0)
        following = np.append(self.mdp.successors[row], self.terminal)
        drawn = np.searchsorted(cumulative, self.np_random.random(), side="right")
        entered = self._state != self.terminal and following[drawn] == self.terminal
        self._state = int(following[drawn])
        return self._state, float(entered), self._state == self.terminal, False, {}
