"""A season that changes decisions and outcomes passes for a difference between actions."""

from __future__ import annotations

import zlib

import numpy as np
import pyarrow as pa
import pytest

import spibb
from spibb import tables
from spibb.sceptic.drift import drift_check, season_check
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


def shifts(seed: int, *, outcomes: bool, decisions: bool, n: int = 1500):
    """Good and bad episodes alternate, faster than any group of them shows."""
    return decided(seed, np.arange(n) % 2 == 1, 0.7 if outcomes else 0.3, decisions)


def week(seed: int, *, outcomes: bool, decisions: bool, n: int = 1500):
    """Two good days follow five bad ones, with an episode a day."""
    return decided(seed, np.arange(n) % 7 >= 5, 0.8 if outcomes else 0.3, decisions)


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


@pytest.mark.parametrize("world", [shifts, week])
def test_short_cycles_support_nothing(world):
    logs = [world(k, outcomes=True, decisions=True) for k in range(4)]
    found = [verdict(log, spibb.PiBSpibb(10)) for log in logs]
    assert all(one.grade == "not supported" for one in found)
    doubted = [one for one in found if "resemble those shortly before" in one.sentence]
    assert doubted
    assert all("weekday" in one.remedy for one in doubted)
    changed = {spibb.PiBSpibb(10).improve(spibb.Problem.from_log(log, None, discount=0.0))
               .policy.probs[0, 1] for log in logs}  # fmt: skip
    assert 1.0 in changed  # the model likes the action that costs


@pytest.mark.parametrize("ids", ["hash", "uuid-like"])
def test_steps_that_are_times_order_the_episodes(ids, tmp_path):
    """Names that are text in no order must not hide a season that the times show."""
    n = 4000
    log = shop(0, outcomes=True, decisions=True, n=n)
    names = [zlib.crc32(f"{ids}{k}".encode()) for k in range(n)]
    when = np.datetime64("2024-01-01T00:00:00") + np.arange(n).astype("timedelta64[h]")
    columns = {
        "episode_id": [f"e{name:08x}" for name in names], "step": when.astype(str).tolist(),
        "state": log.state, "action": log.action, "reward": log.reward,
        "terminated": [True] * n,
    }  # fmt: skip
    tables.write_table(pa.table(columns), tmp_path / "log.csv")
    read = spibb.read_log(tmp_path / "log.csv")
    assert not read.untimed
    assert read.reward.tolist() == log.reward.tolist()
    arrays = spibb.Log.from_arrays(**columns | {"step": when})
    assert arrays.reward.tolist() == log.reward.tolist()
    rng = np.random.default_rng(0)
    assert season_check(read, rng).p_value == season_check(log, np.random.default_rng(0)).p_value

    untimed = spibb.Log.from_arrays(**columns | {"step": np.zeros(n)})
    assert untimed.untimed
    assert drift_check(untimed, 0.0, rng) is None
    result = spibb.PiBSpibb(10).improve(spibb.Problem.from_log(untimed, None, discount=0.0))
    season = next(c for c in result.verdict.criteria if c.name == "season")
    assert season.passed is None
    assert "order of the episodes" in season.found


@pytest.mark.parametrize(
    ("outcomes", "decisions", "world"),
    [
        (False, False, shop),  # where nothing changes, all worlds are this one
        *((True, False, world) for world in (shop, weekends, shifts, week)),
        *((False, True, world) for world in (shop, weekends, shifts, week)),
    ],
)
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
