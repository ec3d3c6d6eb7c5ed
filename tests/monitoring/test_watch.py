"""The monitor as a whole: verdicts, invariances, limits."""

from __future__ import annotations

import math

import numpy as np
import pytest

import spibb
from spibb import InputError, Log, Policy
from spibb.ingest.policy_files import LoadedPolicy
from spibb.monitoring.deployed import Deployed
from spibb.monitoring.watch import WORSE, _tested

POLICY = Policy([[1.0, 0.0]], ["a"], ["go", "stay"])


def deployed(returns, limits=(0.0, 1.0), discount=0.9):
    return Deployed(LoadedPolicy(POLICY, {}, {}), discount, np.asarray(returns, float), limits)


def episodes(rewards, action="go"):
    n = len(rewards)
    return Log.from_arrays(
        ["a"] * n, [action] * n, rewards, terminated=np.ones(n, bool), action_labels=["go", "stay"]
    )  # fmt: skip


def coins(p, n, seed=0):
    return (np.random.default_rng(seed).random(n) < p).astype(float)


def test_worse_no_worse_and_undecided():
    old = deployed(coins(0.6, 400))
    worse = spibb.monitor(old, episodes(coins(0.3, 300, 1)))
    assert worse.verdict == "worse" and worse.alarm and "roll back" in str(worse)
    assert worse.difference[1] < 0 and 0 < worse.since <= 300
    better = spibb.monitor(old, episodes(coins(0.9, 300, 1)))
    assert better.verdict == "no worse" and not better.alarm and better.difference[0] > 0
    same = spibb.monitor(old, episodes(coins(0.6, 50, 1)))
    assert same.verdict == "undecided" and same.since is None
    assert same.difference[0] < 0 < same.difference[1]


def test_an_equal_policy_is_shown_to_be_no_worse_up_to_a_margin():
    old, new = deployed(coins(0.6, 2000)), episodes(coins(0.6, 2000, 1))
    assert spibb.monitor(old, new).verdict == "undecided"
    assert spibb.monitor(old, new, margin=0.15).verdict == "no worse"


def test_a_tolerated_loss_is_no_alarm():
    old, new = deployed(coins(0.6, 2000)), episodes(coins(0.45, 2000, 1))
    assert spibb.monitor(old, new).verdict == "worse"
    assert spibb.monitor(old, new, margin=0.4).verdict == "no worse"


@pytest.mark.parametrize(("scale", "shift"), [(1.0, -5.0), (1e-9, 0.0), (1e12, 3e12), (2.0, 1.0)])
def test_unit_and_offset_of_the_returns_change_nothing(scale, shift):
    old, new = coins(0.6, 200), coins(0.35, 200, 1)
    one = spibb.monitor(deployed(old), episodes(new))
    two = spibb.monitor(
        deployed(scale * old + shift, (shift, scale + shift)), episodes(scale * new + shift)
    )
    assert (one.verdict, one.since) == (two.verdict, two.since)
    np.testing.assert_allclose(two.difference, scale * np.array(one.difference), rtol=1e-5)


def test_mirrored_returns_mirror_the_verdict():
    old, new = coins(0.6, 300), coins(0.35, 300, 1)
    worse = spibb.monitor(deployed(old), episodes(new))
    better = spibb.monitor(deployed(-old, (-1, 0)), episodes(-new))
    assert (worse.verdict, better.verdict) == ("worse", "no worse")
    assert worse.since == better.since


def test_the_returns_are_discounted_as_the_policys_were():
    log = Log.from_arrays(
        ["a", "a"], ["go", "go"], [0.0, 1.0], terminated=[False, True], episode_id=[0, 0],
        step=[0, 1],
    )  # fmt: skip
    assert spibb.monitor(deployed([0.5, 0.6]), log).new.value == pytest.approx(0.9)


def test_more_episodes_for_a_drop():
    old = deployed(coins(0.6, 400))
    found = spibb.monitor(old, episodes(coins(0.6, 50, 1)), drop=0.2)
    assert (found.drop, 10 < found.more_episodes < 400) == (pytest.approx(0.2), True)
    assert spibb.monitor(old, episodes(coins(0.6, 50, 1)), drop=0.01).more_episodes == math.inf
    assert spibb.monitor(old, episodes(coins(0.6, 50, 1)), drop=1e308).more_episodes == 0
    shown = spibb.monitor(old, episodes(coins(0.6, 50, 1)))
    again = spibb.monitor(old, episodes(coins(0.6, 50, 1)), drop=shown.drop)
    assert again.more_episodes == pytest.approx(shown.more_episodes, abs=1)


def test_limits_are_declared_and_kept():
    log = episodes([0.5, 0.5])
    with pytest.raises(InputError, match="lowest_return is not known: give --lowest-return"):
        spibb.monitor(deployed([0.5, 0.7], None), log)
    with pytest.raises(InputError, match="highest_return is not known"):
        spibb.monitor(deployed([0.5, 0.7], None), log, lowest_return=0)
    with pytest.raises(
        InputError, match=r"the log: episode number 2 returns 2, beyond the highest_return"
    ):
        spibb.monitor(deployed([0.5, 0.7]), episodes([0.5, 2.0]))
    with pytest.raises(
        InputError, match=r"the baseline's log: episode number 1 returns 0.5, beyond the lo"
    ):
        spibb.monitor(deployed([0.5, 0.7]), episodes([0.6]), lowest_return=0.55)
    with pytest.raises(
        InputError, match="the log: episode number 2 returns 1999999998, beyond the low"
    ):
        spibb.monitor(deployed([2e9 + 1], (2e9, 2e9 + 1)), episodes([2e9, 2e9 - 1.5]))
    with pytest.raises(InputError, match="highest_return is -1"):
        spibb.monitor(deployed([0.5, 0.7]), log, highest_return=-1)
    for name, value in (("delta", 1.0), ("margin", -0.1), ("drop", 0.0)):
        with pytest.raises(InputError, match=f"{name} is"):
            spibb.monitor(deployed([0.5, 0.7]), log, **{name: value})


def test_cut_episodes_are_mentioned():
    log = Log.from_arrays(["a", "a"], ["go", "go"], [0.2, 0.3], truncated=[True, True])
    assert "2 of 2 episodes were cut" in spibb.monitor(deployed([0.5, 0.7]), log).warnings[0]


def test_returns_that_change_over_time_give_a_warning_and_no_inverted_interval():
    x = np.r_[np.ones(3000), np.zeros(3000)]
    found = spibb.monitor(deployed(coins(0.6, 4000)), episodes(x))
    assert found.new.interval is None
    assert any("returns changed over time" in warning for warning in found.warnings)
    assert found.summary["new"]["interval"] is None
    steady = spibb.monitor(deployed(coins(0.6, 400)), episodes(coins(0.6, 400, 1)))
    assert steady.warnings == () and steady.new.interval[0] < 0.6 < steady.new.interval[1]


def test_a_stream_that_turns_bad_gives_an_alarm_and_one_that_turns_good_keeps_it():
    """0.9 for 400 episodes and then 0.3, against 0.6: on average the new policy is no worse."""
    old = deployed(coins(0.6, 2000))
    good, bad = coins(0.9, 400, 1), coins(0.3, 300, 2)
    early = spibb.monitor(old, episodes(good))
    assert (early.verdict, early.after) == ("no worse", 0)
    found = spibb.monitor(old, episodes(np.r_[good, bad]))
    assert np.r_[good, bad].mean() > 0.6
    assert found.verdict == "worse" and found.alarm
    assert found.after == 400 and 400 < found.since < 600
    assert "After its first 400 episodes the new policy earns less" in found.sentence
    assert found.recent.episodes == 175 and found.recent.interval[1] < 0.5
    assert found.summary["after"] == 400
    turned = spibb.monitor(old, episodes(np.r_[bad, good]))
    assert turned.verdict == "worse" and turned.after == 0 and turned.since < 300
    assert turned.recent.interval[0] > 0.7


def test_no_worse_is_withdrawn_where_no_mean_fits_all_episodes():
    """1,000 good ones, then 30 of nothing: too few for an alarm, too many for one mean."""
    x = np.r_[np.ones(3000), np.zeros(40)]
    old = deployed(np.r_[np.zeros(400), np.ones(400)])
    found = spibb.monitor(old, episodes(x))
    assert found.drifts and found.verdict in ("undecided", "worse")
    assert found.verdict == "worse" or "changed over time" in found.sentence


@pytest.mark.slow
def test_false_alarms_of_all_tests_together_are_rare():
    """400 streams of 300 as good as the baseline, δ = 0.2."""
    alarms = 0
    for seed in range(400):
        old = deployed(coins(0.5, 60, 2 * seed))
        alarms += spibb.monitor(old, episodes(coins(0.5, 300, 2 * seed + 1)), delta=0.2).alarm
    assert alarms <= 80


@pytest.mark.parametrize("seed", range(4))
def test_an_alarm_keeps_its_place_as_episodes_arrive(seed):
    rng = np.random.default_rng(seed)
    before = rng.binomial(1, 0.6, 400).astype(float)
    after = np.concatenate([rng.binomial(1, 0.75, 150), rng.binomial(1, 0.3, 900)]).astype(float)
    looks = [_tested(after[:n], before, 0.0, 0.05)[0] for n in range(50, len(after), 50)]
    alarms = [look for look in looks if look.verdict == WORSE]
    assert alarms and all(alarm == alarms[0] for alarm in alarms)
