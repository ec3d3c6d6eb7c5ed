"""Exact values, simulated values, and the posterior probability of improvement."""

from __future__ import annotations

import numpy as np
import pytest

from spibb.envs.baselines import gridworld_baseline
from spibb.envs.gridworld import gridworld_mdp
from spibb.evaluate import (
    exact_value,
    monte_carlo_value,
    returns,
)
from spibb.log import Log
from spibb.simulate import simulate


def test_returns_discount_within_each_episode():
    log = Log.from_arrays(
        [0, 1, 0], [0, 0, 0], [1.0, 2.0, 4.0], terminated=[False, True, True], n_actions=1
    )
    np.testing.assert_allclose(returns(log, 0.5), [2.0, 4.0])


def test_the_mean_of_simulated_returns_is_the_exact_value():
    mdp, baseline = gridworld_mdp(), gridworld_baseline()
    log = simulate(mdp, baseline, 20_000, rng=np.random.default_rng(0), max_steps=500)
    estimate = monte_carlo_value(log, mdp.discount)
    truth = exact_value(mdp, baseline)
    assert abs(estimate.value - truth) < 4 * estimate.standard_error
    assert estimate.standard_error < 0.005


def test_the_standard_error_of_one_episode_is_unknown():
    log = Log.from_arrays([0], [0], [1.0], terminated=[True])
    assert monte_carlo_value(log, 0.9).standard_error == pytest.approx(np.inf)
