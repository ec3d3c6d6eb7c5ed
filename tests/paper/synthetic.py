"""Results made up cell by cell, for tests of figures and claims."""

from __future__ import annotations

import math
from collections.abc import Callable

from spibb.experiments.finite import GRIDS, N_WEDGES, default_experiment
from spibb.experiments.results import STATISTICS, Cell, Results
from spibb.experiments.spec import Column, Experiment
from spibb.stats import Interval

EXTRA = (
    *(f"{name}:n_wedge={n + 1}" for name in ("pi-b", "pi-leq-b") for n in N_WEDGES),
    "basic-rl:unseen=optimistic",
    "robust-mdp:delta=0.1,safety_test=true",
    "ramdp:kappa=0.003,safety_test=true",
)
BASELINE, OPTIMAL = 0.4, 0.5977
ValueOf = Callable[[Column, int, float | None, str], float]


def everything(study: str) -> Experiment:
    """The experiment of a study with every column that any claim or figure needs."""
    grids = ("main", "search", "search-released")
    keys = dict.fromkeys((*(key for grid in grids for key in GRIDS[grid]), *EXTRA))
    plain = default_experiment(study)
    columns = tuple(Column.parse(key) for key in keys)
    return Experiment(study, plain.sizes, columns, plain.etas)


def make_results(
    experiment: Experiment, value_of: ValueOf, half: float = 1e-4, runs: int = 100_000,
    baseline: float = BASELINE, optimal: float = OPTIMAL,
) -> Results:  # fmt: skip
    """Results whose cells have the given values, with intervals of ± half."""
    cells = tuple(
        Cell(
            column.key, eta, size, runs,
            {name: around(value_of(column, size, eta, name), half) for name in STATISTICS},
        )
        for column in experiment.columns
        for eta in experiment.etas or (None,)
        for size in experiment.sizes
    )  # fmt: skip
    return Results(experiment, runs, baseline, optimal, cells)


def around(value: float, half: float) -> Interval:
    return Interval(value, value - half, value + half)


def as_the_paper_says(study: str) -> ValueOf:
    """A made-up world in which every sentence of the paper is true."""
    worlds = {
        "gridworld": _gridworld, "gridworld-random": _random_behaviour, "random-mdps": _random_mdps,
    }  # fmt: skip
    return worlds[study]


def _log(size: int) -> float:
    """0 at 10 trajectories, 1 at 10,000."""
    return math.log10(size / 10) / 3


def _gridworld(column: Column, size: int, eta: float | None, name: str) -> float:
    tail, options = name != "mean", dict(column.options)
    if options.get("safety_test"):
        return 0.0
    wedge = math.log10(float(options.get("n_wedge", 5)) / 5)
    unsafe = tail and size == 10 and wedge < 0.4
    basic = -0.5 if tail else 0.5 - 0.1 * _log(size)
    return {
        "pi-b": -0.1 if unsafe else 0.88 - 0.1 * wedge + 0.12 * _log(size) - 0.1 * tail,
        "pi-leq-b": 0.92 - 0.1 * wedge + 0.12 * _log(size) - 0.1 * tail,
        "basic-rl": -1.0 if options.get("unseen") else basic,
        "robust-mdp": -2.0,
        "ramdp": _gridworld_ramdp(float(options.get("kappa", 0)), size, tail, basic),
        "hcpi": _gridworld_hcpi(float(options.get("delta", 0)), size, tail),
    }[column.algorithm]


def _gridworld_ramdp(kappa: float, size: int, tail: bool, basic: float) -> float:
    if kappa >= 0.004:
        return -2.0
    if kappa <= 0.002:
        return basic
    return (-0.5 if size <= 20 else 0.7) if tail else 0.95


def _gridworld_hcpi(delta: float, size: int, tail: bool) -> float:
    if tail:
        return -0.5 if delta == 1 and size <= 50 else 0.0
    return (0.2 if size <= 100 else 0.5) + 0.05 * delta


def _random_behaviour(column: Column, size: int, eta: float | None, name: str) -> float:
    tail, options = name != "mean", dict(column.options)
    n_wedge = float(options.get("n_wedge", 5))
    unsafe = n_wedge <= 10 and size <= 20
    basic = 0.9 * _log(size) - (0.3 if size < 100 else 0.0)
    return {
        "pi-b": -0.3 if unsafe else 0.85 - 0.001 * n_wedge,
        "pi-leq-b": -0.4 if unsafe else 0.8 - 0.001 * n_wedge,
        "basic-rl": basic if tail else 0.9,
        "ramdp": basic,
        "robust-mdp": -2.0,
        "hcpi": 0.1,
    }[column.algorithm]


def _random_mdps(column: Column, size: int, eta: float | None, name: str) -> float:
    tail, options = name != "mean", dict(column.options)
    n_wedge = float(options.get("n_wedge", 10))
    if eta < 0.5:
        late = 0.8 if size >= 1000 else 0.3
        values = {"pi-b": late, "pi-leq-b": late, "hcpi": 0.2, "robust-mdp": -1.0}
        best = 0.8
    else:
        unsafe = n_wedge <= 5
        values = {
            "pi-b": 0.3, "pi-leq-b": (-0.2 if unsafe else 0.5),
            "hcpi": -0.5 if tail else 0.1, "robust-mdp": -3.0,
        }  # fmt: skip
        best = -1.0 if tail else 0.2
    ramdp = 0.4 if eta >= 0.5 and not tail else (-0.5 if tail and size <= 20 else best)
    if eta == 0.1:
        ramdp = best
    return (values | {"basic-rl": best, "ramdp": ramdp})[column.algorithm]
