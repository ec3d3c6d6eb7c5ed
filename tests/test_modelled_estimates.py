"""Doubly robust estimates where the behaviour's probabilities are themselves estimated."""

from __future__ import annotations

import numpy as np
import pytest

import spibb
from spibb.episodes.departures import typical_model
from spibb.ope.estimate import Estimate, beyond_reach
from spibb.solve import evaluate


def log_of_costs(seed: int, n_episodes: int = 60, longest: int = 6) -> spibb.Log:
    """A random world in which every step costs something, and one action is rare."""
    rng = np.random.default_rng(seed)
    n_states, n_actions = 15, 4
    following = rng.integers(n_states, size=(n_states, n_actions, 3))
    cost = rng.uniform(0.2, 2.0, size=(n_states, n_actions))
    behaviour = rng.dirichlet([8.0, 4.0, 1.0, 0.15], size=n_states)
    rows = []
    for episode in range(n_episodes):
        state = int(rng.integers(n_states))
        for step in range(longest):
            action = int(rng.choice(n_actions, p=behaviour[state]))
            done = bool(rng.random() < 0.08)
            rows.append((episode, step, state, action, -cost[state, action], done))
            if done:
                break
            state = int(following[state, action, rng.integers(3)])
    columns = dict(
        zip(("episode_id", "step", "state", "action", "reward", "terminated"), zip(*rows))
    )
    return spibb.Log.from_arrays(**{name: list(column) for name, column in columns.items()})


@pytest.mark.parametrize("smoothing", ["0.1", "1"])
@pytest.mark.parametrize("seed", range(6))
def test_costs_never_look_like_gains(seed, smoothing):
    """Held-out episodes, a baseline estimated from the others: values stay what costs can be."""
    done = spibb.run(
        log_of_costs(seed), baseline=f"estimate:{smoothing}", holdout=0.3, discount=0.95
    )
    held_out = done.assessment.evidence.held_out
    for name in ("dr", "wdr"):
        assert -12 < held_out[name].estimate.value < 0, name


def test_a_pair_never_seen_is_worth_what_its_state_earned():
    log = spibb.Log.from_arrays(
        ["a", "a", "b"], ["x", "y", "x"], [1.0, 3.0, 10.0], terminated=[True] * 3
    )
    model = typical_model(spibb.Counts.from_log(log), 0.9)
    np.testing.assert_allclose(evaluate(model, np.array([[0.5, 0.5], [0.0, 1.0]])).v, [2.0, 10.0])


def test_a_state_in_which_the_log_never_acts_is_worth_the_mean_of_the_others():
    log = spibb.Log.from_arrays(
        ["a", "b"], ["x", "x"], [1.0, 10.0], episode_id=[0, 1], next_state=["c", "b"],
        terminated=[False, True], truncated=[True, False],
    )  # fmt: skip
    model = typical_model(spibb.Counts.from_log(log), 0.5)
    v = evaluate(model, np.ones(model.shape)).v
    assert dict(zip(model.states.labels, v)) == pytest.approx(
        {"a": 1 + 0.5 * 5.5, "b": 10, "c": 5.5}
    )


def test_an_estimate_beyond_what_rewards_allow_is_doubted():
    def doubted(value, reach):
        ones = np.ones(3)
        return Estimate("dr", value, ones, ones, ones, 3.0, reach=reach).out_of_reach

    assert doubted(2.3, (-20.0, -0.2))
    assert doubted(-25.0, (-20.0, 0.0))
    assert not doubted(-19.0, (-20.0, 0.0))
    assert not doubted(float("nan"), (-20.0, 0.0))
    assert beyond_reach((-20.0, -0.2)).endswith("in an episode, −20 to −0.2")


def test_a_warning_about_weights_does_not_hide_an_estimate_beyond_the_rewards():
    """The log never takes b, which the model believes to pay 9."""
    log = spibb.Log.from_arrays(["x"] * 3, ["a"] * 3, [1.0] * 3, terminated=[True] * 3,
                                action_labels=["a", "b"])  # fmt: skip
    model = spibb.MDP.from_outcomes(
        [0, 0], [0, 1], [1.0, 1.0], [0, 0], [1.0, 9.0], [True, True], initial=[1.0], n_actions=2,
        discount=0.0, states=["x"], actions=["a", "b"],
    )  # fmt: skip
    only_b, mu = (spibb.Policy([row], ["x"], ["a", "b"]) for row in ([0, 1], [0.5, 0.5]))
    report = spibb.off_policy_estimates(
        log, only_b, mu, 0.0, model=model, rng=np.random.default_rng(0)
    )
    assert report.warning.startswith("none of the 3 episodes is possible under the policy")
    assert "; dr = 9 is beyond what the log's rewards can add up to" in report.warning
    assert "is = 0" not in report.warning


def test_successors_that_contradict_the_next_row_do_not_bias_the_estimate():
    """Every recorded successor says "good", and half of the time the next row is "bad"."""
    rng = np.random.default_rng(0)
    n = 400
    second = rng.choice(["good", "bad"], n)
    state = np.stack([np.full(n, "start"), second], axis=1).ravel()
    reward = np.stack([np.zeros(n), np.where(second == "good", 10.0, 0.0)], axis=1).ravel()
    log = spibb.Log.from_arrays(
        state, ["go"] * (2 * n), reward, episode_id=np.repeat(np.arange(n), 2),
        next_state=["good"] * (2 * n), terminated=np.tile([False, True], n),
    )  # fmt: skip
    policy = spibb.Policy.uniform(log.states, log.actions)
    report = spibb.off_policy_estimates(log, policy, policy, 0.9, rng=rng, bounds=("student-t",))
    earned = 9.0 * (second == "good").mean()
    for name in ("is", "pdis", "dr", "wdr"):
        assert report[name].estimate.value == pytest.approx(earned), name
