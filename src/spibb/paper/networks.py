"""Columns of the helicopter study by what their networks are trained for, and their names."""

from __future__ import annotations

from dataclasses import replace

from spibb.experiments.results import Cell, Results
from spibb.experiments.spec import Column, Dqn, Experiment, Training
from spibb.paper.style import OTHER_STYLES, Style

BASELINE = "baseline"
STYLES = {
    Dqn(): Style("#000000", "^"),
    Dqn(kappa=0.01): Style("#009E73", "D"),
    Dqn(n_wedge=1): Style("#56B4E9", "v"),
    Dqn(n_wedge=2): Style("#E69F00", "P"),
    Dqn(n_wedge=5): Style("#0072B2", "o"),
    Dqn(n_wedge=10): Style("#D55E00", "s"),
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


def style(dqn: Dqn, number: int) -> Style:
    """The look of networks; `number` tells apart those without one of their own."""
    return STYLES.get(dqn) or OTHER_STYLES[number % len(OTHER_STYLES)]
