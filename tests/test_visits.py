"""Returns after every visit, and the limits that are declared for them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spibb.errors import InputError
from spibb.log import Log
from spibb.visits import Declared, ReturnBounds, Visits, check_rewards


def random_log(seed: int) -> Log:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    ends = rng.random(n) < 0.3
    ends[-1] = True
    cut = ends & (rng.random(n) < 0.4)
    return Log.from_arrays(
        rng.integers(3, size=n), rng.integers(2, size=n), rng.integers(-4, 5, size=n) / 4,
        terminated=ends & ~cut, truncated=cut, n_states=3, n_actions=2,
    )  # fmt: skip


@given(st.integers(0, 10_000))
def test_every_visit_has_its_rank_step_and_return(seed):
    log, discount, bounds = random_log(seed), 0.8, ReturnBounds(-5, 5, "")
    visits = Visits.of(log, discount, bounds)
    expected = []
    for e in range(log.n_episodes):
        rows = range(log.episode_starts[e], log.episode_starts[e + 1])
        for j in rows:
            rest = [discount ** (k - j) * log.reward[k] for k in rows if k >= j]
            beyond = 0 if log.terminated[rows[-1]] else discount ** (rows[-1] + 1 - j)
            rank = sum(log.state[k] == log.state[j] for k in rows if k < j)
            low, high = sum(rest) - 5 * beyond, sum(rest) + 5 * beyond
            expected.append((log.state[j], e, j - rows[0], log.action[j], rank, low, high))
    expected.sort()
    state = np.repeat(np.arange(3), np.diff(visits.starts))
    found = (state, visits.episode, visits.step, visits.action, visits.rank)
    np.testing.assert_array_equal(np.array(found).T, [row[:5] for row in expected])
    np.testing.assert_allclose(visits.low, [max(row[5], -5) for row in expected], atol=1e-12)
    np.testing.assert_allclose(visits.high, [min(row[6], 5) for row in expected], atol=1e-12)


@pytest.mark.parametrize(
    ("declared", "low", "high"),
    [
        (Declared(lowest_reward=0, highest_reward=1), 0, 10),
        (Declared(lowest_reward=-1, highest_reward=-0.5), -10, -0.5),
        (Declared(lowest_reward=0.5, highest_reward=2, horizon=2), 0.5, 3.8),
        (Declared(v_max=3, lowest_reward=0), 0, 3),
        (Declared(v_max=3, lowest_return=-4, highest_return=2), -3, 2),
    ],
)
def test_bounds_are_the_tightest_that_was_declared(declared, low, high):
    found = declared.bounds(0.9)
    assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))
    assert "declared" in found.source


def test_missing_or_contradictory_limits_are_named():
    with pytest.raises(InputError, match="has no highest one: give highest_reward"):
        Declared(lowest_reward=0).bounds(0.9)
    with pytest.raises(InputError, match="has no lowest one: give lowest_reward"):
        Declared(highest_return=1).bounds(0.9)
    with pytest.raises(InputError, match="empty: lowest_return gives at least 2"):
        Declared(lowest_return=2, highest_return=1).bounds(0.9)


def test_what_the_log_contradicts_is_named():
    log = Log.from_arrays([0, 1, 0], [0, 0, 1], [0.5, 2.0, 0.1], terminated=[False, True, True])
    with pytest.raises(InputError, match=r"reward 2 in row 1 is outside .* highest_reward 1 \(1"):
        check_rewards(log, Declared(lowest_reward=0, highest_reward=1))
    with pytest.raises(InputError, match=r"reward 0.1 in row 2 is outside .* lowest_reward 0.2"):
        check_rewards(log, Declared(lowest_reward=0.2))
    with pytest.raises(InputError, match="2 steps, more than the declared horizon 1"):
        check_rewards(log, Declared(horizon=1))
    with pytest.raises(InputError, match=r"episode 0 returns 2.3 from step 0 on, outside"):
        Visits.of(log, 0.9, ReturnBounds(0, 2.1, "declared"))
