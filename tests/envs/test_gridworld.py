"""The gridworld of section 3.1: known values, dynamics, Gymnasium's own checks, its baseline."""

from __future__ import annotations

from importlib.resources import files

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from oracles import dense_p, policy_values

import spibb.envs
from spibb.envs.baselines import GRIDWORLD_BASELINES, gridworld_baseline, optimal_q
from spibb.envs.gridworld import GOAL, START, Gridworld, gridworld_mdp, step_to
from spibb.errors import InputError
from spibb.evaluate import exact_value
from spibb.policy import Policy
from spibb.simulate import simulate

UP, RIGHT, DOWN, LEFT = range(4)


def test_the_known_values_to_six_digits():
    mdp = gridworld_mdp()
    optimum = optimal_q(mdp)[START].max()
    uniform = exact_value(mdp, Policy.uniform(mdp.states, mdp.actions))
    assert f"{optimum:.6f}" == "0.597742"
    assert f"{uniform:.6f}" == "0.052216"
    assert policy_values(mdp, np.full((25, 4), 0.25))[START] == pytest.approx(uniform, abs=1e-12)


def test_walls_and_borders_stop_a_move_from_both_sides():
    for x, y in ((2, 0), (2, 1), (2, 2), (3, 2), (3, 3)):
        left, right = x + 5 * y, x + 1 + 5 * y
        assert step_to(left, RIGHT) == left
        assert step_to(right, LEFT) == right
    assert step_to(2 + 15, RIGHT) == 3 + 15
    assert step_to(START, LEFT) == step_to(START, DOWN) == START
    assert step_to(START, UP) == 5
    assert step_to(START, RIGHT) == 1


def test_every_pair_slips_as_the_paper_says_and_only_the_goal_ends():
    mdp = gridworld_mdp()
    p = dense_p(mdp)
    np.testing.assert_allclose(p[6, UP, [11, 1, 7, 5]], [0.75, 0.05, 0.1, 0.1])
    assert p[START, LEFT, START] == pytest.approx(0.75 + 0.1)  # left, and slipping down
    np.testing.assert_allclose(p.sum(axis=2)[:GOAL] + mdp.exits[:GOAL], 1)
    assert mdp.exits[23, RIGHT] == pytest.approx(0.75)
    np.testing.assert_allclose(mdp.rewards, np.where(np.arange(25)[:, None] < GOAL, mdp.exits, 0))


def test_gymnasium_finds_nothing_wrong_and_can_make_it():
    spibb.envs.register()
    env = gymnasium.make("spibb/Gridworld-v0", render_mode="rgb_array")
    check_env(env.unwrapped)
    env.reset(seed=0)
    assert env.render().shape == (240, 240, 3)


def test_the_environment_moves_as_its_mdp_says():
    env = Gridworld()
    env.reset(seed=0)
    reached = np.zeros(25)
    for _ in range(4000):
        env._state = 6
        reached[env.step(UP)[0]] += 1
    np.testing.assert_allclose(reached / 4000, dense_p(gridworld_mdp())[6, UP], atol=0.03)


def test_entering_the_goal_pays_one_and_terminates():
    env = Gridworld()
    env.reset(seed=0)
    for _ in range(50):
        env._state = 23
        state, reward, terminated, truncated, _ = env.step(RIGHT)
        assert (reward == 1) == terminated == (state == GOAL)
        assert not truncated


def test_the_picture_marks_the_agent():
    env = Gridworld(render_mode="rgb_array")
    env.reset(seed=0)
    at_start = env.render().copy()
    env._state = 12
    assert (env.render() != at_start).any()
    assert Gridworld().render() is None


def test_the_authors_baseline_is_the_default_and_has_its_known_value():
    mdp, baseline = gridworld_mdp(), gridworld_baseline()
    assert f"{exact_value(mdp, baseline):.6f}" == "0.402250"
    assert f"{policy_values(mdp, baseline.probs)[START]:.6f}" == "0.402250"
    assert baseline.probs[START].argmax() == RIGHT
    np.testing.assert_array_equal(baseline.probs[GOAL], 0.25)
    assert gridworld_baseline("authors") is not gridworld_baseline("spibb")


def test_the_authors_table_says_where_it_comes_from():
    folder = files("spibb.envs") / "data"
    text = (folder / "gridworld_q.csv").read_text("utf-8")
    assert "RomainLaroche/SPIBB" in text and "MIT licence" in text
    assert "Permission is hereby granted" in (folder / "gridworld_q.LICENSE").read_text("utf-8")


def test_an_unknown_baseline_is_refused():
    with pytest.raises(InputError, match="authors"):
        gridworld_baseline("theirs")


@pytest.mark.parametrize("name", ["authors", "spibb"])
def test_the_baselines_have_one_shape(name):
    mdp, baseline = gridworld_mdp(), gridworld_baseline(name)
    assert exact_value(mdp, baseline) == pytest.approx(0.4, abs=0.005)
    rows = baseline.probs[:GOAL]
    assert np.mean(rows < 1e-2) == pytest.approx(0.43, abs=0.02)
    assert np.mean(rows < 1e-3) == pytest.approx(0.34, abs=0.02)
    assert np.mean(rows < 1e-6) == pytest.approx(0.09, abs=0.02)
    log = simulate(mdp, baseline, 20_000, rng=np.random.default_rng(0))
    assert len(log) / log.n_episodes == pytest.approx(21.5, abs=0.5)
    assert log.truncated.sum() / log.n_episodes == pytest.approx(0.034, abs=0.005)


def test_the_drawn_baselines_have_the_value_and_differ():
    mdp = gridworld_mdp()
    drawn = [gridworld_baseline(name) for name in GRIDWORLD_BASELINES if "drawn" in name]
    assert len(drawn) == 20
    for baseline in drawn:
        assert exact_value(mdp, baseline) == pytest.approx(0.4, abs=1e-9)
    assert len({baseline.probs.tobytes() for baseline in drawn}) == 20
