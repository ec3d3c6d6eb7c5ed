"""HCPI's compiled parts against slow transcriptions: Q-learning, mixtures, moments, the choice."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import stdtrit

from spibb.algorithms.base import Problem
from spibb.algorithms.hcpi import ALPHAS
from spibb.envs.baselines import gridworld_baseline
from spibb.envs.gridworld import gridworld_mdp
from spibb.kernels import hcpi
from spibb.policy import Policy
from spibb.simulate import Sampler
from spibb.solve import evaluate

DISCOUNT = 0.95


def slow_q_learning(transitions, rows, available, step_size, q):
    for state, action, reward, successor in zip(*(column[rows] for column in transitions)):
        target = reward
        if successor >= 0:
            target += DISCOUNT * max(q[successor, available[successor]])
        q[state, action] += step_size * (target - q[state, action])
    return q


def test_q_learning_equals_its_definition():
    rng = np.random.default_rng(0)
    n_states, n_actions, n = 7, 3, 400
    transitions = (
        rng.integers(n_states, size=n), rng.integers(n_actions, size=n), rng.normal(size=n),
        rng.integers(-1, n_states, size=n),
    )  # fmt: skip
    available = rng.random((n_states, n_actions)) < 0.6
    available[:, 1] = True
    start = rng.normal(size=(n_states, n_actions))
    rows = rng.integers(n, size=1000)
    found = start.copy()
    hcpi.q_learning(transitions, rows, available, DISCOUNT, 0.1, found)
    wanted = slow_q_learning(transitions, rows, available, 0.1, start.copy())
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


def test_mixture_values_are_those_of_each_mixture(drawn):
    _, _, _, problem, trained = drawn
    model, baseline = problem.model, problem.baseline.probs
    q, v = hcpi.mixture_values(model.rows, model.rewards, DISCOUNT, trained, baseline, ALPHAS)
    assert (v[-1] == 0).all()
    for k, pi in enumerate(mixtures(trained, baseline)):
        wanted = evaluate(model, pi)
        np.testing.assert_allclose(q[:, :, k], wanted.q, atol=1e-12)
        np.testing.assert_allclose(v[:-1, k], wanted.v, atol=1e-12)


@pytest.mark.parametrize("missing", [0.0, -0.3])
@pytest.mark.parametrize("estimator", ["is", "pdis", "dr"])
def test_moments_equal_the_estimators_written_out_step_by_step(drawn, estimator, missing):
    sampler, codes, lengths, problem, trained = drawn
    model, baseline = problem.model, problem.baseline.probs
    q, v = hcpi.mixture_values(model.rows, model.rewards, DISCOUNT, trained, baseline, ALPHAS)
    if estimator != "dr":
        q, v = np.zeros_like(q), np.zeros_like(v)
    whole = estimator == "is"
    policies = trained, baseline, sampler.policy.probs
    tables = hcpi.step_tables(sampler.outcomes[0], policies, DISCOUNT, q, v, ALPHAS, whole)
    found = hcpi.moments((codes, lengths), tables, sampler.reward, DISCOUNT, whole, missing)
    for k, pi in enumerate(mixtures(trained, baseline)):
        contributions, weights = [], []
        for episode in np.split(codes, np.cumsum(lengths)[:-1]):
            w, x, total = 1.0, v[sampler.state[episode[0]], k], 0.0
            for t, c in enumerate(episode):
                s, a, then = sampler.state[c], sampler.action[c], sampler.successor[c]
                w *= pi[s, a] / sampler.policy.probs[s, a]
                beyond = 0.0 if t == len(episode) - 1 else v[then, k]
                x += DISCOUNT**t * w * (sampler.reward[c] + DISCOUNT * beyond - q[s, a, k])
                total += DISCOUNT**t * sampler.reward[c]
            left_out = (1 - w) if whole else (1 - DISCOUNT ** len(episode) * w)
            contributions.append((w * total if whole else x) + left_out * missing)
            weights.append(w)
        wanted = np.sum(contributions), np.square(contributions).sum(), np.sum(weights) > 0
        np.testing.assert_allclose(found[:, k], wanted, rtol=1e-9, atol=1e-12)


def test_the_choice_is_the_highest_bound_above_the_rival():
    rng = np.random.default_rng(4)
    x = rng.normal(0.3, 0.2, size=(30, 11))
    x[:, 4] += 0.5
    sums = np.array([x.sum(axis=0), (x**2).sum(axis=0), np.ones(11)])
    quantile = float(stdtrit(29, 0.9))
    bounds = x.mean(axis=0) - x.std(axis=0, ddof=1) / np.sqrt(30) * quantile
    assert bounds.argmax() == 4
    assert hcpi.choose(sums, 30, quantile, 0.0) == 4
    assert hcpi.choose(sums, 30, quantile, bounds[4] + 1e-9) == 10
    sums[2, 4] = 0
    assert hcpi.choose(sums, 30, quantile, 0.0) != 4


def test_ties_go_to_the_lane_nearest_to_the_baseline():
    sums = np.ones((3, 11))
    assert hcpi.choose(sums, 2, 1.0, -1.0) == 10
    sums[2, 7:] = 0
    assert hcpi.choose(sums, 2, 1.0, -1.0) == 6
