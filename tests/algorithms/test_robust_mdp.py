"""Robust MDP: the uncertainty set, robust and optimistic evaluation, and the safety test."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import problems

from spibb.algorithms.arbrm import ARBRM
from spibb.algorithms.basic_rl import BasicRL
from spibb.algorithms.problem import Problem
from spibb.algorithms.ramdp import RaMDP
from spibb.algorithms.robust_mdp import RobustMDP
from spibb.algorithms.uncertainty import (
    UncertaintySet,
    best_case,
    error_radii,
    optimise_worst_case,
    worst_case,
)
from spibb.certificate import Premises, error_radius
from spibb.errors import InputError
from spibb.log import Log
from spibb.mdp import MDP
from spibb.policy import Policy
from spibb.solve import evaluate, free_box


def random_log(rng: np.random.Generator, n: int, n_states: int = 6, n_actions: int = 3) -> Log:
    """Transitions of a random MDP, one episode each, that end with probability 0.2."""
    reward = rng.normal(size=(n_states, n_actions))
    state, action = rng.integers(n_states, size=n), rng.integers(n_actions, size=n)
    return Log.from_arrays(
        state, action, reward[state, action] + 0.1 * rng.normal(size=n),
        (state + action + rng.integers(2, size=n)) % n_states, rng.random(n) < 0.2,
        episode_id=np.arange(n), n_states=n_states, n_actions=n_actions,
    )  # fmt: skip


def random_problem(seed: int, n: int = 2_000, n_states: int = 6, n_actions: int = 3) -> Problem:
    rng = np.random.default_rng(seed)
    log = random_log(rng, n, n_states, n_actions)
    baseline = Policy(rng.dirichlet(np.ones(n_actions), size=n_states))
    return Problem.from_log(log, baseline, discount=0.9)


def scaled(problem: Problem, times: int) -> Problem:
    """The same frequencies, from a log that is `times` as long."""
    counts = problem.counts
    more = dataclasses.replace(
        counts,
        n=counts.n * times,
        reward_sum=counts.reward_sum * times,
        reward_sq=counts.reward_sq * times,
    )
    return Problem.from_counts(more, problem.baseline, discount=problem.discount)


def member(xi: UncertaintySet, rng: np.random.Generator) -> MDP:
    """A random MDP of the set: every row moves some mass to a random outcome."""
    n_states, n_actions = xi.shape
    full = np.zeros((n_states * n_actions, n_states + 1))
    pair = np.repeat(np.arange(len(full)), np.diff(xi.mdp.indptr))
    full[pair, xi.mdp.successors] = xi.mdp.probs
    full[:, -1] = np.maximum(1 - full.sum(axis=1), 0)
    other = rng.dirichlet(np.full(n_states + 1, 0.2), size=len(full))
    distance = np.maximum(np.abs(other - full).sum(axis=1), 1e-9)
    share = np.minimum(1, xi.radius.reshape(-1) / distance)[:, None]
    rows = (1 - share) * full + share * other
    return dataclasses.replace(
        xi.mdp,
        indptr=np.arange(len(full) + 1) * n_states,
        successors=np.tile(np.arange(n_states, dtype=np.int32), len(full)),
        probs=rows[:, :-1].reshape(-1).copy(),
        rewards=rng.uniform(xi.low, xi.high),
    )


@given(
    problem=problems(),
    delta=st.sampled_from([0.01, 0.1, 0.9]),
    tested=st.booleans(),
    times=st.sampled_from([1, 100, 10**6]),
)
def test_any_problem_converges_and_its_values_are_those_of_its_model(problem, delta, tested, times):
    result = RobustMDP(delta=delta, safety_test=tested).improve(scaled(problem, times))
    assert result.converged
    np.testing.assert_allclose(result.policy.probs.sum(axis=1), 1, atol=1e-9)
    scale = max(1.0, float(np.abs(result.v).max()))
    again = evaluate(result.model, result.policy.probs)
    np.testing.assert_allclose(again.v, result.v, atol=1e-9 * scale)
    np.testing.assert_allclose(again.q, result.q, atol=1e-9 * scale)
    assert (result.model.exits >= 0).all()
    swept = RobustMDP(delta=delta, safety_test=tested, method="sweeps").improve(result.problem)
    assert swept.converged
    np.testing.assert_allclose(swept.v, result.v, atol=1e-8 * scale)


@pytest.mark.parametrize("seed", range(5))
def test_radius_zero_is_basic_rl(seed):
    problem = random_problem(seed, n=60)
    model = problem.models["pessimistic"]
    certain = UncertaintySet.around(model, np.zeros(model.shape), 1.0)
    robust = optimise_worst_case(certain, free_box(problem.available))
    basic = BasicRL().improve(problem)
    np.testing.assert_allclose(robust.q, basic.q, atol=1e-10)
    np.testing.assert_array_equal(robust.probs, basic.policy.probs)


@pytest.mark.parametrize("seed", range(5))
def test_endless_data_make_it_basic_rl(seed):
    problem = scaled(random_problem(seed), 10**12)
    robust, basic = RobustMDP(safety_test=False).improve(problem), BasicRL().improve(problem)
    np.testing.assert_array_equal(robust.policy.probs, basic.policy.probs)
    np.testing.assert_allclose(robust.v, basic.v, atol=1e-3)


@pytest.mark.parametrize("known_rewards", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_worst_is_below_nominal_is_below_best(seed, known_rewards):
    problem = random_problem(seed)
    xi = UncertaintySet.from_problem(problem, known_rewards=known_rewards)
    policy = problem.baseline.probs
    nominal = evaluate(problem.model, policy).v
    worst, best = worst_case(xi, policy), best_case(xi, policy)
    assert (worst.v < nominal).all()
    assert (nominal < best.v).all()


@pytest.mark.parametrize("seed", range(5))
def test_no_member_of_the_set_escapes_the_range(seed):
    rng = np.random.default_rng(seed)
    problem = random_problem(seed)
    xi = UncertaintySet.from_problem(problem)
    policy = problem.baseline.probs
    worst, best = worst_case(xi, policy), best_case(xi, policy)
    for _ in range(20):
        v = evaluate(member(xi, rng), policy).v
        assert (worst.v - 1e-9 <= v).all()
        assert (v <= best.v + 1e-9).all()


@pytest.mark.parametrize("seed", range(3))
def test_range_is_attained_by_the_mdps_returned(seed):
    problem = random_problem(seed)
    xi = UncertaintySet.from_problem(problem)
    policy = problem.baseline.probs
    for extreme in (worst_case(xi, policy), best_case(xi, policy)):
        np.testing.assert_allclose(evaluate(extreme.mdp, policy).v, extreme.v, atol=1e-9)
        np.testing.assert_allclose(evaluate(extreme.mdp, policy).q, extreme.q, atol=1e-9)
        assert (extreme.mdp.rewards >= xi.low).all()
        assert (extreme.mdp.rewards <= xi.high).all()


@pytest.mark.parametrize("seed", range(5))
def test_trained_policy_has_the_best_worst_case(seed):
    problem = random_problem(seed)
    result = RobustMDP(safety_test=False).improve(problem)
    xi = RobustMDP(safety_test=False).uncertainty(problem)
    assert result.converged
    assert result.accepted
    assert result.objective == pytest.approx(result.worst_case_value)
    assert result.objective >= worst_case(xi, problem.baseline.probs).value - 1e-10
    again = worst_case(xi, result.policy.probs)
    np.testing.assert_allclose(again.v, result.v, atol=1e-9)
    assert (result.v <= evaluate(problem.model, result.policy.probs).v).all()


def test_value_falls_as_delta_shrinks():
    problem = random_problem(0, n=5_000)
    values = [
        RobustMDP(delta=d, safety_test=False).improve(problem).objective
        for d in (0.9, 0.5, 0.1, 1e-3, 1e-9)
    ]
    assert all(later < earlier for earlier, later in itertools.pairwise(values))


def test_value_rises_with_data():
    problem = random_problem(0)
    values = [
        RobustMDP(safety_test=False).improve(scaled(problem, t)).objective
        for t in (1, 10, 100, 1000)
    ]
    assert all(later > earlier for earlier, later in itertools.pairwise(values))


def test_radius_is_proposition_1_capped_at_2():
    problem = random_problem(0, n=300)
    radii, counts = error_radii(problem, 0.1), problem.counts.pairs
    premises = Premises(6, 3, 0.9, 1.0, 0.1)
    for (s, a), n in np.ndenumerate(counts):
        assert radii[s, a] == pytest.approx(min(error_radius(int(n), premises), 2))


def test_unseen_pair_is_never_chosen_where_a_seen_one_exists():
    for seed in range(10):
        problem = random_problem(seed, n=10)
        seen = problem.counts.pairs > 0
        probs = RobustMDP(safety_test=False).improve(problem).policy.probs
        assert (probs[~seen & seen.any(axis=1, keepdims=True)] == 0).all()
        assert (problem.seen_first.upper.sum(axis=1) > 0).all()


def test_state_and_action_labels_do_not_matter():
    rng = np.random.default_rng(4)
    log = random_log(rng, 2_000)
    baseline = Policy(rng.dirichlet(np.ones(3), size=6))
    states, actions = rng.permutation(6), rng.permutation(3)
    renamed = Log.from_arrays(
        states[log.state], actions[log.action], log.reward,
        np.where(log.terminated, 0, states[log.next_state]), log.terminated,
        episode_id=np.arange(len(log)), n_states=6, n_actions=3,
    )  # fmt: skip
    probs = np.empty((6, 3))
    probs[np.ix_(states, actions)] = baseline.probs
    one = RobustMDP().improve(Problem.from_log(log, baseline))
    two = RobustMDP().improve(Problem.from_log(renamed, Policy(probs)))
    np.testing.assert_allclose(two.q[np.ix_(states, actions)], one.q, atol=1e-9)
    np.testing.assert_allclose(two.policy.probs[np.ix_(states, actions)], one.policy.probs)
    assert one.reason == two.reason


def test_sweeps_and_policy_iteration_agree():
    problem = random_problem(1)
    exact = RobustMDP(safety_test=False, method="policy-iteration").improve(problem)
    swept = RobustMDP(safety_test=False, method="sweeps").improve(problem)
    assert swept.converged
    np.testing.assert_allclose(swept.q, exact.q, atol=1e-7)
    np.testing.assert_array_equal(swept.policy.probs, exact.policy.probs)


def test_safety_test_returns_the_baseline_with_the_reason():
    problem = random_problem(2)
    result = RobustMDP().improve(problem)
    assert not result.accepted
    assert "worst-case value" in result.reason
    assert "baseline is returned" in result.reason
    assert result.worst_case_value < result.baseline_best_case_value
    assert result.policy is problem.baseline
    assert result.bootstrapped.all()
    untested = RobustMDP(safety_test=False).improve(problem)
    assert result.worst_case_value == pytest.approx(untested.objective)
    np.testing.assert_allclose(evaluate(result.model, result.policy.probs).v, result.v, atol=1e-9)


def test_safety_test_passes_with_enough_data():
    problem = scaled(random_problem(2), 10**8)
    result = RobustMDP().improve(problem)
    assert result.accepted
    assert "is above" in result.reason
    assert result.worst_case_value > result.baseline_best_case_value
    assert not result.bootstrapped.any()


@pytest.mark.parametrize("algorithm", [RobustMDP, RaMDP, ARBRM])
def test_nothing_passes_the_safety_test_on_a_log_without_reward(algorithm):
    """All values are 0 then, the worst and the best: that is no evidence for a change."""
    log = Log.from_arrays(["x", "x", "x"], ["a", "a", "b"], [0, 0, 0], terminated=[True] * 3)
    baseline = Policy.uniform(log.states, log.actions)
    problem = Problem.from_log(log, baseline, discount=0.9, v_max=1.0)
    result = algorithm(safety_test=True).improve(problem)
    assert not result.accepted
    np.testing.assert_array_equal(result.policy.probs, baseline.probs)


def test_range_of_the_problem_holds_the_truth():
    """The log's own frequencies are within reach of it: the nominal value lies inside."""
    problem = random_problem(5)
    xi, probs = UncertaintySet.from_problem(problem, delta=0.05), problem.baseline.probs
    nominal = float(problem.model.initial @ evaluate(problem.model, problem.baseline.probs).v)
    assert worst_case(xi, probs).value < nominal < best_case(xi, probs).value


def test_known_rewards_are_less_pessimistic():
    problem = random_problem(6)
    assert (
        RobustMDP(safety_test=False, known_rewards=True).improve(problem).objective
        > RobustMDP(safety_test=False).improve(problem).objective
    )


def test_model_of_the_algorithm_is_the_model_of_the_result():
    problem = random_problem(7)
    for algorithm in (RobustMDP(safety_test=False), RobustMDP()):
        result = algorithm.improve(problem)
        model = algorithm.model(problem)
        np.testing.assert_allclose(evaluate(model, result.policy.probs).q, result.q, atol=1e-9)


def test_bad_options_are_named():
    with pytest.raises(InputError, match="delta is 0"):
        RobustMDP(delta=0)
    with pytest.raises(InputError, match="method is 'sweep'"):
        RobustMDP(method="sweep")
    with pytest.raises(InputError, match=r"r_max is 0\.01, but the log holds a reward of"):
        RobustMDP(r_max=0.01).improve(random_problem(0))


def test_no_certificate_points_at_the_safety_test():
    certificate = RobustMDP(safety_test=False).improve(random_problem(0)).certificate()
    assert certificate.best is None
    assert "its safety test" in str(certificate)


@pytest.mark.parametrize("seed", range(5))
def test_the_safety_test_is_made_unless_it_is_switched_off(seed):
    """A small log: nothing passes, so that the baseline is returned, and its values shown."""
    problem = random_problem(seed)
    result = RobustMDP().improve(problem)
    assert not result.accepted
    assert result.policy is problem.baseline
    assert result.value == result.baseline_value
    assert RobustMDP(safety_test=False).improve(problem).accepted
