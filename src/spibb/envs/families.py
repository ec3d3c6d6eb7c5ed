"""The families of worlds of the assurance benchmark: small ones, the paper's, and large ones."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import gymnasium
import numpy as np

from spibb.envs import sepsis
from spibb.envs.baselines import blend, gridworld_baseline
from spibb.envs.garnet import draw_garnet
from spibb.envs.gridworld import gridworld_mdp
from spibb.envs.small import BASELINES, SMALL, SmallWorld
from spibb.mdp import MDP


@cache
def toy_text(name: str, discount: float, **options: Any) -> MDP:
    """The exact MDP of one of Gymnasium's tables of transitions."""
    env: Any = gymnasium.make(name, **options).unwrapped
    outcomes = [
        (x, a, prob, y, float(paid), bool(ended))
        for x, actions in env.P.items()
        for a, listed in actions.items()
        for prob, y, paid, ended in listed
    ]
    columns = (np.array(column) for column in zip(*outcomes))
    initial = np.asarray(env.initial_state_distrib, dtype=np.float64)
    return MDP.from_outcomes(
        *columns, initial=initial / initial.sum(), n_actions=env.action_space.n, discount=discount
    )


def frozen_lake(rng: np.random.Generator) -> MDP:
    """FrozenLake 8×8: slippery ice, holes, and 1 for the goal."""
    return toy_text("FrozenLake-v1", 0.99, map_name="8x8")


def taxi(rng: np.random.Generator) -> MDP:
    """Taxi: 500 states, −1 a step, −10 for what is not allowed, +20 for the fare."""
    newest = max(name for name in gymnasium.registry if name.startswith("Taxi-v"))
    return toy_text(newest, 0.95)


BLENDS = {kind: partial(blend, eta=BASELINES[kind]) for kind in ("good", "middling")}
"""Softening, which the smaller worlds use, inverts matrices for a minute in the large ones."""
PAPER = {
    "gridworld": SmallWorld(
        lambda rng: gridworld_mdp(), given={"middling": lambda mdp: gridworld_baseline("authors")}
    ),
    "random-mdps": SmallWorld(
        lambda rng: draw_garnet(rng).mdp, randomisation="move",
        etas={"good": 0.9, "middling": 0.5, "uniform": 0.1},
    ),
}  # fmt: skip
"""The paper's worlds: the authors' own baseline in the gridworld, η = 0.9, 0.5, 0.1 elsewhere."""
LARGE = {
    "frozen-lake": SmallWorld(frozen_lake, 200),
    "taxi": SmallWorld(taxi, 200, given=BLENDS),
    "icu-sepsis": SmallWorld(
        lambda rng: sepsis.icu_sepsis()[0], sepsis.MAX_STEPS,
        given=BLENDS | {"middling": lambda mdp: sepsis.icu_sepsis()[1]},
    ),
}  # fmt: skip
"""Gymnasium's tables, and ICU-Sepsis."""
SLOW_FAMILIES = ("random-mdps", "many-successors", *LARGE)
"""Families whose logs take a second or more each; the others take about a tenth of one."""
FAMILIES: dict[str, SmallWorld] = PAPER | SMALL | LARGE
