"""Changes that several contexts of a bandit share."""

from __future__ import annotations

import numpy as np
import pytest

from spibb import Certified, Log, Problem
from spibb.changes.shared_changes import regions

GROUPS, PLACES, ITEMS = 4, 3, 4


def clicks(seed: int, n: int, lift: float, *, daily: bool = True) -> Log:
    """Item 2 is clicked `lift` times as often in group 1, wherever it is shown."""
    rng = np.random.default_rng(seed)
    group, place = rng.integers(GROUPS, size=n), rng.integers(PLACES, size=n)
    shown = np.full((7, ITEMS), 1 / ITEMS)
    if daily:
        shown = 0.3 * shown + 0.7 * rng.dirichlet(np.full(ITEMS, 5.0), 7)
    day = rng.integers(7, size=n)
    item = (rng.random(n)[:, None] > shown.cumsum(axis=1)[day]).sum(axis=1).clip(max=ITEMS - 1)
    rate = 0.05 * np.where((group == 1) & (item == 2), lift, 1.0)
    return Log.from_arrays(
        state=[(int(p), f"g{g}") for p, g in zip(place, group)], action=item,
        reward=(rng.random(n) < rate).astype(float), action_prob=shown[day, item],
        terminated=np.ones(n, bool), episode_id=np.arange(n), step=np.zeros(n, int),
    )  # fmt: skip


def certified(log: Log):
    problem = Problem.from_log(log, discount=0.0)
    return Certified(lowest_reward=0, highest_reward=1).improve(problem)


@pytest.mark.parametrize("daily", [True, False])
def test_a_change_that_contexts_share_is_found(daily):
    result = certified(clicks(1, 8000, 4.0, daily=daily))
    assert all(result.policy.row((p, "g1"))[2] == pytest.approx(1) for p in range(PLACES))
    assert result.verdict.grade == "certified"


def test_a_change_that_contexts_share_passes_where_single_ones_are_lost_in_noise(monkeypatch):
    """The same logs with and without it."""
    logs = [clicks(seed, 5000, 3.0) for seed in range(12)]
    found = [[t for t in certified(log).tests if t.accepted] for log in logs]
    shared = {frozenset((p, "g1") for p in range(PLACES))}
    assert any({frozenset(c.state for c in t.changes) for t in tests} == shared for tests in found)
    monkeypatch.setattr("spibb.changes.tested.best_shared", lambda *_: None)
    without = [any(t.accepted for t in certified(log).tests) for log in logs]
    assert sum(map(bool, found)) > sum(without)


def test_where_nothing_helps_hardly_anything_is_certified():
    """δ = 0.05: more than 8 of 60 would happen once in a hundred times."""
    found = [any(t.accepted for t in certified(clicks(s, 1500, 1.0)).tests) for s in range(60)]
    assert sum(found) <= 8


def test_what_is_better_in_single_contexts_is_still_taken_together():
    """Every context has another best item: the group of them all gains more than any rule."""
    rng, n = np.random.default_rng(3), 12_000
    best = np.arange(12) % ITEMS
    state, item = rng.integers(12, size=n), rng.integers(ITEMS, size=n)
    reward = (rng.random(n) < np.where(item == best[state], 0.6, 0.4)).astype(float)
    log = Log.from_arrays(
        state=[(int(s) // 3, int(s) % 3) for s in state], action=item, reward=reward,
        action_prob=np.full(n, 1 / ITEMS), terminated=np.ones(n, bool), episode_id=np.arange(n),
        step=np.zeros(n, int),
    )  # fmt: skip
    result = certified(log)
    likeliest = [max(row, key=row.get) for row in map(result.policy.row, log.states.labels)]
    expected = [best[a * 3 + b] for a, b in log.states.labels]
    assert sum(map(int.__eq__, likeliest, map(int, expected))) >= 11


def test_regions_are_all_states_those_that_share_a_value_and_each():
    labels = [("n", 1), ("n", 2), ("s", 1)]
    found = [tuple(codes.tolist()) for codes in regions(labels)]
    assert found == [(0, 1, 2), (0, 1), (0, 2), (0,), (1,), (2,)]
    assert [tuple(c.tolist()) for c in regions(["a", "b"])] == [(0, 1), (0,), (1,)]
