"""Exact values, simulated values, and the posterior probability of improvement."""

from __future__ import annotations

import math

import numpy as np
import pytest

from spibb.envs.baselines import gridworld_baseline
from spibb.envs.gridworld import gridworld_mdp
from spibb.evaluate import (
    exact_value,
    monte_carlo_value,
    returns,
)
from spibb.labels import vocabulary
from spibb.log import Log
from spibb.mdp import MDP
from spibb.policy import Policy
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


def ring(n: int, discount: float) -> MDP:
    """A ring of n states in which only the last pays; it starts in the first."""
    rewards, initial = np.zeros((n, 1)), np.zeros(n)
    rewards[-1], initial[0] = 1.0, 1.0
    return MDP(
        np.arange(n + 1), (np.arange(n) + 1) % n, np.ones(n), rewards, initial, discount,
        vocabulary(n, "state"), vocabulary(1, "action"),
    )  # fmt: skip


@pytest.mark.parametrize("n", [200, 300])
@pytest.mark.parametrize("discount", [0.99, 1 - 1e-9])
def test_a_ring_that_pays_once_a_round_is_worth_its_geometric_series(n, discount):
    power = math.exp(n * math.log(discount))
    truth = power / discount / -math.expm1(n * math.log(discount))
    value = exact_value(ring(n, discount), Policy.uniform(n, 1))
    assert value == pytest.approx(truth, rel=1e-9)


@pytest.mark.parametrize("discount", [0.99, 1 - 1e-9])
def test_exact_values_of_many_states_solve_the_equations(discount):
    n, rng = 300, np.random.default_rng(5)
    p = rng.dirichlet(np.full(4, 0.5), size=2 * n) * (rng.random((2 * n, 1)) * 0.2 + 0.8)
    mdp = MDP(
        np.arange(0, 8 * n + 1, 4), rng.integers(0, n, 8 * n), p.reshape(-1),
        rng.normal(size=(n, 2)), rng.dirichlet(np.ones(n)), discount,
        vocabulary(n, "state"), vocabulary(2, "action"),
    )  # fmt: skip
    rows = rng.dirichlet(np.ones(2), size=n)
    chain = np.zeros((n, n))
    np.add.at(chain, (np.arange(8 * n) // 8, mdp.successors), np.repeat(rows, 4) * mdp.probs)
    v = np.linalg.solve(np.eye(n) - discount * chain, (rows * mdp.rewards).sum(axis=1))
    assert exact_value(mdp, Policy(rows)) == pytest.approx(mdp.initial @ v, rel=1e-11)


def test_a_value_that_is_too_small_for_the_sweeps_comes_with_its_error(monkeypatch):
    monkeypatch.setattr("spibb.solve.DIRECT_UP_TO", 256)
    with pytest.warns(UserWarning, match=r"error of up to .*: the MDP has 300 states"):
        exact_value(ring(300, 0.9), Policy.uniform(300, 1))
