"""The cautious policy: changes that are worth their doubt, and no others."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from strategies import random_problem

from spibb.algorithms.auto import Auto
from spibb.algorithms.auto.cautious import (
    RowOptions,
    _best,
    _options,
    _values,
    cautious_policy,
)
from spibb.algorithms.auto.own_order import OrderedProblem
from spibb.algorithms.problem import Problem
from spibb.log import Log
from spibb.policy import Policy


def arms(wins: list[int], n: int, scale: float = 1.0, shift: float = 0.0) -> Problem:
    """One state, arms tried n times each; the baseline is uniform."""
    k = len(wins)
    action = np.repeat([f"a{i}" for i in range(k)], n)
    reward = np.concatenate([np.r_[np.ones(w), np.zeros(n - w)] for w in wins])
    log = Log.from_arrays(
        ["s"] * (n * k), action, reward * scale + shift, terminated=[True] * (n * k)
    )
    return Problem.from_log(log, Policy.uniform(log.states, log.actions), discount=0.0)


def fitted(problem: Problem, caution: float = 0.5) -> np.ndarray:
    ordered = OrderedProblem.of(problem)
    rng = np.random.default_rng(0)
    found = cautious_policy(ordered.belief, ordered.baseline, rng, caution=caution)
    return ordered.restored(found)


def test_a_clearly_best_arm_gets_all_and_clearly_bad_ones_nothing():
    np.testing.assert_allclose(fitted(arms([5, 5, 95], 100)), [[0, 0, 1]])
    two = fitted(arms([5, 90, 90], 100), caution=3.0)
    assert two[0, 0] == 0
    np.testing.assert_allclose(two[0, 1:], 0.5)


def test_the_more_caution_the_less_changes():
    problem = random_problem(3, 8, 3, 150, 0.9)
    moved = [
        (fitted(problem, caution) != problem.baseline.probs).any(axis=1).sum()
        for caution in (0.0, 0.5, 2.0, 100.0)
    ]
    assert moved == sorted(moved, reverse=True)
    assert moved[0] > 0
    assert moved[-1] == 0


@pytest.mark.parametrize(("scale", "shift"), [(1.0, 5.0), (1e6, 0.0), (1e-6, 0.0), (3.0, -100.0)])
def test_units_and_constants_change_no_row_of_a_bandit(scale, shift):
    given, other = (fitted(arms([40, 50, 70], 100, *unit)) for unit in ((1.0, 0.0), (scale, shift)))
    np.testing.assert_allclose(given, other)


def test_actions_that_were_never_tried_keep_their_probability():
    log = Log.from_arrays(
        ["s"] * 80, ["a", "b"] * 40, [0.0, 1.0] * 40, terminated=[True] * 80
    )  # fmt: skip
    baseline = Policy([[0.4, 0.4, 0.2]], ["s"], ["a", "b", "c"])
    found = fitted(Problem.from_log(log, baseline, discount=0.0))
    np.testing.assert_allclose(found, [[0.0, 0.8, 0.2]])


@pytest.mark.parametrize("seed", range(4))
def test_no_other_choice_of_rows_is_worth_more_in_the_mean_model(seed):
    """All choices of three states with three options each, evaluated by a linear system."""
    problem = random_problem(seed, 3, 3, 60, 0.8)
    ordered = OrderedProblem.of(problem)
    belief, base = ordered.belief, ordered.baseline
    weight = np.asarray(sum(p.probability * p.weight for p in belief.poolings))
    mean = belief.rows.mean(weight)
    q = _values(belief, base, np.zeros(3), np.random.default_rng(0))
    options = _options(belief, base, q, 0.5)
    rewards = q.mean
    steps = belief.rows.transitions(mean)[0]
    best = -math.inf
    for choice in itertools.product(range(len(options.rows)), repeat=3):
        policy, costs = options.at(np.array(choice))
        if not np.isfinite(costs).all():
            continue
        system = np.eye(3) - 0.8 * np.einsum("sa,sat->st", policy, steps)
        v = np.linalg.solve(system, (policy * rewards).sum(axis=1) - costs)
        best = max(best, float(v.sum()))
    found = _best(belief, mean, rewards, options)
    chosen = np.array(
        [next(k for k in range(len(options.rows)) if (options.rows[k, s] == found[s]).all())
         for s in range(3)]
    )  # fmt: skip
    policy, costs = RowOptions(*options).at(chosen)
    system = np.eye(3) - 0.8 * np.einsum("sa,sat->st", policy, steps)
    v = np.linalg.solve(system, (policy * rewards).sum(axis=1) - costs)
    assert v.sum() == pytest.approx(best, rel=1e-6)


def test_auto_returns_it_if_its_gain_is_sure():
    problem = arms([20, 50, 80], 100)
    result = Auto(kinds=("cautious",)).improve(problem)
    assert result.chosen is not None
    assert result.chosen.algorithm == "cautious"
    assert math.isnan(result.chosen.n_wedge)
    assert "the cautious policy was chosen: it gains at least" in result.reason
    np.testing.assert_allclose(result.policy.probs, [[0, 0, 1]])
    np.testing.assert_array_equal(result.rows_of(result.chosen), result.policy.probs)
    assert not result.bootstrapped.any()
    quantile = np.quantile(result.values_in_models @ [1, -1], 0.05 / 2, method="lower")
    assert result.chosen.lower == pytest.approx(quantile)
