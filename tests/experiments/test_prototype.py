"""The prototype of auto's rule: the yardstick of the assurance benchmark."""

from __future__ import annotations

import numpy as np
import pytest
from strategies import random_problem

from spibb.algorithms.auto import Auto
from spibb.algorithms.problem import Problem
from spibb.counts import Counts
from spibb.errors import InputError
from spibb.experiments.prototype import Prototype
from spibb.log import Log, returns_to_go
from spibb.policy import Policy


def arms(*rewards: list[float]) -> Problem:
    """A log of one state, with the rewards of each arm; the baseline is uniform."""
    action = [f"arm {k}" for k, paid in enumerate(rewards) for _ in paid]
    paid = [r for each in rewards for r in each]
    log = Log.from_arrays(["s"] * len(paid), action, paid, terminated=[True] * len(paid))
    return Problem.from_log(log, Policy.uniform(log.states, log.actions), discount=0.9)


def mean_model_value(problem: Problem, probs: np.ndarray, unseen: float) -> float:
    """ρ in the mean of the drawn models of one step, outcome by outcome."""
    counts, total = problem.counts, 0.0
    for pair, prob in enumerate(probs.reshape(-1)):
        own = range(counts.indptr[pair], counts.indptr[pair + 1])
        visits = sum(counts.n[k] + 0.5 for k in own) + 0.5
        paid = sum((counts.n[k] + 0.5) / visits * counts.reward_sum[k] / counts.n[k] for k in own)
        total += prob * (paid + 0.5 / visits * unseen)
    return total


@pytest.mark.parametrize("low", [0.0, -3.0])
def test_outcomes_are_drawn_with_half_a_visit_for_the_one_never_seen(low):
    """With one outcome that always pays the same, the draws are of a Beta distribution."""
    problem = arms([2.0] * 6, [low] * 3)
    one = np.array([[[1.0, 0.0]]])
    rho = Prototype(draws=20_000).values(problem, one)[:, 0]
    unseen = min(low, 0.0)
    assert rho.mean() == pytest.approx(mean_model_value(problem, one[0], unseen), abs=0.01)
    share, n = 6.5 / 7, 7.0
    spread = (2.0 - unseen) * np.sqrt(share * (1 - share) / (n + 1))
    assert rho.std() == pytest.approx(spread, rel=0.05)


def test_mean_rewards_have_the_scale_of_students_t():
    """Two visits, pooled variance v: t with 3 degrees of freedom, scale² (SS + 2 v)/3/2."""
    problem = arms([0.0, 2.0], [5.0, 5.0])
    rows = Prototype(draws=40_000).values(problem, np.array([[[1.0, 0.0]], [[0.0, 1.0]]]))
    assert np.median(rows, axis=0) == pytest.approx([1.0, 5.0], rel=0.3)
    ends = np.quantile(rows[:, 0], [0.25, 0.75])
    assert ends[1] - ends[0] == pytest.approx(2 * 0.765 * np.sqrt((2 + 2 * 1) / 3 / 2), rel=0.15)


def test_values_are_those_of_systems_solved_one_by_one():
    """In worlds of several steps, with pairs never tried, by quantiles: t has no variance."""
    problem = random_problem(3, 5, 3, 60, 0.8)
    probs, draws = problem.baseline.probs, 4000
    rho = Prototype(draws=draws).values(problem, probs[None])[:, 0]
    unseen = min(float(returns_to_go(problem.log, 0.8).min()), 0.0)
    slow = [_slow(problem.counts, probs, unseen, np.random.default_rng(k)) for k in range(draws)]
    found, wanted = (np.quantile(draw, [0.05, 0.25, 0.5, 0.75, 0.95]) for draw in (rho, slow))
    assert found == pytest.approx(wanted, abs=0.15 * (wanted[3] - wanted[1]))
    assert found[1:4] == pytest.approx(wanted[1:4], abs=0.07 * (wanted[3] - wanted[1]))


def _slow(counts: Counts, probs: np.ndarray, unseen: float, rng: np.random.Generator) -> float:
    n_states, n_actions = probs.shape
    squares = counts.reward_scatter * counts.unit**2
    pooled = squares.sum() / max((counts.n - 1).sum(), 1)
    p, r = np.zeros((n_states, n_states)), np.zeros(n_states)
    for pair in range(n_states * n_actions):
        (x, a), own = divmod(pair, n_actions), range(counts.indptr[pair], counts.indptr[pair + 1])
        mass = [rng.gamma(counts.n[k] + 0.5) for k in own]
        total = sum(mass) + rng.gamma(0.5)
        reward = unseen * (1 - sum(mass) / total)
        for k, each in zip(own, mass):
            n = counts.n[k]
            scale = np.sqrt((squares[k] + 2 * pooled) / (n + 1) / n)
            reward += each / total * (counts.reward_sum[k] / n + scale * rng.standard_t(n + 1))
            if counts.successors[k] >= 0:
                p[x, counts.successors[k]] += probs[x, a] * each / total
        r[x] += probs[x, a] * reward
    start = counts.starts / counts.starts.sum()
    return float(start @ np.linalg.solve(np.eye(n_states) - 0.8 * p, r))


def test_the_largest_quantile_is_taken_and_the_baseline_if_it_is_not_positive():
    problem = random_problem(5, 6, 3, 400, 0.9)
    rule = Prototype()
    named, policies = Auto.over_thresholds().candidates(problem)
    moves = (policies != problem.baseline.probs).any(axis=(1, 2))
    lower = rule.lower(problem, policies[moves])
    chosen = rule.improve(problem).policy.probs
    wanted = policies[moves][np.argmax(lower)] if lower.max() > 0 else problem.baseline.probs
    np.testing.assert_array_equal(chosen, wanted)
    thin = arms([1.0, 0.0], [0.0, 1.0])
    np.testing.assert_array_equal(rule.improve(thin).policy.probs, thin.baseline.probs)
    assert len(named) == 20


def test_counts_are_not_enough():
    problem = arms([1.0, 0.0], [0.0, 1.0])
    bare = Problem.from_counts(problem.counts, problem.baseline, discount=0.9)
    with pytest.raises(InputError, match="needs the log"):
        Prototype().improve(bare)
