"""A log that was improved and judged is freed at once: arrays are not counted by the collector."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import spibb
from spibb.envs import gridworld_baseline, gridworld_mdp
from spibb.simulate import simulate


@pytest.mark.parametrize("algorithm", ["pi-b", "auto", "certified"])
def test_no_circle_keeps_a_problem(algorithm):
    log = simulate(gridworld_mdp(), gridworld_baseline(), 60, rng=np.random.default_rng(0))
    options = {"certified": {"v_max": 1.0}, "pi-b": {"n_wedge": 5}}.get(algorithm, {})
    gc.collect()
    gc.disable()
    try:
        result = spibb.improve(
            log, gridworld_baseline(), discount=0.95, algorithm=algorithm, **options
        )
        assert result.verdict.sentence
        kept = weakref.ref(result.problem)
        del result
        assert kept() is None
    finally:
        gc.enable()
