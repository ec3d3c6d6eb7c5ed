"""The greedy step of one state: Algorithms 1 and 2, the paper's worked table, and brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import algorithm_1, algorithm_2, best_vertex

from spibb.kernels.projection import SORT_FROM, project, rank
from spibb.kernels.tuples import Box

Q = np.array([1.0, 2.0, 3.0, 4.0])
BASELINE = np.array([0.1, 0.4, 0.3, 0.2])
BOOTSTRAPPED = np.array([True, False, False, True])


def pi_b(q, baseline, bootstrapped):
    lower = np.where(bootstrapped, baseline, 0.0)
    return project_row(q, lower, np.where(bootstrapped, baseline, 1.0), baseline)


def pi_leq_b(q, baseline, bootstrapped):
    return project_row(q, np.zeros(len(q)), np.where(bootstrapped, baseline, 1.0), baseline)


def project_row(q, lower, upper, start):
    box, out = Box(lower[None], upper[None], start[None]), np.empty((1, len(q)))
    value = project(q[None], box, 0.0, out, 0)
    assert value == pytest.approx(out[0] @ q, abs=1e-12)
    return out[0]


def test_the_worked_table_of_appendix_a5_for_pi_b():
    np.testing.assert_allclose(pi_b(Q, BASELINE, BOOTSTRAPPED), [0.1, 0, 0.7, 0.2], atol=1e-15)


def test_the_worked_table_of_appendix_a5_for_pi_leq_b():
    np.testing.assert_allclose(pi_leq_b(Q, BASELINE, BOOTSTRAPPED), [0, 0, 0.8, 0.2], atol=1e-15)


@st.composite
def rows(draw, max_actions=5):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(1, max_actions))
    baseline = rng.dirichlet(np.full(n, 0.8))
    if draw(st.booleans()):
        baseline[rng.random(n) < 0.3] = 0
        baseline = baseline / baseline.sum() if baseline.sum() else np.eye(n)[0]
    return np.round(rng.normal(size=n), draw(st.integers(0, 3))), baseline, rng.random(n) < 0.5


@given(rows())
def test_projections_reach_the_best_vertex(row):
    q, baseline, bootstrapped = row
    lower = np.where(bootstrapped, baseline, 0.0)
    upper = np.where(bootstrapped, baseline, 1.0)
    if bootstrapped.any() and not bootstrapped.all():
        assert pi_b(*row) @ q == pytest.approx(best_vertex(q, lower, upper), abs=1e-10)
    assert pi_leq_b(*row) @ q == pytest.approx(best_vertex(q, 0 * lower, upper), abs=1e-10)


@given(rows(max_actions=3 * SORT_FROM))
def test_projections_equal_the_printed_algorithms_in_value(row):
    q, baseline, bootstrapped = row
    assert pi_b(*row) @ q == pytest.approx(algorithm_1(*row) @ q, abs=1e-12)
    assert pi_leq_b(*row) @ q == pytest.approx(algorithm_2(*row) @ q, abs=1e-12)


@given(rows(max_actions=3 * SORT_FROM))
def test_rows_stay_distributions_inside_their_bounds(row):
    q, baseline, bootstrapped = row
    for out in (pi_b(*row), pi_leq_b(*row)):
        assert out.sum() == pytest.approx(1, abs=1e-12)
        assert (out >= 0).all()
        assert (out[bootstrapped] <= baseline[bootstrapped] + 1e-15).all()
    np.testing.assert_array_equal(pi_b(*row)[bootstrapped], baseline[bootstrapped])


@settings(max_examples=30)
@given(rows(max_actions=3 * SORT_FROM))
def test_equal_values_keep_the_baseline_to_the_bit(row):
    q, baseline, bootstrapped = row
    for out in (pi_b(0 * q, *row[1:]), pi_leq_b(0 * q, *row[1:])):
        np.testing.assert_array_equal(out, baseline)


@given(st.integers(0, 2**32 - 1), st.integers(0, 400), st.integers(0, 3))
def test_ranks_are_those_of_a_stable_sort(seed, n, digits):
    values = np.round(np.random.default_rng(seed).normal(size=n), digits)
    order = np.empty(n, dtype=np.int64)
    rank(values, len(values), order)
    np.testing.assert_array_equal(order, np.argsort(-values, kind="stable"))
