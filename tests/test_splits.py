"""Shares of a log are fair samples, for any seed that all logs have in common."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import pytest

from spibb.algorithms.problem import Problem
from spibb.log import Log
from spibb.running.problems import hold_out
from spibb.splits import shuffled_by_content, split_episodes

LOGS = 400
"""Means over so many logs have a standard error of 1/20."""


def bandit(state: np.ndarray, action: np.ndarray, reward: np.ndarray) -> Log:
    return Log.from_arrays(state, action, reward, terminated=np.ones(len(reward), bool))


def of_few_kinds(rng: np.random.Generator, n: int) -> Log:
    """Four kinds of episodes; mean return 1/2, variance 1/4."""
    return bandit(np.zeros(n, int), rng.integers(0, 2, n), rng.integers(0, 2, n).astype(float))


def of_clicks(rng: np.random.Generator, n: int) -> Log:
    """Thirty kinds; the same mean and variance."""
    return bandit(rng.integers(0, 5, n), rng.integers(0, 3, n), rng.integers(0, 2, n).astype(float))


def of_amounts(rng: np.random.Generator, n: int) -> Log:
    """One state, one action, and all rewards different: ranks of rewards tell nothing."""
    return bandit(np.zeros(n, int), np.zeros(n, int), 0.5 + rng.normal(size=n) / 2)


@pytest.mark.parametrize("make", [of_few_kinds, of_clicks, of_amounts])
@pytest.mark.parametrize("n", [50, 120, 400])
def test_the_held_out_mean_is_that_of_a_fair_sample(make, n):
    """With one seed for all logs: no bias, and the spread of independent draws."""
    held = (split_episodes(make(np.random.default_rng([i, n]), n), 0.3, 0)[1] for i in range(LOGS))
    assert_fair(held)


def assert_fair(held: Iterable[Log]) -> None:
    errors = np.array([(x.reward.mean() - 0.5) * math.sqrt(len(x) / 0.25) for x in held])
    assert abs(errors.mean()) < 4 / math.sqrt(LOGS)
    assert abs(errors.std() - 1) < 4 / math.sqrt(2 * LOGS)


@pytest.mark.parametrize("unit", [0.1, 3.0, 1e-9, 1e200])
@pytest.mark.parametrize("make", [of_few_kinds, of_amounts])
def test_neither_the_order_of_episodes_nor_the_unit_of_rewards_matters(make, unit):
    rng = np.random.default_rng(3)
    log = make(rng, 300)
    places = rng.permutation(300)
    other = bandit(log.state[places], log.action[places], log.reward[places] * unit)
    first, second = shuffled_by_content(log, 7), shuffled_by_content(other, 7)
    np.testing.assert_allclose(other.reward[second], log.reward[first] * unit)


def test_rewards_of_a_round_log_do_not_lie_between_two_points_of_the_grid():
    """A 1024th of the span lies half-way between points of a decimal grid."""
    reward = np.arange(1025.0)
    zeros = np.zeros(1025, int)
    first = shuffled_by_content(bandit(zeros, zeros, reward), 0)
    for unit in (0.1, 0.3, 0.7):
        np.testing.assert_array_equal(
            shuffled_by_content(bandit(zeros, zeros, reward * unit), 0), first
        )


def test_a_problem_without_held_out_episodes_is_that_of_the_rest():
    """Single steps have no discount, so that v_max is the largest reward with and without."""
    rng, n = np.random.default_rng(0), 300
    log = Log.from_arrays(rng.integers(2, size=n), rng.integers(2, size=n), rng.random(n).round(),
                          terminated=np.ones(n, bool))  # fmt: skip
    whole = Problem.from_log(log, [[0.5, 0.5]] * 2, discount=0.95)
    kept, _ = hold_out(whole, 0.3, 0)
    assert whole.v_max == kept.v_max == 1.0
    assert Problem.from_log(kept.log, whole.baseline, discount=0.95).v_max == kept.v_max
