"""What the helicopter study compares (section 3.4, appendix D): its grids and its columns."""

from __future__ import annotations

from spibb.envs.helicopter import MAX_STEPS
from spibb.experiments.spec import Column, Experiment, Training
from spibb.names import DQN

SIZES = (10_000, 20_000, 30_000)
N_WEDGES = (1, 2, 5, 8, 10, 20)
SINGLE_N_WEDGES = (1, 2, 3, 4, 5, 8, 10, 20)
PAPER_KAPPAS = (0.001, 0.003, 0.006, 0.01, 0.02, 0.03, 0.05, 0.1)
"""What the paper tried (appendix D.4)."""
KAPPAS = (*PAPER_KAPPAS, 0.2, 0.5, 1, 1.5, 2, 4, 8)
"""The same and larger ones, up to about the largest reward."""
NOISES = (0.0, 0.5, 1.0, 1.5, 2.0)
PASSES = (20, 50, 100, 200, 500, 1000, 2000)


def _wedges(*n_wedges: float) -> tuple[str, ...]:
    return (DQN, *(f"{DQN}:n_wedge={n:g}" for n in n_wedges))


def _kappas(*kappas: float) -> tuple[str, ...]:
    return tuple(f"{DQN}:kappa={k:g}" for k in kappas)


GRIDS: dict[str, tuple[tuple[int, ...], tuple[str, ...], Training]] = {
    "main": (SIZES, _wedges(*N_WEDGES), Training()),
    "noise": (SIZES[:1], (*_wedges(5, 10), *_kappas(0.01)), Training(noises=NOISES)),
    "ramdp": (SIZES[:1], (DQN, *_kappas(*KAPPAS)), Training()),
    "single": (SIZES[:1], _wedges(*SINGLE_N_WEDGES), Training(one_log=True)),
    "passes": (SIZES[:1], _wedges(1, 2, 5, 10), Training(passes=PASSES)),
}
"""Sizes, columns and training by the name of a grid."""


def default_experiment(study: str, grid: str = "main") -> Experiment:
    """One of the paper's grids, with its 2,000 passes and 15 networks per data set."""
    sizes, keys, training = GRIDS[grid]
    columns = tuple(Column.parse(key) for key in keys)
    return Experiment(study, sizes, columns, max_steps=MAX_STEPS, training=training)


def mass_column(n_wedge: float) -> str:
    """Name of the column that holds the baseline's mass on bootstrapped actions."""
    return f"bootstrapped:n_wedge={n_wedge:g}"


def thresholds(experiment: Experiment) -> list[float]:
    """The N∧ > 0 of an experiment's columns."""
    return sorted({float(column.dqn().n_wedge) for column in experiment.columns} - {0.0})


def measures(experiment: Experiment) -> list[str]:
    """What the rows hold beside the returns of networks."""
    return ["baseline", "entropy", *map(mass_column, thresholds(experiment))]
