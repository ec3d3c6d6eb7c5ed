"""Figures of the helicopter study: returns against N∧, κ, noise factor and passes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spibb.envs.helicopter import BORDER, Helicopter
from spibb.experiments.helicopter_grids import PAPER_KAPPAS, mass_column, thresholds
from spibb.experiments.results import Cell, Results
from spibb.experiments.spec import Dqn, Experiment
from spibb.paper import networks
from spibb.paper.evidence import average
from spibb.paper.networks import BASELINE, BASELINE_STYLE, training_of
from spibb.paper.plot import empty_figure, set_title
from spibb.paper.style import STATISTIC_NAMES, Style, plain, short_size, typeset
from spibb.stats import Interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHOWN = ("mean", "cvar10")
MANY = 12
"""Marks that fit beside each other in letters of the usual size."""
SCENE = 9
"""Seed of the start that is shown."""
SYMBOLS = {"n_wedge": "N_∧", "kappa": "κ"}
NOISE_COLUMNS = (Dqn(n_wedge=5), Dqn(n_wedge=10))
"""What Figure 4c cannot do without; DQN and RaMDP-DQN are drawn where they were run."""


@dataclass(frozen=True)
class Line:
    """A curve: what it shows, its look, and its points."""

    label: str
    statistic: str
    style: Style
    x: tuple[float, ...]
    y: tuple[Interval, ...]

    @property
    def legend(self) -> str:
        """Its name, with the statistic."""
        return f"{self.label}: {STATISTIC_NAMES[self.statistic]}"

    def draw(self, axes: Axes) -> None:
        """Tail means are dashed with hollow markers; a band shows the interval."""
        tail, colour = self.statistic != "mean", self.style.colour
        axes.plot(
            self.x, [i.value for i in self.y], color=colour, marker=self.style.marker,
            markersize=5.5, linewidth=1.7, linestyle="--" if tail else "-",
            markerfacecolor="white" if tail else colour, label=typeset(self.legend),
        )  # fmt: skip
        axes.fill_between(
            self.x, [i.low for i in self.y], [i.high for i in self.y],
            color=colour, alpha=0.13, linewidth=0,
        )  # fmt: skip


@dataclass(frozen=True)
class Axis:
    """The horizontal axis: its name, and the marks that are named, evenly spaced or not.

    `in_paper` of the marks, from the left, are the paper's own; None if all are.
    """

    name: str
    ticks: tuple[float, ...]
    labels: tuple[str, ...]
    logarithmic: bool = False
    in_paper: int | None = None


def drawn(axis: Axis, lines: Sequence[Line], title: str, unit: str) -> Figure:
    """Curves above, their legend below: it covers none of them."""
    figure = empty_figure(7.0, 5.2)
    axes = figure.add_subplot()
    for line in lines:
        line.draw(axes)
    if axis.logarithmic:
        axes.set_xscale("log")
    axes.set_xticks(axis.ticks, axis.labels, fontsize=8 if len(axis.ticks) > MANY else 10)
    axes.minorticks_off()
    if axis.in_paper is not None:
        _shade(axes, axis.in_paper)
    axes.set_xlabel(typeset(axis.name))
    axes.set_ylabel(unit)
    axes.grid(axis="y", color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    set_title(figure, title)
    figure.legend(loc="outside lower center", ncols=2, fontsize=8, handlelength=4.2)
    return figure


def _shade(axes: Axes, n: int) -> None:
    """Grey behind the first n marks, with a word on what it means."""
    axes.axvspan(-0.5, n - 0.5, color="0.94", linewidth=0, zorder=0)
    axes.text(
        0, 0.97, "range of the paper", transform=axes.get_xaxis_transform(), va="top", fontsize=9,
        color="0.3",
    )  # fmt: skip


def described(axis: Axis, lines: Sequence[Line], unit: str) -> str:
    """Where each curve begins and ends."""
    parts = [f"{plain(li.legend)} {li.y[0].value:.2f} to {li.y[-1].value:.2f}" for li in lines]
    paper = "" if axis.in_paper is None else f" The paper ends at {axis.labels[axis.in_paper - 1]}."
    first, last = (label.replace("\n", " ") for label in (axis.labels[0], axis.labels[-1]))
    return (
        f"Curves of {unit} against {plain(axis.name)}, from {first} to {last}.{paper} "
        + "; ".join(parts)
        + "."
    )


RETURN = "mean undiscounted return"


class ReturnCurves:
    """What the kinds of figures below share: each gives its axis and its lines."""

    unit = RETURN

    def axis(self, results: Results) -> Axis:
        """The horizontal axis."""
        raise NotImplementedError

    def lines(self, results: Results) -> list[Line]:
        """The curves."""
        raise NotImplementedError

    def draw(self, results: Results, title: str) -> Figure:
        """The drawing."""
        return drawn(self.axis(results), self.lines(results), title, self.unit)

    def describe(self, results: Results) -> str:
        """What it shows, for those who do not see it."""
        return described(self.axis(results), self.lines(results), self.unit)


@dataclass(frozen=True)
class OptionCurves(ReturnCurves):
    """Returns against N∧ or κ, a curve per size; the baseline's is flat, with its test error.

    `one_log` is for studies whose runs share a data set, and only for them.
    """

    option: str
    one_log: bool = False

    def missing(self, experiment: Experiment) -> tuple[str, ...]:
        """Several values of the option, noise factor 1, and one data set or many."""
        training, lacking = training_of(experiment), []
        if len(networks.by_option(experiment, self.option)) < 2:
            lacking.append(f"several {SYMBOLS[self.option]}")
        if 1.0 not in training.noises:
            lacking.append("noise factor 1")
        if training.one_log != self.one_log:
            lacking.append("runs on one data set" if self.one_log else "runs on many data sets")
        return tuple(lacking)

    def axis(self, results: Results) -> Axis:
        """Values of the option, evenly spaced."""
        values = networks.by_option(results.experiment, self.option)
        labels = [f"{value:g}" if value else "0\n(DQN)" for value in values]
        within = sum(value <= max(PAPER_KAPPAS) for value in values)
        beyond = self.option == "kappa" and within < len(values)
        return Axis(
            SYMBOLS[self.option], tuple(range(len(values))), tuple(labels),
            in_paper=within if beyond else None,
        )  # fmt: skip

    def lines(self, results: Results) -> list[Line]:
        """Two for the baseline, two for each size."""
        keys = list(networks.by_option(results.experiment, self.option).values())
        places, sizes = tuple(range(len(keys))), results.experiment.sizes
        found = []
        for statistic in SHOWN:
            flat = average(_points(statistic, (networks.cell(results, BASELINE, n) for n in sizes)))
            found.append(Line("baseline", statistic, BASELINE_STYLE, places, (flat,) * len(places)))
        for look, size in zip(networks.shades(self.option, sizes), sizes):
            for statistic in SHOWN:
                points = _points(statistic, (networks.cell(results, key, size) for key in keys))
                found.append(Line(_transitions(size), statistic, look, places, points))
        return found


@dataclass(frozen=True)
class NoiseCurves(ReturnCurves):
    """Returns of the baseline and some networks against the helicopter's noise factor."""

    def missing(self, experiment: Experiment) -> tuple[str, ...]:
        """Several noise factors, and the networks that the paper shows."""
        lacking = ["several noise factors"] if len(training_of(experiment).noises) < 2 else []
        lacking += [
            plain(networks.name(dqn))
            for dqn in NOISE_COLUMNS
            if networks.find(experiment, dqn) is None
        ]
        return tuple(lacking)

    def axis(self, results: Results) -> Axis:
        """The noise factors."""
        noises = training_of(results.experiment).noises
        return Axis("noise factor", noises, tuple(f"{noise:g}" for noise in noises))

    def lines(self, results: Results) -> list[Line]:
        """Two for the baseline, two for each column."""
        size, noises = results.experiment.sizes[0], training_of(results.experiment).noises
        found = []
        for label, look, key in _columns(results.experiment):
            for statistic in SHOWN:
                cells = (networks.cell(results, key, size, noise) for noise in noises)
                found.append(Line(label, statistic, look, noises, _points(statistic, cells)))
        return found


@dataclass(frozen=True)
class PassesCurves(ReturnCurves):
    """Returns against the number of passes over the data set."""

    def missing(self, experiment: Experiment) -> tuple[str, ...]:
        """Several numbers of passes."""
        return () if len(training_of(experiment).passes) > 1 else ("several numbers of passes",)

    def axis(self, results: Results) -> Axis:
        """The numbers of passes, on a logarithmic scale."""
        passes = training_of(results.experiment).passes
        return Axis(
            "passes over the data set", passes, tuple(f"{n:,}" for n in passes), logarithmic=True
        )

    def lines(self, results: Results) -> list[Line]:
        """Two for the baseline, two for each column."""
        training, size = training_of(results.experiment), results.experiment.sizes[0]
        found = []
        for label, look, key in _columns(results.experiment):
            for statistic in SHOWN:
                cells = (
                    networks.cell(results, key, size, training.noises[0], n)
                    for n in training.passes
                )
                points = _points(statistic, cells)
                found.append(Line(label, statistic, look, training.passes, points))
        return found


@dataclass(frozen=True)
class MassCurves(ReturnCurves):
    """The share of the baseline's mass that N∧ leaves where it is, at states it visits."""

    unit = "baseline's mass on bootstrapped actions"

    def missing(self, experiment: Experiment) -> tuple[str, ...]:
        """Several N∧ above 0."""
        return () if len(thresholds(experiment)) > 1 else ("several N_∧ above 0",)

    def axis(self, results: Results) -> Axis:
        """N∧, evenly spaced."""
        found = thresholds(results.experiment)
        return Axis("N_∧", tuple(range(len(found))), tuple(f"{n:g}" for n in found))

    def lines(self, results: Results) -> list[Line]:
        """One for each size."""
        found = thresholds(results.experiment)
        noise = training_of(results.experiment).noises[0]
        lines = []
        sizes = results.experiment.sizes
        for look, size in zip(networks.shades("n_wedge", sizes), sizes):
            cells = (networks.cell(results, mass_column(n), size, noise) for n in found)
            points = _points("mean", cells)
            lines.append(Line(_transitions(size), "mean", look, tuple(range(len(found))), points))
        return lines


@dataclass(frozen=True)
class Scenery:
    """The helicopter's square, where episodes start, and what landing pays."""

    def missing(self, experiment: Experiment) -> tuple[str, ...]:
        """Nothing: no result is needed."""
        return ()

    def draw(self, results: Results, title: str) -> Figure:
        """What the environment renders, with its coordinates."""
        env = Helicopter(render_mode="rgb_array")
        env.reset(seed=SCENE)
        figure = empty_figure(4.6, 5.0)
        axes = figure.add_subplot()
        ends = (-BORDER, 1 + BORDER)
        axes.imshow(np.asarray(env.render()), extent=(*ends, *ends))
        axes.set_xlabel("$s_x$")
        axes.set_ylabel("$s_y$")
        set_title(figure, title)
        return figure

    def describe(self, results: Results) -> str:
        """The colours."""
        return (
            "A grey unit square, its lower left third teal, where the helicopter (dark) starts; "
            "outside, rewards of landing from −1 (orange) to 10 (blue, at the upper right corner)."
        )


def _columns(experiment: Experiment) -> list[tuple[str, Style, str]]:
    """Label, look and key of the baseline and of all columns."""
    found = [("baseline", BASELINE_STYLE, BASELINE)]
    for number, column in enumerate(experiment.columns):
        dqn = column.dqn()
        found.append((networks.name(dqn), networks.style(dqn, number), column.key))
    return found


def _points(statistic: str, cells: Iterable[Cell | None]) -> tuple[Interval, ...]:
    return tuple(cell.statistics[statistic] for cell in cells if cell is not None)


def _transitions(size: int) -> str:
    return f"{short_size(size)} transitions"
