"""The gridworld and an optimal trajectory (Figure 1a)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from spibb.envs.baselines import optimal_q
from spibb.envs.gridworld import GOAL, N_STATES, SIZE, START, cell, gridworld_mdp, step_to
from spibb.experiments.results import Results
from spibb.experiments.spec import Experiment
from spibb.paper.arrows import CHOSEN, draw_grid
from spibb.paper.plot import empty_figure, set_title

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Domain:
    """Walls, start S, goal G, and the moves of an optimal policy that nothing deflects."""

    def missing(self, experiment: Experiment) -> tuple[str, ...]:
        """Nothing: no result is needed."""
        return ()

    def draw(self, results: Results, title: str) -> Figure:
        """The grid with one arrow per move."""
        figure = empty_figure(4.4, 4.8)
        axes = figure.add_subplot()
        draw_grid(axes)
        path = optimal_path()
        for (x, y), (to_x, to_y) in pairwise(path):
            ends = (to_x + 0.5, to_y + 0.5), (x + 0.5, y + 0.5)
            axes.annotate(
                "", *ends, arrowprops={"arrowstyle": "-|>", "color": CHOSEN, "linewidth": 1.6}
            )
        set_title(figure, title)
        return figure

    def describe(self, results: Results) -> str:
        """The cells that the trajectory visits."""
        cells = ", ".join(f"({x}, {y})" for x, y in optimal_path())
        return f"Grid of {SIZE} by {SIZE} cells with walls; an optimal trajectory visits {cells}."


def optimal_path() -> list[tuple[int, int]]:
    """The cells from start to goal under optimal actions that all succeed."""
    best = optimal_q(gridworld_mdp()).argmax(axis=1)
    states = [START]
    while states[-1] != GOAL and len(states) < N_STATES:
        states.append(step_to(states[-1], int(best[states[-1]])))
    return [cell(state) for state in states]
