"""Figures of the assurance benchmark: dots for cells, and small panels for families."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spibb.algorithms.auto import Auto
from spibb.envs.small import BASELINES
from spibb.experiments.assurance import OLD_RULE, PROTOTYPE, covered
from spibb.experiments.results import Results
from spibb.experiments.spec import Column, Experiment
from spibb.paper import style
from spibb.paper.assured import CHOSE, PROMISED_FROM, bins, cells_of, mean_of
from spibb.paper.plot import empty_figure, set_title
from spibb.paper.style import Style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

QUALITY_STYLES = dict(zip(BASELINES, (Style("0.1", "o"), Style("0.45", "s"), Style("0.7", "D"))))
"""Greys for the baselines: every colour belongs to an algorithm."""
ACROSS = 5
"""Panels in a row of small ones."""
LOWEST = -0.5
FEWEST = 10
"""Logs that a bin of stated probability needs to be drawn."""


def promised(column: Column) -> float | None:
    """The δ of a column that makes a promise."""
    if column.algorithm in ("auto", "certified", OLD_RULE, PROTOTYPE):
        return float(dict(column.options).get("delta", Auto().delta))
    return None


def family_name(family: str) -> str:
    """A family as panels name it; those that chose the rule have an asterisk."""
    return f"{family} *" if family in CHOSE else family


@dataclass(frozen=True)
class CellDots:
    """Every cell a dot: the share of its logs in which something went wrong, by family.

    Cells with fewer than 30 episodes are hollow; lines are 95 % limits where the share is not 0.
    """

    measure: Callable[[str], str]
    columns: tuple[str, ...]
    axis: str

    def missing(self, experiment: Experiment) -> tuple[str, ...]:
        """Columns that the experiment lacks; one is enough."""
        found = [key for key in self.columns if style.find(experiment, key) is not None]
        return () if found else self.columns

    def draw(self, results: Results, title: str) -> Figure:
        """A panel per column, a line per family."""
        families = results.experiment.families
        drawn = self._drawn(results.experiment)
        figure = empty_figure(max(7.0, 2.0 + 1.7 * len(drawn)), 1.9 + 0.34 * len(families))
        for number, column in enumerate(drawn):
            axes = figure.add_subplot(1, len(drawn), number + 1)
            self._draw_panel(axes, results, column)
            _name_families(axes, families, named=number == 0)
            if number == len(drawn) // 2:
                axes.set_xlabel(self.axis, fontsize=9)
        figure.legend(
            *axes.get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=8
        )
        set_title(figure, title)
        return figure

    def describe(self, results: Results) -> str:
        """The largest share of each column and where it is."""
        parts = []
        for column in self._drawn(results.experiment):
            found = list(cells_of(results, self.measure(column.key)))
            if found:
                worst = max(found, key=lambda cell: self._wrong(mean_of(cell).value))
                share = self._wrong(mean_of(worst).value)
                where = f"{worst.family}, {worst.quality} baseline, {worst.size} episodes"
                parts.append(f"{style.plain(style.label(column))}: at most {share:.1%} ({where})")
        return "Dots, one per family, baseline and size. " + "; ".join(parts) + "."

    def _wrong(self, share: float) -> float:
        """Bounds that hold are stored; those that do not are drawn."""
        return 1 - share if self.measure is covered else share

    def _drawn(self, experiment: Experiment) -> list[Column]:
        found = [style.find(experiment, key) for key in self.columns]
        return [column for column in found if column is not None]

    def _draw_panel(self, axes: Axes, results: Results, column: Column) -> None:
        families = results.experiment.families
        for k, quality in enumerate(BASELINES):
            look = QUALITY_STYLES[quality]
            for cell in cells_of(results, self.measure(column.key)):
                if cell.quality != quality or cell.family is None:
                    continue
                height = families.index(cell.family) + 0.25 * (k - 1)
                i = mean_of(cell)
                ends = sorted(map(self._wrong, (i.low, i.high)))
                if self._wrong(i.value) > 0:
                    axes.plot(ends, [height] * 2, color=look.colour, linewidth=0.5, alpha=0.5)
                axes.plot(
                    self._wrong(i.value), height, look.marker, color=look.colour, markersize=3.5,
                    markerfacecolor="white" if cell.size < PROMISED_FROM else look.colour,
                    clip_on=False, zorder=3,
                )  # fmt: skip
            axes.plot([], [], look.marker, color=look.colour, label=f"{quality} baseline")
        axes.plot(
            [],
            [],
            "o",
            color="0.4",
            markerfacecolor="white",
            label=f"fewer than {PROMISED_FROM} episodes",
        )
        delta = promised(column)
        if delta is not None:
            axes.axvline(delta, color="0.35", linewidth=1, linestyle=(0, (8, 3)), zorder=1)
        axes.set_title(style.label(column), fontsize=8.5)


def _name_families(axes: Axes, families: tuple[str, ...], *, named: bool) -> None:
    """Shares on an axis that spreads small ones; families from the top down."""
    axes.set_xscale("function", functions=(lambda x: np.sqrt(np.maximum(x, 0)), np.square))
    axes.set_xlim(0, 1)
    axes.set_xticks([0, 0.05, 0.2, 0.5, 1], ["0", "5", "20", "50", "100"], fontsize=7.5)
    axes.set_ylim(len(families) - 0.5, -0.5)
    axes.set_yticks(
        range(len(families)), [family_name(f) if named else "" for f in families], fontsize=8
    )
    axes.grid(axis="y", color="0.93", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)


@dataclass(frozen=True)
class FamilyPanels:
    """A small panel per family."""

    columns: tuple[str, ...]

    def missing(self, experiment: Experiment) -> tuple[str, ...]:
        """Columns that the experiment lacks; one is enough."""
        found = [key for key in self.columns if style.find(experiment, key) is not None]
        return () if found else self.columns

    def draw(self, results: Results, title: str) -> Figure:
        """Panels in rows, one legend below."""
        families = results.experiment.families
        across = min(ACROSS, len(families))
        down = -(-len(families) // across)
        figure = empty_figure(max(7.0, 2.2 * across), 1.4 + 1.9 * down)
        for number, family in enumerate(families):
            axes = figure.add_subplot(down, across, number + 1)
            axes.set_title(family_name(family), fontsize=8.5)
            axes.tick_params(labelsize=7)
            axes.spines[["top", "right"]].set_visible(False)
            self.draw_panel(axes, results, family)
            if number % across:
                axes.tick_params(labelleft=False)
            if number >= len(families) - across:
                axes.set_xlabel(self.axes_names[0], fontsize=8)
        handles, labels = axes.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=8)
        figure.supylabel(self.axes_names[1], fontsize=9)
        set_title(figure, title)
        return figure

    axes_names = ("", "")

    def draw_panel(self, axes: Axes, results: Results, family: str) -> None:
        """One family."""
        raise NotImplementedError

    def drawn(self, experiment: Experiment) -> Iterator[tuple[int, Column]]:
        """Numbers and columns."""
        for number, key in enumerate(self.columns):
            column = style.find(experiment, key)
            if column is not None:
                yield number, column


@dataclass(frozen=True)
class GainPanels(FamilyPanels):
    """True gain against size, mean over the three baselines: 0 is the baseline, 1 the optimum."""

    axes_names = ("episodes in the log", "gain (0: baseline, 1: optimum)")

    def draw_panel(self, axes: Axes, results: Results, family: str) -> None:
        """A curve per column; what falls below the axis is cut."""
        axes.axhline(0, color="0.35", linewidth=0.8, linestyle=(0, (8, 3)))
        sizes = results.experiment.sizes
        for number, column in self.drawn(results.experiment):
            look = style.style(column, number)
            axes.plot(
                sizes, self._points(results, column, family), color=look.colour,
                marker=look.marker, markersize=3, linewidth=1.1, linestyle=look.dashes,
                label=style.label(column),
            )  # fmt: skip
        axes.set_xscale("log")
        axes.set_xticks(sizes, [style.short_size(size) for size in sizes])
        axes.minorticks_off()
        axes.set_ylim(LOWEST, 1.05)

    def describe(self, results: Results) -> str:
        """Where each column ends, on average over families."""
        parts = []
        for _, column in self.drawn(results.experiment):
            points = np.array(
                [self._points(results, column, f) for f in results.experiment.families]
            ).mean(axis=0)
            name = style.plain(style.label(column))
            parts.append(f"{name}: {points[0]:.2f} to {points[-1]:.2f}")
        return "True gain against size, averaged over families. " + "; ".join(parts) + "."

    def _points(self, results: Results, column: Column, family: str) -> list[float]:
        return [
            float(np.mean([mean_of(c).value for c in cells_of(results, column.key, n, n, family)]))
            for n in results.experiment.sizes
        ]


@dataclass(frozen=True)
class ReliabilityPanels(FamilyPanels):
    """The stated probability of auto's best candidate against how often it is truly no worse."""

    axes_names = ("stated probability", "share truly no worse")

    def draw_panel(self, axes: Axes, results: Results, family: str) -> None:
        """Bins with enough logs, with 95 % limits; the diagonal is right."""
        axes.plot([0.5, 1], [0.5, 1], color="0.6", linewidth=1, linestyle=":")
        for number, column in self.drawn(results.experiment):
            look = style.style(column, number)
            found = [b for b in bins(results, column.key, family) if b.logs >= FEWEST]
            y = np.array([b.frequency.value for b in found])
            low = np.array([b.frequency.low for b in found])
            high = np.array([b.frequency.high for b in found])
            axes.errorbar(
                [b.stated for b in found], y, yerr=[y - low, high - y], color=look.colour,
                marker=look.marker, markersize=3, linewidth=1, elinewidth=0.6, capsize=1.5,
                label=style.label(column),
            )  # fmt: skip
        axes.set_xlim(0.48, 1.02)
        axes.set_ylim(-0.02, 1.02)

    def describe(self, results: Results) -> str:
        """All families together, bin by bin."""
        parts = [
            f"said {b.stated:.2f}, true {b.frequency.value:.2f} ({b.logs} logs)"
            for _, column in self.drawn(results.experiment)
            for b in bins(results, column.key)
        ]
        return "All families together: " + "; ".join(parts) + "."
