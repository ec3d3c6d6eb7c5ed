"""No answer depends on the unit of the rewards, and none is wrong because γ is close to 1."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from exact import Exact, fractions
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import random_problem

from spibb.algorithms import REGISTRY, Problem, make
from spibb.bounds.means import bca_bound, bernstein_bound, student_t_bound
from spibb.certificate import Premises, n_wedge_for
from spibb.envs.softening import softened_baseline
from spibb.errors import InputError
from spibb.evaluate import monte_carlo_value, returns
from spibb.labels import vocabulary
from spibb.log import Log
from spibb.mdp import MDP
from spibb.policy import Policy
from spibb.solve import TOLERANCE, Box, evaluate, free_box, optimise

EXACTLY = ["policy-iteration", "sweeps"]
GAPS = [2.0**-1, 2.0**-5, 2.0**-10, 2.0**-17, 2.0**-30]
"""1 − γ as powers of two, so that γ is exact."""
SQUARED = {"auto"}
"""Algorithms that need the squares of rewards, and refuse rewards that have none."""
POWERS = [2.0**-990, 2.0**-400, 2.0**-40, 2.0, 2.0**33, 2.0**400, 2.0**990]
FACTORS = [1e-300, 1e-10, 1e10, 1e300]

seeds = st.integers(0, 2**32 - 1)
methods = st.sampled_from(EXACTLY)
kinds = st.sampled_from(["free", "pi-b", "pi-leq-b"])


def dyadic_mdp(rng: np.random.Generator, discount: float) -> MDP:
    """Few states, probabilities in eighths that are exact and whole rewards: many exact ties."""
    n_states, n_actions = int(rng.integers(1, 5)), int(rng.integers(1, 4))
    p = rng.multinomial(8, np.full(n_states + 1, 1 / (n_states + 1)), (n_states, n_actions)) / 8
    if rng.random() < 0.6:  # nothing ends
        p[:, :, 0] += p[:, :, -1]
    p = p[:, :, :-1].reshape(-1, n_states)
    return MDP(
        indptr=np.append(0, np.cumsum((p > 0).sum(axis=1))),
        successors=np.nonzero(p)[1].astype(np.int32),
        probs=p[p > 0],
        rewards=rng.integers(-2, 3, size=(n_states, n_actions)).astype(float),
        initial=np.full(n_states, 1 / n_states),
        discount=discount,
        states=vocabulary(n_states, "state"),
        actions=vocabulary(n_actions, "action"),
    )


def dyadic_box(rng: np.random.Generator, shape: tuple[int, int], kind: str) -> Box:
    """Bounds in eighths."""
    baseline = rng.multinomial(8, np.full(shape[1], 1 / shape[1]), size=shape[0]) / 8
    held = rng.random(shape) < 0.4
    if kind == "free":
        return Box(np.zeros(shape), np.ones(shape), baseline)
    lower = np.where(held, baseline, 0.0) if kind == "pi-b" else np.zeros(shape)
    return Box(lower, np.where(held, baseline, 1.0), baseline)


def farthest(found: np.ndarray, wanted: list[Fraction]) -> Fraction:
    """max |found − wanted|, exactly."""
    return max(abs(Fraction(float(x)) - y) for x, y in zip(found, wanted))


# ---- against rational arithmetic ---------------------------------------------------------------


@pytest.mark.parametrize("gap", GAPS)
@settings(max_examples=40)
@given(seed=seeds, kind=kinds, method=methods)
def test_a_solution_is_right_to_the_last_tie_or_says_that_it_is_not_sure(gap, seed, kind, method):
    rng = np.random.default_rng(seed)
    mdp = dyadic_mdp(rng, 1 - gap)
    box, exact = dyadic_box(rng, mdp.shape, kind), Exact(mdp)
    found = optimise(mdp, box, method=method)
    probs, v = exact.optimum(box)
    assert farthest(found.v, v) <= found.error
    if found.converged:
        np.testing.assert_allclose(found.probs, np.array(probs, dtype=float), rtol=0, atol=1e-12)
    else:
        assert gap < 1e-4


@pytest.mark.parametrize("gap", GAPS)
def test_policy_iteration_is_sure_of_itself_however_close_the_discount_is_to_one(gap):
    sure = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        mdp = dyadic_mdp(rng, 1 - gap)
        sure.append(optimise(mdp, dyadic_box(rng, mdp.shape, "free")).converged)
    assert np.mean(sure) > 0.9


@pytest.mark.parametrize("gap", GAPS)
@settings(max_examples=30)
@given(seed=seeds, method=methods)
def test_the_value_of_a_policy_is_right_within_the_error_claimed(gap, seed, method):
    rng = np.random.default_rng(seed)
    mdp = dyadic_mdp(rng, 1 - gap)
    probs = dyadic_box(rng, mdp.shape, "free").start
    found = evaluate(mdp, probs, method=method)
    exact = Exact(mdp).values(fractions(probs))
    assert farthest(found.v, exact) <= found.error
    size = max(1.0, float(max(map(abs, exact))) + found.error)
    if found.converged and method == "sweeps":
        assert found.error <= 1.001 * TOLERANCE * max(size, 2)


@pytest.mark.parametrize("better", [1e-3, 1e-12])
@pytest.mark.parametrize("same", [True, False])
def test_a_tie_that_rounding_cannot_decide_is_not_sold_as_decided(better, same):
    """Two actions whose rewards differ by little, seen through values of 1e9."""
    following = [0, 0, 1, 1] if same else [0, 1, 0, 1]
    mdp = MDP(
        np.arange(5), np.array(following, np.int32), np.ones(4),
        np.array([[1.0, 1.0 + better], [1.0, 1.0]]), np.ones(2) / 2, 1 - 1e-9,
        vocabulary(2, "state"), vocabulary(2, "action"),
    )  # fmt: skip
    box = free_box(np.ones((2, 2), dtype=bool))
    found, (_, v) = optimise(mdp, box), Exact(mdp).optimum(box)
    assert farthest(found.v, v) <= found.error
    assert found.converged == (same or better > 1e-4)


@pytest.mark.parametrize("gap", [1e-2, 1e-5, 1e-9])
@pytest.mark.parametrize("reward", [1e-300, 3e-7, 1.0, 1e290])
def test_one_state_that_pays_for_ever_is_worth_the_geometric_series(gap, reward):
    mdp = MDP(
        np.arange(2), np.zeros(1, np.int32), np.ones(1), np.array([[reward]]), np.ones(1), 1 - gap,
        vocabulary(1, "state"), vocabulary(1, "action"),
    )  # fmt: skip
    found = evaluate(mdp, np.ones((1, 1)))
    assert found.converged
    assert found.v[0] == pytest.approx(reward / (1 - mdp.discount), rel=1e-14)


@pytest.mark.parametrize("gap", [0.5, 1e-3, 1e-9])
def test_a_chain_pays_its_discounted_end(gap):
    n, discount = 30, 1 - gap
    rewards = np.zeros((n, 1))
    rewards[-1] = 1.0
    mdp = MDP(
        np.append(np.arange(n), n - 1), np.arange(1, n, dtype=np.int32), np.ones(n - 1), rewards,
        np.ones(n) / n, discount, vocabulary(n, "state"), vocabulary(1, "action"),
    )  # fmt: skip
    found = evaluate(mdp, np.ones((n, 1)))
    np.testing.assert_allclose(found.v, discount ** np.arange(n - 1, -1, -1.0), rtol=1e-13)


# ---- rewards in another unit -------------------------------------------------------------------


@settings(max_examples=25)
@given(seeds, methods, kinds, st.sampled_from(POWERS))
def test_a_power_of_two_scales_a_solution_to_the_bit(seed, method, kind, factor):
    rng = np.random.default_rng(seed)
    mdp = replace(random_problem(seed, 12, 3, 200, 0.99).model)
    box = dyadic_box(rng, mdp.shape, kind)
    scaled = replace(mdp, rewards=mdp.rewards * factor)
    for solver in (
        lambda m: optimise(m, box, method=method),
        lambda m: evaluate(m, box.start, method=method),
    ):
        one, two = solver(mdp), solver(scaled)
        np.testing.assert_array_equal(two.probs, one.probs)
        np.testing.assert_array_equal(two.v, one.v * factor)
        np.testing.assert_array_equal(two.q, one.q * factor)
        assert (two.converged, two.iterations) == (one.converged, one.iterations)
        assert two.error == one.error * factor


@settings(max_examples=25)
@given(seeds, methods, kinds, st.sampled_from(FACTORS))
def test_any_factor_scales_a_solution(seed, method, kind, factor):
    rng = np.random.default_rng(seed)
    mdp = random_problem(seed, 12, 3, 200, 0.99).model
    box = dyadic_box(rng, mdp.shape, kind)
    one = optimise(mdp, box, method=method)
    two = optimise(replace(mdp, rewards=mdp.rewards * factor), box, method=method)
    np.testing.assert_allclose(two.probs, one.probs, rtol=0, atol=1e-12)
    error = one.error + two.error / factor
    np.testing.assert_allclose(two.v / factor, one.v, rtol=0, atol=1.01 * error)
    assert one.converged and two.converged


@settings(max_examples=25)
@given(seeds, kinds, st.sampled_from([0.5, 0.95, 0.999]))
def test_sweeps_and_policy_iteration_choose_the_same_rows_ties_included(seed, kind, discount):
    """Every action twice, and whole rewards in a world without ends: ties everywhere."""
    rng = np.random.default_rng(seed)
    once = random_problem(seed, 10, 2, 60, discount).model
    rewards = np.repeat(np.round(once.rewards), 2, axis=1)
    lengths = np.repeat(np.diff(once.indptr), 2)
    pairs = np.repeat(np.arange(20), 2)
    entries = np.concatenate([np.arange(once.indptr[p], once.indptr[p + 1]) for p in pairs])
    mdp = MDP(
        np.append(0, np.cumsum(lengths)), once.successors[entries], once.probs[entries], rewards,
        once.initial, discount, once.states, vocabulary(4, "action"),
    )  # fmt: skip
    box = dyadic_box(rng, mdp.shape, kind)
    one, two = (optimise(mdp, box, method=method) for method in EXACTLY)
    np.testing.assert_allclose(two.probs, one.probs, rtol=0, atol=1e-12)
    assert one.converged and two.converged


def in_units(problem: Problem, factor: float) -> Problem:
    """The same log with rewards that are `factor` times as large."""
    assert problem.log is not None
    log = replace(problem.log, reward=problem.log.reward * factor)
    return Problem.from_log(log, problem.baseline, discount=problem.discount)


def algorithm_in_units(name: str, factor: float):
    """κ and the limits of rewards are in units of reward; nothing else is."""
    options = {
        "ramdp": {"kappa": 0.003 * factor},
        "certified": {"lowest_reward": -8 * factor, "highest_reward": 8 * factor},
    }
    return make(name, **options.get(name, {}))


def improved_in_units(name, seed, factor):
    """What an algorithm makes of a problem, and of the same in other units unless it refuses."""
    problem = random_problem(seed, 6, 3, 200, 0.95)
    one = algorithm_in_units(name, 1.0).improve(problem)
    if name in SQUARED and not 1e-139 < factor < 1e150:
        with pytest.raises(InputError, match="squares outside the range of numbers"):
            make(name).improve(in_units(problem, factor))
        return one, None
    return one, algorithm_in_units(name, factor).improve(in_units(problem, factor))


@pytest.mark.parametrize("name", sorted(REGISTRY))
@settings(max_examples=6)
@given(seeds, st.sampled_from(POWERS))
def test_an_algorithm_does_not_see_a_power_of_two(name, seed, factor):
    one, two = improved_in_units(name, seed, factor)
    if two is None:
        return
    np.testing.assert_array_equal(two.policy.probs, one.policy.probs)
    np.testing.assert_array_equal(two.v, one.v * factor)
    np.testing.assert_array_equal(two.q, one.q * factor)
    assert two.converged == one.converged


@pytest.mark.parametrize("name", sorted(REGISTRY))
@settings(max_examples=6)
@given(seeds, st.sampled_from(FACTORS))
def test_an_algorithm_does_not_see_the_unit_of_rewards(name, seed, factor):
    one, two = improved_in_units(name, seed, factor)
    if two is None:
        return
    np.testing.assert_allclose(two.policy.probs, one.policy.probs, rtol=0, atol=1e-12)
    np.testing.assert_allclose(two.v / factor, one.v, rtol=0, atol=1e-9 * np.abs(one.v).max())
    assert two.converged == one.converged


# ---- what went wrong once ----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["basic-rl", "ramdp", "arbrm", "robust-mdp", "pi-b", "pi-leq-b"])
@pytest.mark.parametrize("gap", [1e-2, 1e-5, 1e-7, 1e-9])
def test_the_better_of_two_actions_is_found_beside_unseen_pairs(name, gap):
    """State 0 pays 1 or 0 for ever; state 1 has never been acted in, and is worth −V_max."""
    state, action = np.repeat([0, 0], 500), np.repeat([0, 1], 500)
    log = Log.from_arrays(
        state, action, 1.0 - action, state, np.zeros(1000, bool), np.ones(1000, bool),
        episode_id=np.arange(1000), n_states=2, n_actions=3,
    )  # fmt: skip
    baseline = Policy([[0.4, 0.4, 0.2], [0.5, 0.3, 0.2]])
    problem = Problem.from_log(log, baseline, discount=1 - gap)
    options = {"safety_test": False} if name in ("ramdp", "arbrm", "robust-mdp") else {}
    found = make(name, **options).improve(problem)
    trusted = 0.8 if name == "pi-b" else 1.0
    right = np.allclose(found.policy.probs[0, :2], [trusted, 0], atol=1e-12)
    assert right or (name == "robust-mdp" and not found.converged)


@pytest.mark.parametrize("factor", [1e-10, 1.0, 1e10])
@pytest.mark.parametrize("name", ["pi-b", "basic-rl", "model-free", "robust-mdp"])
def test_three_hundred_states_are_solved_in_any_unit(name, factor):
    problem = random_problem(7, 300, 3, 9_000, 0.95)
    options = {"safety_test": False} if name == "robust-mdp" else {}
    one = make(name, **options).improve(problem)
    two = make(name, **options).improve(in_units(problem, factor))
    assert two.value / factor == pytest.approx(one.value, rel=1e-8)
    assert two.converged


@pytest.mark.parametrize("method", EXACTLY)
def test_values_beyond_the_largest_number_are_refused(method):
    mdp = MDP(
        np.arange(2), np.zeros(1, np.int32), np.ones(1), np.array([[1e307]]), np.ones(1), 0.99,
        vocabulary(1, "state"), vocabulary(1, "action"),
    )  # fmt: skip
    with pytest.raises(InputError, match=r"expected at most 1.8e\+308: divide the rewards"):
        evaluate(mdp, np.ones((1, 1)), method=method)
    with pytest.raises(InputError, match="rewards of the MDP hold inf"):
        evaluate(replace(mdp, rewards=np.array([[math.inf]])), np.ones((1, 1)), method=method)


def test_a_log_whose_returns_exceed_the_largest_number_is_refused():
    log = Log.from_arrays([0, 0], [0, 1], [1e308, -1e308], [0, 0])
    with pytest.raises(InputError, match="divide the rewards by a constant"):
        Problem.from_log(log, discount=0.9)


@pytest.mark.parametrize("factor", [*POWERS, *FACTORS])
@pytest.mark.parametrize("bound", ["bernstein", "student-t", "bca"])
def test_a_lower_bound_does_not_see_the_unit_of_its_sample(bound, factor):
    sample = np.random.default_rng(3).gamma(0.3, 5.0, size=200)

    def bounded(x):
        if bound == "bca":
            return bca_bound(x, 0.1, rng=np.random.default_rng(0))
        return {"bernstein": bernstein_bound, "student-t": student_t_bound}[bound](x, 0.1)

    assert bounded(sample * factor) / factor == pytest.approx(bounded(sample), rel=1e-12)


def test_a_value_below_the_limit_is_noticed_in_any_unit():
    sample = np.array([1.0, 2.0, 3.0, 4.0, -1e-6])
    for factor in FACTORS:
        with pytest.raises(InputError, match="of episode 4 is below the limit 0"):
            bernstein_bound(sample * factor, 0.1)


@pytest.mark.parametrize("factor", POWERS)
def test_a_softened_baseline_does_not_see_the_unit_of_rewards(factor):
    mdp = random_problem(5, 15, 3, 300, 0.9).model
    one = softened_baseline(mdp, 0.5, np.random.default_rng(1))
    scaled = replace(mdp, rewards=mdp.rewards * factor)
    two = softened_baseline(scaled, 0.5, np.random.default_rng(1))
    np.testing.assert_array_equal(two.policy.probs, one.policy.probs)
    assert (two.value, two.target) == (one.value * factor, one.target * factor)
    assert one.uniform_value < one.value <= one.target < one.optimal_value


@pytest.mark.parametrize("factor", POWERS)
def test_a_simulated_mean_has_its_standard_error_in_any_unit(factor):
    rewards = np.random.default_rng(2).normal(size=50)
    episodes = np.arange(50)
    logs = [
        Log.from_arrays(np.zeros(50, int), np.zeros(50, int), x, episode_id=episodes)
        for x in (rewards, rewards * factor)
    ]
    one, two = (monte_carlo_value(log, 0.9) for log in logs)
    assert (two.value, two.standard_error) == (one.value * factor, one.standard_error * factor)
    assert one.standard_error == pytest.approx(rewards.std(ddof=1) / math.sqrt(50))


def test_returns_beyond_the_largest_number_are_refused():
    log = Log.from_arrays(
        [0, 0], [0, 0], [1.5e308, 1.5e308], [0, 0], episode_id=[0, 0], step=[0, 1]
    )
    with pytest.raises(InputError, match="exceed the largest number"):
        returns(log, 0.99)


def test_a_threshold_that_no_log_can_reach_is_refused():
    premises = Premises(5, 2, 0.9, 1e200, 0.05)
    with pytest.raises(InputError, match=r"zeta is 1, expected at least .* for v_max = 1e\+200"):
        n_wedge_for(1.0, premises)
