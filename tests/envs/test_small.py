"""Small worlds: what they pay is what they are worth."""

from __future__ import annotations

import numpy as np
import pytest

from spibb.envs.small import BASELINES, SMALL
from spibb.evaluate import exact_value, returns
from spibb.simulate import Sampler
from spibb.solve import free_box, optimise


@pytest.mark.parametrize("name", SMALL)
def test_simulated_episodes_earn_the_exact_value(name):
    """Cut episodes miss at most what follows: γ^steps of the largest value."""
    rng, world = np.random.default_rng(0), SMALL[name]
    mdp = world.make(rng)
    policy = world.baseline(mdp, "uniform", rng)
    log = Sampler(mdp, policy, 200).log(4000, rng=rng)
    earned = returns(log, mdp.discount)
    error = earned.std() / np.sqrt(len(earned))
    largest = np.abs(mdp.rewards).max() / (1 - mdp.discount)
    missing = largest * mdp.discount**200 * log.truncated.sum() / len(earned)
    assert abs(earned.mean() - exact_value(mdp, policy)) < 4 * error + missing


@pytest.mark.parametrize("name", [name for name in SMALL if name != "null"])
def test_baselines_lie_where_they_should_between_uniform_and_optimal(name):
    rng, world = np.random.default_rng(1), SMALL[name]
    mdp = world.make(rng)
    best = float(mdp.initial @ optimise(mdp, free_box(np.ones(mdp.shape, dtype=bool))).v)
    values = {kind: exact_value(mdp, world.baseline(mdp, kind, rng)) for kind in BASELINES}
    for kind, eta in BASELINES.items():
        wanted = eta * best + (1 - eta) * values["uniform"]
        assert values[kind] <= wanted + 1e-9
        assert values[kind] > wanted - 0.25 * (best - values["uniform"])


def test_costs_are_rewards_less_one():
    rewarded, charged = (
        SMALL[name].make(np.random.default_rng(3)) for name in ("dense-rewards", "dense-costs")
    )
    np.testing.assert_allclose(charged.rewards, rewarded.rewards - 1)
    np.testing.assert_array_equal(charged.probs, rewarded.probs)
