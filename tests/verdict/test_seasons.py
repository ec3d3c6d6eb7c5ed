"""A season that changes decisions and outcomes passes for a difference between actions."""

from __future__ import annotations

import numpy as np
import pytest

import spibb
from spibb.sceptic.drift import season_check
from spibb.verdict.evidence import gather_for

ALGORITHMS = [
    spibb.PiBSpibb(10),
    spibb.Auto(),
    spibb.Certified(lowest_reward=0, highest_reward=1),
]


def decided(seed: int, good: np.ndarray, better: float, decisions: bool, recorded: bool = False):
    """Single decisions; action 1 costs 0.03. In good times outcomes are better, if `better` than
    0.3, and decisions change."""
    rng, n = np.random.default_rng(seed), len(good)
    share = np.where(good & decisions, 0.6, 0.2)
    action = (rng.random(n) < share).astype(int)
    reward = rng.random(n) < np.where(good, better, 0.3) - 0.03 * action
    return spibb.Log.from_arrays(
        state=rng.integers(0, 2, n), action=action, reward=reward.astype(float),
        episode_id=np.arange(n), step=np.zeros(n, dtype=int), terminated=np.ones(n, dtype=bool),
        action_prob=np.where(action, share, 1 - share) if recorded else None,
    )  # fmt: skip


def shop(seed: int, *, outcomes: bool, decisions: bool, n: int = 4000, recorded: bool = False):
    """Good times begin half-way."""
    return decided(seed, np.arange(n) >= n // 2, 0.5 if outcomes else 0.3, decisions, recorded)


def weekends(seed: int, *, outcomes: bool, decisions: bool, n: int = 1500):
    """Ten good episodes follow ten bad ones."""
    return decided(seed, np.arange(n) // 10 % 2 == 1, 0.7 if outcomes else 0.3, decisions)


def verdict(log: spibb.Log, algorithm: spibb.Algorithm) -> spibb.Verdict:
    return algorithm.improve(spibb.Problem.from_log(log, None, discount=0.0)).verdict


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda a: a.name)
def test_a_season_supports_nothing(algorithm):
    found = [verdict(shop(k, outcomes=True, decisions=True), algorithm) for k in range(3)]
    assert all(one.grade == "not supported" for one in found)
    doubted = [one for one in found if "Early and late episodes differ" in one.sentence]
    assert doubted or algorithm.name == "certified"  # whose tests alone refuse some of these logs
    assert all("recent part of the log" in one.remedy for one in doubted)


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda a: a.name)
def test_a_cycle_supports_nothing(algorithm):
    found = [verdict(weekends(k, outcomes=True, decisions=True), algorithm) for k in range(3)]
    assert all(one.grade == "not supported" for one in found)
    doubted = [one for one in found if "consecutive episodes differ" in one.sentence]
    assert doubted or algorithm.name == "certified"
    assert all("weekday" in one.remedy and "--unit" in one.remedy for one in doubted)


@pytest.mark.parametrize("world", [shop, weekends])
@pytest.mark.parametrize(("outcomes", "decisions"), [(False, False), (True, False), (False, True)])
def test_what_cannot_pass_for_a_difference_between_actions_is_no_season(world, outcomes, decisions):
    rng = np.random.default_rng(0)
    logs = [world(k, outcomes=outcomes, decisions=decisions, n=600) for k in range(40)]
    p = np.array([season_check(log, rng).p_value for log in logs])
    assert np.mean(p < 0.01) <= 0.05  # 0.01 at most, and 40 logs


def test_tests_that_know_every_probability_are_not_asked_about_seasons():
    log = shop(0, outcomes=True, decisions=True, recorded=True)
    problem = spibb.Problem.from_log(log, None, discount=0.0)
    model, tests = (gather_for(one.improve(problem)) for one in (ALGORITHMS[0], ALGORITHMS[2]))
    assert tests.season is None
    assert model.season.p_value < 0.01


def test_a_single_episode_has_no_season():
    log = shop(0, outcomes=False, decisions=False, n=1)
    assert season_check(log, np.random.default_rng(0)) is None
