"""Decisions and outcomes that both depend on the past: whoever decided saw what states lack."""

from __future__ import annotations

import numpy as np
import pytest

import spibb
from spibb.sceptic.markov import clock_check, decisions_remember
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


# ---- episodes that end after a number of steps that the states do not tell -----------------------


REWARDS = np.array([[0.4, 0.3], [-0.3, -1.2], [1.5, 0.6]])
MOVES = np.array([
    [[0.0, 0.07, 0.93], [1.0, 0.0, 0.0]], [[0.0, 0.03, 0.97], [0.13, 0.63, 0.24]],
    [[0.11, 0.76, 0.13], [0.0, 0.01, 0.99]],
])  # fmt: skip
STARTS, LENGTH = [0.95, 0.02, 0.03], 3
PLAYED = np.array([[0.83, 0.17], [0.08, 0.92], [0.84, 0.16]])


def horizon(seed: int, episodes: int, *, told: bool) -> spibb.Log:
    """Three steps and the end, in a world in which it pays to think of what never comes; the state
    tells the step or does not."""
    rng = np.random.default_rng(seed)
    state, rows = rng.choice(3, episodes, p=STARTS), []
    for step in range(LENGTH):
        action = (rng.random(episodes) > PLAYED[state, 0]).astype(int)
        reward = REWARDS[state, action] + 0.3 * rng.standard_normal(episodes)
        rows.append((np.arange(episodes), np.full(episodes, step), state, action, reward))
        moves = MOVES[state, action].cumsum(axis=1)
        state = (rng.random(episodes)[:, None] > moves[:, :2]).sum(axis=1)
    episode, step, state, action, reward = (np.concatenate(part) for part in zip(*rows))
    order = np.lexsort((step, episode))
    return spibb.Log.from_arrays(
        state=(state + 3 * step * told)[order], action=action[order], reward=reward[order],
        episode_id=episode[order], step=step[order], terminated=(step == LENGTH - 1)[order],
    )  # fmt: skip


def true_value(probs: np.ndarray) -> float:
    v = np.zeros(3)
    for _ in range(LENGTH):
        v = (probs * (REWARDS + 0.95 * MOVES @ v)).sum(axis=1)
    return float(np.array(STARTS) @ v)


@pytest.mark.parametrize("algorithm", [spibb.PiBSpibb(10), spibb.Auto()], ids=lambda a: a.name)
def test_gains_of_steps_that_never_come_are_not_supported(algorithm):
    """Of 30 such logs, 17 were supported, all of them wrongly, before the steps were counted."""
    wrong = 0
    for seed in range(4):
        problem = spibb.Problem.from_log(
            horizon(seed, 1000, told=False), spibb.Policy(PLAYED), discount=0.95
        )
        result = algorithm.improve(problem)
        worse = true_value(result.policy.probs) < true_value(PLAYED)
        assert not (worse and result.verdict.favourable)
        wrong += worse
    assert wrong  # the trap is one
    assert "the number of steps so far" in result.verdict.sentence
    assert "(add the column to --state)" in result.verdict.remedy


def test_where_states_tell_the_step_nothing_is_found():
    logs = [horizon(seed, 300, told=True) for seed in range(20)]
    found = [clock_check(log, np.random.default_rng(0)).p_value for log in logs]
    assert found == [1.0] * 20  # one step for each state: nothing to exchange
    hidden = [horizon(seed, 300, told=False) for seed in range(5)]
    assert max(clock_check(log, np.random.default_rng(0)).p_value for log in hidden) < 0.01


def test_the_number_of_steps_is_not_blamed_where_ends_are_chance():
    rng, found = np.random.default_rng(5), []
    for _ in range(60):
        ends = rng.random(400) < 0.3
        log = spibb.Log.from_arrays(
            state=rng.integers(0, 2, 400), action=rng.integers(0, 2, 400),
            reward=rng.standard_normal(400), terminated=ends,
            episode_id=np.append(0, np.cumsum(ends)[:-1]),
        )  # fmt: skip
        found.append(clock_check(log, rng).p_value)
    assert np.mean(np.array(found) < 0.05) <= 0.15  # P(> 9 of 60) = 0.1 % at a rate of 5 %
