"""The families of the bench: their baselines are ordered, and the authors' is the authors'."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from parts import needed

from spibb.envs.baselines import blend, gridworld_baseline, optimal_q
from spibb.envs.families import FAMILIES
from spibb.envs.gridworld import gridworld_mdp
from spibb.envs.small import BASELINES
from spibb.evaluate import exact_value, returns
from spibb.policy import Policy
from spibb.simulate import Sampler


def test_the_authors_baseline_is_worth_what_they_say():
    assert exact_value(gridworld_mdp(), gridworld_baseline("authors")) == pytest.approx(
        0.402250, abs=5e-7
    )


def made(name, seed=1):
    if name == "icu-sepsis":
        needed("icu_sepsis")
    rng = np.random.default_rng(seed)
    mdp = FAMILIES[name].make(rng)
    return mdp, {kind: FAMILIES[name].baseline(mdp, kind, rng) for kind in BASELINES}


@pytest.mark.parametrize("name", [name for name in FAMILIES if name != "null"])
def test_baselines_are_ordered(name):
    mdp, baselines = made(name)
    good, middling, uniform = (exact_value(mdp, policy) for policy in baselines.values())
    assert uniform < middling < good < float(mdp.initial @ optimal_q(mdp).max(axis=1))


@pytest.mark.parametrize("name", ["rare-prizes", "rare-clicks", "near-null", "skewed-sales"])
def test_every_drawn_world_has_its_baselines(name):
    """Randomising the best actions away does not reach every value: some worlds need a blend."""
    for seed in range(150):
        mdp, baselines = made(name, seed)
        good, middling, uniform = (exact_value(mdp, policy) for policy in baselines.values())
        assert uniform < middling < good


def test_a_blend_has_the_value_that_is_asked_for():
    mdp, _ = made("rare-prizes")
    uniform = exact_value(mdp, Policy.uniform(mdp.states, mdp.actions))
    best = float(mdp.initial @ optimal_q(mdp).max(axis=1))
    for eta in (0.1, 0.5, 0.9):
        assert exact_value(mdp, blend(mdp, eta)) == pytest.approx(uniform + eta * (best - uniform))


def test_nothing_can_be_gained_or_lost_in_the_null_world():
    mdp, baselines = made("null")
    q = optimal_q(mdp)
    np.testing.assert_allclose(q.min(axis=1), q.max(axis=1))
    values = [exact_value(mdp, policy) for policy in baselines.values()]
    np.testing.assert_allclose(values, values[0])
    assert len({tuple(policy.probs[0]) for policy in baselines.values()}) == 3


def test_the_near_null_world_has_arms_that_differ_by_three_points():
    mdp, _ = made("near-null")
    assert mdp.shape == (4, 2)
    np.testing.assert_allclose(np.abs(np.diff(mdp.rewards, axis=1)), 0.03)


@pytest.mark.parametrize("name", ["gridworld", "frozen-lake", "taxi", "near-null"])
def test_simulated_episodes_earn_the_exact_value(name):
    mdp, baselines = made(name)
    for kind in ("good", "uniform"):
        log = Sampler(mdp, baselines[kind], 400).log(3000, rng=np.random.default_rng(0))
        earned = returns(log, mdp.discount)
        error = earned.std() / np.sqrt(len(earned))
        missing = mdp.discount**400 * 10 / (1 - mdp.discount)
        assert abs(earned.mean() - exact_value(mdp, baselines[kind])) < 4 * error + missing


def test_the_world_of_sepsis_is_made_without_a_word():
    """Its package imports the old gym, which prints advice."""
    needed("icu_sepsis")
    code = "from spibb.envs.sepsis import icu_sepsis; icu_sepsis()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout + done.stderr == ""
