"""The sparse solver against a slow dense transcription of the same definitions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spibb.kernels import dense
from spibb.kernels.sparse import bounds, sweeps, task
from spibb.kernels.sparse import solve as sparse
from spibb.kernels.tuples import Box, Rows

KINDS = ("plain", "pi-b", "pi-leq-b", "general")


# ---- problems ----------------------------------------------------------------------------------


def make_rows(rng, S, A, most=5, kept=1.0):
    """Rows of up to `most` successors that keep between `kept` and 1 of their mass; some empty."""
    dense = np.zeros((S * A, S))
    for row in dense:
        n = rng.integers(0 if kept < 1.0 else 1, min(most, S) + 1)
        if n > 0:
            where = rng.choice(S, n, replace=False)
            row[where] = rng.dirichlet(np.ones(n)) * rng.uniform(kept, 1.0)
    return to_rows(dense), dense.reshape(S, A, S)


def to_rows(dense):
    indptr = np.concatenate([[0], np.cumsum((dense > 0).sum(1))]).astype(np.int64)
    return Rows(indptr, np.nonzero(dense)[1].astype(np.int32), dense[dense > 0])


def make_box(rng, kind, S, A):
    baseline = rng.dirichlet(np.ones(A), S)
    bootstrapped = rng.random((S, A)) < 0.5
    if kind == "plain":
        available = rng.random((S, A)) < 0.8
        available[:, 0] = True
        start = available / available.sum(1, keepdims=True)
        return Box(np.zeros((S, A)), available.astype(float), start)
    if kind == "pi-b":
        return Box(
            np.where(bootstrapped, baseline, 0.0),
            np.where(bootstrapped, baseline, 1.0),
            baseline,
        )
    if kind == "pi-leq-b":
        return Box(np.zeros((S, A)), np.where(bootstrapped, baseline, 1.0), baseline)
    lower = baseline * rng.random((S, A)) * (rng.random((S, A)) < 0.7)
    return Box(lower, np.minimum(1.0, baseline * (1.0 + rng.random((S, A)))), baseline)


# ---- transcription -----------------------------------------------------------------------------


def slow_greedy(q, lower, upper, start):
    pi = lower.copy()
    for s in range(q.shape[0]):
        mass = (start[s] - lower[s]).sum()
        for a in np.argsort(-q[s]):
            share = min(mass, upper[s, a] - lower[s, a])
            pi[s, a] += share
            mass -= share
    return pi


def slow_evaluate(P, r, discount, pi):
    P_pi = np.einsum("sa,sat->st", pi, P)
    return np.linalg.solve(np.eye(len(P_pi)) - discount * P_pi, (pi * r).sum(1))


def slow_optimise(P, r, discount, box):
    """Policy iteration from start, until value iteration no longer moves."""
    v = slow_evaluate(P, r, discount, box[2])
    while True:
        pi = slow_greedy(r + discount * P @ v, *box)
        new = slow_evaluate(P, r, discount, pi)
        if np.abs(new - v).max() <= 1e-12 * max(1.0, np.abs(v).max()):
            return new
        v = new


def check(claim, truth, tol):
    v, bound, sweeps, wanted = claim
    assert bound <= wanted <= 1.001 * tol * max(10.0, np.abs(truth).max() + bound)
    assert sweeps >= 1
    assert np.abs(v - truth).max() <= bound + 1e-12 * max(1.0, np.abs(truth).max())


# ---- tests -------------------------------------------------------------------------------------


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**32 - 1),
    S=st.integers(1, 40),
    A=st.integers(1, 7),
    kind=st.sampled_from(KINDS),
    discount=st.sampled_from([0.0, 0.5, 0.9, 0.99]),
    kept=st.sampled_from([1.0, 0.9, 0.0]),
    tol=st.sampled_from([1e-1, 1e-4, 1e-8]),
)
def test_optimise_and_evaluate_match_dense_solutions(seed, S, A, kind, discount, kept, tol):
    rng = np.random.default_rng(seed)
    rows, P = make_rows(rng, S, A, kept=kept)
    r, box = rng.normal(size=(S, A)), make_box(rng, kind, S, A)
    claim = sparse.optimise(rows, r, discount, box, tol, 100_000, False)
    check(claim, slow_optimise(P, r, discount, box), tol)
    claim = sparse.evaluate(rows, r, discount, box[2], tol, 100_000, False)
    check(claim, slow_evaluate(P, r, discount, box[2]), tol)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("S", "A"), [(1, 1), (1, 40), (60, 1), (60, 40)])
def test_shapes(kind, S, A):
    rng = np.random.default_rng(S + A)
    rows, P = make_rows(rng, S, A, most=20, kept=0.8)
    r, box = rng.normal(size=(S, A)), make_box(rng, kind, S, A)
    claim = sparse.optimise(rows, r, 0.95, box, 1e-9, 100_000, False)
    check(claim, slow_optimise(P, r, 0.95, box), 1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_bound_holds_when_sweeps_run_out(kind):
    rng = np.random.default_rng(3)
    rows, P = make_rows(rng, 50, 4, kept=0.5)
    r, box = rng.normal(size=(50, 4)), make_box(rng, kind, 50, 4)
    truth = slow_optimise(P, r, 0.99, box)
    for max_sweeps in range(1, 60):
        v, bound, sweeps, _ = sparse.optimise(rows, r, 0.99, box, 1e-9, max_sweeps)
        assert sweeps <= max_sweeps
        assert np.abs(v - truth).max() <= bound + 1e-12


def test_no_sweep_proves_nothing():
    rows, _ = make_rows(np.random.default_rng(0), 3, 2)
    box = make_box(np.random.default_rng(0), "plain", 3, 2)
    v, bound, sweeps, _ = sparse.optimise(rows, np.ones((3, 2)), 0.9, box, 1e-6, 0)
    assert bound == np.inf and sweeps == 0


@pytest.mark.parametrize("kind", KINDS)
def test_all_terminating_is_one_step(kind):
    rng = np.random.default_rng(4)
    S, A = 20, 3
    rows = Rows(np.zeros(S * A + 1, np.int64), np.zeros(0, np.int32), np.zeros(0))
    r, box = rng.normal(size=(S, A)), make_box(rng, kind, S, A)
    v, bound, sweeps, _ = sparse.optimise(rows, r, 0.99, box, 1e-9, 10)
    assert sweeps == 1 and bound <= 1e-9
    np.testing.assert_allclose(v, (slow_greedy(r, *box) * r).sum(1), atol=1e-12)


def test_termination_without_discount_is_bounded_where_every_row_loses_mass():
    rng = np.random.default_rng(5)
    rows, P = make_rows(rng, 30, 3, kept=0.0)
    rows = rows._replace(probs=0.9 * rows.probs)
    r, box = rng.normal(size=(30, 3)), make_box(rng, "pi-b", 30, 3)
    claim = sparse.optimise(rows, r, 1.0, box, 1e-8, 10_000)
    check(claim, slow_optimise(0.9 * P, r, 1.0, box), 1e-8)


def test_rare_termination_takes_few_sweeps():
    """One state in fifty may end: the error shrinks by about the discount per plain sweep."""
    rng = np.random.default_rng(6)
    S, A = 500, 3
    rows, P = make_rows(rng, S, A)
    P[::50, 0] *= 0.5
    rows = to_rows(P.reshape(S * A, S))
    r, box = rng.random((S, A)), make_box(rng, "plain", S, A)
    claim = sparse.optimise(rows, r, 0.99, box, 1e-8, 100_000)
    check(claim, slow_optimise(P, r, 0.99, box), 1e-8)
    assert claim[2] < 500  # 0.99 ** 2000 is about 1e-9


def test_a_huge_penalty_on_an_unused_action_does_not_spoil_the_bound():
    rng = np.random.default_rng(7)
    rows, P = make_rows(rng, 30, 3)
    r = rng.random((30, 3))
    r[:, 2] = -1e9
    box = Box(np.zeros((30, 3)), np.ones((30, 3)), np.full((30, 3), 1 / 3))
    claim = sparse.optimise(rows, r, 0.9, box, 1e-9, 10_000)
    check(claim, slow_optimise(P, r, 0.9, box), 1e-9)


def test_unattainable_tolerance_stops_at_the_limit_of_rounding():
    rng = np.random.default_rng(8)
    rows, P = make_rows(rng, 50, 3, kept=0.7)
    r, box = 1e6 * rng.normal(size=(50, 3)), make_box(rng, "pi-b", 50, 3)
    v, bound, sweeps, _ = sparse.optimise(rows, r, 0.9, box, 0.0, 100_000)
    assert sweeps < 10_000 and 0.0 < bound < 1e-6
    assert np.abs(v - slow_optimise(P, r, 0.9, box)).max() <= 2 * bound


@pytest.mark.parametrize("kind", KINDS)
def test_threads_do_not_change_the_result(kind):
    """More states than two chunks, so that both threads have work."""
    rng = np.random.default_rng(9)
    S, A, N = 2 * task.CHUNK + 77, 3, 4
    rows = Rows(
        N * np.arange(S * A + 1),
        rng.integers(0, S, S * A * N).astype(np.int32),
        rng.dirichlet(np.ones(N), S * A).ravel(),
    )
    r, box = rng.random((S, A)), make_box(rng, kind, S, A)
    one = sparse.optimise(rows, r, 0.9, box, 1e-8, 1000, False)
    two = sparse.optimise(rows, r, 0.9, box, 1e-8, 1000, True)
    assert (one[0] == two[0]).all() and one[1:] == two[1:]
    if kind == "plain":
        one = sparse.evaluate(rows, r, 0.9, box[2], 1e-8, 1000, False)
        two = sparse.evaluate(rows, r, 0.9, box[2], 1e-8, 1000, True)
        assert (one[0] == two[0]).all() and one[1:] == two[1:]


def test_an_action_that_pays_late_is_not_given_up_early():
    """A chain: leaving pays at once, and clearly more than waiting until far in the iteration."""
    S, discount = 300, 0.99
    P = np.zeros((S, 2, S))
    P[np.arange(S - 1), 0, np.arange(1, S)] = 1.0
    P[:, 1, S - 1] = P[S - 1, 0, S - 1] = 1.0
    r = np.stack([np.zeros(S), np.ones(S)], axis=1)
    r[S - 2, 0] = 10.0 / discount**S
    r[S - 1] = 0.0
    box = Box(np.zeros((S, 2)), np.ones((S, 2)), np.full((S, 2), 0.5))
    rows = to_rows(P.reshape(S * 2, S))
    claim = sparse.optimise(rows, r, discount, box, 1e-6, 100_000)
    truth = np.append(r[S - 2, 0] * discount ** np.arange(S - 2, -1, -1.0), 0.0)
    assert truth[0] > 9.0
    check(claim, truth, 1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("kept", [1.0, 0.5])
def test_greedy_sweeps_are_exact_though_settled_states_read_their_policy_only(
    kind, kept, monkeypatch
):
    rng = np.random.default_rng(12)
    rows, P = make_rows(rng, 300, 4, kept=kept)
    r, box = rng.normal(size=(300, 4)), make_box(rng, kind, 300, 4)
    greedy, settled = sparse.greedy_serial, []

    def checked(task, policy, v, out, change, drift):
        settled.append((policy.lead > drift).mean())
        found = greedy(task, policy, v, out, change, drift)
        q = r + 0.9 * P @ v.astype(float)
        np.testing.assert_allclose(out, (slow_greedy(q, *box) * q).sum(1), atol=1e-12)
        np.testing.assert_allclose(change, out - v, rtol=1e-6)
        return found

    monkeypatch.setattr(sparse, "greedy_serial", checked)
    sparse.optimise(rows, r, 0.9, box, 1e-9, 10_000)
    assert settled[0] == 0.0 and settled[-1] > 0.5 * (kind in ("plain", "pi-b"))


@given(seed=st.integers(0, 2**32 - 1), least=st.floats(0.0, 1.0), most=st.floats(0.0, 1.0))
def test_spread_bounds_how_differently_two_actions_change(seed, least, most):
    rng = np.random.default_rng(seed)
    least, most = sorted((least, most))
    rows = rng.dirichlet(np.ones(6), 2) * rng.uniform(least, most, (2, 1))
    change = rng.normal(rng.normal(), rng.random(), 6)
    apart = bounds.spread(change.min(), change.max(), (least, most))
    assert abs(rows[0] @ change - rows[1] @ change) <= apart + 1e-12


@pytest.mark.parametrize("kind", KINDS)
def test_policies_in_single_precision(kind, monkeypatch):
    monkeypatch.setattr(sweeps, "COARSE_FROM", 1)
    rng = np.random.default_rng(13)
    rows, P = make_rows(rng, 300, 4, kept=0.9)
    r, box = rng.normal(size=(300, 4)), make_box(rng, kind, 300, 4)
    claim = sparse.optimise(rows, r, 0.95, box, 1e-9, 10_000)
    check(claim, slow_optimise(P, r, 0.95, box), 1e-9)


@pytest.mark.parametrize(("discount", "scale"), [(0.9, 1e31), (0.999, 1.0), (0.9, 1e-30)])
@pytest.mark.parametrize("kind", KINDS)
def test_where_single_precision_does_not_serve(kind, discount, scale):
    rng = np.random.default_rng(11)
    rows, P = make_rows(rng, 60, 4)
    r, box = rng.normal(size=(60, 4)), make_box(rng, kind, 60, 4)
    v, bound, sweeps, wanted = sparse.optimise(rows, scale * r, discount, box, 1e-8, 100_000)
    claim = (v / scale, bound / scale, sweeps, wanted / scale)
    check(claim, slow_optimise(P, r, discount, box), 1e-8)


def test_q_values():
    rng = np.random.default_rng(10)
    rows, P = make_rows(rng, 20, 3, kept=0.3)
    r, v = rng.normal(size=(20, 3)), rng.normal(size=20)
    np.testing.assert_allclose(dense.q_values(rows, r, 0.9, v), r + 0.9 * P @ v, atol=1e-12)
