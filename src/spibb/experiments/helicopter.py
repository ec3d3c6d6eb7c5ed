"""The helicopter study (section 3.4, appendix D): its grids, and what a repetition costs.

Nothing here needs JAX: `prepare` brings it in, one thread per process, before the first network.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from spibb.envs.helicopter import MAX_STEPS
from spibb.errors import InputError
from spibb.experiments.spec import DQN, Column, Experiment, Training

SIZES = (10_000, 20_000, 30_000)
N_WEDGES = (1, 2, 5, 8, 10, 20)
SINGLE_N_WEDGES = (1, 2, 3, 4, 5, 8, 10, 20)
KAPPAS = (0.001, 0.003, 0.006, 0.01, 0.02, 0.03, 0.05, 0.1)
NOISES = (0.0, 0.5, 1.0, 1.5, 2.0)
PASSES = (20, 50, 100, 200, 500, 1000, 2000)
PROBED_PASSES = 4
"""Passes by which the longer of two short trainings exceeds the other, to time one pass."""
ONE_THREAD = {
    "NPROC": "1",  # size of XLA's thread pool
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
}


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


def prepare(experiment: Experiment | None = None) -> None:
    """Import what trains networks, so that XLA uses one thread; the runner uses the processes."""
    for name, value in ONE_THREAD.items():
        os.environ.setdefault(name, value)
    try:
        from spibb.deep import SpibbDQN
    except ImportError as error:
        raise InputError(f"the helicopter study trains networks: {error}") from None
    batch = SpibbDQN().batch_size or 1
    if experiment is not None and min(experiment.sizes) < batch:
        raise InputError(
            f"size is {min(experiment.sizes)}, expected at least {batch} transitions: a minibatch "
            "has that many"
        )


def repeat(experiment: Experiment, run: int) -> list[dict[str, Any]]:
    """One repetition: a data set per size and noise factor, and a row per network seed on it."""
    prepare()
    from spibb.experiments import helicopter_run

    return helicopter_run.repeat(experiment, run)


def seconds(experiment: Experiment, run: int) -> float:
    """Seconds of one repetition, extrapolated from short trainings on its smallest data set.

    One pass takes as long as the longer of two trainings takes more; everything else (data,
    pseudo-counts, tests) is counted once per network seed and test, which is a little too much.
    """
    training = experiment.training or Training()
    smallest = min(experiment.sizes)
    small = replace(training, noises=training.noises[:1], seeds=1, passes=(1,))
    probe = replace(experiment, sizes=(smallest,), training=small)
    repeat(probe, run)  # compiles
    rest = _timed(partial(repeat, probe, run))
    longer = replace(probe, training=replace(small, passes=(1 + PROBED_PASSES,)))
    one_pass = max(0.0, _timed(partial(repeat, longer, run)) - rest) / PROBED_PASSES
    networks = training.seeds * len(training.noises)
    passes = max(training.passes) * sum(experiment.sizes) / smallest
    tests = len(training.passes) * len(experiment.sizes)
    return networks * (tests * rest + passes * one_pass)


def _timed(job: Callable[[], object]) -> float:
    """Seconds of a core; a short job on a busy machine would mislead a clock."""
    begin = time.process_time()
    job()
    return time.process_time() - begin
