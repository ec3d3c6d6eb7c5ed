"""Hidden causes: bounds by brute force, and a world whose cause is known."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest

from spibb import Certified, Log, Policy, Problem
from spibb.sceptic.confounding import SortedVisits, confounding, threshold


@pytest.mark.parametrize("seed", range(20))
def test_sorted_weights_give_the_least_of_all_vertices(seed):
    rng = np.random.default_rng(seed)
    g, e, gamma = rng.normal(size=9), rng.uniform(0.05, 1, 9), rng.uniform(1, 6)
    vertices = [(1 + (1 / p - 1) / gamma, 1 + (1 / p - 1) * gamma) for p in e]
    means = [np.average(g, weights=w) for w in itertools.product(*vertices)]
    visited = SortedVisits.of(g, e)
    assert visited.least(gamma) == pytest.approx(min(means))
    assert visited.most(gamma) == pytest.approx(max(means))


def test_without_hidden_causes_the_bounds_meet_at_the_weighted_mean():
    g, e = np.array([1.0, 2.0, 4.0]), np.array([0.5, 0.25, 0.5])
    visited = SortedVisits.of(g, e)
    assert visited.least(1.0) == pytest.approx(np.average(g, weights=1 / e))
    assert visited.most(1.0) == pytest.approx(visited.least(1.0))


def test_the_threshold_is_the_root_of_a_falling_bound():
    assert threshold(lambda gamma: 3 - gamma) == pytest.approx(3, rel=1e-6)
    assert threshold(lambda gamma: -1.0) == 1.0
    assert threshold(lambda gamma: 1.0) == math.inf


ODDS = 3.0


def hidden(rng, n):
    """The sick (half) are treated seldom: odds 1/3 and 3 of one half. Treatment does nothing."""
    well = rng.random(n) < 0.5
    treated = rng.random(n) < np.where(well, ODDS / (1 + ODDS), 1 / (1 + ODDS))
    reward = (rng.random(n) < np.where(well, 0.9, 0.2)).astype(float)
    log = Log.from_arrays(
        ["x"] * n, np.where(treated, "treat", "wait"), reward, terminated=np.ones(n, bool)
    )
    return log, reward[treated].mean()


def test_a_bound_at_the_true_odds_covers_what_confounding_hides():
    log, naive = hidden(np.random.default_rng(0), 40_000)
    truth = 0.55  # with or without treatment
    treated = log.action == log.actions.code("treat")
    visited = SortedVisits.of(log.reward[treated], np.full(treated.sum(), 0.5))
    assert naive > truth + 0.1
    assert visited.least(ODDS) <= truth + 0.01
    assert visited.least(1.3) > truth


def test_a_useless_treatment_is_undone_by_the_odds_that_made_it_look_good():
    log, _ = hidden(np.random.default_rng(1), 40_000)
    baseline = Policy([[0.5, 0.5]], ["x"], ["treat", "wait"])
    problem = Problem.from_log(log, baseline, discount=0.9)
    found = confounding(problem, Policy([[1.0, 0.0]], ["x"], ["treat", "wait"]))
    assert found.advantage > 0.1
    assert 1.3 < found.gamma <= ODDS
    (change,) = found.changes
    assert (change.state, change.visits) == ("x", 40_000)
    assert change.gamma == pytest.approx(found.gamma, rel=1e-6)


@pytest.mark.parametrize("n", [200, 40_000])
def test_the_verdict_falls_before_the_estimate(n):
    """By 1.645 standard errors of X = (π/π_b − 1)(G − V̂): at that Γ this is what is left."""
    log, _ = hidden(np.random.default_rng(3), n)
    baseline = Policy([[0.5, 0.5]], ["x"], ["treat", "wait"])
    problem = Problem.from_log(log, baseline, discount=0.9)
    found = confounding(problem, Policy([[1.0, 0.0]], ["x"], ["treat", "wait"]))
    assert 1 < found.gamma_of_verdict < found.gamma
    parts = (SortedVisits.of(log.reward[log.action == a], np.full((log.action == a).sum(), 0.5))
             for a in (log.actions.code("treat"), log.actions.code("wait")))  # fmt: skip
    treat, wait = parts
    left = (treat.least(found.gamma_of_verdict) - wait.most(found.gamma_of_verdict)) / 2
    assert left == pytest.approx(1.645 * log.reward.std() / math.sqrt(n), rel=0.2)


def test_a_few_visits_need_no_hidden_cause():
    log = Log.from_arrays(["x"] * 4, ["treat", "wait"] * 2, [1.0, 0.0, 1.0, 1.0],
                          terminated=[True] * 4)  # fmt: skip
    baseline = Policy([[0.5, 0.5]], ["x"], ["treat", "wait"])
    problem = Problem.from_log(log, baseline, discount=0.9)
    found = confounding(problem, Policy([[1.0, 0.0]], ["x"], ["treat", "wait"]))
    assert found.gamma > found.gamma_of_verdict == 1


def test_a_certificate_falls_where_its_first_change_does():
    log, _ = hidden(np.random.default_rng(4), 2_000)
    baseline = Policy([[0.5, 0.5]], ["x"], ["treat", "wait"])
    problem = Problem.from_log(log, baseline, discount=0.9)
    result = Certified(lowest_return=0, highest_return=1).improve(problem)
    (test,) = result.tests
    assert test.accepted
    found = confounding(problem, result.policy, result.tests)
    assert 1 < found.gamma_of_verdict < found.gamma
    sure = dataclasses.replace(test, lower_bound=test.advantage)
    assert confounding(problem, result.policy, [sure]).gamma_of_verdict == pytest.approx(
        found.gamma, rel=1e-6
    )


def test_a_change_for_the_worse_needs_no_hidden_cause():
    log, _ = hidden(np.random.default_rng(2), 2_000)
    baseline = Policy([[0.5, 0.5]], ["x"], ["treat", "wait"])
    problem = Problem.from_log(log, baseline, discount=0.9)
    assert confounding(problem, Policy([[0.0, 1.0]], ["x"], ["treat", "wait"])).gamma == 1.0
    assert confounding(problem, baseline) is None
