"""Columns of the helicopter study by what their networks are trained for, and their names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from spibb.experiments.results import Cell, Results
from spibb.experiments.spec import Column, Dqn, Experiment, Training
from spibb.paper.style import OTHER_STYLES, Style

BASELINE = "baseline"
# Shades of the colours that Π_b-SPIBB and RaMDP have in the finite studies, the middle one theirs.
BLUES = ("#8CC6EA", "#0072B2", "#00334F")
GREENS = ("#66CDB1", "#009E73", "#00503A")
STYLES = {
    Dqn(): Style("#000000", "^"),
    Dqn(kappa=0.01): Style(GREENS[1], "D"),
    Dqn(n_wedge=1): Style(BLUES[0], "v"),
    Dqn(n_wedge=2): Style("#459FD3", "P"),
    Dqn(n_wedge=5): Style(BLUES[1], "o"),
    Dqn(n_wedge=10): Style(BLUES[2], "s"),
}
BASELINE_STYLE = Style("0.45", "")


def training_of(experiment: Experiment) -> Training:
    """How the networks of an experiment are trained."""
    return experiment.training or Training()


def by_option(experiment: Experiment, option: str) -> dict[float, str]:
    """Columns that differ from plain DQN in one option at most, by its value."""
    found = {}
    for column in experiment.columns:
        dqn = column.dqn()
        value = float(getattr(dqn, option))
        if replace(dqn, **{option: 0.0}) == Dqn():  # type: ignore[arg-type]
            found[value] = column.key
    return dict(sorted(found.items()))


def find(experiment: Experiment, dqn: Dqn) -> Column | None:
    """The column of these networks, if the experiment has it."""
    return next((column for column in experiment.columns if column.dqn() == dqn), None)


def cell(
    results: Results, key: str, size: int, noise: float = 1.0, passes: int | None = None
) -> Cell | None:
    """The cell of a column after the given passes, by default the last."""
    last = training_of(results.experiment).passes[-1]
    return results.cell(key, size, noise=noise, passes=passes or last)


def name(dqn: Dqn) -> str:
    """Networks as a legend names them."""
    if dqn == Dqn():
        return "DQN"
    words = [] if dqn.n_wedge == 0 else [f"N_∧ = {dqn.n_wedge:g}"]
    words += [] if dqn.kappa == 0 else [f"κ = {dqn.kappa:g}"]
    kind = "RaMDP-DQN" if dqn.n_wedge == 0 else "SPIBB-DQN"
    prefix = "Π_≤b-" if dqn.variant == "pi-leq-b" else ""
    return f"{prefix}{kind}, {', '.join(words)}"


def shades(option: str, sizes: Sequence[int]) -> tuple[Style, ...]:
    """A look for each size of data sets, from light to dark, in the colour of the algorithm."""
    colours = BLUES if option == "n_wedge" else GREENS
    looks = tuple(Style(colour, marker) for colour, marker in zip(colours, "soD"))
    return tuple(looks[(number + (len(sizes) == 1)) % 3] for number in range(len(sizes)))


def style(dqn: Dqn, number: int) -> Style:
    """The look of networks; `number` tells apart those without one of their own."""
    return STYLES.get(dqn) or OTHER_STYLES[number % len(OTHER_STYLES)]
