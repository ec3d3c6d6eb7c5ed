"""Environments: Gymnasium environments that also give their exact MDP where they are finite."""

from __future__ import annotations

from spibb.envs.gridworld import Gridworld

__all__ = ["Gridworld", "register"]


def register() -> None:
    """Make the environments known to ``gymnasium.make``; importing this module calls it."""
    import gymnasium

    if "spibb/Gridworld-v0" not in gymnasium.registry:
        gymnasium.register("spibb/Gridworld-v0", "spibb.envs.gridworld:Gridworld")


register()
