"""What a log could certify, foretold without training."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import gammaincc, ndtr
from typer.testing import CliRunner

import spibb
from spibb import Certified, Problem
from spibb.behaviour import Provenance
from spibb.bounds.normal import chi_square_tail, normal_cdf
from spibb.changes import values
from spibb.changes.prospects import Outlook
from spibb.changes.values import quick_values
from spibb.cli.app import app
from spibb.counts import Counts
from spibb.envs import gridworld_baseline, gridworld_mdp
from spibb.envs.garnet import draw_garnet
from spibb.episodes.departures import values_where_seen
from spibb.errors import InputError
from spibb.forecast import forecast
from spibb.log import Log
from spibb.policy import Policy
from spibb.simulate import simulate
from spibb.tables import log_table, write_table


def coins(n: int, good: float, seed: int = 0) -> Log:
    """One decision per episode in one of four places; in two of them action b pays `good`."""
    rng = np.random.default_rng(seed)
    place, action = rng.integers(4, size=n), rng.integers(2, size=n)
    reward = (rng.random(n) < 0.3 + good * action * (place < 2)).astype(float)
    return Log.from_arrays(
        place.tolist(), ["ab"[a] for a in action.tolist()], reward,
        terminated=np.ones(n, dtype=bool),
    )  # fmt: skip


def bandit(n: int, seed: int, states: int = 6, actions: int = 3) -> Log:
    """Clicks on one of three items in six contexts, shown with equal, recorded probabilities."""
    rng = np.random.default_rng(seed)
    chance = rng.uniform(0.1, 0.6, size=(states, actions))
    state, action = rng.integers(states, size=n), rng.integers(actions, size=n)
    return Log.from_arrays(
        state, action, (rng.random(n) < chance[state, action]).astype(float),
        terminated=np.ones(n, dtype=bool), action_prob=np.full(n, 1 / actions),
    )  # fmt: skip


def walks(n: int, seed: int, recorded: bool, steps: int) -> Log:
    """Uniformly random decisions in a random world of ten states; some are cut."""
    rng = np.random.default_rng(seed)
    mdp = draw_garnet(rng, n_states=10, n_actions=3).mdp
    uniform = Policy(np.full((10, 3), 1 / 3), mdp.states, mdp.actions)
    log = simulate(mdp, uniform, n, rng=rng, max_steps=steps)
    return replace(log, action_prob=np.full(len(log), 1 / 3) if recorded else None)


def accepted(log: Log, discount: float, baseline: object = None, **limits: float) -> int:
    """In how many states `certified` changes something."""
    result = Certified(**limits).improve(Problem.from_log(log, baseline, discount=discount))
    return sum(len(test.changes) for test in result.tests if test.accepted)


def test_two_of_four_states_have_enough():
    found = forecast(coins(2000, 0.5))
    assert (found.states, found.now) == (4, 2)
    assert str(found).startswith("Enough evidence to certify a change in 2 of the 4 states")


def test_noise_has_nothing_now():
    assert [forecast(coins(400, 0.0, seed)).now for seed in range(10)] == [0] * 10


@pytest.mark.parametrize("n", [200, 600])
def test_it_is_what_certified_does_with_a_bandit(n):
    """600 rows, 6 contexts, 3 actions: 0 of 6 was said where all 6 passed."""
    logs = [bandit(n, seed) for seed in range(12)]
    said = [forecast(log, 0.0).now for log in logs]
    assert said == [accepted(log, 0.0, lowest_return=0, highest_return=1) for log in logs]
    assert max(said) == (6 if n == 600 else max(said))


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("steps", [8, 200])
def test_it_is_what_certified_does_with_longer_episodes(recorded, steps):
    logs = [walks(400, seed, recorded, steps) for seed in range(6)]
    limits = {"lowest_return": 0.0, "highest_return": 1.0}
    said = [forecast(log, 0.95, **limits).now for log in logs]
    assert said == [accepted(log, 0.95, **limits) for log in logs]
    assert sum(said) > 0 or not recorded


@pytest.mark.parametrize("baseline", [np.full((10, 3), 1 / 3), "estimate", "estimate:5"])
@pytest.mark.parametrize("steps", [1, 8])
def test_it_is_what_certified_does_with_a_baseline(baseline, steps):
    logs = [walks(400, seed, seed % 2 == 1, steps) for seed in range(6)]
    limits = {"lowest_return": 0.0, "highest_return": 1.0}
    said = [forecast(log, 0.95, baseline=baseline, **limits) for log in logs]
    assert [found.now for found in said] == [
        accepted(log, 0.95, baseline, **limits) for log in logs
    ]
    given = Provenance.ESTIMATED if isinstance(baseline, str) else Provenance.GIVEN
    assert {found.source for found in said} == {given}


def test_a_known_baseline_certifies_more():
    logs = [walks(400, seed, False, 8) for seed in range(6)]
    known = sum(forecast(log, 0.95, baseline=np.full((10, 3), 1 / 3)).now for log in logs)
    assert known > sum(forecast(log, 0.95).now for log in logs)


def test_inspect_with_the_baseline_of_the_demo_says_what_certified_does(tmp_path):
    log = simulate(gridworld_mdp(), gridworld_baseline(), 2000, rng=np.random.default_rng(0))
    log.save(tmp_path / "log.csv")
    gridworld_baseline().save(tmp_path / "baseline.csv")
    words = [str(tmp_path / "log.csv"), "--baseline", str(tmp_path / "baseline.csv")]
    printed = CliRunner().invoke(app, ["inspect", *words])
    assert printed.exit_code == 0, printed.output
    found = spibb.inspect_log(log, baseline=gridworld_baseline()).forecast
    limits = dict(zip(("lowest_return", "highest_return"), found.limits))
    assert found.now == accepted(log, 0.95, gridworld_baseline(), **limits) > 0
    assert found.now > forecast(log).now
    said = " ".join(printed.output.split())
    assert str(found) in said
    assert "the current policy's probabilities are those of the baseline." in said


def odd_log(seed: int) -> Log:
    """A few rows: unknown or recorded probabilities, single or longer episodes, cut or not."""
    rng = np.random.default_rng(seed)
    n, states, actions = rng.integers(1, 60), rng.integers(1, 6), rng.integers(1, 4)
    episode = np.sort(rng.integers(n // 3 + 1, size=n)) if seed % 2 else np.arange(n)
    ended = rng.random(n) < (0.6 if seed % 5 else 1.0)
    reward = rng.normal(size=n) * 10.0 ** rng.integers(-20, 20)
    recorded = [None, np.full(n, 1 / actions), rng.uniform(0.05, 1, size=n)][seed % 3]
    return Log.from_arrays(
        rng.integers(states, size=n), rng.integers(actions, size=n),
        reward if seed % 4 else (reward > 0).astype(float), episode_id=episode,
        terminated=ended & np.append(np.diff(episode) > 0, True), action_prob=recorded,
    )  # fmt: skip


@pytest.mark.filterwarnings("error")
def test_it_reads_what_certified_reads_and_does_the_same():
    read = 0
    for seed in range(120):
        log = odd_log(seed)
        found = forecast(log, 0.9)
        low, high = found.limits
        if found.refusal or not low < high:
            continue
        read += 1
        assert found.now == accepted(log, 0.9, lowest_return=low, highest_return=high)
    assert read > 60


def test_what_it_promises_happens_about_as_often_as_not():
    """At even odds; of 40 promises between 11 and 29 should be kept (99 %), of better ones more."""
    kept = []
    for seed in range(40):
        n = 250
        found = forecast(bandit(n, seed), 0.0)
        if found.more_episodes is None or found.at_least or found.more_episodes > 20_000:
            continue
        longer = bandit(n + found.more_episodes, seed)
        kept.append(accepted(longer, 0.0, lowest_return=0, highest_return=1) >= found.then)
    assert len(kept) >= 15
    assert 0.3 <= np.mean(kept) <= 0.9


def test_the_odds_of_a_test_are_those_of_bets():
    """X is ±1 with mean 0.1: how often the wealth of the best bet reaches 1/0.05."""
    one = (np.array([value]) for value in (0.1, 0.0, 1.0, 1.0, 400.0))
    found = Outlook(*one).odds(1.0, np.array([np.log(20)]))[0]
    x = np.where(np.random.default_rng(0).random((4000, 400)) < 0.55, 1.0, -1.0)
    wealth = np.log1p(0.1 * x).sum(axis=1)
    assert found == pytest.approx(np.mean(wealth >= np.log(20)), abs=0.05)


def test_what_is_not_known_of_a_mean_lowers_good_odds():
    parts = [np.array([value]) for value in (0.2, 0.0, 1.0, 1.0, 400.0)]
    sure = Outlook(*parts).odds(1.0, np.array([3.0]))[0]
    parts[1] = np.array([0.2])
    assert 0.5 < Outlook(*parts).odds(1.0, np.array([3.0]))[0] < sure


@pytest.mark.parametrize("direct", [0, 500])
def test_values_without_a_solver_are_the_same(direct, monkeypatch):
    monkeypatch.setattr(values, "DIRECT_UP_TO", direct)
    rng = np.random.default_rng(0)
    for seed in range(100):
        log = walks(20, seed, False, 30)
        counts, rows = Counts.from_log(log), rng.dirichlet(np.ones(3), size=10)
        for found, wanted in zip(
            quick_values(counts, rows, 0.95), values_where_seen(counts, rows, 0.95)
        ):
            np.testing.assert_allclose(found, wanted, atol=1e-7, rtol=1e-7)


def test_the_normal_distribution_without_scipy_is_the_same():
    x = np.random.default_rng(0).normal(size=1000) * 6
    np.testing.assert_allclose(normal_cdf(x), ndtr(x), rtol=1e-12, atol=1e-300)
    assert (normal_cdf(np.zeros(1 << 17)) == 0.5).all()


def test_the_tail_of_chi_square_without_scipy_is_the_same():
    rng = np.random.default_rng(0)
    for freedom in (0, 1, 2, 3, 7, 50, 999, 20_000):
        for statistic in (0.0, *rng.gamma(freedom / 2 + 0.1, 2, size=20), 3.0 * freedom + 40):
            wanted = gammaincc(freedom / 2, statistic / 2) if freedom else 1.0
            assert chi_square_tail(statistic, freedom) == pytest.approx(wanted, rel=1e-8)
    assert (chi_square_tail(5e-324, 1), chi_square_tail(np.inf, 3)) == (1.0, 0.0)


def test_more_episodes_need_fewer_more():
    small, large = (forecast(coins(n, 0.3)) for n in (100, 2000))
    assert small.now <= large.now
    assert large.now == 2


@pytest.mark.parametrize("reward", [0.0, 1.0])
def test_a_constant_reward_has_no_prospect(reward):
    log = Log.from_arrays(["s"] * 20, ["a", "b"] * 10, [reward] * 20, terminated=[True] * 20)
    assert str(forecast(log)) == (
        "Enough evidence to certify a change in 0 of the 1 states with logged decisions; "
        "this log does not tell how many more episodes would add one."
    )


def test_what_certified_cannot_read_is_said_and_no_error():
    """Probabilities that add up to more than 1."""
    log = replace(bandit(60, 0), action_prob=np.full(60, 0.9))
    said = str(forecast(log, 0.0))
    assert said.startswith("Nothing can be certified from this log: action_prob of state ")
    with pytest.raises(InputError, match="outside the declared"):
        forecast(bandit(60, 0), 0.0, lowest_return=0.0, highest_return=0.5)


@pytest.mark.parametrize("unit", [1e-300, 1e-9, 1e9, 1e150])
def test_the_unit_of_rewards_does_not_matter(unit):
    log = coins(600, 0.4)
    found, scaled = forecast(log), forecast(replace(log, reward=log.reward * unit))
    assert (found.now, found.then) == (scaled.now, scaled.then)
    assert found.more_episodes == scaled.more_episodes


def test_inspect_ends_in_it(tmp_path):
    log = coins(2000, 0.5)
    write_table(log_table(log), tmp_path / "log.csv")
    printed = CliRunner().invoke(app, ["inspect", str(tmp_path / "log.csv")])
    assert printed.exit_code == 0, printed.output
    assert str(forecast(log)) in " ".join(printed.output.split())


@pytest.mark.parametrize("rows", [200, 2000])
def test_a_baseline_that_did_not_make_the_log_is_suspicious(rows, monkeypatch):
    """Also where there are too many rows for a forecast."""
    log = coins(rows, 0.5)
    monkeypatch.setattr("spibb.inspection.FORECAST_ROWS", 1000)
    probs = np.tile([0.9, 0.1], (len(log.states), 1))
    found = spibb.inspect_log(log, baseline=probs)
    assert (found.forecast is None) == (rows > 1000)
    said = next(finding for finding in found.suspicions if finding.what == "Baseline")
    assert said.value.startswith("it cannot have made this log: its actions are not as frequent as")
    right = spibb.inspect_log(log, baseline=np.full(probs.shape, 0.5))
    assert "Baseline" not in {finding.what for finding in right.suspicions}
    if rows < 1000:  # nor does the first line promise what no verdict would certify
        assert (found.forecast.now, found.forecast.then) == (0, 0)
        refused = "Nothing can be certified from this log: the baseline cannot have made it ("
        assert str(found.forecast).startswith(refused)
        assert forecast(log, baseline=probs, lowest_return=0, highest_return=9).refusal
        assert not right.forecast.refusal


@pytest.mark.parametrize("command", ["inspect", "improve"])
def test_a_baseline_is_checked_in_the_same_words(command, tmp_path):
    write_table(log_table(coins(60, 0.5)), tmp_path / "log.csv")
    out = ["--out", str(tmp_path / "out")] if command == "improve" else []
    said = {
        "recorde": "did you mean 'recorded'?",
        "estimate:x": "baseline estimate:x has no number after the colon: write estimate:0.5",
        "recorded": "the log does not record it: it has no action_prob",
        "none.csv": "none.csv",
    }
    for given, words in said.items():
        arguments = [command, str(tmp_path / "log.csv"), *out, "--baseline", given]
        done = CliRunner().invoke(app, arguments)
        assert done.exit_code != 0
        assert words in str(done.exception), given


def test_inspect_takes_the_discount_of_the_forecast(tmp_path):
    write_table(log_table(coins(2000, 0.5)), tmp_path / "log.csv")
    words = ["inspect", str(tmp_path / "log.csv"), "--discount", "0.5"]
    assert "(discount 0.5, delta 0.05)" in " ".join(CliRunner().invoke(app, words).output.split())


def test_limits_that_exclude_every_return_are_refused():
    with pytest.raises(InputError, match="the declared limits exclude every return: lowest_return"):
        forecast(coins(40, 0.5), 0, lowest_return=2, highest_return=1)
