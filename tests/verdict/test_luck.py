"""Where nothing can be gained, little is changed and less is supported, however many states."""

from __future__ import annotations

import numpy as np
import pytest

import spibb
from spibb.verdict.evidence import gather_for


def bandit(seed: int, n_states: int, n_actions: int, n: int, *, effect=0.0, noise=1.0, offset=0.0):
    """Single decisions of a uniform policy; rewards are normal around effects of the pairs."""
    rng = np.random.default_rng([n_states, n_actions, n, seed])
    state, action = rng.integers(0, n_states, n), rng.integers(0, n_actions, n)
    spread = np.broadcast_to(noise, n_states)[state]
    mean = effect * rng.standard_normal((n_states, n_actions))
    constant = offset * np.arange(n_states)[state]
    log = spibb.Log.from_arrays(
        state=state, action=action, episode_id=np.arange(n), terminated=np.ones(n, dtype=bool),
        reward=mean[state, action] + spread * rng.standard_normal(n) + constant,
    )  # fmt: skip
    return log, spibb.Policy(np.full((n_states, n_actions), 1 / n_actions))


def results(kind: dict, logs: int, **world):
    for seed in range(logs):
        log, baseline = bandit(seed, **kind, **world)
        yield spibb.improve(log, baseline, discount=0.0, algorithm="auto")


@pytest.mark.parametrize(
    "world",
    [
        {},
        {"offset": 10.0},
        {"noise": np.where(np.arange(60) < 6, 30.0, 0.1)},
    ],
    ids=["plain", "a constant of each state", "unequal noise"],
)
def test_luck_is_not_supported(world):
    found = list(results({"n_states": 60, "n_actions": 3, "n": 3000}, 12, **world))
    moved = sum((r.policy.probs != r.problem.baseline.probs).any() for r in found)
    assert sum(r.verdict.favourable for r in found) <= 2  # P(> 2 of 12) = 2 % at a rate of 5 %
    assert moved <= 2 or "noise" in world


@pytest.mark.parametrize(("n_states", "n"), [(200, 6000), (600, 9000)])
def test_luck_in_many_states_does_not_add_up_to_a_gain(n_states, n):
    found = list(results({"n_states": n_states, "n_actions": 3, "n": n}, 6))
    assert not any((r.policy.probs != r.problem.baseline.probs).any() for r in found)


def test_effects_are():
    found = list(results({"n_states": 60, "n_actions": 3, "n": 3000}, 4, effect=0.4))
    assert all(r.verdict.favourable for r in found)


def test_states_that_outcomes_chose_are_compared_with_the_largest_of_all():
    log, baseline = bandit(0, 40, 2, 2000, effect=0.5)
    problem = spibb.Problem.from_log(log, baseline, discount=0.0)
    counted, chosen = (
        gather_for(algorithm.improve(problem))
        for algorithm in (spibb.PiBSpibb(1), spibb.Auto(kinds=("cautious",)))
    )
    assert counted.changed.sum() == 40 and counted.chance.mean == 40
    k = chosen.changed.sum()
    assert 0 < k < 40 and chosen.chance.mean > k


@pytest.mark.parametrize(("n", "enough"), [(40, False), (400, True)])
def test_what_is_rare_and_decides_may_not_have_shown_in_a_few_visits(n, enough):
    """Action 1 is better by 5 standard deviations, and was taken in a quarter of the cases."""
    rng = np.random.default_rng(0)
    action = (np.arange(n) % 4 == 0).astype(int)
    log = spibb.Log.from_arrays(
        state=np.zeros(n, dtype=int), action=action, reward=5.0 * action + rng.standard_normal(n),
        episode_id=np.arange(n), terminated=np.ones(n, dtype=bool),
    )  # fmt: skip
    verdict = spibb.improve(log, None, discount=0.0, n_wedge=5).verdict
    told = next(c for c in verdict.criteria if c.name == "visits")
    assert (told.found, told.passed, verdict.favourable) == (f"{n // 4}", enough, enough)
    if not enough:
        assert "may have gone unseen" in verdict.sentence
        assert "200 more episodes" in verdict.remedy


@pytest.mark.parametrize("algorithm", ["pi-b", "auto"])
def test_prizes_that_are_missing_by_chance_are_not_supported(algorithm):
    """Both actions pay 1 on average: one pays 20 in 5 % of the cases, the other 2 in half of them.

    Where the prize is missing, its action looks worse, in all such states alike.
    """
    favourable = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        action = rng.integers(2, size=2800)
        reward = np.where(action, 2.0 * (rng.random(2800) < 0.5), 20.0 * (rng.random(2800) < 0.05))
        log = spibb.Log.from_arrays(
            state=rng.integers(100, size=2800), action=action, reward=reward,
            episode_id=np.arange(2800), terminated=np.ones(2800, dtype=bool),
        )  # fmt: skip
        options = {"n_wedge": 5} if algorithm == "pi-b" else {}
        result = spibb.improve(log, None, discount=0.0, algorithm=algorithm, **options)
        favourable += result.verdict.favourable
    assert favourable <= 1  # P(> 1 of 8) = 6 % at a rate of 5 %; 4 of 8 if variances were trusted


def test_noise_of_later_steps_is_not_supported():
    """All actions of the second step are alike, and each pair of them was seen twice.

    The first step pays 0.05 more for the action that the policy prefers.
    """
    favourable, first = 0, np.tile([0.65, 0.35], (8, 1))
    for seed in range(8):
        rng, n = np.random.default_rng(seed), 1000
        start, chosen = rng.integers(8, size=n), (rng.random(n) < 0.35).astype(int)
        later = 8 + 4 * (2 * start + chosen) + rng.integers(4, size=n)
        reward = np.stack([-0.05 * chosen, rng.normal(size=n)], axis=1)
        log = spibb.Log.from_arrays(
            state=np.stack([start, later], axis=1).reshape(-1),
            action=np.stack([chosen, rng.integers(12, size=n)], axis=1).reshape(-1),
            reward=reward.reshape(-1), episode_id=np.repeat(np.arange(n), 2),
            terminated=np.tile([False, True], n), n_states=72, n_actions=12,
        )  # fmt: skip
        rows = np.full((72, 12), 1 / 12)
        rows[:8] = np.pad(first, ((0, 0), (0, 10)))
        result = spibb.improve(log, spibb.Policy(rows), discount=0.99, n_wedge=10)
        favourable += result.verdict.favourable
    assert favourable <= 2
