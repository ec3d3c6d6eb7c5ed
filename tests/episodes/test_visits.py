"""Returns after every visit, and the limits that are declared for them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spibb.episodes.visits import Declared, ReturnBounds, Visits, check_returns, check_rewards
from spibb.errors import InputError
from spibb.log import Log


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


CUT = Log.from_arrays(
    [0, 1, 0, 0, 0], [0] * 5, [0.2, 0.6, 0.0, 0.1, 0.5], [1, 2, 2, None, 0],
    [False, False, False, False, True], [False, True, True, True, False], n_states=3,
)  # fmt: skip
"""Two episodes cut at state 2, one nobody knows where, one complete."""


def test_episodes_that_were_cut_at_a_state_lack_the_same_number():
    visits = Visits.of(CUT, 0.5, ReturnBounds(0, 1, ""))
    assert visits.rest.tolist() == [2, 2, 5, 6, 2]  # states 0, 0, 0, 0, 1
    assert visits.unseen.tolist() == [0.25, 0.5, 0.5, 0.0, 0.5]
    np.testing.assert_allclose(visits.low, [0.5, 0.0, 0.1, 0.5, 0.6])
    # 0.6 + R/2 ≤ 1 holds for R ≤ 0.8, in all episodes that were cut there
    np.testing.assert_allclose(visits.high, [0.5 + 0.2, 0.4, 0.6, 0.5, 1.0], atol=1e-8)
    alone = Visits.of(CUT, 0.5, ReturnBounds(0, 1, ""), shared=False)
    assert alone.rest.tolist() == [3, 4, 5, 6, 3]
    np.testing.assert_allclose(alone.high, [0.7, 0.5, 0.6, 0.5, 1.0], atol=1e-8)
    assert visits.lacks_values
    assert not alone.lacks_values


def test_cuts_that_no_value_of_the_state_explains_stay_alone():
    log = Log.from_arrays(
        [0, 0], [0, 0], [1.2, -1.2], [1, 1], [False, False], [True, True], n_states=2
    )
    visits = Visits.of(log, 0.5, ReturnBounds(-1, 1, ""))
    assert visits.rest.tolist() == [2, 3]


def test_values_narrow_what_is_missing():
    visits = Visits.of(CUT, 0.5, ReturnBounds(0, 1, ""))
    narrow = visits.within(np.array([0, 0, 0.5]), np.array([1, 1, 0.7]))
    np.testing.assert_allclose(narrow.low, [0.625, 0.25, 0.1, 0.5, 0.85])
    np.testing.assert_allclose(narrow.high, [0.675, 0.35, 0.6, 0.5, 0.95], atol=1e-8)
    guessed = visits.valued(np.array([0.1, 0.2, 0.6]))
    np.testing.assert_allclose(guessed.low, guessed.high)
    np.testing.assert_allclose(guessed.low, [0.65, 0.3, 0.1 + 0.5 * 0.12, 0.5, 0.9])


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
    with pytest.raises(InputError, match="the highest one is missing: give highest_reward"):
        Declared(lowest_reward=0).bounds(0.9)
    with pytest.raises(InputError, match="the lowest one is missing: give lowest_reward"):
        Declared(highest_return=1).bounds(0.9)
    with pytest.raises(InputError, match="exclude every return: lowest_return gives at least 2"):
        Declared(lowest_return=2, highest_return=1).bounds(0.9)


@pytest.mark.parametrize("discount", [0.0, 0.5, 0.99, 1 - 1e-9, 1 - 1e-15])
@pytest.mark.parametrize("horizon", [1, 2, 50])
def test_a_horizon_counts_every_discounted_step(discount, horizon):
    exact = sum(Fraction(discount) ** t for t in range(horizon))
    found = Declared(lowest_reward=-1, highest_reward=1, horizon=horizon).bounds(discount)
    assert found.high == pytest.approx(float(exact), rel=1e-14)
    assert found.low == -found.high


def test_what_the_log_contradicts_is_named():
    log = Log.from_arrays([0, 1, 0], [0, 0, 1], [0.5, 2.0, 0.1], terminated=[False, True, True])
    with pytest.raises(InputError, match=r"reward 2 in row 1 is outside .* highest_reward 1 \(1"):
        check_rewards(log, Declared(lowest_reward=0, highest_reward=1))
    with pytest.raises(InputError, match=r"reward 0.1 in row 2 is outside .* lowest_reward 0.2"):
        check_rewards(log, Declared(lowest_reward=0.2))
    with pytest.raises(InputError, match="episode 0 has 2 steps, beyond the declared horizon 1"):
        check_rewards(log, Declared(horizon=1))
    with pytest.raises(InputError, match=r"episode 0 returns 2.3 from step 0 on, outside"):
        Visits.of(log, 0.9, ReturnBounds(0, 2.1, "declared"))


@pytest.mark.parametrize("shared", [True, False])
def test_a_cut_episode_that_no_rest_explains_is_named(shared):
    """0.875 + R/4 ≤ 1 needs R ≤ 0.5, −0.45 + R/2 ≥ 0 needs R ≥ 0.9: each alone is possible."""
    log = Log.from_arrays(
        [0, 0, 1], [0, 0, 0], [0.5, 1.1, -0.45], [None, 1, 1], [True, False, False],
        [False, False, True],
    )  # fmt: skip
    with pytest.raises(InputError, match=r"episode 1 was cut, and whatever followed.* \[0, 1\]"):
        Visits.of(log, 0.5, ReturnBounds(0, 1, "declared"), shared=shared)
    with pytest.raises(InputError, match=r"episode 1 was cut"):
        check_returns(log, 0.5, ReturnBounds(0, 1, "declared"))
    check_returns(log, 0.5, ReturnBounds(-1, 2, "declared"))


def test_an_episode_that_goes_on_at_the_horizon_contradicts_it():
    states, actions, rewards = [0, 1, 0, 1], [0, 0, 1, 0], [0.0] * 4
    ends = {"terminated": [False, True, False, False], "truncated": [False, False, False, True]}
    episodes = {"episode_id": [0, 0, 1, 1], "step": [0, 1, 0, 1]}
    known = Log.from_arrays(states, actions, rewards, [1, 0, 1, 0], **ends, **episodes)
    with pytest.raises(InputError, match="episode 1 has 2 steps and goes on to 0, beyond the decl"):
        check_rewards(known, Declared(horizon=2))
    check_rewards(known, Declared(horizon=3))
    check_rewards(
        Log.from_arrays(states, actions, rewards, **ends, **episodes), Declared(horizon=2)
    )


def test_how_cut_episodes_count_is_said_as_it_is():
    bounds = ReturnBounds(0, 1, "")
    whole = Log.from_arrays([0], [0], [0.5], terminated=[True])
    assert Visits.of(whole, 0.5, bounds).how_cuts_count == ""
    visits = Visits.of(CUT, 0.5, bounds, shared=False)
    assert visits.how_cuts_count == "cut episodes count at their worst"
    assert "worst value of the state" in Visits.of(CUT, 0.5, bounds).how_cuts_count


@pytest.mark.parametrize("offset", [0.0, 1e6, 2e9, -2e9])
def test_limits_far_from_zero_are_as_strict_as_those_near_it(offset):
    """What passes as rounding is small beside the span; a last digit of the limit always passes."""
    bounds = ReturnBounds(offset, offset + 1, "").in_spans()

    def one(reward: float) -> Log:
        return Log.from_arrays([0], [0], [reward], terminated=[True])

    for inside in (np.nextafter(offset, -np.inf), np.nextafter(offset + 1, np.inf)):
        check_returns(one(inside / bounds.unit), 0.9, bounds)
        check_rewards(one(inside), Declared(lowest_reward=offset, highest_reward=offset + 1))
    for outside in (offset - 0.01, offset + 1.01):
        with pytest.raises(InputError, match="outside the declared"):
            check_returns(one(outside / bounds.unit), 0.9, bounds)
        with pytest.raises(InputError, match="outside the declared"):
            check_rewards(one(outside), Declared(lowest_reward=offset, highest_reward=offset + 1))
