"""The reliability diagram: believed probability of improvement against its true frequency."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from spibb.paper.plot import empty_figure, set_title
from spibb.paper.style import OTHER_STYLES, STYLES, Style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANEL_STYLES = (STYLES["pi-b"], STYLES["pi-leq-b"], STYLES["ramdp"], STYLES["basic-rl"])
FEWEST = 20
"""Logs that a bin needs to be drawn."""


def reliability_figure(bins: Sequence[dict[str, Any]], runs: int) -> Figure:
    """One panel per world, one curve per number of trajectories; the diagonal is perfect."""
    panels: dict[str, dict[int, list[dict[str, Any]]]] = {}
    for row in bins:
        panels.setdefault(_panel(row), {}).setdefault(row["size"], []).append(row)
    figure = empty_figure(3.1 * len(panels), 4.2)
    for number, (title, sizes) in enumerate(panels.items()):
        axes = figure.add_subplot(1, len(panels), number + 1)
        _draw_panel(axes, title, sizes)
        if number == 0:
            axes.set_ylabel("share truly no worse")
        else:
            axes.tick_params(labelleft=False)
    figure.legend(
        *axes.get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False
    )
    set_title(figure, f"Posterior probability of improvement, {runs:,} logs per setting")
    return figure


def _panel(row: dict[str, Any]) -> str:
    return "gridworld" if np.isnan(row["eta"]) else f"random MDPs, η = {row['eta']:g}"


def _draw_panel(axes: Axes, title: str, sizes: dict[int, list[dict[str, Any]]]) -> None:
    axes.plot([0, 1], [0, 1], color="0.6", linewidth=1, linestyle=":", zorder=1)
    for number, (size, rows) in enumerate(sizes.items()):
        known = PANEL_STYLES[number] if number < len(PANEL_STYLES) else OTHER_STYLES[0]
        _draw_curve(axes, f"{size} trajectories", known, [r for r in rows if r["logs"] >= FEWEST])
    axes.set_title(title, fontsize=9.5)
    axes.set_xlabel("believed probability")
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(-0.02, 1.02)
    axes.set_aspect("equal")


def _draw_curve(axes: Axes, label: str, style: Style, rows: list[dict[str, Any]]) -> None:
    x, y, low, high = (
        np.array([row[name] for row in rows])
        for name in ("probability", "frequency", "frequency_low", "frequency_high")
    )
    axes.errorbar(
        x, y, yerr=[y - low, high - y], label=label, color=style.colour, marker=style.marker,
        markersize=3.5, linewidth=1, elinewidth=0.7, capsize=1.5, zorder=2,
    )  # fmt: skip
