"""Random MDPs and their baselines against brute force, closed forms and slow transcriptions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import dense_p, policy_values
from scipy.stats import kstest

from spibb.kernels import garnet
from spibb.mdp import MDP
from spibb.solve import free_box, optimise

DISCOUNT = 0.95
ETAS = np.arange(1, 10) / 10
SHAPES = st.sampled_from([(2, 1, 1), (3, 2, 2), (6, 1, 1), (6, 2, 1), (8, 3, 2), (12, 2, 12)])


def draw(seed, n_states=50, n_actions=4, connectivity=4):
    uniforms = np.random.default_rng(seed).random((n_states * n_actions, 2 * connectivity - 1))
    return garnet.draw_rows(uniforms, n_states)


def with_end(successors, probs, terminal, n_states, discount=DISCOUNT) -> MDP:
    """The MDP in which entering `terminal` pays 1 and ends, built from its outcomes."""
    n_actions, width = len(successors) // n_states, successors.shape[1]
    pair = np.repeat(np.arange(len(successors)), width)
    keep = pair // n_actions != terminal
    following = successors.reshape(-1)[keep]
    entered = following == terminal
    return MDP.from_outcomes(
        pair[keep] // n_actions, pair[keep] % n_actions, probs.reshape(-1)[keep], following,
        entered * 1.0, entered, initial=np.eye(n_states)[0], n_actions=n_actions,
        discount=discount,
    )  # fmt: skip


def brute_force(successors, probs, n_states, discount=DISCOUNT) -> np.ndarray:
    """V*(x_0) for every terminal state [S]; infinite where it does not qualify."""
    values = np.full(n_states, np.inf)
    for f in range(1, n_states):
        mdp = with_end(successors, probs, f, n_states, discount)
        value = optimise(mdp, free_box(np.ones(mdp.shape, dtype=bool))).v[0]
        if value > discount**garnet.HORIZON:
            values[f] = value
    return values


def problem_of(mdp: MDP):
    return mdp.rows, mdp.rewards, mdp.discount, mdp.initial


def generated(seed, n_states=50, n_actions=4, connectivity=4):
    """(mdp, terminal state, Q*) of a random MDP."""
    rows = draw(seed, n_states, n_actions, connectivity)
    terminal, *_, q = garnet.farthest(*rows, DISCOUNT, n_states)
    return with_end(*rows, terminal, n_states), terminal, q


# ---- random MDPs -------------------------------------------------------------------------------


def test_every_pair_has_distinct_sorted_successors_and_sums_to_one_to_the_bit():
    for seed in range(20):
        successors, probs = draw(seed)
        assert (np.diff(successors, axis=1) > 0).all()
        assert successors.min() >= 0 and successors.max() < 50
        assert (probs > 0).all()
        np.testing.assert_array_equal(probs.sum(axis=1), 1.0)


def test_every_set_of_successors_is_equally_likely():
    successors, _ = draw(0, 5, 20_000, 2)
    counts = np.bincount(successors[:, 0] * 5 + successors[:, 1], minlength=25).reshape(5, 5)
    sets = counts[np.triu_indices(5, 1)]
    assert counts.sum() == sets.sum() == 100_000
    np.testing.assert_allclose(sets / 100_000, 0.1, atol=5 * np.sqrt(0.09 / 100_000))


def test_probabilities_are_spacings_of_sorted_uniforms():
    _, probs = draw(0, 50, 1000, 4)
    for j in range(4):  # each of 4 spacings is Beta(1, 3)
        assert kstest(probs[:, j], lambda x: 1 - (1 - x) ** 3).pvalue > 1e-3
    assert np.corrcoef(probs.T)[0, 1] == pytest.approx(-1 / 3, abs=0.02)


def test_connectivity_may_be_one_or_all_states():
    successors, probs = draw(0, 6, 2, 6)
    np.testing.assert_array_equal(successors, np.tile(np.arange(6), (12, 1)))
    np.testing.assert_array_equal(draw(0, 6, 2, 1)[1], 1.0)


def test_a_sweep_is_a_gauss_seidel_backup_of_every_candidate():
    successors, probs = draw(1, 12, 3, 2)
    w, slow = np.eye(12), np.eye(12)
    for _ in range(5):
        before = w[0].copy()
        rise = garnet.sweep(successors, probs, DISCOUNT, w)
        for s in range(12):
            for f in range(12):
                q = [probs[p] @ slow[successors[p], f] for p in range(3 * s, 3 * s + 3)]
                slow[s, f] = 1.0 if f == s else DISCOUNT * max(q)
        np.testing.assert_allclose(w, slow, atol=1e-14)
        assert rise == pytest.approx((w[0] - before)[1:].max(), abs=1e-14)


def test_sweeps_approach_the_optimal_values_from_below():
    successors, probs = draw(2, 20, 3, 3)
    exact = brute_force(successors, probs, 20)
    w = np.eye(20)
    for _ in range(300):
        garnet.sweep(successors, probs, DISCOUNT, w)
        assert (w[0, 1:] / DISCOUNT <= exact[1:] + 1e-12).all()
    np.testing.assert_allclose(w[0, 1:] / DISCOUNT, exact[1:], atol=1e-9)


@pytest.mark.parametrize("seed", range(25))
def test_the_terminal_state_is_the_farthest_by_brute_force(seed):
    successors, probs = draw(seed)
    terminal, _, _, v, q = garnet.farthest(successors, probs, DISCOUNT, 50)
    exact = brute_force(successors, probs, 50)
    assert terminal == np.argmin(exact)
    assert v[0] == pytest.approx(exact.min(), abs=1e-12)
    assert q[0].max() == pytest.approx(exact.min(), abs=1e-12)


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), SHAPES, st.sampled_from([0.3, 0.8, 0.95, 0.99]))
def test_small_and_disconnected_mdps_too(seed, shape, discount):
    rows = draw(seed, *shape)
    terminal, _, _, v, _ = garnet.farthest(*rows, discount, shape[0])
    exact = brute_force(*rows, shape[0], discount)
    if terminal < 0:
        assert np.isinf(exact).all()
    else:
        assert exact[terminal] == pytest.approx(exact.min(), abs=1e-12)
        assert v[0] == pytest.approx(exact.min(), abs=1e-12)


def test_a_state_worth_no_more_than_the_horizon_is_too_far():
    successors = np.minimum(np.arange(60, dtype=np.int32) + 1, 59)[:, None]  # a chain
    terminal, _, _, v, _ = garnet.farthest(successors, np.ones((60, 1)), 0.5, 60)
    assert terminal == 50  # entered with the 50th step, after 49 discounts; the next is worth 2⁻⁵⁰
    assert v[0] == 0.5**49


def test_the_rows_are_those_of_the_mdp_with_that_end():
    for seed in range(5):
        successors, probs = draw(seed)
        terminal, rows, rewards, v, q = garnet.farthest(successors, probs, DISCOUNT, 50)
        mdp = with_end(successors, probs, terminal, 50)
        for ours, theirs in zip(rows, mdp.rows, strict=True):
            np.testing.assert_array_equal(ours, theirs)
        np.testing.assert_array_equal(rewards, mdp.rewards)
        best = optimise(mdp, free_box(np.ones((50, 4), dtype=bool)))
        np.testing.assert_allclose(v, best.v, atol=1e-12)
        np.testing.assert_allclose(q, best.q, atol=1e-12)


# ---- baselines ---------------------------------------------------------------------------------


def test_the_inverse_and_its_rank_one_updates():
    mdp, _, _ = generated(3, 20, 3, 3)
    rng = np.random.default_rng(0)
    pi = rng.dirichlet(np.ones(3), size=20)
    system = lambda pi: np.eye(20) - DISCOUNT * np.einsum("sa,sat->st", pi, dense_p(mdp))  # noqa: E731
    inverse = system(pi)
    garnet.invert_m_matrix(inverse)
    np.testing.assert_allclose(inverse, np.linalg.inv(system(pi)), atol=1e-12)
    v = policy_values(mdp, pi)
    for s in rng.integers(20, size=200):
        new = rng.dirichlet(np.ones(3))
        garnet.change_row(problem_of(mdp), s, new - pi[s], inverse, v, np.empty(20))
        pi[s] = new
    np.testing.assert_allclose(inverse, np.linalg.inv(system(pi)), atol=1e-11)
    np.testing.assert_allclose(v, policy_values(mdp, pi), atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_softening_meets_every_target(seed):
    mdp, _, q = generated(seed)
    uniform, optimal = policy_values(mdp, np.full((50, 4), 0.25))[0], q[0].max()
    pi = np.empty((50, 4))
    for share in (1e-6, 0.05, 0.3, 0.55, 0.75, 0.95, 1 - 1e-6):
        target = uniform + share * (optimal - uniform)
        value = garnet.soften(problem_of(mdp), q, uniform, optimal, target, pi)
        assert value == pytest.approx(target, abs=1e-11)
        assert policy_values(mdp, pi)[0] == pytest.approx(target, abs=1e-11)
        np.testing.assert_allclose(pi.sum(axis=1), 1)


def test_the_softened_policy_is_a_softmax_of_the_optimal_values():
    mdp, terminal, q = generated(0)
    uniform, optimal = policy_values(mdp, np.full((50, 4), 0.25))[0], q[0].max()
    pi = np.empty((50, 4))
    garnet.soften(problem_of(mdp), q, uniform, optimal, (uniform + 3 * optimal) / 4, pi)
    slopes = (np.log(pi[:, 1:] / pi[:, :1])) / np.where(
        q[:, 1:] == q[:, :1], 1, q[:, 1:] - q[:, :1]
    )
    np.testing.assert_allclose(np.delete(slopes, terminal, axis=0), slopes[0, 0], rtol=1e-6)
    np.testing.assert_array_equal(pi[terminal], 0.25)


def test_without_a_choice_softening_is_uniform():
    mdp, _, q = generated(0, 8, 1, 3)
    pi = np.empty((8, 1))
    value = policy_values(mdp, np.ones((8, 1)))[0]
    assert garnet.soften(problem_of(mdp), q, value, q[0].max(), value, pi) == value
    np.testing.assert_array_equal(pi, 1.0)


def splitmix(seed):
    """The stream of uniforms behind `pick`, with Python's integers."""
    mask = 2**64 - 1
    while True:
        seed = (seed + 0x9E3779B97F4A7C15) & mask
        z = ((seed ^ (seed >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        yield ((z ^ (z >> 31)) >> 11) * 2.0**-53


def slow_randomise(mdp, q, target, multiply, seed, pi):
    """The loop as the paper prints it, every policy evaluated from scratch."""
    uniforms, values = splitmix(seed), [policy_values(mdp, pi)[0]]
    while values[-1] > target:
        s = int(next(uniforms) * len(pi))
        best = int(np.argmax(q[s]))
        if np.ptp(q[s]) == 0 or pi[s, best] == 0:
            continue
        if multiply:
            pi[s, best] *= 0.9
            pi[s] /= pi[s].sum()
        else:
            other = (best + 1 + int(next(uniforms) * (pi.shape[1] - 1))) % pi.shape[1]
            mass = min(0.1, pi[s, best])
            pi[s, best], pi[s, other] = pi[s, best] - mass, pi[s, other] + mass
        values.append(policy_values(mdp, pi)[0])
    return values


@pytest.mark.parametrize("multiply", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_randomisation_equals_its_slow_transcription(seed, multiply):
    mdp, _, q = generated(seed, 20, 3, 3)
    uniform, optimal = policy_values(mdp, np.full((20, 3), 1 / 3))[0], q[0].max()
    target = 0.4 * optimal + 0.6 * uniform
    pi = np.empty((20, 3))
    garnet.soften(problem_of(mdp), q, uniform, optimal, (target + optimal) / 2, pi)
    slow = pi.copy()
    values = slow_randomise(mdp, q, target, multiply, seed, slow)
    seeds = np.array([seed], dtype=np.uint64)
    value, before, steps = garnet.randomise(problem_of(mdp), q, target, multiply, seeds, pi)
    np.testing.assert_allclose(pi, slow, atol=1e-12)
    assert steps == len(values) - 1
    assert value == pytest.approx(values[-1], abs=1e-12)
    assert before == pytest.approx(values[-2], abs=1e-11)


@pytest.mark.parametrize("multiply", [False, True])
@pytest.mark.parametrize("seed", range(10))
def test_every_eta_is_met_within_one_step(seed, multiply):
    mdp, terminal, q = generated(seed)
    seeds = np.arange(9).astype(np.uint64)
    pi, (values, before, targets), uniform, optimal = garnet.baselines(
        problem_of(mdp), q, ETAS, multiply, seeds
    )
    assert uniform == pytest.approx(policy_values(mdp, np.full((50, 4), 0.25))[0], abs=1e-12)
    assert optimal == pytest.approx(q[0].max(), abs=1e-12)
    np.testing.assert_allclose(targets, ETAS * optimal + (1 - ETAS) * uniform, atol=1e-15)
    assert (values <= targets).all() and (before > targets).all()
    exact = [policy_values(mdp, rows)[0] for rows in pi]
    np.testing.assert_allclose(values, exact, atol=1e-12)
    np.testing.assert_allclose(pi.sum(axis=2), 1, atol=1e-12)
    assert (pi >= 0).all()
    np.testing.assert_array_equal(pi[:, terminal], 0.25)


def test_moving_stops_at_zero_and_gives_up_when_nothing_is_left():
    mdp, terminal, q = generated(0)
    pi = np.full((50, 4), 0.25)
    value, _, steps = garnet.randomise(problem_of(mdp), q, 0.0, False, np.zeros(1, np.uint64), pi)
    best = np.delete(pi[np.arange(50), q.argmax(axis=1)], terminal)
    assert steps == 49 * 3  # 0.1, 0.1 and the rest
    np.testing.assert_array_equal(best, 0.0)
    assert value > 0
    np.testing.assert_allclose(pi.sum(axis=1), 1)
