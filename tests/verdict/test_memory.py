"""Decisions and outcomes that both depend on the past: whoever decided saw what states lack."""

from __future__ import annotations

import numpy as np
import pytest

import spibb
from spibb.sceptic.markov import decisions_remember
from spibb.verdict.evidence import gather_for


def cases(seed: int, *, seen: bool, episodes: int = 400, steps: int = 5):
    """Easy and hard cases, which no column tells apart; action 1 costs 0.1 in both.

    Where the staff see which case it is, they take action 1 in 80 % of the easy ones and in 30 % of
    the hard ones, otherwise in 55 % of all.
    """
    rng = np.random.default_rng(seed)
    easy = np.repeat(rng.random(episodes) < 0.5, steps)
    share = np.where(easy, 0.8, 0.3) if seen else np.full(len(easy), 0.55)
    action = (rng.random(len(easy)) < share).astype(int)
    reward = easy - 0.1 * action + 0.2 * rng.standard_normal(len(easy))
    return spibb.Log.from_arrays(
        state=rng.integers(0, 2, len(easy)), action=action, reward=reward,
        episode_id=np.repeat(np.arange(episodes), steps), step=np.tile(np.arange(steps), episodes),
        terminated=np.tile(np.arange(steps) == steps - 1, episodes),
    )  # fmt: skip


@pytest.mark.parametrize("algorithm", [spibb.PiBSpibb(10), spibb.Auto()], ids=lambda a: a.name)
def test_what_only_the_staff_see_supports_nothing(algorithm):
    logs = [cases(seed, seen=True) for seed in range(3)]
    found = [
        algorithm.improve(spibb.Problem.from_log(log, None, discount=0.9)).verdict for log in logs
    ]
    assert all(verdict.grade == "not supported" for verdict in found)
    doubted = [v for v in found if "both the decisions and what follows" in v.sentence]
    assert doubted  # others may fail an earlier condition
    for verdict in doubted:
        assert "what the current policy looks at" in verdict.remedy
        assert (verdict.criteria[-1].name, verdict.criteria[-1].passed) == ("memory", False)


def test_the_same_cases_are_no_trap_where_nobody_sees_them():
    problem = spibb.Problem.from_log(cases(0, seen=False), None, discount=0.9)
    evidence = gather_for(spibb.PiBSpibb(10).improve(problem))
    assert not evidence.memory.confounded
    assert (evidence.policy.probs[:, 0] > 0.9).all()  # which is right: action 1 costs


def test_decisions_of_a_policy_on_states_do_not_remember():
    found = [decisions_remember(cases(k, seen=False, episodes=100), np.random.default_rng(k))
             for k in range(40)]  # fmt: skip
    assert np.mean(np.array(found) < 0.05) <= 0.15  # P(> 6 of 40) = 0.3 % at a rate of 5 %
    assert decisions_remember(cases(0, seen=True), np.random.default_rng(0)) < 0.01


def patients(seed: int, episodes: int = 250, steps: int = 4):
    """A cause that stays: action 1 costs 0.1, and is taken in 70 % of the good cases, 30 % of the
    others. A single step says little of it."""
    rng = np.random.default_rng(seed)
    good = np.repeat(rng.random(episodes) < 0.5, steps)
    action = (rng.random(len(good)) < np.where(good, 0.7, 0.3)).astype(int)
    reward = 0.8 * good - 0.1 * action + 0.5 * rng.standard_normal(len(good))
    return spibb.Log.from_arrays(
        state=rng.integers(0, 3, len(good)), action=action, reward=reward,
        episode_id=np.repeat(np.arange(episodes), steps), step=np.tile(np.arange(steps), episodes),
        terminated=np.tile(np.arange(steps) == steps - 1, episodes),
    )  # fmt: skip


def test_a_cause_that_stays_leaves_an_echo():
    found = []
    for seed in range(6):
        problem = spibb.Problem.from_log(patients(seed), None, discount=0.9)
        result = spibb.PiBSpibb(10).improve(problem)
        assert (result.policy.probs[:, 1] > 0.9).any()  # which is wrong
        found.append(result.verdict)
    assert not any(verdict.favourable for verdict in found)
    assert sum("both the decisions and what follows" in v.sentence for v in found) >= 4
