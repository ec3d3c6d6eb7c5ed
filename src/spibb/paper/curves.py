"""Performance against the size of the data set (appendix B.1, first type of figure)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from spibb.experiments.results import Results
from spibb.experiments.spec import Column, Experiment
from spibb.paper import style
from spibb.paper.plot import empty_figure, set_title
from spibb.stats import Interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PAPER_ALGORITHMS = tuple(style.NAMES)
LONGEST_LABEL = 56
LOWEST = -1.5
"""Where the axis of normalised performance is cut; the legend names curves that go below."""
HIGHEST = 1.08
"""Where it ends: a little above the optimum."""


@dataclass(frozen=True)
class Curves:
    """One curve per column and statistic, with its confidence band, over a logarithmic |D|.

    `essential` columns must be there; `columns` are drawn if they are. `others` adds the columns
    of algorithms that the paper does not have. The gridworlds show the performance ρ, with lines
    at the baseline's and the optimal one; the random MDPs show it normalised, 0 and 1 there.
    """

    statistics: tuple[str, ...]
    essential: tuple[str, ...]
    columns: tuple[str, ...] = ()
    eta: float | None = None
    others: bool = False

    def missing(self, experiment: Experiment) -> tuple[str, ...]:
        """Essential columns, or the η, that the experiment lacks."""
        lacking = [key for key in self.essential if style.find(experiment, key) is None]
        if self.eta is not None and self.eta not in experiment.etas:
            lacking.append(f"η = {self.eta:g}")
        return tuple(lacking)

    def draw(self, results: Results, title: str) -> Figure:
        """Curves above, their legend below: it covers none of them."""
        figure = empty_figure(7.0, 5.0)
        axes = figure.add_subplot()
        _draw_references(axes, results)
        for number, column in enumerate(self.drawn(results.experiment)):
            for statistic in self.statistics:
                self._draw_curve(axes, results, column, statistic, number)
        _set_axes(axes, results)
        set_title(figure, title)
        _draw_legend(figure, axes)
        return figure

    def describe(self, results: Results) -> str:
        """Algorithms, statistics, and where each curve begins and ends."""
        sizes = results.experiment.sizes
        parts = []
        for column in self.drawn(results.experiment):
            for statistic in self.statistics:
                values = [i.value for i in self._points(results, column, statistic).values()]
                name = f"{style.plain(style.label(column))}, {style.STATISTIC_NAMES[statistic]}"
                parts.append(f"{name}: {values[0]:.2f} to {values[-1]:.2f}")
        unit = "performance" if _raw(results) else "normalised performance"
        return (
            f"Curves of {style.statistic_name(self.statistics)} {unit} against the number of "
            f"trajectories, from {sizes[0]} to {sizes[-1]}. " + "; ".join(parts) + "."
        )

    def drawn(self, experiment: Experiment) -> list[Column]:
        """The columns to draw, in the order given."""
        found = [style.find(experiment, key) for key in (*self.essential, *self.columns)]
        columns = [column for column in found if column is not None]
        if self.others:
            columns += [c for c in experiment.columns if c.algorithm not in PAPER_ALGORITHMS]
        return columns

    def _points(self, results: Results, column: Column, statistic: str) -> dict[int, Interval]:
        """The curve's intervals in the units of the axis, by size; joined folders may lack some."""
        cells = {n: results.cell(column.key, n, self.eta) for n in results.experiment.sizes}
        found = {n: cell.statistics[statistic] for n, cell in cells.items() if cell is not None}
        return {n: results.raw(i) for n, i in found.items()} if _raw(results) else found

    def _draw_curve(
        self, axes: Axes, results: Results, column: Column, statistic: str, number: int
    ) -> None:
        """Tail means are dashed with hollow markers where the mean is drawn too.

        Later curves are thinner, so that those below show where two coincide.
        """
        look = style.style(column, number)
        found = self._points(results, column, statistic)
        sizes, points = list(found), list(found.values())
        values = [point.value for point in points]
        several, tail = len(self.statistics) > 1, statistic != "mean"
        axes.plot(
            sizes, values, color=look.colour, marker=look.marker,
            markersize=max(4.0, 6.5 - 0.4 * number), linewidth=max(1.2, 2.3 - 0.2 * number),
            linestyle=look.dashes_of(tail) if several else look.dashes,
            markerfacecolor="white" if look.hollow or (several and tail) else look.colour,
            label=self._legend(results, column, statistic, values),
        )  # fmt: skip
        axes.fill_between(
            sizes, [p.low for p in points], [p.high for p in points],
            color=look.colour, alpha=0.12, linewidth=0,
        )  # fmt: skip

    def _legend(self, results: Results, column: Column, statistic: str, values: list[float]) -> str:
        text = style.label(column)
        if len(self.statistics) > 1:
            text += f": {style.STATISTIC_NAMES[statistic]}"
        lowest, highest = min(values), max(values)
        if not _raw(results) and highest < LOWEST:
            text += f" [below the graph: {lowest:.1f} to {highest:.1f}]".replace("-", "−")
        elif not _raw(results) and lowest < LOWEST:
            text += f" [falls to {lowest:.1f}]".replace("-", "−")
        return text + style.fewer_runs(results, column.key)


def _draw_legend(figure: Figure, axes: Axes) -> None:
    """Two columns below the axes, in smaller letters where a label is too long for them."""
    longest = max((len(text) for text in axes.get_legend_handles_labels()[1]), default=0)
    size = 8 if longest <= LONGEST_LABEL else 6.5
    figure.legend(loc="outside lower center", ncols=2, fontsize=size, handlelength=4.2)


def _raw(results: Results) -> bool:
    """Whether there is one world, whose performances can be shown as they are."""
    return not results.experiment.etas


def _draw_references(axes: Axes, results: Results) -> None:
    """Lines at the baseline's performance and at the optimum, named at their right end."""
    lines = (results.baseline, results.optimal) if _raw(results) else (0.0, 1.0)
    for name, height in zip(("baseline", "optimum"), lines):
        axes.axhline(height, color="0.35", linewidth=1, linestyle=(0, (8, 3)), zorder=1)
        axes.annotate(
            name, (1, height), xycoords=axes.get_yaxis_transform(), xytext=(3, 0),
            textcoords="offset points", fontsize=8, color="0.35", va="center",
        )  # fmt: skip


def _set_axes(axes: Axes, results: Results) -> None:
    sizes = results.experiment.sizes
    axes.set_xscale("log")
    axes.set_xticks(sizes, [style.short_size(size) for size in sizes])
    axes.minorticks_off()
    axes.set_xlabel("trajectories in the data set, |D|")
    axes.set_ylabel("performance ρ" if _raw(results) else "normalised performance")
    axes.grid(axis="y", color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    low, high = axes.get_ylim()
    if not _raw(results):
        axes.set_ylim(max(low, LOWEST), HIGHEST)
    else:
        axes.set_ylim(low, high + 0.03 * (high - low))
