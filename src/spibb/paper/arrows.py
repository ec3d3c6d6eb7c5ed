"""A picture of policies in the gridworld: one arrow per action, as long as its probability."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from spibb.envs.gridworld import GOAL, MOVES, N_STATES, SIZE, START, blocked, cell, gridworld_mdp
from spibb.files import write_whole
from spibb.policy import Policy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CHOSEN, COPIED = "#1b5e9e", "#b0b0b0"


def arrow_picture(
    policies: Mapping[str, Policy], bootstrapped: Mapping[str, np.ndarray], path: Path
) -> None:
    """Draw each policy in its own panel; grey arrows are the baseline's, blue ones are new."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.2 * len(policies), 4.7), layout="constrained")
    FigureCanvasAgg(figure)
    mdp = gridworld_mdp()
    for number, (title, given) in enumerate(policies.items()):
        policy = given.aligned(mdp.states, mdp.actions, title)
        axes = figure.add_subplot(1, len(policies), number + 1)
        copied = bootstrapped.get(title, np.ones(policy.probs.shape, dtype=bool))
        draw_grid(axes)
        _draw_arrows(axes, policy.probs, copied)
        axes.set_title(title, fontsize=11)
    figure.supxlabel("blue: decided from the log    grey: the baseline's own choice", fontsize=9)
    write_whole(path, lambda name: figure.savefig(name, dpi=130, format="png"))


def draw_grid(axes: Axes) -> None:
    """Cells, walls, start and goal of the gridworld."""
    for i in range(SIZE + 1):
        axes.plot([0, SIZE], [i, i], color="0.85", linewidth=0.8, zorder=1)
        axes.plot([i, i], [0, SIZE], color="0.85", linewidth=0.8, zorder=1)
    for state in range(N_STATES):
        x, y = cell(state)
        for direction, (dx, dy) in enumerate(MOVES):
            if blocked(x, y, direction):
                cx, cy = x + 0.5 + dx / 2, y + 0.5 + dy / 2
                axes.plot(
                    [cx - dy / 2, cx + dy / 2], [cy - dx / 2, cy + dx / 2],
                    color="firebrick", linewidth=2.5, zorder=2, solid_capstyle="round",
                )  # fmt: skip
    for state, letter in ((START, "S"), (GOAL, "G")):
        x, y = cell(state)
        axes.text(x + 0.12, y + 0.12, letter, fontsize=10, weight="bold", color="0.3")
    axes.set_aspect("equal")
    axes.set_axis_off()


def _draw_arrows(axes: Axes, probs: np.ndarray, copied: np.ndarray) -> None:
    for state in range(N_STATES):
        if state == GOAL:
            continue
        x, y = cell(state)
        for action, (dx, dy) in enumerate(MOVES):
            length = 0.42 * np.sqrt(probs[state, action])
            if length < 0.02:
                continue
            axes.annotate(
                "", (x + 0.5 + length * dx, y + 0.5 + length * dy), (x + 0.5, y + 0.5),
                arrowprops={
                    "arrowstyle": "-|>", "shrinkA": 0, "shrinkB": 0,
                    "linewidth": 0.8 + 1.6 * probs[state, action],
                    "color": COPIED if copied[state, action] else CHOSEN,
                },
                zorder=3,
            )  # fmt: skip
