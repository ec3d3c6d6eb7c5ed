"""The small kernels of a study's inner loop against the NumPy that they stand for."""

from __future__ import annotations

import math

import numpy as np
import pytest
from oracles import policy_values
from strategies import random_problem

from spibb.kernels import counting, dense, projection, robust, sampling, units
from spibb.kernels.tuples import Codebook
from spibb.solve import free_box, optimise


@pytest.fixture
def problem():
    return random_problem(5, n_states=9, n_actions=3, n_rows=60, discount=0.9, sparse=True)


def test_a_free_box_is_uniform_over_the_available_actions(problem):
    available = problem.available
    lower, upper, start = projection.free_box(available)
    assert (lower == 0).all()
    np.testing.assert_array_equal(upper, available * 1.0)
    np.testing.assert_allclose(start, available / available.sum(axis=1, keepdims=True))


def test_seen_actions_come_first_and_available_ones_where_none_was_seen():
    counts = np.array([[0, 2], [0, 0]])
    baseline = np.array([[0.5, 0.5], [1.0, 0.0]])
    box = projection.seen_first_box(counts, baseline)
    np.testing.assert_array_equal(box.upper, [[0, 1], [1, 0]])


def test_what_rows_leave_out(problem):
    model = problem.model
    sums = [model.probs[a:b].sum() for a, b in zip(model.indptr[:-1], model.indptr[1:])]
    found = dense.left_out(model.indptr, model.probs)
    np.testing.assert_allclose(found, 1 - np.array(sums), atol=1e-15)
    assert (found >= 0).all()


def test_radii_and_reward_intervals_as_written(problem):
    counts, rewards = problem.counts.pairs, problem.model.rewards
    radius = robust.radii(counts, 1.3)
    wanted = np.where(counts > 0, np.minimum(1.3 / np.sqrt(np.maximum(counts, 1)), 2), 2)
    np.testing.assert_allclose(radius, wanted)
    low, high = robust.reward_interval(rewards, radius, 0.8)
    np.testing.assert_allclose(low, np.maximum(rewards - 0.8 * radius, np.minimum(-0.8, rewards)))
    np.testing.assert_allclose(high, np.minimum(rewards + 0.8 * radius, np.maximum(0.8, rewards)))


def test_outcomes_of_codes_are_the_rows_of_the_codes_that_occur():
    visits = np.array([3, 0, 1, 2, 0, 5])
    pair = np.array([0, 0, 0, 1, 3, 3])
    successor = np.array([-1, 0, 1, 2, 0, 1], dtype=np.int32)
    reward = np.array([2.0, 9.0, -1.0, 0.5, -9.0, 0.0])
    none = np.empty(0, np.int64)
    codebook = Codebook(none, none, successor, reward, pair)
    indptr, successors, n, total, squares, low, high = counting.outcomes_of_codes(
        visits, codebook, 4
    )
    assert indptr.tolist() == [0, 2, 3, 3, 4]
    assert successors.tolist() == [-1, 1, 2, 1]
    assert n.tolist() == [3, 1, 2, 5]
    assert total.tolist() == [6, -1, 1, 0]
    centre, unit = 0.5, 2  # the middle of the rewards that occur, and a power of two
    paid = np.array([2.0, -1.0, 0.5, 0.0])
    assert squares.tolist() == (n * ((paid - centre) / unit) ** 2).tolist()
    assert (low, high) == (-1, 2)


def test_estimates_of_counts_are_those_of_the_compiled_study():
    for seed in range(50):
        sparse = random_problem(
            seed, n_states=7, n_actions=3, n_rows=5 + 3 * seed, discount=0.9, sparse=True
        )
        counts = sparse.counts
        total, mean = np.empty(21, dtype=np.int64), np.empty(21)
        rows = counting.frequencies(
            counting.CountedOutcomes(
                counts.indptr,
                counts.successors,
                counts.n,
                counts.reward_sum,
                counts.reward_sq,
                *counts.reward_range,
            ),
            total,
            mean,
        )
        np.testing.assert_array_equal(counts.pairs.ravel(), total)
        np.testing.assert_array_equal(counts.mean_reward.ravel(), mean)
        for found, wanted in zip(counts.transitions, rows, strict=True):
            assert found.dtype == wanted.dtype
            np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("high", [0.0, 1.0, 3e-320, 1.7e308])
def test_centre_and_unit_are_the_same_in_python_and_in_kernels(high):
    assert counting.centre_and_unit(-high, high) == units.centre_and_unit(-high, high)


@pytest.mark.parametrize("high", [1.0, 3.7, 1e-290, 1e300])
def test_the_unit_is_a_power_of_two_of_the_size_of_the_range(high):
    centre, unit = units.centre_and_unit(-high, high)
    assert centre == 0
    assert math.frexp(unit)[0] == 0.5
    assert high <= unit <= 2 * high


def test_first_states_of_episodes():
    codes = np.array([0, 9, 9, 4, 5, 8], dtype=np.int32)
    lengths = np.array([3, 1, 1, 1])
    assert sampling.first_states(codes, lengths, np.arange(12) >> 2, 3).tolist() == [1, 2, 1]


def test_policies_for_several_rewards_are_those_of_each(problem):
    model, box = problem.model, free_box(problem.available)
    rewards = np.random.default_rng(0).normal(size=(4, *model.shape))
    found = np.empty(rewards.shape)
    dense.optimise_each(model.rows, rewards, model.discount, box, found)
    for mine, table in zip(found, rewards, strict=True):
        q = np.empty(model.shape)
        alone = box.start.copy()
        dense.policy_iteration(model.rows, table, model.discount, box, alone, q)
        np.testing.assert_array_equal(mine, alone)


def test_performances_of_equal_neighbours_are_equal(problem):
    model, baseline = problem.model, problem.baseline.probs
    best = optimise(model, free_box(problem.available)).probs
    policies = np.array([baseline, baseline, best, best, baseline])
    found = dense.performances(model.task, policies)
    wanted = [model.initial @ policy_values(model, pi) for pi in policies]
    np.testing.assert_allclose(found, wanted, atol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7, 8, 33, 64, 257])
def test_elimination_solves_m_matrices(n):
    rng = np.random.default_rng(n)
    rows = rng.dirichlet(np.full(n, 0.2), size=n) * (rng.random((n, n)) < 0.5)
    r = rng.normal(size=n)
    system = dense.empty_system(n)
    system[:] = 0.0
    system[:, : n + dense.EXTRA] = np.column_stack([-0.99 * rows, rows.sum(axis=1), r, np.abs(r)])
    v, sizes = dense.solve_system(system, 0.99)
    np.testing.assert_allclose(v, np.linalg.solve(np.eye(n) - 0.99 * rows, r), atol=1e-9)
    np.testing.assert_allclose(sizes, np.linalg.solve(np.eye(n) - 0.99 * rows, np.abs(r)))
