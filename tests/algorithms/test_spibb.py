"""Π_b-SPIBB, Π_≤b-SPIBB and their model-free version."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import dense_p
from strategies import n_wedges, problems, random_problem

from spibb.algorithms import threshold
from spibb.algorithms.basic_rl import BasicRL
from spibb.algorithms.problem import Problem
from spibb.algorithms.spibb import ModelFreeSpibb, PiBSpibb, PiLeqBSpibb
from spibb.algorithms.threshold import spibb_box
from spibb.counts import Counts
from spibb.errors import InputError
from spibb.log import Log
from spibb.policy import Policy


def mixture_ddp(problem: Problem, bootstrapped: np.ndarray) -> Any:
    """Π_b-SPIBB as a plain MDP: each trusted action becomes the row that gives it all free mass.

    Termination is made an explicit absorbing state, because DiscreteDP wants stochastic rows.
    """
    # here, in the one worker that needs it: two that import it first at once spoil its kernels
    from quantecon.markov import DiscreteDP

    n_states, n_actions = problem.baseline.probs.shape
    p = dense_p(problem.model)
    rewards, rows, states, actions = [], [], [], []
    for s in range(n_states):
        held = np.where(bootstrapped[s], problem.baseline.probs[s], 0.0)
        trusted = np.flatnonzero(~bootstrapped[s])
        choices = trusted if len(trusted) else [None]
        for number, a in enumerate(choices):
            mix = held.copy()
            if a is not None:
                mix[a] += 1 - held.sum()
            row = mix @ p[s]
            rewards.append(mix @ problem.model.rewards[s])
            rows.append(np.append(row, max(0.0, 1 - row.sum())))
            states.append(s)
            actions.append(number)
    rewards.append(0.0)
    rows.append(np.eye(n_states + 1)[-1])
    states.append(n_states)
    actions.append(0)
    return DiscreteDP(np.array(rewards), np.array(rows), problem.discount, states, actions)


@settings(max_examples=60)
@given(problems(), n_wedges)
def test_pi_b_equals_quantecon_on_the_mixture_actions(problem, n_wedge):
    result = PiBSpibb(n_wedge).improve(problem)
    solved = mixture_ddp(problem, result.bootstrapped).solve(method="policy_iteration")
    np.testing.assert_allclose(result.v, solved.v[:-1], atol=1e-8)


@settings(max_examples=300)
@given(problems(), n_wedges)
def test_theorem_3_model_free_spibb_coincides_with_the_model_based_one(problem, n_wedge):
    model_based = PiBSpibb(n_wedge).improve(problem)
    model_free = ModelFreeSpibb(n_wedge).improve(problem)
    assert model_free.converged
    np.testing.assert_allclose(model_free.q, model_based.q, atol=1e-8)
    np.testing.assert_allclose(model_free.v, model_based.v, atol=1e-8)


@given(problems(), n_wedges)
def test_pi_b_copies_the_baseline_to_the_bit_on_bootstrapped_pairs(problem, n_wedge):
    result = PiBSpibb(n_wedge).improve(problem)
    np.testing.assert_array_equal(result.bootstrapped, problem.counts.pairs < n_wedge)
    copied = result.bootstrapped
    np.testing.assert_array_equal(result.policy.probs[copied], problem.baseline.probs[copied])


@given(problems(), n_wedges)
def test_pi_leq_b_never_raises_a_bootstrapped_pair(problem, n_wedge):
    result = PiLeqBSpibb(n_wedge).improve(problem)
    copied = result.bootstrapped
    assert (result.policy.probs[copied] <= problem.baseline.probs[copied]).all()


@given(problems(), n_wedges)
def test_in_the_model_pi_leq_b_beats_pi_b_which_beats_the_baseline(problem, n_wedge):
    wide, narrow = PiLeqBSpibb(n_wedge).improve(problem), PiBSpibb(n_wedge).improve(problem)
    assert (wide.v >= narrow.v - 1e-9).all()
    assert narrow.value >= narrow.baseline_value - 1e-9


@pytest.mark.parametrize("algorithm", [PiBSpibb, PiLeqBSpibb, ModelFreeSpibb])
def test_an_infinite_n_wedge_returns_the_baseline_exactly(algorithm):
    problem = random_problem(3, 8, 4, 200, 0.95)
    result = algorithm(math.inf).improve(problem)
    np.testing.assert_array_equal(result.policy.probs, problem.baseline.probs)
    assert result.bootstrapped.all()


@given(problems())
def test_n_wedge_zero_is_basic_rl_on_the_seen_pairs(problem):
    seen = problem.counts.pairs > 0
    result = PiBSpibb(0).improve(problem)
    assert (result.policy.probs[seen.any(axis=1)][~seen[seen.any(axis=1)]] == 0).all()
    unvisited = ~seen.any(axis=1)
    np.testing.assert_array_equal(result.policy.probs[unvisited], problem.baseline.probs[unvisited])
    best = np.where(seen, result.q, -np.inf).max(axis=1)
    np.testing.assert_allclose(result.v[~unvisited], best[~unvisited], atol=1e-9)
    assert PiLeqBSpibb(0).improve(problem).value == pytest.approx(result.value, abs=1e-9)


def test_a_pair_seen_exactly_n_wedge_times_is_trusted():
    """The boundary: bootstrapped iff N < N∧."""
    log = Log.from_arrays(
        ["s"] * 5, ["a", "a", "a", "b", "b"], [1.0] * 3 + [0.0] * 2, terminated=[True] * 5
    )
    problem = Problem.from_log(log, Policy([[0.3, 0.7]], ["s"], ["a", "b"]))
    np.testing.assert_array_equal(PiBSpibb(3).improve(problem).bootstrapped, [[False, True]])
    np.testing.assert_array_equal(PiBSpibb(3).improve(problem).policy.probs, [[0.3, 0.7]])
    np.testing.assert_array_equal(PiBSpibb(2).improve(problem).policy.probs, [[1.0, 0.0]])
    assert PiBSpibb(3.01).improve(problem).bootstrapped.all()


def test_a_state_without_a_trusted_action_keeps_its_row():
    problem = random_problem(1, 5, 3, 12, 0.9)
    result = PiBSpibb(100).improve(problem)
    np.testing.assert_array_equal(result.policy.probs, problem.baseline.probs)


@given(problems(), n_wedges)
def test_an_action_neither_played_nor_logged_is_unavailable(problem, n_wedge):
    for algorithm in (PiBSpibb(n_wedge), PiLeqBSpibb(n_wedge), BasicRL(), PiBSpibb(0)):
        probs = algorithm.improve(problem).policy.probs
        assert (probs[~problem.available] == 0).all()


@given(problems(), n_wedges, st.sampled_from(["zero", "pessimistic", "optimistic"]))
def test_unseen_pairs_are_worth_what_the_option_says(problem, n_wedge, unseen):
    value = {"zero": 0, "pessimistic": -problem.v_max, "optimistic": problem.v_max}[unseen]
    result = PiBSpibb(n_wedge, unseen=unseen).improve(problem)
    np.testing.assert_allclose(result.q[problem.counts.pairs == 0], value, atol=1e-12)


def test_model_free_without_transitions_says_what_to_use():
    problem = random_problem(1, 3, 2, 20, 0.9)
    bare = Problem.from_counts(problem.counts, problem.baseline, discount=0.9)
    with pytest.raises(InputError, match="use pi-b"):
        ModelFreeSpibb(2).improve(bare)


def test_truncation_keeps_the_value_of_the_next_state_and_termination_does_not():
    """Two steps: x earns 0 and leads to y, y earns 1 and ends."""
    arrays = {"reward": [0.0, 1.0], "next_state": ["y", "end"], "episode_id": [0, 1]}
    baseline = Policy(np.ones((2, 1)), ["x", "y"], ["go"])
    for flag, wanted in (("truncated", 0.9), ("terminated", 0.0)):
        flags = {"terminated": [flag == "terminated", True], "truncated": [True, False]}
        log = Log.from_arrays(["x", "y"], ["go", "go"], **arrays, **flags)
        result = PiBSpibb(1).improve(Problem.from_log(log, baseline, discount=0.9))
        assert result.v[0] == pytest.approx(wanted)


def test_the_box_of_n_wedge_zero_starts_inside_itself():
    problem = random_problem(5, 6, 4, 15, 0.9, sparse=True)
    box, _ = spibb_box(problem, 0, 1.0)
    assert (box.start >= box.lower).all()
    assert (box.start <= box.upper).all()
    np.testing.assert_allclose(box.start.sum(axis=1), 1)


def test_counts_alone_give_the_same_policy_as_the_log():
    problem = random_problem(2, 6, 3, 100, 0.95)
    again = Problem.from_counts(Counts.from_log(problem.log), problem.baseline, discount=0.95)
    np.testing.assert_array_equal(
        PiBSpibb(4).improve(problem).policy.probs, PiBSpibb(4).improve(again).policy.probs
    )


@pytest.mark.parametrize("algorithm", [PiBSpibb, PiLeqBSpibb])
@settings(max_examples=60)
@given(problems())
def test_the_warm_started_sweep_gives_the_policies_of_single_fits(algorithm, problem):
    configurations = [algorithm(n) for n in (7, 1, 2, 3, 50, 10, np.inf)]
    swept = algorithm.policies(configurations, problem)
    for probs, configuration in zip(swept, configurations, strict=True):
        single = configuration.improve(problem)
        np.testing.assert_allclose((probs * single.q).sum(axis=1), single.v, atol=1e-9)


def test_configurations_that_differ_in_more_than_n_wedge_are_fitted_one_by_one():
    problem = random_problem(0, 6, 3, 100, 0.9)
    mixed = [PiBSpibb(3), PiBSpibb(0), PiBSpibb(3, unseen="pessimistic")]
    swept = PiBSpibb.policies(mixed, problem)
    for probs, configuration in zip(swept, mixed, strict=True):
        np.testing.assert_array_equal(probs, configuration.improve(problem).policy.probs)


def test_thresholds_that_bootstrap_the_same_are_solved_once(monkeypatch):
    problem, calls = random_problem(5, 4, 3, 40, 0.9), []
    fresh = {n: PiBSpibb(n_wedge=n).improve(replace(problem)) for n in (0, 1, 2, 1000, 2000)}
    solve = threshold.optimise
    monkeypatch.setattr(threshold, "optimise", lambda *a, **k: calls.append(a) or solve(*a, **k))
    thresholds = [threshold.Threshold(threshold.SHARES["pi-b"], n, "zero", "auto") for n in fresh]
    for (found, copied), wanted in zip(
        threshold.solve_each(thresholds, problem), fresh.values(), strict=True
    ):
        assert (found.probs == wanted.policy.probs).all()
        assert (copied == wanted.bootstrapped).all()
    assert len(calls) == 4  # 1000 and 2000 bootstrap every pair
