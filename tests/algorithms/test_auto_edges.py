"""`auto`, its posterior and its verdict at the edges of what a log can be."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from spibb.algorithms.auto.algorithm import Auto, telling_rewards
from spibb.algorithms.problem import Problem
from spibb.algorithms.spibb import PiBSpibb
from spibb.assurance.posterior import posterior_improvement
from spibb.log import Log
from spibb.policy import Policy
from spibb.verdict import Grade

N = 60


def problem_of(
    n_states: int = 3, n_actions: int = 2, length: int = 3, episodes: int = N,
    discount: float = 0.9, paid: str = "noisy", counts: bool = False,
) -> Problem:  # fmt: skip
    """A log of a world in which the last action is the best one."""
    rng = np.random.default_rng(0)
    n = length * episodes
    state, action = rng.integers(n_states, size=n), rng.integers(n_actions, size=n)
    reward = {
        "noisy": action + rng.standard_normal(n),
        "two": (rng.random(n) < 0.2 + 0.6 * action / n_actions) * 1.0,
        "nothing": np.zeros(n), "same": np.full(n, -7.0), "exact": action * 1.0,
        "tiny": (action + rng.standard_normal(n)) * 1e-12,
        "offset": action + rng.standard_normal(n) + 1e6,
    }[paid]  # fmt: skip
    last = np.arange(n) % length == length - 1
    log = Log.from_arrays(
        [f"s{x}" for x in state], [f"a{a}" for a in action], reward,
        episode_id=np.arange(n) // length, terminated=last,
    )  # fmt: skip
    baseline = Policy.uniform(log.states, log.actions)
    problem = Problem.from_log(log, baseline, discount=discount)
    if counts:
        return Problem.from_counts(problem.counts, baseline, discount=discount)
    return problem


EDGES = {
    "one state": {"n_states": 1},
    "one action": {"n_actions": 1},
    "one state and action": {"n_states": 1, "n_actions": 1},
    "one episode": {"episodes": 1},
    "one row": {"episodes": 1, "length": 1},
    "bandit": {"length": 1},
    "no reward": {"paid": "nothing"},
    "all rewards equal": {"paid": "same"},
    "rewards that never vary": {"paid": "exact"},
    "two rewards": {"paid": "two"},
    "tiny rewards": {"paid": "tiny"},
    "rewards with an offset": {"paid": "offset"},
    "discount 0": {"discount": 0.0},
    "discount close to 1": {"discount": 0.9999},
    "counts only": {"counts": True},
    "more states than visits": {"n_states": 200},
    "seventy states": {"n_states": 70},
}


@pytest.mark.parametrize("edge", EDGES)
def test_it_answers_with_numbers_and_a_policy(edge):
    problem = problem_of(**EDGES[edge])
    result = Auto(draws=200).improve(problem)
    np.testing.assert_allclose(result.policy.probs.sum(axis=1), 1)
    for candidate in result.sweep:
        numbers = candidate.value, candidate.gain, candidate.lower, *candidate.interval
        assert all(map(math.isfinite, numbers))
        assert candidate.interval[0] <= candidate.gain <= candidate.interval[1] or math.isclose(
            *candidate.interval
        )
    belief = result.posterior(draws=200)
    assert np.isfinite(belief.values).all()
    assert result.verdict.sentence[-1] == "."


@pytest.mark.parametrize(
    "edge", ["one action", "one state and action", "no reward", "all rewards equal", "one row"]
)
def test_where_nothing_can_be_gained_the_baseline_is_kept(edge):
    problem = problem_of(**EDGES[edge])
    result = Auto(draws=200).improve(problem)
    assert result.chosen is None
    np.testing.assert_array_equal(result.policy.probs, problem.baseline.probs)
    assert result.posterior(draws=200).gain == 0
    assert result.posterior(draws=200).probability == 1


@pytest.mark.parametrize(
    "edge", ["one state", "bandit", "discount 0", "counts only", "two rewards"]
)
def test_where_much_can_be_gained_it_is(edge):
    problem = problem_of(**(EDGES[edge] | {"episodes": 300}))
    result = Auto(draws=200).improve(problem)
    assert result.chosen is not None
    best = problem.actions.labels.index("a1")
    assert (result.policy.probs[:, best] >= problem.baseline.probs[:, best]).all()
    assert result.policy.probs[:, best].mean() > 0.6


def test_with_discount_0_states_where_no_episode_starts_do_not_count():
    """What is done there changes nothing, in any model: no gain, and surely no loss."""
    rows = [
        ("first", "a0", 1.0),
        ("second", "a0", 0.0),
        ("first", "a1", 1.0),
        ("second", "a1", 5.0),
    ]
    state, action, reward = zip(*(rows * 20))
    log = Log.from_arrays(
        state, action, reward, episode_id=np.arange(80) // 2, terminated=np.arange(80) % 2 == 1
    )
    problem = Problem.from_log(log, Policy.uniform(log.states, log.actions), discount=0.0)
    result = Auto(draws=200).improve(problem)
    moved = [c for c in result.sweep if c.states_changed]
    assert moved
    assert all((c.gain, c.lower, c.probability) == (0, 0, 1) for c in moved)
    assert result.chosen is None


@pytest.mark.parametrize("n_states", [20, 80])
@pytest.mark.parametrize("discount", [0.5, 0.95, 0.999])
def test_what_no_episode_reaches_changes_nothing_in_any_model(n_states, discount):
    """Half of the states lead among themselves, and no episode starts there."""
    counts = problem_of(n_states=n_states, episodes=400, discount=discount).counts
    order = np.argsort([int(label[1:]) for label in counts.states.labels])
    apart = np.zeros(n_states, dtype=bool)
    apart[order[n_states // 2 :]] = True
    owner = apart[counts.pair_of_outcome // 2]
    kept = (counts.successors < 0) | (apart[counts.successors] == owner)
    pairs = np.bincount(counts.pair_of_outcome[kept], minlength=len(counts.indptr) - 1)
    split = replace(
        counts, indptr=np.append(0, np.cumsum(pairs)), successors=counts.successors[kept],
        n=counts.n[kept], reward_sum=counts.reward_sum[kept], reward_sq=counts.reward_sq[kept],
        starts=np.where(apart, 0, counts.starts),
    )  # fmt: skip
    baseline = Policy.uniform(counts.states, counts.actions)
    other = Policy(
        np.where(apart[:, None], [[0.1, 0.9]], baseline.probs), counts.states, counts.actions
    )
    found = posterior_improvement(split, other, baseline, discount, rng=np.random.default_rng(0))
    assert found.values.std() > 0
    assert (found.gain, found.probability) == (0, 1)


def cut_short(known: float, other: float) -> Problem:
    """Steps that pay `known`, and cut ones, without a successor, that pay something else."""
    rng = np.random.default_rng(0)
    n, final = 3 * N, np.arange(3 * N) % 3 == 2
    cut = final & (np.arange(n) // 3 % 2 == 1)
    reward = np.where(cut, other, known)
    log = Log.from_arrays(
        rng.integers(3, size=n), rng.integers(2, size=n), reward,
        episode_id=np.arange(n) // 3, terminated=final & ~cut,
    )  # fmt: skip
    return Problem.from_log(log, Policy.uniform(log.states, log.actions), discount=0.9)


@pytest.mark.parametrize("known", [0.0, 1.0, 0.1, 0.7])
@pytest.mark.parametrize("algorithm", [Auto(draws=50), PiBSpibb(n_wedge=5)])
def test_rewards_that_differ_only_where_nothing_is_counted_tell_nothing(algorithm, known):
    problem = cut_short(known, 1.0 - known)
    assert telling_rewards(problem.counts) == pytest.approx(0, abs=1e-9)
    result = algorithm.improve(problem)
    assert result.verdict.grade is Grade.NOT_SUPPORTED


@pytest.mark.parametrize("unit", [1.0, 0.1, 0.2, 0.3, 0.7, 1e-3, 1e-9, 1e9])
def test_five_telling_rewards_are_five_in_every_unit(unit):
    """Of 206 single decisions five failed, all after the action that is seldom taken."""
    action, failed = np.repeat([0, 1], [200, 6]), np.zeros(206)
    failed[200:205] = 1
    log = Log.from_arrays(np.zeros(206, int), action, unit * (1 - failed), terminated=[True] * 206)
    problem = Problem.from_log(log, discount=0.9)
    assert telling_rewards(problem.counts) == 5
    assert Auto().improve(problem).policy.probs.tolist() == [[1.0, 0.0]]
