"""Robust backups against a linear programme, and robust policy iteration against its equations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from spibb.kernels import robust
from spibb.kernels.tuples import Ambiguous, Box, Rows


def worst_by_lp(row: np.ndarray, values: np.ndarray, radius: float) -> float:
    """min P·values over distributions P with ‖P − row‖₁ ≤ radius, by HiGHS; all outcomes [n]."""
    n = len(row)
    eye = np.eye(n)
    above = np.block([[eye, -eye], [-eye, -eye], [np.zeros((1, n)), np.ones((1, n))]])
    limit = np.concatenate([row, -row, [radius]])
    total = np.concatenate([np.ones(n), np.zeros(n)])[None]
    cost = np.concatenate([values, np.zeros(n)])
    solution = linprog(cost, A_ub=above, b_ub=limit, A_eq=total, b_eq=[1.0], method="highs")
    assert solution.status == 0, solution.message
    return float(solution.fun)


def sparse_rows(rng: np.random.Generator, n_states: int, n_pairs: int, longest: int):
    """Random rows that may end the process, some of them empty."""
    lengths = rng.integers(0, min(longest, n_states) + 1, size=n_pairs)
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    successors = [rng.choice(n_states, n, replace=False) for n in lengths]
    probs = [rng.dirichlet(np.ones(n + 1))[:n] * rng.choice([1.0, 0.5]) for n in lengths]
    whole = [p / p.sum() if len(p) and rng.random() < 0.4 else p for p in probs]
    return Rows(indptr, np.concatenate(successors).astype(np.int32), np.concatenate(whole))


def dense_row(rows, p: int, n_states: int) -> np.ndarray:
    """The row of pair p over all states, then the end [S + 1]."""
    indptr, successors, probs = rows
    full = np.zeros(n_states + 1)
    np.add.at(full, successors[indptr[p] : indptr[p + 1]], probs[indptr[p] : indptr[p + 1]])
    full[-1] = max(1 - full[:-1].sum(), 0)
    return full


def ambiguous(seed: int, n_states: int, n_actions: int, longest: int = 6):
    """A random xi, with radii from 0 to 2 and beyond the row's mass."""
    rng = np.random.default_rng(seed)
    rows = sparse_rows(rng, n_states, n_states * n_actions, longest)
    rewards = rng.normal(size=(n_states, n_actions)) + rng.choice([-2.0, 0.0, 2.0])
    radius = rng.choice([0.0, 0.05, 0.4, 1.0, 1.7, 2.0], size=rewards.shape)
    return Ambiguous(rows, rewards, radius, 0.9)


def blank(xi) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Room for q, kept and moved."""
    return np.empty(xi.radius.shape), np.empty(len(xi.rows.probs)), np.empty(xi.radius.size)


def free_box(shape: tuple[int, int]):
    return Box(np.zeros(shape), np.ones(shape), np.full(shape, 1 / shape[1]))


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 10_000),
    n_states=st.integers(1, 30),
    longest=st.sampled_from([1, 4, 30]),
    shift=st.sampled_from([-5.0, 0.0, 5.0]),
    ties=st.booleans(),
)
def test_backup_equals_linear_programme(seed, n_states, longest, shift, ties):
    xi = ambiguous(seed, n_states, 2, longest)
    v = np.random.default_rng(seed + 1).normal(size=n_states) + shift
    v = np.round(v) if ties else v
    q, kept, moved = blank(xi)
    robust.backup(xi, v, q, kept, moved)
    values = np.append(v, 0.0)
    for p in range(q.size):
        s, a = divmod(p, 2)
        lp = worst_by_lp(dense_row(xi.rows, p, n_states), values, xi.radius[s, a])
        assert q[s, a] == pytest.approx(xi.rewards[s, a] + 0.9 * lp, abs=1e-9)


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 10_000), n_states=st.integers(1, 30), shift=st.sampled_from([-5, 0, 5]))
def test_reply_is_a_row_of_the_ball_and_attains_the_backup(seed, n_states, shift):
    xi = ambiguous(seed, n_states, 3, 25)
    rows, rewards, radius, discount = xi
    v = np.random.default_rng(seed + 1).normal(size=n_states) + shift
    q, kept, moved = blank(xi)
    worst = robust.backup(xi, v, q, kept, moved)
    for p in range(q.size):
        before = dense_row(rows, p, n_states)
        after = np.zeros(n_states + 1)
        span = slice(rows[0][p], rows[0][p + 1])
        np.add.at(after, rows[1][span], kept[span])
        after[worst] += moved[p] if worst >= 0 else 0.0
        after[-1] = 1 - after[:-1].sum()
        assert (after >= -1e-12).all()
        assert np.abs(after - before).sum() <= radius.flat[p] + 1e-12
        value = rewards.flat[p] + discount * after @ np.append(v, 0.0)
        assert q.flat[p] == pytest.approx(value, abs=1e-12)


def test_hand_worked_row():
    """Half the mass on 3, half on 1, e = 0.6: 0.3 moves from 3 to the worst state, worth −2."""
    rows = Rows(np.array([0, 2, 2, 2]), np.array([0, 1], dtype=np.int32), np.array([0.5, 0.5]))
    work = robust.workspace(rows)
    value, moved = robust.reply(rows, np.array([3.0, 1.0, -2.0]), 0, 0.3, -2.0, work)
    assert moved == pytest.approx(0.3)
    assert value == pytest.approx(0.2 * 3 + 0.5 * 1 + 0.3 * -2)


def test_end_is_the_worst_outcome_where_all_values_are_positive():
    assert robust.worst_outcome(np.array([2.0, 1.0])) == robust.NOWHERE
    assert robust.worst_outcome(np.array([2.0, -1.0])) == 1


def test_end_observed_is_given_up_first_where_values_are_negative():
    """The end is the best outcome when every value is negative: it loses its mass first."""
    rows = Rows(np.array([0, 1]), np.array([0], dtype=np.int32), np.array([0.6]))
    work = robust.workspace(rows)
    value, moved = robust.reply(rows, np.array([-1.0]), 0, 0.25, -1.0, work)
    assert moved == pytest.approx(0.25)
    assert value == pytest.approx(-0.85)


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 10_000), n_states=st.integers(1, 20), n_actions=st.integers(1, 4))
def test_policy_iteration_solves_the_robust_optimality_equation(seed, n_states, n_actions):
    xi = ambiguous(seed, n_states, n_actions)
    q, kept, moved = blank(xi)
    box = free_box(q.shape)
    pi = box.start.copy()
    found = robust.RobustValues(*robust.policy_iteration(xi, box, pi, q, kept, moved))
    v = found.v
    assert found.settled
    again = np.empty_like(q)
    robust.backup(xi, v, again, kept, moved)
    np.testing.assert_allclose(v, again.max(axis=1), atol=1e-10)
    np.testing.assert_allclose((pi * again).sum(axis=1), v, atol=1e-10)
    np.testing.assert_allclose(robust.evaluate(xi, kept, moved, found.worst, pi)[0], v, atol=1e-10)


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 10_000), n_states=st.integers(1, 20), only=st.booleans())
def test_sweeps_agree_with_policy_iteration(seed, n_states, only):
    xi = ambiguous(seed, n_states, 3)
    q, kept, moved = blank(xi)
    box = free_box(q.shape)
    if only:
        rows = np.random.default_rng(seed).dirichlet(np.ones(3), size=n_states)
        box = Box(rows, rows, rows)
    exact = robust.policy_iteration(xi, box, box.start.copy(), q, kept, moved)[0]
    swept = robust.RobustBound(
        *robust.sweep(xi, box, box.start.copy(), q, kept, moved, 1e-10, 100_000)
    )
    assert swept.error <= swept.wanted <= 1e-10 * max(10.0, np.abs(exact).max() + swept.error)
    np.testing.assert_allclose(swept.v, exact, rtol=0, atol=2 * swept.error)


def test_values_of_many_states_solve_the_robust_equation():
    xi = ambiguous(3, 90, 3)
    q, kept, moved = blank(xi)
    box = free_box(q.shape)
    v = robust.policy_iteration(xi, box, box.start.copy(), q, kept, moved)[0]
    robust.backup(xi, v, q, kept, moved)
    np.testing.assert_allclose(v, q.max(axis=1), atol=1e-10)
