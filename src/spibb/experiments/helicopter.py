"""The helicopter study: one repetition of it, and what that costs.

Nothing here needs JAX: `prepare` brings it in, one thread per process, before the first network.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from spibb.errors import InputError
from spibb.experiments.spec import Experiment, Training

PROBED_PASSES = 4
"""Passes by which the longer of two short trainings exceeds the other, to time one pass."""
ONE_THREAD = {
    "NPROC": "1",  # size of XLA's thread pool
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
}


def prepare(experiment: Experiment | None = None) -> None:
    """Import what trains networks, so that XLA uses one thread; the runner uses the processes.

    An experiment whose baseline or sizes cannot be used is refused.
    """
    for name, value in ONE_THREAD.items():
        os.environ.setdefault(name, value)
    try:
        from spibb.deep import SpibbDQN
    except ImportError as error:
        raise InputError(f"the helicopter study trains networks: {error}") from None
    if experiment is None:
        return
    from spibb.experiments.helicopter_run import baseline_of

    baseline_of(experiment.network)
    batch = SpibbDQN().batch_size or 1
    if min(experiment.sizes) < batch:
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
