"""Online DQN, episodes in simulators and in Gymnasium environments."""

from __future__ import annotations

import math

import gymnasium
import numpy as np
import pytest

pytest.importorskip("deep_extra", exc_type=ImportError)

from spibb.deep import OnlineDQN, Simulator, SoftmaxBaseline, SpibbDQN, collect, episode_returns
from spibb.deep.lanes import play
from spibb.errors import InputError


def reset(rng, n):
    return np.full((n, 1), 0.5)


def step(states, actions, rng):
    """A corridor from 0 to 1: action 1 goes right and earns 1 at the end, action 0 goes left."""
    moves = np.where(actions == 1, 0.2, -0.2)[:, None]
    following = states + moves + rng.normal(0, 0.01, states.shape)
    right = following[:, 0] > 1
    return following, right * 1.0, right | (following[:, 0] < 0)


CORRIDOR = Simulator(reset, step, 2)
SHORT = OnlineDQN(
    epochs=3, steps_per_epoch=600, hidden=(16,), warm_up=100, explore_steps=600,
    evaluation_episodes=50, buffer_size=1000,
)  # fmt: skip


def uniform(states):
    return np.full((len(states), 2), 0.5)


def test_online_dqn_learns_the_corridor_and_keeps_its_best_epoch():
    result = SHORT.train(CORRIDOR)
    assert result.returns.shape == (3,)
    assert result.best_epoch == int(np.argmax(result.returns))
    assert result.network is result.networks[result.best_epoch]
    assert result.returns.max() > 0.95
    again = SHORT.train(CORRIDOR)
    np.testing.assert_array_equal(again.returns, result.returns)
    np.testing.assert_array_equal(again.network.weights[0], result.network.weights[0])


def test_a_softmax_of_it_makes_a_log_that_can_be_improved():
    network = SHORT.train(CORRIDOR).network
    soft = SoftmaxBaseline(network, 1.0)
    log = collect(CORRIDOR, soft, 500, rng=np.random.default_rng(0))
    assert len(log) == 500 and log.baseline is soft
    config = SpibbDQN(n_wedge=5, hidden=(16,), passes=40)
    result = config.train(log, lambda states: np.full((len(states), 2), 100.0))
    rng = np.random.default_rng(1)
    before = episode_returns(CORRIDOR, soft, 500, rng=rng).mean()
    after = episode_returns(CORRIDOR, result.policy, 500, rng=rng).mean()
    assert after > max(before, 0.95)


def test_episodes_are_whole_and_in_order():
    played = play(CORRIDOR, uniform, 40, rng=np.random.default_rng(0), max_steps=5)
    lengths = np.bincount(played.episode)
    assert len(lengths) == 40 and lengths.max() == 5 and (np.diff(played.episode) >= 0).all()
    last = np.append(np.diff(played.episode) > 0, True)
    assert (played.terminated[last] | (lengths == 5)).all()
    assert not played.terminated[~last].any()
    np.testing.assert_array_equal(played.next_state[~last], played.state[1:][~last[:-1]])
    np.testing.assert_allclose(played.state[np.append(True, last[:-1])], 0.5)


def test_gymnasium_environments_serve_everywhere():
    env = gymnasium.make("CartPole-v1")

    def left_or_right(states):
        right = (states[:, 2] + states[:, 3] > 0) * 0.8 + 0.1
        return np.stack([1 - right, right], axis=1)

    rng = np.random.default_rng(0)
    log = collect(env, left_or_right, 300, rng=rng, max_steps=500)
    assert (log.n_features, log.n_actions, len(log)) == (4, 2, 300)
    returns = episode_returns(env, left_or_right, 5, rng=rng, max_steps=60)
    assert returns.shape == (5,) and (returns <= 60).all() and (returns > 5).all()
    quick = OnlineDQN(
        epochs=1, steps_per_epoch=300, warm_up=100, hidden=(16,), evaluation_episodes=2,
    )  # fmt: skip
    assert math.isfinite(quick.train(env).returns[0])


def test_bad_environments_and_settings_are_named():
    with pytest.raises(InputError, match="expected a Gymnasium environment with discrete actions"):
        SHORT.train(gymnasium.make("Pendulum-v1"))
    with pytest.raises(InputError, match="FlattenObservation"):
        episode_returns(gymnasium.make("FrozenLake-v1"), uniform, 1, rng=np.random.default_rng(0))
    with pytest.raises(InputError, match="buffer_size is 10"):
        OnlineDQN(buffer_size=10)
    with pytest.raises(InputError, match="explore is 2"):
        OnlineDQN(explore=(2, 0))
    with pytest.raises(InputError, match=r"explore is \(0\.5,\), expected two shares"):
        OnlineDQN(explore=(0.5,))
    with pytest.raises(InputError, match=r"explore is 0\.5, expected one or more"):
        OnlineDQN(explore=0.5)
    with pytest.raises(InputError, match="seed is -3, expected a whole number of at least 0"):
        OnlineDQN(seed=-3)
