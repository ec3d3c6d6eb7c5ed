"""Random MDPs as exact MDP and as Gymnasium environment."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from oracles import dense_p

import spibb.envs
from spibb.envs.garnet import START, Garnet, draw_garnet
from spibb.errors import InputError
from spibb.policy import Policy
from spibb.simulate import simulate
from spibb.solve import free_box, optimise


def test_the_mean_optimum_is_that_of_the_paper():
    rng = np.random.default_rng(0)
    values = [draw_garnet(rng).optimal_q[START].max() for _ in range(300)]
    assert np.mean(values) == pytest.approx(0.58, abs=0.03)
    assert min(values) > 0.95**50


def test_only_the_terminal_state_ends_and_pays():
    for seed in range(5):
        draw = draw_garnet(np.random.default_rng(seed))
        mdp, p = draw.mdp, dense_p(draw.mdp)
        assert mdp.shape == (50, 4)
        assert draw.terminal != START and mdp.initial[START] == 1 == mdp.initial.sum()
        assert p[:, :, draw.terminal].sum() == p[draw.terminal].sum() == 0
        others = np.arange(50) != draw.terminal
        ends = mdp.exits[others] > 0
        np.testing.assert_array_equal((p[others] > 0).sum(axis=2) + ends, 4)
        np.testing.assert_array_equal(mdp.rewards[others], mdp.exits[others])
        np.testing.assert_array_equal(mdp.rewards[draw.terminal], 0)
        assert mdp.paid is mdp.outcomes
        ended, entry = mdp.paid.successors == -1, np.diff(mdp.paid.indptr[:: mdp.shape[1]])
        entered = np.repeat(np.arange(50), entry) != draw.terminal
        np.testing.assert_array_equal(mdp.paid.rewards, ended & entered)


def test_the_by_product_is_the_optimal_q():
    draw = draw_garnet(np.random.default_rng(1), 30, 3, 5, 0.9)
    best = optimise(draw.mdp, free_box(np.ones((30, 3), dtype=bool)))
    np.testing.assert_allclose(draw.optimal_q, best.q, atol=1e-12)


def test_the_same_generator_state_draws_the_same_mdp():
    one, two, other = (draw_garnet(np.random.default_rng(seed)).mdp for seed in (7, 7, 8))
    for name in ("indptr", "successors", "probs", "rewards"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
        np.testing.assert_array_equal(getattr(one.paid, name), getattr(two.paid, name))
    assert not np.array_equal(one.rewards, other.rewards)


def test_a_simulation_pays_one_on_entering_the_terminal_state_only():
    draw = draw_garnet(np.random.default_rng(2))
    policy = Policy.uniform(draw.mdp.states, draw.mdp.actions)
    log = simulate(draw.mdp, policy, 2000, rng=np.random.default_rng(0), max_steps=200)
    assert log.terminated.sum() > 1000
    np.testing.assert_array_equal(log.reward, log.terminated)
    assert not (log.state == draw.terminal).any()
    assert (log.state[log.episode_starts[:-1]] == START).all()


def test_gymnasium_finds_nothing_wrong():
    spibb.envs.register()
    check_env(gymnasium.make("spibb/Garnet-v0").unwrapped)
    check_env(Garnet(seed=3, n_states=10, n_actions=2, connectivity=3))
    assert Garnet().render_mode is None


def test_the_environment_moves_as_its_mdp_says():
    env = Garnet(seed=1)
    state, action = np.argwhere(env.mdp.exits > 0.1)[0]
    expected = dense_p(env.mdp)[state, action]
    expected[env.terminal] = env.mdp.exits[state, action]
    env.reset(seed=0)
    reached = np.zeros(50)
    for _ in range(4000):
        env._state = int(state)
        following, reward, terminated, truncated, _ = env.step(action)
        assert (reward == 1) == terminated == (following == env.terminal)
        assert not truncated
        reached[following] += 1
    np.testing.assert_allclose(reached / 4000, expected, atol=0.03)


def test_the_seed_of_the_constructor_is_the_mdp_and_that_of_reset_the_episode():
    def walk(env, seed):
        states = [env.reset(seed=seed)[0]]
        while len(states) < 30:
            states.append(env.step(len(states) % 4)[0])
        return states

    one, two = Garnet(seed=5), Garnet(seed=5)
    assert walk(one, 0) == walk(two, 0) != walk(two, 1)
    assert walk(Garnet(seed=6), 0) != walk(one, 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_states": 1}, "n_states is 1"),
        ({"n_actions": 0}, "n_actions is 0"),
        ({"connectivity": 51}, r"connectivity is 51, expected a number in \[1, 50\]"),
        ({"discount": 1.0}, "discount is 1.0"),
        ({"discount": 0.0}, "discount is 0.0"),
    ],
)
def test_bad_parameters_are_named(arguments, message):
    with pytest.raises(InputError, match=message):
        draw_garnet(np.random.default_rng(0), **arguments)


def test_unreachable_draws_are_drawn_again():
    for seed in range(20):  # one action, one successor: the start often leads to itself
        assert draw_garnet(np.random.default_rng(seed), 2, 1, 1).terminal == 1
