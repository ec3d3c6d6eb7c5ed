"""Environments: Gymnasium environments that also give their exact MDP where they are finite.

>>> from spibb.envs import gridworld_baseline, gridworld_mdp
>>> round(spibb.exact_value(gridworld_mdp(), gridworld_baseline()), 2)
0.4
"""

from __future__ import annotations

from spibb.envs.baselines import gridworld_baseline
from spibb.envs.garnet import Garnet
from spibb.envs.gridworld import Gridworld, gridworld_mdp
from spibb.envs.helicopter import Helicopter

__all__ = [
    "Garnet", "Gridworld", "Helicopter", "gridworld_baseline", "gridworld_mdp", "register",
]  # fmt: skip

IDS = {
    "spibb/Gridworld-v0": "spibb.envs.gridworld:Gridworld",
    "spibb/Garnet-v0": "spibb.envs.garnet:Garnet",
    "spibb/Helicopter-v0": "spibb.envs.helicopter:Helicopter",
}


def register() -> None:
    """Make the environments known to ``gymnasium.make``; importing this module calls it."""
    import gymnasium

    for name, entry_point in IDS.items():
        if name not in gymnasium.registry:
            gymnasium.register(name, entry_point)


register()
