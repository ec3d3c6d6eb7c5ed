"""The helicopter of section 3.4: Gymnasium's checks, batched episodes, logs without length bias."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from spibb.envs.helicopter import (
    BATCH_EPISODES,
    Helicopter,
    collect,
    draw_noise,
    initial_states,
    play,
)
from spibb.errors import InputError
from spibb.kernels.helicopter import step

WEIGHTS = np.random.default_rng(7).normal(size=(4, 9)) * 2


def uniform(states):
    return np.full((len(states), 9), 1 / 9)


def softmax(states):
    z = np.exp(states @ WEIGHTS)
    return z / z.sum(axis=1, keepdims=True)


def hover(states):
    """Brakes: episodes that last."""
    thrust = np.clip(np.round(-states[:, 2:] / 0.1), -1, 1).astype(int) + 1
    return np.eye(9)[thrust[:, 0] * 3 + thrust[:, 1]]


@pytest.mark.filterwarnings("ignore:.*Box observation space")
def test_gymnasium_finds_nothing_wrong():
    check_env(Helicopter(render_mode="rgb_array"), skip_render_check=True)
    env = Helicopter()
    assert isinstance(env.observation_space, gymnasium.spaces.Box)
    assert env.action_space == gymnasium.spaces.Discrete(9)


def test_episodes_start_uniformly_in_the_corner_with_any_velocity():
    states = initial_states(40_000, np.random.default_rng(0))
    low, high = np.array([0, 0, -1, -1]), np.array([1 / 3, 1 / 3, 1, 1])
    assert (states > low).all() and (states < high).all()
    share = (states - low) / (high - low)
    for decile in (0.1, 0.5, 0.9):
        np.testing.assert_allclose(np.quantile(share, decile, axis=0), decile, atol=0.015)
    assert np.abs(np.corrcoef(states.T) - np.eye(4)).max() < 0.02


@pytest.mark.parametrize("factor", [0.0, 0.5, 1.0, 2.0])
def test_the_noise_factor_scales_positions_and_velocities(factor):
    noise = draw_noise(40_000, factor, np.random.default_rng(0))
    np.testing.assert_allclose(
        noise.std(axis=0), factor * np.array([0.025, 0.025, 0.05, 0.05]), rtol=0.02
    )
    assert np.abs(noise.mean(axis=0)).max() <= 0.001 * factor


def test_without_noise_the_next_state_is_determined():
    env = Helicopter(noise_factor=0)
    env.reset(seed=0)
    env._state = np.array([0.5, 0.5, 0.2, -0.1])
    observation, reward, terminated, truncated, _ = env.step(8)
    np.testing.assert_allclose(observation, [0.525, 0.495, 0.3, 0.0], atol=1e-15)
    assert (reward, terminated, truncated) == (0, False, False)


def test_the_environment_and_the_batched_stepper_tell_the_same_story():
    """Episode by episode from the same random numbers, and then in distribution."""
    env, rng = Helicopter(), np.random.default_rng(5)
    observation, _ = env.reset(seed=5)
    env_rng = gymnasium.utils.seeding.np_random(5)[0]
    np.testing.assert_array_equal(observation, initial_states(1, env_rng)[0])
    for action in (8, 4, 0, 8, 8):
        noise = draw_noise(1, 1.0, env_rng)
        wanted = step(observation[None], np.array([action]), noise)
        observation, reward, terminated, _, _ = env.step(action)
        np.testing.assert_array_equal(observation, wanted[0][0])
        assert (reward, terminated) == (wanted[1][0], wanted[2][0])
        if terminated:
            break
    returns = [_episode(env, softmax, rng) for _ in range(1500)]
    batched = play(softmax, 20_000, rng=np.random.default_rng(0))
    error = np.hypot(np.std(returns) / np.sqrt(1500), batched.standard_error)
    assert abs(np.mean(returns) - batched.mean) < 4 * error


def _episode(env, policy, rng):
    state, _ = env.reset()
    total = 0.0
    while True:
        action = rng.choice(9, p=policy(state[None])[0])
        state, reward, terminated, truncated, _ = env.step(action)
        total += reward
        if terminated or truncated:
            return total


def test_an_episode_is_cut_at_the_cap_and_not_terminated():
    env = Helicopter(noise_factor=0, max_steps=3)
    env.reset(seed=0)
    env._state = np.array([0.5, 0.5, 0.0, 0.0])
    ends = [env.step(4)[2:4] for _ in range(3)]
    assert ends == [(False, False), (False, False), (False, True)]
    log = collect(hover, 300, rng=np.random.default_rng(0), max_steps=6)
    last = np.append(np.flatnonzero(np.diff(log.episode_id)), len(log) - 1)
    assert (log.terminated ^ log.truncated)[last].all() and log.truncated.sum() > 5
    assert not (log.terminated | log.truncated)[np.setdiff1d(np.arange(300), last)].any()
    assert np.bincount(log.episode_id).max() == 6


def test_play_finishes_every_episode():
    episodes = play(hover, 500, rng=np.random.default_rng(0), max_steps=30)
    assert episodes.returns.shape == episodes.lengths.shape == (500,)
    assert episodes.lengths.min() >= 1 and episodes.lengths.max() == 30
    assert (episodes.returns >= -1).all() and (episodes.returns <= 10).all()
    assert not episodes.returns.flags.writeable
    assert episodes.standard_error == pytest.approx(episodes.returns.std(ddof=1) / np.sqrt(500))


def test_the_policy_is_asked_once_per_time_step_for_the_running_episodes():
    asked = []

    def policy(states):
        asked.append(len(states))
        return softmax(states)

    episodes = play(policy, 1000, rng=np.random.default_rng(0))
    assert len(asked) == episodes.lengths.max()
    running = [(episodes.lengths > t).sum() for t in range(len(asked))]
    assert asked == running


def test_more_episodes_than_a_batch_holds():
    episodes = play(uniform, BATCH_EPISODES + 100, rng=np.random.default_rng(0))
    assert episodes.lengths.min() >= 1


def test_more_noise_makes_the_return_of_a_good_pilot_worse():
    def pilot(states):
        wanted = np.clip(np.round((0.7 - states[:, 2:]) / 0.1), -1, 1).astype(int) + 1
        return np.eye(9)[wanted[:, 0] * 3 + wanted[:, 1]]

    means = [
        play(pilot, 3000, rng=np.random.default_rng(0), noise_factor=f).mean for f in (0, 1, 3)
    ]
    assert means[0] > means[1] > means[2]


def test_logs_are_whole_episodes_in_order_of_time():
    log = collect(softmax, 5000, rng=np.random.default_rng(1))
    assert len(log) == 5000
    same = log.episode_id[1:] == log.episode_id[:-1]
    np.testing.assert_array_equal(log.next_state[:-1][same], log.state[1:][same])
    assert set(np.diff(log.episode_id)) == {0, 1} and log.episode_id[0] == 0
    assert log.terminated[:-1][~same].all()  # the cap of 100 steps is far away
    starts = np.append(True, ~same)
    assert (log.state[starts, :2] < 1 / 3).all()
    np.testing.assert_allclose(
        log.action_prob, softmax(log.state)[np.arange(5000), log.action], atol=1e-12
    )
    assert (log.reward[~log.terminated] == 0).all()
    assert log.terminated[-1] != log.truncated[-1]
    assert not log.state.flags.writeable


def test_logs_have_no_length_bias():
    def by_episode(seed):
        log = collect(softmax, 20_000, rng=np.random.default_rng(seed))
        whole = log.episode_id < log.episode_id[-1]
        rewards = np.bincount(log.episode_id[whole], log.reward[whole])
        return rewards, np.bincount(log.episode_id[whole])

    parts = [by_episode(seed) for seed in range(10)]
    returns, lengths = (np.concatenate(column) for column in zip(*parts))
    truth = play(softmax, 30_000, rng=np.random.default_rng(99))
    for ours, theirs in ((returns, truth.returns), (lengths, truth.lengths)):
        error = np.sqrt(ours.var() / len(ours) + theirs.var() / len(theirs))
        assert abs(ours.mean() - theirs.mean()) < 4 * error


def test_one_transition_is_a_log():
    log = collect(uniform, 1, rng=np.random.default_rng(0))
    assert len(log) == 1 and log.terminated[0] != log.truncated[0]


def test_the_same_generator_gives_the_same_episodes():
    first, again = (collect(softmax, 2000, rng=np.random.default_rng(3)) for _ in range(2))
    np.testing.assert_array_equal(first.next_state, again.next_state)
    np.testing.assert_array_equal(first.action, again.action)
    one, two = (play(softmax, 200, rng=np.random.default_rng(3)) for _ in range(2))
    np.testing.assert_array_equal(one.returns, two.returns)
    other = play(softmax, 200, rng=np.random.default_rng(4))
    assert (one.returns != other.returns).any()


def test_the_picture_shows_areas_rewards_and_the_helicopter():
    env = Helicopter(render_mode="rgb_array")
    env.reset(seed=0)
    env._state = np.array([0.5, 0.5, 0.5, 0.0])
    image = env.render()
    assert image.shape == (360, 360, 3) and image.dtype == np.uint8
    orange, grey, teal = image[5, 5], image[100, 100], image[280, 80]
    assert orange[0] > orange[1] > orange[2] and np.ptp(grey) < 10 and teal[1] > teal[0]
    blue = image[50, 305]  # just outside the corner (1, 1)
    assert blue[2] > blue[1] > blue[0]
    env._state = np.array([0.2, 0.2, 0.0, 0.0])
    assert (env.render() != image).any()
    assert Helicopter().render() is None


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (lambda s: np.full((len(s), 4), 0.25), "shape"),
        (lambda s: np.full((len(s), 9), 0.1), "sum 0.9"),
        (lambda s: np.full((len(s), 9), np.nan), "nan"),
        (lambda s: np.tile([2, -1, 0, 0, 0, 0, 0, 0, 0], (len(s), 1)), "non-negative"),
    ],
)
def test_policies_that_give_no_probabilities_are_named(policy, words):
    with pytest.raises(InputError, match=words):
        play(policy, 5, rng=np.random.default_rng(0))


def test_arguments_out_of_range_are_named():
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match="noise_factor is -1"):
        Helicopter(noise_factor=-1)
    with pytest.raises(InputError, match="noise_factor is -1"):
        play(uniform, 5, rng=rng, noise_factor=-1)
    with pytest.raises(InputError, match="max_steps is 0"):
        collect(uniform, 5, rng=rng, max_steps=0)
    with pytest.raises(InputError, match="n_episodes is 0"):
        play(uniform, 0, rng=rng)
    with pytest.raises(InputError, match="n_transitions is 0"):
        collect(uniform, 0, rng=rng)
    env = Helicopter()
    env.reset(seed=0)
    with pytest.raises(InputError, match="action is 9"):
        env.step(9)
