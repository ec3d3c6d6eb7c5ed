"""Heat maps of normalised performance (appendix B.1, second and third type of figure).

The paper's red, yellow and green mean below, equal to, and above the baseline. Here they are
orange, cream and blue, which differ for colour-blind readers too, in three ways: in hue; cream in
the middle is the lightest, and the scale is symmetric around it, so that lightness is the distance
from the baseline; and every cell prints its value, with its sign and, below the baseline, a dark
corner. A question mark means that the 95 % interval reaches
visibly to both sides of the baseline.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from spibb.experiments.results import Results
from spibb.experiments.spec import Column, Experiment, Value
from spibb.paper import style
from spibb.paper.plot import empty_figure, set_title
from spibb.stats import Interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

ANCHORS = ("#6b2400", "#c4540a", "#f5a95c", "#fff9dc", "#92c5e3", "#3a86c0", "#08386b")
VISIBLE = 0.005
"""A normalised performance this far from the baseline's is printed with a sign."""
FEWEST_ROWS = 3


@dataclass(frozen=True)
class Row:
    """One row of a heat map: its tick label, and where its cells are."""

    label: str
    column: str
    eta: float | None


@dataclass(frozen=True)
class Selection:
    """One panel of a heat map: a title, and the options that its columns share."""

    title: str = ""
    options: tuple[tuple[str, Value], ...] = ()


@dataclass(frozen=True)
class HyperMap:
    """Normalised performance against |D| and one hyper-parameter of an algorithm.

    The rows are the values that the experiment has, or those of `only`; of `preferred` where there
    are enough of them. One panel per version.
    """

    algorithm: str
    vary: str
    statistic: str
    versions: tuple[Selection, ...] = (Selection(),)
    only: tuple[float, ...] = ()
    eta: float | None = None
    preferred: tuple[float, ...] = ()

    def missing(self, experiment: Experiment) -> tuple[str, ...]:
        """What lacks if no version has enough rows."""
        if self.eta is not None and self.eta not in experiment.etas:
            return (f"η = {self.eta:g}",)
        if self.panels(experiment):
            return ()
        return (f"{self.algorithm} at {FEWEST_ROWS} or more values of {self.vary}",)

    def draw(self, results: Results, title: str) -> Figure:
        """One panel per version that is there."""
        return _draw(results, self.panels(results.experiment), self._look(title))

    def describe(self, results: Results) -> str:
        """Range of the cells, and which are below the baseline."""
        return _describe(results, self.panels(results.experiment), self._look(""))

    def panels(self, experiment: Experiment) -> dict[str, list[Row]]:
        """Rows by panel title."""
        found = {version.title: self._rows(experiment, version) for version in self.versions}
        return {title: rows for title, rows in found.items() if len(rows) >= FEWEST_ROWS}

    def _rows(self, experiment: Experiment, version: Selection) -> list[Row]:
        rows = []
        for column in experiment.columns:
            value = self._value(column, version)
            if value is not None and (not self.only or value in self.only):
                rows.append((value, Row(f"{value:g}", column.key, self.eta)))
        known = [pair for pair in rows if pair[0] in self.preferred]
        chosen = known if len(known) >= FEWEST_ROWS else rows
        return [row for _, row in sorted(chosen, key=lambda pair: pair[0])]

    def _value(self, column: Column, version: Selection) -> float | None:
        """The varied value of a column of this version."""
        options = dict(column.options)
        value = options.pop(self.vary, None)
        same = column.algorithm == self.algorithm and options == dict(version.options)
        return float(value) if same and value is not None else None

    def _look(self, title: str) -> Look:
        return Look(self.statistic, style.OPTIONS.get(self.vary, self.vary), title)


@dataclass(frozen=True)
class EtaMap:
    """Normalised performance against |D| and the quality η of the baseline; a panel per column."""

    columns: tuple[tuple[str, str], ...]
    statistic: str

    def missing(self, experiment: Experiment) -> tuple[str, ...]:
        """The columns, if none of them is there."""
        return () if self.panels(experiment) else tuple(key for _, key in self.columns)

    def draw(self, results: Results, title: str) -> Figure:
        """One panel per column that is there."""
        return _draw(results, self.panels(results.experiment), self._look(title))

    def describe(self, results: Results) -> str:
        """Range of the cells, and which are below the baseline."""
        return _describe(results, self.panels(results.experiment), self._look(""))

    def panels(self, experiment: Experiment) -> dict[str, list[Row]]:
        """Rows by panel title."""
        return {
            title: [Row(f"{eta:g}", key, eta) for eta in sorted(experiment.etas)]
            for title, key in self.columns
            if style.find(experiment, key) is not None
        }

    def _look(self, title: str) -> Look:
        return Look(self.statistic, "η", title)


@dataclass(frozen=True)
class Look:
    """Statistic, label of the vertical axis, and title of a heat map."""

    statistic: str
    y_label: str
    title: str


def palette() -> Colormap:
    """Dark orange, cream, dark blue."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("baseline", ANCHORS)


def written(interval: Interval) -> str:
    """A value as a cell prints it: −.21, 0, .85, −12; with ? if its sign is not sure."""
    value = interval.value
    if abs(value) < VISIBLE:
        text = "0"
    elif abs(value) < 0.995:
        text = f"{value:.2f}".replace("0.", ".", 1)
    else:
        text = f"{value:.1f}" if abs(value) < 9.95 else f"{value:.0f}"
    unsure = interval.low < -VISIBLE and interval.high > VISIBLE
    return text.replace("-", "−") + ("?" if unsure else "")


def _intervals(results: Results, rows: list[Row], statistic: str) -> list[list[Interval]]:
    """The cells of a panel, row by row."""
    found = []
    for row in rows:
        cells = (results.cell(row.column, n, row.eta) for n in results.experiment.sizes)
        found.append([cell.statistics[statistic] for cell in cells if cell is not None])
    return found


def _draw(results: Results, panels: dict[str, list[Row]], look: Look) -> Figure:
    sizes = results.experiment.sizes
    tallest = max(len(rows) for rows in panels.values())
    width = 1.3 + (0.52 * len(sizes) + 0.7) * len(panels)
    figure = empty_figure(max(width, 5.0), max(1.5 + 0.34 * tallest, 3.2))
    all_axes, image = [], None
    for number, (title, rows) in enumerate(panels.items()):
        axes = figure.add_subplot(1, len(panels), number + 1)
        image = _draw_panel(axes, _intervals(results, rows, look.statistic))
        axes.set_xticks(range(len(sizes)), [style.short_size(size) for size in sizes])
        axes.set_yticks(range(len(rows)), [row.label for row in rows])
        axes.set_ylabel(look.y_label)
        axes.set_title(title + style.fewer_runs(results, rows[0].column), fontsize=9)
        all_axes.append(axes)
    _finish(figure, all_axes, image, look)
    return figure


def _finish(figure: Figure, all_axes: list[Axes], image: Any, look: Look) -> None:
    """Title, the shared horizontal label, and one colour bar."""
    set_title(figure, look.title)
    figure.supxlabel("trajectories in the data set, |D|", fontsize=10)
    bar = figure.colorbar(image, ax=all_axes, extend="min", pad=0.02, ticks=[-1, -0.5, 0, 0.5, 1])
    bar.ax.set_yticklabels(["−1", "−0.5", "0 baseline", "0.5", "1 optimum"], fontsize=8)


def _draw_panel(axes: Axes, cells: list[list[Interval]]) -> Any:
    values = np.array([[cell.value for cell in row] for row in cells])
    borders = [np.arange(n + 1) - 0.5 for n in values.shape]
    image = axes.pcolormesh(
        borders[1], borders[0], values, cmap=palette(), vmin=-1, vmax=1, edgecolors="white"
    )
    for (y, x), value in np.ndenumerate(values):
        axes.text(
            x, y, written(cells[y][x]), ha="center", va="center", fontsize=7,
            weight="bold" if value < -VISIBLE else "normal",
            color=_ink(image.to_rgba(value)), in_layout=False,
        )  # fmt: skip
    _mark_corners(axes, np.argwhere(values < -VISIBLE))
    axes.tick_params(length=0, labelsize=8)
    axes.spines[:].set_visible(False)
    return image


def _ink(background: np.ndarray) -> str:
    """Black or white, whichever stands out more (relative luminance of WCAG 2)."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in background[:3]]
    luminance = float(np.dot(linear, (0.2126, 0.7152, 0.0722)))
    return "white" if luminance < 0.18 else "black"


def _mark_corners(axes: Axes, places: np.ndarray) -> None:
    """A dark triangle in the lower left corner of cells (y, x): below the baseline."""
    from matplotlib.collections import PolyCollection

    shape = np.array([(-0.47, -0.46), (-0.27, -0.46), (-0.47, -0.18)])
    corners = [shape + place[::-1] for place in places]
    axes.add_collection(PolyCollection(corners, facecolors="black", edgecolors="white", lw=0.4))


def _describe(results: Results, panels: dict[str, list[Row]], look: Look) -> str:
    name: Callable[[str], str] = style.plain
    parts = []
    for title, rows in panels.items():
        cells = [c for row in _intervals(results, rows, look.statistic) for c in row]
        values = [cell.value for cell in cells]
        below = sum(value < -VISIBLE for value in values)
        parts.append(
            f"{name(title) + ': ' if title else ''}values from {min(values):.2f} to "
            f"{max(values):.2f}, {below} of {len(values)} cells below the baseline"
        )
    return (
        f"Heat map of {style.STATISTIC_NAMES[look.statistic]} normalised performance against the "
        f"number of trajectories and {name(look.y_label)}. " + "; ".join(parts) + "."
    )
