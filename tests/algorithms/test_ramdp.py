"""RaMDP: the penalty, what it leaves alone, and the released code's goal."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from spibb.algorithms.basic_rl import BasicRL
from spibb.algorithms.problem import Problem
from spibb.algorithms.ramdp import RaMDP
from spibb.algorithms.uncertainty import UncertaintySet, best_case, error_radii, worst_case
from spibb.errors import InputError
from spibb.log import Log
from spibb.policy import Policy
from spibb.solve import evaluate


def random_problem(seed: int, n: int = 300) -> Problem:
    rng = np.random.default_rng(seed)
    reward = rng.normal(size=(6, 3))
    state, action = rng.integers(6, size=n), rng.integers(3, size=n)
    log = Log.from_arrays(
        state, action, reward[state, action], (state + action + rng.integers(2, size=n)) % 6,
        rng.random(n) < 0.2, episode_id=np.arange(n), n_states=6, n_actions=3,
    )  # fmt: skip
    return Problem.from_log(log, Policy(rng.dirichlet(np.ones(3), size=6)), discount=0.9)


def goal_problem(n: int = 10_000) -> Problem:
    """One state: action 'stay' pays nothing, action 'go' ends the process and pays 1."""
    action, here = np.tile(["stay", "go"], n), ["here"] * (2 * n)
    log = Log.from_arrays(
        here, action, action == "go", here, action == "go", episode_id=np.arange(2 * n)
    )
    return Problem.from_log(log, Policy.uniform(["here"], ["stay", "go"]), discount=0.95)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("n", [40, 300])
def test_without_penalty_it_is_basic_rl(seed, n):
    problem = random_problem(seed, n)
    adjusted, basic = RaMDP(kappa=0).improve(problem), BasicRL().improve(problem)
    np.testing.assert_allclose(adjusted.v, basic.v, atol=1e-12)
    np.testing.assert_allclose(adjusted.q, basic.q, atol=1e-12)
    np.testing.assert_array_equal(adjusted.policy.probs, basic.policy.probs)


def test_reward_is_reduced_by_kappa_over_root_n():
    problem = random_problem(0)
    model, counts = RaMDP(kappa=0.5).model(problem), problem.counts.pairs
    assert (counts > 0).all()
    np.testing.assert_allclose(model.rewards, problem.counts.mean_reward - 0.5 / np.sqrt(counts))


def test_values_are_those_of_the_adjusted_model():
    problem = random_problem(1)
    for algorithm in (RaMDP(kappa=0.3), RaMDP(kappa=0.3, released=True)):
        result = algorithm.improve(problem)
        nominal = evaluate(problem.model, result.policy.probs)
        assert (result.v < nominal.v).all()
        again = evaluate(result.model, result.policy.probs)
        np.testing.assert_allclose(again.v, result.v, atol=1e-10)


@pytest.mark.parametrize("released", [False, True])
@pytest.mark.parametrize("kappa", [0.0, 0.003, 10.0, 1000.0])
def test_unseen_pair_is_never_chosen_where_a_seen_one_exists(kappa, released):
    for seed in range(10):
        problem = random_problem(seed, n=10)
        seen = problem.counts.pairs > 0
        probs = RaMDP(kappa=kappa, released=released).improve(problem).policy.probs
        assert (probs[~seen & seen.any(axis=1, keepdims=True)] == 0).all()
        np.testing.assert_allclose(probs.sum(axis=1), 1)


@pytest.mark.parametrize("kappa", [0.001, 0.003, 0.004, 0.01, 1.0])
def test_goal_stays_attractive(kappa):
    result = RaMDP(kappa=kappa).improve(goal_problem())
    assert result.policy.row("here") == {"stay": 0.0, "go": 1.0}
    assert result.v[0] == pytest.approx(1 - kappa / 100)


@pytest.mark.parametrize(
    ("kappa", "goes"),
    [(0.001, True), (0.003, True), (0.0033, True), (0.0034, False), (0.004, False), (0.01, False)],
)
def test_released_goal_turns_repulsive_at_a_kappa_of_0_0033(kappa, goes):
    """Entering the goal is worth 1 − γκ/√1e-5, below 0 from κ = √1e-5/0.95 = 0.00333 on."""
    problem = goal_problem()
    result = RaMDP(kappa=kappa, released=True).improve(problem)
    go = problem.actions.code("go")
    assert result.policy.probs[0, go] == goes
    worth = 1 - 0.95 * kappa / math.sqrt(1e-5) - kappa / 100
    assert result.q[0, go] == pytest.approx(worth, abs=1e-9)


def test_released_unseen_pairs_pay_the_floor_once():
    problem = random_problem(3, n=10)
    model = RaMDP(kappa=0.003, released=True).model(problem)
    unseen = problem.counts.pairs == 0
    np.testing.assert_allclose(model.rewards[unseen], -0.003 / math.sqrt(1e-5))


def test_penalty_prefers_what_is_known():
    """Two actions end the process: 1.0 seen once, 0.9 seen 400 times."""
    action = np.array(["rare"] + ["common"] * 400)
    log = Log.from_arrays(
        ["s"] * 401, action, np.where(action == "rare", 1.0, 0.9), terminated=np.ones(401),
        episode_id=np.arange(401),
    )  # fmt: skip
    problem = Problem.from_log(log, Policy.uniform(["s"], ["rare", "common"]))
    assert RaMDP(kappa=0.1).improve(problem).policy.row("s")["rare"] == 1
    assert RaMDP(kappa=0.2).improve(problem).policy.row("s")["common"] == 1


def test_safety_test_uses_the_theory_and_fails_here():
    problem = random_problem(2)
    result = RaMDP(safety_test=True).improve(problem)
    assert not result.accepted
    assert "baseline is returned" in result.reason
    assert result.policy is problem.baseline
    assert result.bootstrapped.all()
    np.testing.assert_allclose(evaluate(result.model, result.policy.probs).v, result.v, atol=1e-10)


def test_bounds_of_the_safety_test_are_looser_than_the_exact_range():
    """R̂ ∓ R_max/(1−γ)·e bounds what the uncertainty set allows, from outside."""
    problem = random_problem(2)
    trained = RaMDP().improve(problem).policy
    result = RaMDP(safety_test=True).improve(problem)
    xi, baseline = UncertaintySet.from_problem(problem, delta=0.1), problem.baseline
    assert result.worst_case_value <= worst_case(xi, trained.probs).value
    assert result.baseline_best_case_value >= best_case(xi, baseline.probs).value
    assert error_radii(problem, 0.1).max() <= 2


def test_safety_test_passes_with_endless_data():
    problem = goal_problem()
    counts = problem.counts
    endless = dataclasses.replace(counts, n=counts.n * 10**8, reward_sum=counts.reward_sum * 10**8)
    problem = Problem.from_counts(endless, problem.baseline, discount=0.95)
    result = RaMDP(safety_test=True).improve(problem)
    assert result.accepted
    assert result.policy.row("here")["go"] == 1


def test_state_labels_do_not_matter():
    rng = np.random.default_rng(0)
    order = rng.permutation(6)
    problem = random_problem(4)
    log = problem.log
    assert log is not None
    renamed = Log.from_arrays(
        order[log.state], log.action, log.reward,
        np.where(log.terminated, 0, order[log.next_state]), log.terminated,
        episode_id=np.arange(len(log)), n_states=6, n_actions=3,
    )  # fmt: skip
    probs = np.empty((6, 3))
    probs[order] = problem.baseline.probs
    one = RaMDP(kappa=0.1).improve(problem)
    two = RaMDP(kappa=0.1).improve(Problem.from_log(renamed, Policy(probs), discount=0.9))
    np.testing.assert_allclose(two.q[order], one.q, atol=1e-10)
    np.testing.assert_array_equal(two.policy.probs[order], one.policy.probs)


def test_bad_kappa_is_named():
    with pytest.raises(InputError, match="kappa is -1"):
        RaMDP(kappa=-1)
