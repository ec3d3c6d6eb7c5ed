"""The solver against the linear programme over occupancy measures."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest
from exact import Exact
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import lp_value, policy_values
from strategies import n_wedges, problems, random_problem

from spibb.algorithms.threshold import spibb_box
from spibb.errors import InputError
from spibb.kernels import dense
from spibb.labels import vocabulary
from spibb.mdp import MDP
from spibb.solve import METHODS, Box, evaluate, evaluate_exactly, free_box, optimise


@pytest.mark.parametrize("dtype", [">f8", "f2", "f4", np.longdouble, object])
def test_probabilities_of_any_type_are_read(dtype):
    problem = random_problem(0, 3, 2, 40, 0.9)
    box, rows = free_box(problem.available), problem.baseline.probs
    given = Box(*(part.astype(dtype) for part in box._replace(start=np.full(rows.shape, 0.5))))
    halves = [evaluate(problem.model, np.full(rows.shape, 0.5, kind)).v for kind in ("f8", dtype)]
    np.testing.assert_array_equal(*halves)
    np.testing.assert_allclose(optimise(problem.model, given).v, optimise(problem.model, box).v)


def test_text_is_no_probability():
    problem = random_problem(0, 3, 2, 40, 0.9)
    words = np.full(problem.model.shape, "a")
    with pytest.raises(InputError, match=r"probs is array.*, expected an array of numbers"):
        evaluate(problem.model, words)
    with pytest.raises(InputError, match=r"box.start is array.*, expected an array of numbers"):
        optimise(problem.model, free_box(problem.available)._replace(start=words))


def spread(n_states):
    """An initial distribution that weighs every state, so that the programme sees all values."""
    weights = np.arange(1.0, n_states + 1)
    return weights / weights.sum()


@settings(max_examples=150)
@given(problems(), n_wedges, st.sampled_from([0.0, 1.0]))
def test_the_optimum_of_a_spibb_box_equals_the_linear_programme(problem, n_wedge, share):
    box, _ = spibb_box(problem, n_wedge, share)
    initial = spread(len(problem.states))
    solution = optimise(problem.model, box)
    wanted = lp_value(problem.model, box.lower, box.upper, initial)
    assert initial @ solution.v == pytest.approx(wanted, abs=1e-8)
    assert solution.converged


@settings(max_examples=50)
@given(problems())
def test_the_free_optimum_equals_the_linear_programme(problem):
    box = free_box(problem.available)
    initial = spread(len(problem.states))
    wanted = lp_value(problem.model, box.lower, box.upper, initial)
    assert initial @ optimise(problem.model, box).v == pytest.approx(wanted, abs=1e-8)


@settings(max_examples=50)
@given(problems(), n_wedges)
def test_the_policy_returned_has_the_values_returned(problem, n_wedge):
    box, _ = spibb_box(problem, n_wedge, 0.0)
    solution = optimise(problem.model, box)
    np.testing.assert_allclose(policy_values(problem.model, solution.probs), solution.v, atol=1e-9)
    np.testing.assert_allclose((solution.probs * solution.q).sum(axis=1), solution.v, atol=1e-9)


@settings(max_examples=50)
@given(problems())
def test_evaluation_equals_a_dense_solve_by_either_method(problem):
    model, probs = problem.model, problem.baseline.probs
    wanted = policy_values(model, probs)
    np.testing.assert_allclose(evaluate(model, probs).v, wanted, atol=1e-10)
    swept = evaluate(model, probs, method="sweeps", tolerance=1e-9)
    np.testing.assert_allclose(swept.v, wanted, atol=1e-6)


@pytest.mark.parametrize("share", [0.0, 1.0])
@pytest.mark.parametrize("n_states", [30, 100, 400])
def test_sweeps_and_policy_iteration_agree(n_states, share):
    problem = random_problem(n_states, n_states, 4, 30 * n_states, 0.95)
    box, _ = spibb_box(problem, 6, share)
    exact = optimise(problem.model, box, method="policy-iteration")
    swept = optimise(problem.model, box, method="sweeps", tolerance=1e-10)
    assert swept.converged
    np.testing.assert_allclose(swept.v, exact.v, atol=1e-7)


def slow_ring(n: int, discount: float, rng: np.random.Generator) -> MDP:
    """Each state leads to the next, or skips one; sweeps settle no faster than discounts do."""
    here = np.arange(n)
    successors = np.stack([(here + 1) % n, (here + 2) % n], axis=1).reshape(-1)
    return MDP(
        np.arange(2 * n + 1), successors, np.ones(2 * n), rng.normal(size=(n, 2)), spread(n),
        discount, vocabulary(n, "state"), vocabulary(2, "action"),
    )  # fmt: skip


@pytest.mark.parametrize("discount", [0.99, 1 - 1e-6, 1 - 1e-8])
@pytest.mark.parametrize("seed", range(3))
def test_slow_chains_of_many_states_are_solved_as_policy_iteration_solves_them(seed, discount):
    rng = np.random.default_rng(seed)
    mdp = slow_ring(300, discount, rng)
    box = free_box(np.ones(mdp.shape, dtype=bool))
    found, exact = optimise(mdp, box), optimise(mdp, box, method="policy-iteration")
    assert found.converged
    np.testing.assert_array_equal(found.probs, exact.probs)
    close(found.v, exact.v)
    rows = rng.dirichlet(np.ones(2), size=300)
    values = evaluate(mdp, rows)
    assert values.converged
    close(values.v, evaluate(mdp, rows, method="policy-iteration").v)


@pytest.mark.parametrize("gap", [1e-1, 1e-6, 1e-9])
def test_values_solved_directly_stay_within_their_stated_error(gap):
    """All pay 1, so that V = 1/(1 − γ); sums of ten tenths are not quite 1."""
    n, rng = 300, np.random.default_rng(3)
    mdp = MDP(
        np.arange(0, 10 * n + 1, 10), rng.integers(0, n, 10 * n), np.full(10 * n, 0.1),
        np.ones((n, 1)), spread(n), 1 - gap, vocabulary(n, "state"), vocabulary(1, "action"),
    )  # fmt: skip
    truth = float(1 / (1 - Fraction(1 - gap)))
    found = evaluate_exactly(mdp, np.ones((n, 1)))
    assert np.abs(found.v - truth).max() <= found.error <= 1e-9 * truth
    assert found.converged


def test_a_tolerance_that_cannot_be_met_is_not_called_met():
    mdp = slow_ring(300, 1 - 1e-8, np.random.default_rng(0))
    assert not evaluate(mdp, np.full((300, 2), 0.5), tolerance=1e-17).converged


def test_values_belong_to_the_policy_where_the_solver_has_not_settled(monkeypatch):
    monkeypatch.setattr("spibb.solve.RETRIED_UP_TO", 256)
    mdp = slow_ring(300, 1 - 1e-8, np.random.default_rng(0))
    box = free_box(np.ones(mdp.shape, dtype=bool))
    found, best = optimise(mdp, box), optimise(mdp, box, method="policy-iteration")
    assert not found.converged
    close(found.v, evaluate(mdp, found.probs, method="policy-iteration").v)
    assert np.abs(found.v - best.v).max() <= found.error


def close(one: np.ndarray, two: np.ndarray) -> None:
    np.testing.assert_allclose(one, two, rtol=0, atol=2e-9 * np.abs(two).max())


@pytest.mark.parametrize("method", METHODS)
def test_what_is_said_of_a_solution_can_be_written_as_json(method):
    problem = random_problem(0, 20, 3, 100, 0.9)
    box, _ = spibb_box(problem, 5, 1.0)
    for found in (optimise(problem.model, box, method=method),
                  evaluate(problem.model, box.start, method=method)):  # fmt: skip
        json.dumps([found.iterations, found.converged, found.error])


def test_an_unknown_method_is_named_with_a_suggestion():
    problem = random_problem(0, 3, 2, 10, 0.9)
    with pytest.raises(InputError, match="did you mean 'sweeps'") as caught:
        optimise(problem.model, free_box(problem.available), method="sweep")
    assert all(method in str(caught.value) for method in METHODS)


@pytest.mark.parametrize("kind", [np.int64, np.int32, np.uint16, np.uint64, np.int8])
@pytest.mark.parametrize("method", ["sweeps", "policy-iteration"])
def test_codes_of_any_whole_type_mean_the_same(kind, method):
    """A ring of three states that pays once a round is worth 1 / (1 − γ³)."""
    from spibb.labels import vocabulary

    mdp = MDP(
        np.arange(4).astype(kind), np.array([1, 2, 0]).astype(kind), np.ones(3),
        np.array([[1.0], [0.0], [0.0]]), np.array([1.0, 0.0, 0.0]), 0.5,
        vocabulary(3, "state"), vocabulary(1, "action"),
    )  # fmt: skip
    assert (mdp.indptr.dtype, mdp.successors.dtype) == (np.int64, np.int32)
    found = evaluate(mdp, np.ones((3, 1)), method=method)
    assert found.converged
    assert found.v[0] == pytest.approx(1 / (1 - 0.125))


def circling():
    """Ties that go back to `start` undo a gain of 1e8 here, for ever; and the box."""
    following = np.array([0, 0, 0, 1, 0, 2, 2, 2, 0])
    rewards = np.array([[0.0, 0.1, 0.1], [0.1, 0.0, 0.0], [0.0, 0.1, 1e8]])
    mdp = MDP(
        np.arange(10), following, np.ones(9), rewards, np.full(3, 1 / 3), 1 - 1e-12,
        vocabulary(range(3), "state"), vocabulary(range(3), "action"),
    )  # fmt: skip
    start = np.array([[0.25, 0.625, 0.125], [0.28125, 0.375, 0.34375], [0.25, 0.125, 0.625]])
    return mdp, Box(np.zeros((3, 3)), np.ones((3, 3)), start)


def test_policy_iteration_does_not_go_in_circles():
    mdp, box = circling()
    found = optimise(mdp, box)
    wanted = np.array([float(x) for x in Exact(mdp).optimum(box)[1]])
    assert dense.PATIENCE < found.iterations < dense.MAX_ITERATIONS
    assert np.abs(found.v - wanted).max() <= found.error


@pytest.mark.parametrize("most", [1, 2, 3])
def test_the_error_holds_where_policy_iteration_gives_up(monkeypatch, most):
    monkeypatch.setattr(dense, "MAX_ITERATIONS", most)
    monkeypatch.setattr(dense, "policy_iteration", dense.policy_iteration.py_func)
    for seed in range(20):
        problem = random_problem(seed, 4, 3, 40, 0.9)
        box = free_box(problem.available)
        found = optimise(problem.model, box)
        wanted = np.array([float(x) for x in Exact(problem.model).optimum(box)[1]])
        assert np.abs(found.v - wanted).max() <= found.error + 1e-12
        assert found.iterations <= most
