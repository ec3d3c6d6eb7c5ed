"""HCPI's compiled parts against slow transcriptions: Q-learning, mixtures, moments, the choice."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit
from scipy.special import stdtrit

from spibb.algorithms.hcpi.result import ALPHAS
from spibb.algorithms.problem import Problem
from spibb.bounds.means import student_t_bound
from spibb.envs.baselines import gridworld_baseline
from spibb.envs.gridworld import gridworld_mdp
from spibb.estimate import pessimistic_model
from spibb.kernels import hcpi
from spibb.kernels.mixtures import Mixtures
from spibb.kernels.tuples import Codebook
from spibb.policy import Policy
from spibb.simulate import Sampler
from spibb.solve import evaluate

DISCOUNT = 0.95


def slow_q_learning(codebook, rows, available, step_size, q):
    for state, action, successor, reward, _ in zip(*(column[rows] for column in codebook)):
        target = reward
        if successor >= 0:
            target += DISCOUNT * max(q[successor, available[successor]])
        q[state, action] += step_size * (target - q[state, action])
    return q


def test_q_learning_equals_its_definition():
    rng = np.random.default_rng(0)
    n_states, n_actions, n = 7, 3, 400
    codebook = Codebook(
        rng.integers(n_states, size=n), rng.integers(n_actions, size=n),
        rng.integers(-1, n_states, size=n), rng.normal(size=n), np.zeros(n, dtype=np.int64),
    )  # fmt: skip
    available = rng.random((n_states, n_actions)) < 0.6
    available[:, 1] = True
    start = rng.normal(size=(n_states, n_actions))
    rows = rng.integers(n, size=1000)
    found = start.copy()
    hcpi.q_learning(codebook, rows, available, DISCOUNT, 0.1, found)
    wanted = slow_q_learning(codebook, rows, available, 0.1, start.copy())
    np.testing.assert_allclose(found, wanted, atol=1e-12)


def test_replayed_codes_are_those_of_the_rows_drawn():
    uniforms = np.random.default_rng(1).random(50)
    codes = np.arange(100, 117, dtype=np.int32)
    wanted = codes[(uniforms * len(codes)).astype(int)]
    np.testing.assert_array_equal(hcpi.replayed(codes, uniforms), wanted)


def test_greedy_takes_the_first_best_available_action_or_the_baseline():
    q = np.array([[1.0, 3.0, 3.0], [9.0, 2.0, 2.0], [9.0, 1.0, 2.0]])
    available = np.array([[True, True, True], [False, True, True], [False, True, True]])
    baseline = np.array([[0.2, 0.3, 0.5]] * 3)
    wanted = [[0, 1, 0], baseline[1], [0, 0, 1]]
    np.testing.assert_array_equal(hcpi.greedy(q, available, baseline), wanted)


@pytest.fixture
def drawn():
    """Episodes of the uniform policy, a trained policy, and mixtures with their values."""
    mdp, baseline = gridworld_mdp(), gridworld_baseline()
    sampler = Sampler(mdp, Policy.uniform(mdp.states, mdp.actions))
    codes, lengths = sampler.draw(40, rng=np.random.default_rng(2))
    problem = Problem.from_counts(sampler.to_counts(codes, lengths), baseline, v_max=1.0)
    scores = np.random.default_rng(3).random(baseline.probs.shape)
    trained = hcpi.greedy(scores, problem.available, baseline.probs)
    return sampler, codes, lengths, problem, trained


def mixtures(trained, baseline):
    return [(1 - alpha) * trained + alpha * baseline for alpha in ALPHAS]


@pytest.mark.parametrize("lowest", [0.0, -0.3])
def test_mixture_values_are_those_of_each_mixture(drawn, lowest):
    """Pairs that the log never shows are worth the lowest return."""
    _, _, _, problem, trained = drawn
    baseline = problem.baseline.probs
    q, v = call_mixture_values(problem.data.model, Mixtures(trained, baseline, ALPHAS), lowest)
    model = pessimistic_model(problem.counts, DISCOUNT, lowest)
    for k, pi in enumerate(mixtures(trained, baseline)):
        wanted = evaluate(model, pi)
        np.testing.assert_allclose(q[:, :, k], wanted.q, atol=1e-12)
        np.testing.assert_allclose(v[:, k], wanted.v, atol=1e-12)


@njit
def call_mixture_values(model, mixed, lowest):
    return hcpi.mixture_values(model, mixed, lowest)


@pytest.mark.parametrize("lowest", [0.0, -0.3])
@pytest.mark.parametrize("estimator", [hcpi.IS, hcpi.PDIS, hcpi.DR])
def test_moments_equal_the_estimators_written_out_step_by_step(drawn, estimator, lowest):
    sampler, codes, lengths, problem, trained = drawn
    baseline, record = problem.baseline.probs, sampler.record(codes, lengths)
    mixed = Mixtures(trained, baseline, ALPHAS)
    steps = hcpi.step_tables(record, mixed, problem.data.model, estimator, lowest, False)
    found = hcpi.moments(record.episodes, sampler.reward, DISCOUNT, steps, estimator, lowest)
    model = pessimistic_model(problem.counts, DISCOUNT, lowest)
    assert found.n == len(lengths)
    for k, pi in enumerate(mixtures(trained, baseline)):
        solution = evaluate(model, pi)
        q, v = solution.q, solution.v
        contributions, weights = [], []
        for episode in np.split(codes, np.cumsum(lengths)[:-1]):
            w, decisions, doubly, total = 1.0, 0.0, v[sampler.state[episode[0]]], 0.0
            for t, c in enumerate(episode):
                s, a, then = sampler.state[c], sampler.action[c], sampler.successor[c]
                w *= pi[s, a] / sampler.policy.probs[s, a]
                beyond = 0.0 if t == len(episode) - 1 else v[then]
                shifted = sampler.reward[c] - (1 - DISCOUNT) * lowest
                decisions += DISCOUNT**t * w * shifted
                doubly += DISCOUNT**t * w * (sampler.reward[c] + DISCOUNT * beyond - q[s, a])
                total += DISCOUNT**t * sampler.reward[c]
            end = DISCOUNT ** len(episode)
            whole, missed = w * total + (1 - w) * lowest, (1 - end * w) * lowest
            contributions.append((whole, decisions + missed, doubly)[estimator])
            weights.append(w)
        assert found.mean[k] == pytest.approx(np.mean(contributions), rel=1e-9, abs=1e-12)
        square = np.var(contributions) * len(contributions)
        assert found.square[k] == pytest.approx(square, rel=1e-9, abs=1e-12)
        assert found.possible[k] == (np.sum(weights) > 0)


def test_bounds_are_those_of_student_t():
    rng = np.random.default_rng(4)
    x = rng.normal(0.3, 0.2, size=(30, 11))
    possible = np.ones(11)
    possible[3] = 0
    found = hcpi.Moments(30, x.mean(axis=0), 30 * x.var(axis=0), possible)
    bounds = np.empty(11)
    hcpi.lower_bounds(found, float(stdtrit(29, 0.9)), bounds)
    wanted = [student_t_bound(column, 0.1) for column in x.T]
    wanted[3] = -np.inf
    np.testing.assert_allclose(bounds, wanted, rtol=1e-9)
    hcpi.lower_bounds(found, -np.inf, bounds)
    assert (bounds == np.where(possible > 0, np.inf, -np.inf)).all()
    hcpi.lower_bounds(found._replace(n=1), 1.0, bounds)
    assert (bounds == -np.inf).all()


def test_the_choice_is_the_highest_bound_above_the_rival():
    bounds = np.linspace(0.0, 0.1, 11)
    bounds[4] = 0.5
    assert hcpi.choose(bounds, 0.0) == 4
    assert hcpi.choose(bounds, 0.5) == 10
    bounds[4] = -np.inf
    assert hcpi.choose(bounds, 0.0) == 10


def test_ties_go_to_the_lane_nearest_to_the_baseline():
    bounds = np.ones(11)
    assert hcpi.choose(bounds, -1.0) == 10
    bounds[7:] = -np.inf
    assert hcpi.choose(bounds, -1.0) == 6
    bounds[2] += 1e-14  # rounding breaks no tie
    assert hcpi.choose(bounds, -1.0) == 6
    assert hcpi.choose(np.full(11, np.inf), 1.0) == 0  # at δ = 1 nothing is asked
