"""Recorded probabilities that vary within a state: no model is trusted alone there."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import spibb
from spibb.algorithms.problem import Problem
from spibb.cli.app import app
from spibb.episodes.departures import single_departures
from spibb.errors import InputError
from spibb.forecast import forecast
from spibb.inspection import VARYING, inspect_log
from spibb.log import Log
from spibb.tables import log_table, write_table
from spibb.verdict import gather_for
from spibb.verdict.evidence import visits_behind
from spibb.verdict.recorded import CROSS_FITTED, SINGLE, WHOLE

ONE_GOOD = (0.2, -0.07, -0.07, -0.07, -0.07)


def scored(n: int, effect, seed: int, base: float = 0.15, slope: float = 0.6) -> Log:
    """Single decisions: a score that the state lacks drives both action 0 and the reward."""
    rng, effect = np.random.default_rng(seed), np.asarray(effect)
    state, u = rng.integers(len(effect), size=n), rng.random(n)
    p = 0.1 + 0.8 * u
    action = (rng.random(n) > p).astype(int)
    reward = (rng.random(n) < base + slope * u + np.where(action == 0, effect[state], 0)) * 1.0
    return Log.from_arrays(
        state=state, action=action, reward=reward, terminated=np.ones(n, dtype=bool),
        action_prob=np.where(action == 0, p, 1 - p), n_states=len(effect), n_actions=2,
    )  # fmt: skip


def two_steps(n: int, effect: float, seed: int) -> Log:
    """Episodes of two steps, the score drawn anew at each."""
    parts = [scored(n, (effect, effect), 2 * seed + t, 0.2, 0.5) for t in range(2)]
    joined = {
        name: np.stack([getattr(part, name) for part in parts], axis=1).ravel()
        for name in ("state", "action", "reward", "action_prob")
    }
    step = np.tile([0, 1], n)
    joined["state"] = joined["state"] + 2 * step
    return Log.from_arrays(
        **joined, terminated=step == 1, episode_id=np.repeat(np.arange(n), 2), step=step,
        n_states=4, n_actions=2,
    )  # fmt: skip


def improved(log: Log, algorithm: str = "pi-b", **options):
    return spibb.improve(log, discount=0.0, algorithm=algorithm, **options)


def criterion(verdict, name: str):
    return next(c for c in verdict.criteria if c.name == name)


@pytest.mark.parametrize("algorithm", ["pi-b", "auto"])
def test_a_score_that_the_state_lacks_does_not_make_a_worse_policy_supported(algorithm):
    """With the model alone 11 and 12 of 30 limits were above the gain, and were called sure."""
    effect, wrong = np.array(ONE_GOOD), 0
    for seed in range(30):
        result = improved(scored(1000, effect, seed), algorithm)
        gain = float(np.mean((result.policy.probs[:, 0] - 0.5) * effect))
        wrong += result.verdict.favourable and result.verdict.lower_bound > gain
    assert wrong <= 4  # P(> 4 of 30) = 1.6 % at a rate of 5 %


def test_a_real_gain_is_supported_and_its_limit_holds():
    found = [improved(scored(3000, [0.15] * 5, seed), "auto") for seed in range(6)]
    assert all(result.verdict.favourable for result in found)
    gains = [float(np.mean((r.policy.probs[:, 0] - 0.5) * 0.15)) for r in found]
    assert all(r.verdict.lower_bound <= gain for r, gain in zip(found, gains))
    said = found[0].verdict
    assert said.sentence.startswith("By the log's recorded probabilities (")
    assert "The model says at least" in said.sentence
    assert "is not trusted" in said.sentence


def test_the_sure_gain_is_the_smallest_of_all_limits_and_says_whose_it_is():
    evidence = gather_for(improved(scored(1000, ONE_GOOD, 3)))
    assert [one.what for one in evidence.direct] == [SINGLE, CROSS_FITTED]
    assert evidence.sure == min(evidence.lower, *(one.lower for one in evidence.direct))
    assert evidence.sure < 0 < evidence.lower
    verdict = improved(scored(1000, ONE_GOOD, 3)).verdict
    sure = criterion(verdict, "sure gain")
    assert not sure.passed
    assert f"({evidence.binding.what}, by the recorded probabilities; model: +" in sure.found
    assert "is not trusted: the recorded probabilities vary within a state" in verdict.sentence
    assert any("model's comparison of actions there is not trusted" in a
               for a in verdict.assumptions)  # fmt: skip
    assert verdict.remedy.startswith(
        "States that contain what the recorded probabilities depend on"
    )
    assert "certified" in verdict.remedy
    assert criterion(verdict, "single changes").wanted == "significantly above 0"


def test_longer_episodes_are_also_reweighted_and_not_sent_to_certified():
    result = spibb.improve(two_steps(600, -0.05, 0), discount=0.95, algorithm="pi-b", n_wedge=10)
    evidence = gather_for(result)
    assert [one.what for one in evidence.direct] == [SINGLE, CROSS_FITTED, WHOLE]
    assert not result.verdict.favourable
    assert "certified" not in result.verdict.remedy
    assert "too little evidence" not in " ".join(c.remedy for c in result.verdict.criteria)


def test_a_probability_that_is_the_states_own_changes_nothing():
    log = scored(400, ONE_GOOD, 0)
    steady = dataclasses.replace(log, action_prob=np.full(len(log), 0.5))
    evidence = gather_for(improved(steady))
    assert not evidence.problem.varying
    assert evidence.direct == ()
    assert evidence.sure == evidence.lower


def test_the_control_variate_has_mean_0_given_what_the_probabilities_depend_on():
    """An action now makes the good case likelier later: Q̂ must not take that away, or add to it."""
    rng, n = np.random.default_rng(0), 40_000
    first = rng.integers(2, size=n)
    u = np.where(first == 0, 0.8, 0.2)  # what the second decision sees, and the state does not hold
    second = (rng.random(n) > u).astype(int)
    step = np.tile([0, 1], n)
    log = Log.from_arrays(
        state=step, action=np.stack([first, second], axis=1).ravel(),
        reward=np.stack([np.zeros(n), (second == 0) * 1.0], axis=1).ravel(),
        action_prob=np.stack([np.full(n, 0.5), np.where(second == 0, u, 1 - u)], axis=1).ravel(),
        terminated=step == 1, episode_id=np.repeat(np.arange(n), 2), step=step,
        n_states=2, n_actions=2,
    )  # fmt: skip
    baseline = np.full((2, 2), 0.5)
    policy = np.array([[1.0, 0.0], [0.5, 0.5]])  # always the action that leads to the good case
    q = np.array([[0.5, 0.5], [1.0, 0.0]])
    found = single_departures(log, policy, baseline, q, discount=0.9)
    truth = 0.9 * (0.8 - 0.5)
    assert found.gain == pytest.approx(truth, abs=4 * found.standard_error)


@pytest.mark.parametrize("asked", ["estimate", "estimate:0.5"])
def test_what_the_column_shows_is_not_forgotten_where_an_estimate_is_asked_for(asked):
    log = scored(1000, ONE_GOOD, 3)
    problem = Problem.from_log(log, asked, discount=0.0)
    assert problem.baseline_estimated
    assert problem.varying
    assert not spibb.PiBSpibb(n_wedge=10).improve(problem).verdict.favourable


def test_nobody_is_told_to_drop_the_column():
    log = two_steps(300, -0.05, 1)
    with pytest.raises(InputError, match="add to the state what the probability") as error:
        spibb.improve(log, discount=0.95, algorithm="certified", lowest_reward=0, highest_reward=1)
    assert "drop" not in str(error.value)
    assert "with or without the column" in str(error.value)
    supported = spibb.improve(two_steps(3000, 0.3, 1), discount=0.95, algorithm="pi-b", n_wedge=10)
    assert supported.verdict.favourable
    assert "once the states contain what the recorded" in supported.verdict.remedy


def test_no_theorem_holds_where_the_policy_looked_at_more_than_the_state():
    certificate = improved(scored(400, ONE_GOOD, 0)).certificate()
    assert "vary within a state" in certificate.refusal


def test_an_inspection_names_it_and_its_forecast_heeds_it():
    log = scored(1000, ONE_GOOD, 3)
    found = next(f for f in inspect_log(log).suspicions if f.what == VARYING)
    assert "certified divides by them" in found.remedy
    ignored = dataclasses.replace(log, action_prob=None)
    assert forecast(ignored).now > 0  # the score passes for a difference between actions
    assert forecast(log).now == 0
    assert forecast(scored(20_000, [0.4] * 2, 0)).now == 2
    longer = two_steps(300, 0.1, 0)
    assert "refuses" in next(f for f in inspect_log(longer).suspicions if f.what == VARYING).remedy
    assert str(forecast(longer)).startswith(
        "Nothing can be certified from this log: action_prob is"
    )


def test_terminal_summary_and_report_show_the_same_sure_gain(tmp_path):
    write_table(log_table(scored(1000, ONE_GOOD, 3)), tmp_path / "log.csv")
    out = tmp_path / "out"
    done = CliRunner().invoke(
        app, ["improve", str(tmp_path / "log.csv"), "--bandit", "--out", str(out)]
    )
    assert done.exit_code == 0, done.output
    summary = json.loads((out / "summary.json").read_text())
    direct = summary["values"]["direct"]
    assert [one["what"] for one in direct] == [SINGLE, CROSS_FITTED]
    assert "by the recorded probabilities" in summary["verdict"]["criteria"]["sure gain"]["found"]
    page = (out / "report.html").read_text()
    for what in (SINGLE, CROSS_FITTED):
        assert f"gain, {what}"[:30] in " ".join(done.output.split())
        assert f"Gain, {what}" in page
    assert "no model's gain is trusted here" in page


# ---- visits --------------------------------------------------------------------------------------


@given(seed=st.integers(0, 10**6), action=st.integers(0, 3))
def test_splitting_an_action_into_two_does_not_lower_the_visits_behind_a_change(seed, action):
    rng = np.random.default_rng(seed)
    n = 120
    state, taken = rng.integers(3, size=n), rng.integers(4, size=n)
    policy, baseline = rng.dirichlet(np.ones(4), (2, 3))

    def behind(actions, new, old) -> np.ndarray:
        log = Log.from_arrays(
            state=state, action=actions, reward=rng.random(n), terminated=np.ones(n, dtype=bool),
            n_states=3, n_actions=new.shape[1],
        )  # fmt: skip
        return visits_behind(new, Problem.from_log(log, old, discount=0.0))

    halves = np.where((taken == action) & (rng.random(n) < 0.5), 4, taken)
    split = [
        np.column_stack([np.where(np.arange(4) == action, p / 2, p), p[:, action] / 2])
        for p in (policy, baseline)
    ]
    assert (behind(halves, *split) == behind(taken, policy, baseline)).all()


def test_many_avoided_actions_count_together():
    rng, n = np.random.default_rng(0), 1500
    probs = np.full(16, 0.02)
    probs[0] = 0.7
    action = rng.choice(16, n, p=probs)
    reward = (rng.random(n) < np.where(action == 0, 0.9, 0.3)) * 1.0
    log = Log.from_arrays(state=np.zeros(n, int), action=action, reward=reward,
                          terminated=np.ones(n, dtype=bool), n_states=1, n_actions=16)  # fmt: skip
    found = criterion(spibb.improve(log, discount=0.0, algorithm="auto").verdict, "visits")
    assert found.found == str(int((action != 0).sum()))
    assert found.passed
