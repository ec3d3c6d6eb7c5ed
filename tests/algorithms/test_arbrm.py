"""ARBRM as published, and the three problems that the SPIBB paper names (section 2.1)."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from spibb.algorithms.arbrm import ARBRM
from spibb.algorithms.basic_rl import BasicRL
from spibb.algorithms.problem import Problem
from spibb.algorithms.robust_mdp import RobustMDP
from spibb.algorithms.uncertainty import UncertaintySet, worst_case
from spibb.log import Log
from spibb.policy import Policy
from spibb.solve import evaluate


def random_problem(seed: int, n: int = 3_000, support: int = 3) -> Problem:
    """A random problem whose baseline plays `support` of its 3 actions; the log holds all."""
    rng = np.random.default_rng(seed)
    reward = rng.normal(size=(6, 3))
    state, action = rng.integers(6, size=n), rng.integers(3, size=n)
    log = Log.from_arrays(
        state, action, reward[state, action], (state + action + rng.integers(2, size=n)) % 6,
        rng.random(n) < 0.2, episode_id=np.arange(n), n_states=6, n_actions=3,
    )  # fmt: skip
    probs = rng.dirichlet(np.ones(3), size=6)
    probs[:, support:] = 0
    baseline = Policy(probs / probs.sum(axis=1, keepdims=True))
    return Problem.from_log(log, baseline, discount=0.9)


def goal_problem(n: int) -> Problem:
    """A random MDP of the paper's size with one goal, its pairs sampled evenly: n transitions."""
    rng = np.random.default_rng(0)
    successors = np.array([rng.permutation(25)[:4] for _ in range(100)]).reshape(25, 4, 4)
    cumulative = rng.dirichlet(np.ones(4), size=(25, 4)).cumsum(axis=-1)
    state, action = rng.integers(24, size=n), rng.integers(4, size=n)
    which = (rng.random(n)[:, None] > cumulative[state, action, :3]).sum(axis=1)
    following = successors[state, action, which]
    goal = following == 24
    log = Log.from_arrays(
        state,
        action,
        goal * 1.0,
        following,
        goal,
        episode_id=np.arange(n),
        n_states=25,
        n_actions=4,
    )
    return Problem.from_log(log, Policy(rng.dirichlet(np.ones(4), size=25)), v_max=1.0)


def scaled(problem: Problem, times: int) -> Problem:
    """The same frequencies, from a log that is `times` as long."""
    counts = problem.counts
    more = dataclasses.replace(counts, n=counts.n * times, reward_sum=counts.reward_sum * times)
    return Problem.from_counts(more, problem.baseline, discount=problem.discount)


@pytest.mark.parametrize("n", [60, 3_000])
@pytest.mark.parametrize("seed", range(5))
def test_first_problem_full_support_makes_it_basic_rl(seed, n):
    problem = random_problem(seed, n)
    result, basic = ARBRM(safety_test=False).improve(problem), BasicRL().improve(problem)
    np.testing.assert_array_equal(result.policy.probs, basic.policy.probs)
    np.testing.assert_allclose(result.q, basic.q, atol=1e-10)


def test_only_pairs_off_the_baseline_are_uncertain():
    problem = random_problem(0, support=2)
    radius = ARBRM().assumed(problem).radius
    assert (radius[problem.baseline.probs > 0] == 0).all()
    assert (radius[problem.baseline.probs == 0] > 0).all()


@pytest.mark.parametrize("seed", range(5))
def test_baseline_value_is_the_same_in_all_mdps_assumed(seed):
    """Why minimising the regret reduces to a robust MDP."""
    problem = random_problem(seed, support=2)
    nominal = evaluate(problem.model, problem.baseline.probs).v
    worst = worst_case(ARBRM().assumed(problem), problem.baseline.probs).v
    np.testing.assert_allclose(worst, nominal, atol=1e-10)


@pytest.mark.parametrize("seed", range(5))
def test_under_its_assumption_it_never_loses_to_the_baseline(seed):
    problem = random_problem(seed, support=1)
    result = ARBRM(safety_test=False).improve(problem)
    baseline = evaluate(problem.model, problem.baseline.probs).v
    assert (result.v >= baseline - 1e-10).all()
    robust, basic = RobustMDP(safety_test=False).improve(problem), BasicRL().improve(problem)
    assert (robust.v <= result.v + 1e-10).all()
    assert (result.v <= basic.v + 1e-10).all()


def test_second_problem_one_fit_with_its_test_takes_three_robust_solutions(monkeypatch):
    """And the exact problem is NP-hard; the benchmark prints what the three cost."""
    from spibb.algorithms import uncertainty

    calls = []
    solve = uncertainty._solve
    monkeypatch.setattr(uncertainty, "_solve", lambda *a: calls.append(1) or solve(*a))
    assert ARBRM().improve(scaled(random_problem(0), 10**9)).accepted
    assert len(calls) == 3


@pytest.mark.parametrize("n", [1_000, 100_000, 1_000_000])
def test_third_problem_the_test_fails(n):
    """25 states × 4 actions, as in the paper: even 10,000 samples of every pair do not suffice."""
    problem = goal_problem(n)
    result = ARBRM().improve(problem)
    assert not result.accepted
    assert result.policy is problem.baseline
    assert result.worst_case_value < result.baseline_best_case_value
    trained = ARBRM(safety_test=False).improve(problem).policy.probs
    gain = evaluate(problem.model, trained).v - evaluate(problem.model, problem.baseline.probs).v
    assert (gain[:-1] > 0).all()  # although the policy rejected is better in every state


def test_third_problem_not_even_the_baseline_would_pass():
    problem = random_problem(1, 100_000)
    xi = UncertaintySet.from_problem(problem)
    baseline = worst_case(xi, problem.baseline.probs).value
    assert baseline < ARBRM().improve(problem).baseline_best_case_value


def test_the_test_passes_with_endless_data():
    result = ARBRM().improve(scaled(random_problem(0), 10**9))
    assert result.accepted
    assert not result.bootstrapped.any()
    assert result.worst_case_value >= result.baseline_best_case_value


def test_model_of_the_algorithm_is_the_model_of_the_result():
    problem = random_problem(3, support=2)
    for algorithm in (ARBRM(), ARBRM(safety_test=False)):
        result = algorithm.improve(problem)
        model = algorithm.model(problem)
        np.testing.assert_allclose(evaluate(model, result.policy.probs).q, result.q, atol=1e-9)
