"""One time step of the helicopter against a slow transcription of appendix D.1."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spibb.kernels.helicopter import choose, landing_reward, step

TAU = 0.1


def slow_reward(s_x, s_y):
    distance = math.sqrt((s_x - 1) ** 2 + (s_y - 1) ** 2)
    return 10.0 if distance == 0 else min(10, max(-1, 1 / distance - 4))


def slow_step(state, action, noise):
    """The paper's formulas, letter by letter."""
    s_x, s_y, v_x, v_y = state
    a_x, a_y = action // 3 - 1, action % 3 - 1
    s_x_new = s_x + v_x * TAU + 1 / 2 * a_x * TAU**2 + noise[0]
    s_y_new = s_y + v_y * TAU + 1 / 2 * a_y * TAU**2 + noise[1]
    v_x_new = v_x + a_x * TAU + noise[2]
    v_y_new = v_y + a_y * TAU + noise[3]
    if abs(v_x_new) >= 1 or abs(v_y_new) >= 1:
        reward, end = -1, True
    elif min(s_x_new, s_y_new) <= 0 or max(s_x_new, s_y_new) >= 1:
        reward, end = slow_reward(s_x_new, s_y_new), True
    else:
        reward, end = 0, False
    return (s_x_new, s_y_new, v_x_new, v_y_new), reward, end


def one_step(state, action, noise=(0, 0, 0, 0)):
    arrays = np.array([state], float), np.array([action]), np.array([noise], float)
    following, rewards, terminated = step(*arrays)
    return following[0], rewards[0], terminated[0]


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 1.0, 5.0]))
def test_steps_equal_the_formulas_of_the_paper(seed, factor):
    rng = np.random.default_rng(seed)
    states = rng.uniform([0, 0, -1, -1], 1, size=(50, 4))
    actions = rng.integers(9, size=50)
    noise = rng.normal(size=(50, 4)) * factor * [0.025, 0.025, 0.05, 0.05]
    following, rewards, terminated = step(states, actions, noise)
    for i in range(50):
        wanted = slow_step(states[i], actions[i], noise[i])
        np.testing.assert_allclose(following[i], wanted[0], atol=1e-12)
        assert rewards[i] == pytest.approx(wanted[1], abs=1e-9)
        assert terminated[i] == wanted[2]


def test_actions_are_thrusts_along_both_axes():
    thrusts = []
    for action in range(9):
        following, _, _ = one_step((0.5, 0.5, 0, 0), action)
        thrusts.append(tuple(np.round(following[2:] / TAU).astype(int)))
        np.testing.assert_allclose(following[:2], 0.5 + following[2:] * TAU / 2, atol=1e-15)
    assert thrusts == [(x, y) for x in (-1, 0, 1) for y in (-1, 0, 1)]


def test_a_velocity_violation_beats_a_landing():
    state = (0.99, 0.99, 0.99, 0.5)
    assert slow_reward(0.99 + 0.099 + 0.005, 0.99 + 0.05) > 1
    following, reward, terminated = one_step(state, 7)
    assert (following[:2] > 1).all() and following[2] > 1
    assert (reward, terminated) == (-1, True)


def test_the_landing_reward_is_capped_at_the_target_and_floored_far_from_it():
    assert landing_reward(1.0, 1.0) == 10
    assert landing_reward(1.05, 1.0) == 10
    assert landing_reward(1.0, 1.1) == pytest.approx(6)
    assert landing_reward(1.0, 0.75) == pytest.approx(0)
    assert landing_reward(1.0, 0.6) == -1
    assert landing_reward(0.0, 0.0) == -1


def test_the_borders_do_not_belong_to_the_area():
    noise = np.zeros(4)
    for axis, place in ((0, 0.0), (0, 1.0), (1, 0.0), (1, 1.0)):
        state = np.array([0.5, 0.5, 0, 0])
        state[axis] = place
        assert one_step(state, 4, noise)[2]
    for axis, speed in ((2, -1.0), (2, 1.0), (3, -1.0), (3, 1.0)):
        state = np.array([0.5, 0.5, 0, 0])
        state[axis] = speed
        assert one_step(state, 4, noise)[1:] == (-1, True)
    assert one_step((0.5, 0.5, 0.9, -0.9), 4, noise)[1:] == (0, False)


def test_actions_are_drawn_as_their_probabilities_say():
    rng = np.random.default_rng(0)
    row = np.array([0.0, 0.5, 0.0, 0.3, 0.2, 0.0])
    actions = np.empty(20_000, dtype=np.int64)
    assert choose(np.tile(row, (20_000, 1)), rng.random(20_000), 1e-6, actions) == -1
    np.testing.assert_allclose(np.bincount(actions, minlength=6) / 20_000, row, atol=0.015)
    ends = np.empty(2, dtype=np.int64)
    assert choose(np.tile(row, (2, 1)), np.array([0, 1 - 1e-16]), 1e-6, ends) == -1
    assert list(ends) == [1, 4]


@pytest.mark.parametrize("row", [[0.5, 0.4], [1.1, -0.1], [np.nan, 1], [np.inf, 0]])
def test_rows_that_are_no_distribution_are_found(row):
    rows = np.array([[0.5, 0.5], row])
    assert choose(rows, np.zeros(2), 1e-6, np.empty(2, dtype=np.int64)) == 1
