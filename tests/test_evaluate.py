"""Exact values, simulated values, and the posterior probability of improvement."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from oracles import policy_values
from scipy.stats import beta
from strategies import n_wedges, problems, random_problem

from spibb import solve
from spibb.algorithms.base import Problem
from spibb.algorithms.spibb import PiBSpibb
from spibb.envs.baselines import gridworld_baseline
from spibb.envs.gridworld import gridworld_mdp
from spibb.evaluate import (
    exact_value,
    monte_carlo_value,
    posterior_improvement,
    posterior_values,
    returns,
)
from spibb.log import Log
from spibb.policy import Policy
from spibb.simulate import Sampler, simulate


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


@settings(max_examples=30)
@given(problems(), n_wedges)
def test_with_a_tiny_prior_and_huge_counts_the_posterior_is_the_model(problem, n_wedge):
    counts = problem.counts
    many = type(counts)(
        counts.indptr, counts.successors, counts.n * 10**9, counts.reward_sum * 10**9,
        counts.reward_sq, counts.starts, counts.reward_range, counts.states, counts.actions,
    )  # fmt: skip
    policy = PiBSpibb(n_wedge).improve(problem).policy
    rho = posterior_values(
        many, [policy], problem.discount, rng=np.random.default_rng(0), prior=1e-6, draws=3
    )
    wanted = problem.model.initial @ policy_values(problem.model, policy.probs)
    np.testing.assert_allclose(rho[:, 0], wanted, atol=2e-2)


def bandit(wins, losses):
    """One state, two arms; arm a won `wins` times, arm b never."""
    n = wins + losses
    log = Log.from_arrays(
        ["s"] * 2 * n, ["a"] * n + ["b"] * n, [1.0] * wins + [0.0] * (losses + n),
        terminated=[True] * 2 * n,
    )  # fmt: skip
    return Problem.from_log(log, Policy([[0.5, 0.5]], ["s"], ["a", "b"]), discount=0.0)


def test_the_posterior_of_one_pair_is_a_beta_distribution():
    """7 stays that pay 1, 3 ends that pay 0, prior k = ½ on these and on the unobserved outcome:

    P(stay) ~ Beta(7 + k, 3 + 2k), and ρ = P(stay) / (1 − γ P(stay)) is monotone in it.
    """
    log = Log.from_arrays(
        ["s"] * 10, ["a"] * 10, [1.0] * 7 + [0.0] * 3, ["s"] * 10,
        [False] * 7 + [True] * 3, [True] * 7 + [False] * 3, episodes=range(10),
    )  # fmt: skip
    problem = Problem.from_log(log, Policy([[1.0]], ["s"], ["a"]), discount=0.9)
    rho = posterior_values(
        problem.counts, [problem.baseline], 0.9, rng=np.random.default_rng(1), draws=40_000
    )
    levels = [0.1, 0.25, 0.5, 0.75, 0.9]
    stay = beta(7.5, 4.0).ppf(levels)
    np.testing.assert_allclose(np.quantile(rho[:, 0], levels), stay / (1 - 0.9 * stay), rtol=0.02)


def test_equal_policies_are_no_worse_than_each_other_for_sure():
    problem = random_problem(0, 5, 3, 60, 0.95)
    result = posterior_improvement(
        problem.counts, problem.baseline, problem.baseline, 0.95, rng=np.random.default_rng(0)
    )
    assert result.probability == 1
    assert result.gain == 0


def test_probability_rises_with_evidence_and_with_zeta():
    seen = []
    for n in (1, 5, 50):
        problem = bandit(n, n)
        better = Policy([[1.0, 0.0]], ["s"], ["a", "b"])
        seen.append(
            posterior_improvement(
                problem.counts, better, problem.baseline, 0.0, rng=np.random.default_rng(0),
                draws=4000,
            )
        )  # fmt: skip
    assert seen[0].probability <= seen[1].probability <= seen[2].probability
    assert seen[2].probability > 0.99
    assert seen[0].interval[0] < seen[0].gain < seen[0].interval[1]
    worse = Policy([[0.0, 1.0]], ["s"], ["a", "b"])
    problem = bandit(5, 5)
    loose, strict = (
        posterior_improvement(
            problem.counts, worse, problem.baseline, 0.0, rng=np.random.default_rng(0), zeta=zeta
        ).probability
        for zeta in (0.3, 0.0)
    )
    assert strict < 0.05 < loose


def test_the_same_generator_state_gives_the_same_posterior():
    problem = random_problem(4, 5, 3, 60, 0.95)
    policy = PiBSpibb(2).improve(problem).policy
    first, second = (
        posterior_improvement(
            problem.counts, policy, problem.baseline, 0.95, rng=np.random.default_rng(9)
        )
        for _ in range(2)
    )
    np.testing.assert_array_equal(first.gains, second.gains)


def test_large_problems_are_swept_and_agree_with_small_ones(monkeypatch):
    problem = random_problem(7, 12, 3, 300, 0.9)
    policies = [problem.baseline, PiBSpibb(3).improve(problem).policy]
    dense = posterior_values(problem.counts, policies, 0.9, rng=np.random.default_rng(0), draws=20)
    monkeypatch.setattr(solve, "DENSE_UP_TO", 0)
    swept = posterior_values(problem.counts, policies, 0.9, rng=np.random.default_rng(0), draws=20)
    np.testing.assert_allclose(dense, swept, atol=1e-6)


def test_a_high_probability_is_right_most_of_the_time():
    """On gridworld logs, policies given P ≥ 0.95 are truly no worse in at least 95 % of cases."""
    mdp, baseline = gridworld_mdp(), gridworld_baseline()
    sampler, rng = Sampler(mdp, baseline), np.random.default_rng(0)
    right = []
    for _ in range(150):
        counts = sampler.counts(20, rng=rng)
        problem = Problem.from_counts(counts, baseline, discount=mdp.discount)
        policy = PiBSpibb(5).improve(problem).policy
        belief = posterior_improvement(
            counts, policy, baseline, mdp.discount, rng=rng, draws=100
        ).probability
        if belief >= 0.95:
            right.append(exact_value(mdp, policy) >= exact_value(mdp, baseline) - 1e-9)
    assert len(right) > 50
    assert np.mean(right) >= 0.95


def test_the_standard_error_of_one_episode_is_unknown():
    log = Log.from_arrays([0], [0], [1.0], terminated=[True])
    assert monte_carlo_value(log, 0.9).standard_error == pytest.approx(np.inf)
