"""Baselines of a wanted performance: the target is met, the rows are sound, the draw repeats."""

from __future__ import annotations

import numpy as np
import pytest

from spibb.envs.garnet import draw_garnet
from spibb.envs.gridworld import gridworld_mdp
from spibb.envs.softening import RANDOMISATIONS, softened_baseline, softened_baselines
from spibb.errors import InputError
from spibb.evaluate import exact_value
from spibb.mdp import MDP
from spibb.policy import Policy

ETAS = tuple((np.arange(1, 10) / 10).tolist())


@pytest.mark.parametrize("randomisation", RANDOMISATIONS)
@pytest.mark.parametrize("eta", ETAS)
def test_the_value_is_the_target_but_for_one_step(eta, randomisation):
    for seed in range(5):
        mdp = draw_garnet(np.random.default_rng(seed)).mdp
        made = softened_baseline(mdp, eta, np.random.default_rng(seed), randomisation)
        uniform = exact_value(mdp, Policy.uniform(mdp.states, mdp.actions))
        assert made.uniform_value == pytest.approx(uniform, abs=1e-12)
        assert made.target == eta * made.optimal_value + (1 - eta) * made.uniform_value
        assert made.value == pytest.approx(exact_value(mdp, made.policy), abs=1e-12)
        assert made.target - 0.06 < made.value <= made.target
        checked = Policy(made.policy.probs, mdp.states, mdp.actions)
        np.testing.assert_array_equal(checked.probs, made.policy.probs)


def test_the_targets_are_missed_by_little_on_average():
    rng = np.random.default_rng(0)
    draws = [draw_garnet(rng) for _ in range(50)]
    misses = [
        made.target - made.value
        for draw in draws
        for made in softened_baselines(draw.mdp, ETAS, rng, optimal_q=draw.optimal_q)
    ]
    assert np.mean(misses) < 0.004


def test_q_given_or_computed_makes_the_same_baselines():
    draw = draw_garnet(np.random.default_rng(4))
    given = softened_baselines(draw.mdp, ETAS, np.random.default_rng(0), optimal_q=draw.optimal_q)
    computed = softened_baselines(draw.mdp, ETAS, np.random.default_rng(0))
    for one, two in zip(given, computed, strict=True):
        np.testing.assert_allclose(one.policy.probs, two.policy.probs, atol=1e-9)


def test_the_same_generator_state_makes_the_same_baseline():
    mdp = draw_garnet(np.random.default_rng(0)).mdp
    one, two, other = (
        softened_baseline(mdp, 0.5, np.random.default_rng(seed)).policy.probs for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(one, other)


def test_any_mdp_will_do_and_keeps_its_labels():
    mdp = gridworld_mdp()
    made = softened_baseline(mdp, 0.5, np.random.default_rng(0))
    assert f"{made.optimal_value:.6f}" == "0.597742"
    assert f"{made.uniform_value:.6f}" == "0.052216"
    assert made.policy.actions == mdp.actions
    np.testing.assert_array_equal(made.policy.probs[24], 0.25)


def test_one_action_leaves_one_policy():
    mdp = draw_garnet(np.random.default_rng(0), 8, 1, 3).mdp
    made = softened_baseline(mdp, 0.5, np.random.default_rng(0))
    np.testing.assert_array_equal(made.policy.probs, 1.0)
    assert made.value == pytest.approx(made.optimal_value, abs=1e-12)


@pytest.mark.parametrize("eta", [0, 1, -0.1, float("nan"), "much"])
def test_eta_must_lie_between_uniform_and_optimal(eta):
    with pytest.raises(InputError, match="eta is"):
        softened_baseline(gridworld_mdp(), eta, np.random.default_rng(0))


def test_a_misspelt_randomisation_is_named():
    with pytest.raises(InputError, match="did you mean 'multiply'"):
        softened_baseline(gridworld_mdp(), 0.5, np.random.default_rng(0), "multply")


def test_an_mdp_too_large_for_a_dense_inverse_is_refused():
    large = MDP.from_outcomes(
        [], [], [], [], [], [], initial=np.eye(1, 5000)[0], n_actions=1, discount=0.9
    )
    with pytest.raises(InputError, match="mdp has 5000 states, expected at most 4096"):
        softened_baseline(large, 0.5, np.random.default_rng(0))
