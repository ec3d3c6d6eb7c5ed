"""Other people's data: where episodes end, and what followed."""

from __future__ import annotations

from types import SimpleNamespace

import gymnasium
import numpy as np
import pandas as pd
import pytest
from logs import three_lakes

from spibb import Counts, Policy, collect, from_bandit, from_d3rlpy, from_minari
from spibb.errors import InputError


def episode(**fields):
    return SimpleNamespace(**fields)


def test_minari_knows_what_followed_a_cut():
    episodes = [
        episode(observations=np.array([0, 1, 2]), actions=np.array([0, 1]),
                rewards=np.array([0.0, 1.0]), terminations=np.array([False, False]),
                truncations=np.array([False, True])),
        episode(observations=np.array([0, 3]), actions=np.array([1]), rewards=np.array([2.0]),
                terminations=np.array([True]), truncations=np.array([False])),
    ]  # fmt: skip
    log = from_minari(SimpleNamespace(iterate_episodes=lambda: iter(episodes)))
    assert log.states.labels == (0, 1, 2)
    assert log.next_state.tolist() == [1, 2, -1]
    assert log.truncated.tolist() == [False, True, False]
    assert Counts.from_log(log).n.sum() == 3


def test_a_real_minari_dataset_is_read(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    dataset = three_lakes("lake/test-v0")
    log = from_minari(dataset)
    assert log.n_episodes == 3
    assert len(log) == dataset.total_steps
    assert (log.terminated | log.truncated).sum() == 3


def test_d3rlpy_drops_the_last_step_of_a_timed_out_episode():
    column = np.array([[0], [1], [2]])
    episodes = [
        episode(observations=column, actions=column % 2, rewards=column * 1.0, terminated=False),
        episode(observations=column, actions=column % 2, rewards=column * 1.0, terminated=True),
    ]
    log = from_d3rlpy(SimpleNamespace(episodes=episodes))
    assert log.next_state.tolist() == [1, 2, -1, 1, 2, -1]
    assert log.truncated.tolist() == [False, False, True, False, False, False]
    assert log.terminated.tolist() == [False] * 5 + [True]
    assert log.known.tolist() == [True, True, False, True, True, True]
    assert log.reward.tolist() == [0, 1, 2, 0, 1, 2]


def test_continuous_observations_need_an_encoder():
    episodes = [episode(observations=np.array([[0.5], [1.5]]), actions=np.array([0, 1]),
                        rewards=np.zeros(2), terminated=True)]  # fmt: skip
    with pytest.raises(InputError, match="give encode="):
        from_d3rlpy(SimpleNamespace(episodes=episodes))
    log = from_d3rlpy(
        SimpleNamespace(episodes=episodes), encode=lambda x: "high" if x > 1 else "low"
    )
    assert log.states.labels == ("high", "low")


def test_an_empty_dataset_is_told():
    with pytest.raises(InputError, match="the dataset has no episodes"):
        from_d3rlpy(SimpleNamespace(episodes=[]))


def test_a_policy_is_logged_in_a_gymnasium_environment():
    env = gymnasium.make("FrozenLake-v1", is_slippery=False, max_episode_steps=20)
    policy = Policy(np.tile([0.1, 0.4, 0.4, 0.1], (16, 1)))
    log = collect(env, policy, 30, rng=np.random.default_rng(1))
    again = collect(env, policy, 30, rng=np.random.default_rng(1))
    np.testing.assert_array_equal(log.state, again.state)
    assert log.n_episodes == 30
    assert np.diff(log.episode_starts).max() <= 20
    np.testing.assert_allclose(log.action_prob, policy.probs[0][log.action])
    assert (log.state[log.episode_starts[:-1]] == log.states.code(0)).all()


@pytest.mark.parametrize("kind", [dict, pd.DataFrame])
def test_bandit_feedback_is_a_log_of_horizon_one(kind):
    frame = kind({"age": ["y", "o", "y"], "sex": ["m", "m", "f"], "item": [3, 5, 3],
                  "click": [0, 1, 1], "pscore": [0.25, 0.5, 0.25]})  # fmt: skip
    log = from_bandit(frame, state=["age", "sex"], action="item", reward="click",
                      action_prob="pscore")  # fmt: skip
    assert log.n_episodes == 3
    assert log.terminated.all()
    assert log.states.labels == (("o", "m"), ("y", "f"), ("y", "m"))
    assert log.action_prob.tolist() == [0.25, 0.5, 0.25]
    assert log.states.names == ("age", "sex")
    assert log.actions.names == ("item",)
    with pytest.raises(InputError, match=r"no column 'clicks' \(did you mean 'click'\?\)"):
        from_bandit(frame, state="age", action="item", reward="clicks")


CLICKS = {"user": ["new", "old"], "item": [1, 2], "click": [0, 1]}


@pytest.mark.parametrize(
    ("frame", "names", "message"),
    [
        (3, {}, "frame is an int, expected a dataframe"),
        (CLICKS | {"click": ["yes", "no"]}, {},
         r"reward \(column 'click'\) in row 0 is 'yes', expected a number"),
        (CLICKS | {"click": [0, 1j]}, {}, "a column of the log mixes types"),
        (CLICKS | {"click": [0.5, True]}, {}, "click mixes types"),
        (CLICKS | {"click": 1}, {}, "click is 1, expected one value per transition"),
        (CLICKS | {"click": [1]}, {}, r"differ in length \(user 2, item 2, click 1\)"),
        (CLICKS, {"state": 3}, "columns maps 'state' to 3, expected the name of a column"),
        (CLICKS, {"action": ["item", None]}, r"columns maps 'action' to \['item', None\]"),
        (CLICKS | {7: [1]}, {"state": "seven"}, "no column 'seven': its columns are 'user'"),
    ],
)  # fmt: skip
def test_what_is_no_log_of_a_bandit_is_said_in_one_line(frame, names, message):
    with pytest.raises(InputError, match=message):
        from_bandit(frame, **{"state": "user", "action": "item", "reward": "click", **names})


def test_of_a_mapping_only_the_columns_of_the_log_are_read():
    """As in the Open Bandit Pipeline, whose mapping also has sizes and matrices."""
    more = CLICKS | {"n_rounds": 2, "context": np.zeros((2, 3)), "pscore": [0.5, 0.25]}
    log = from_bandit(more, state="user", action="item", reward="click")
    assert log.action_prob.tolist() == [0.5, 0.25]
