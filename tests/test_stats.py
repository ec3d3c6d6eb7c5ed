"""Tail means and their intervals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import cvar

from spibb import stats
from spibb.stats import Interval, ordered_tail_intervals, tail_intervals, tail_size


@pytest.mark.parametrize(
    ("n", "share", "wanted"), [(100, 0.01, 1), (50, 0.01, 1), (1000, 0.1, 100), (7, 1.0, 7)]
)
def test_the_tail_is_the_floor_but_at_least_one(n, share, wanted):
    assert tail_size(n, share) == wanted


def test_bootstrap_and_normal_intervals_agree_on_many_runs(monkeypatch):
    values = np.random.default_rng(0).gamma(2, size=4000)
    resampled = tail_intervals(values, [1, 0.1], rng=np.random.default_rng(1))
    monkeypatch.setattr(stats, "BOOTSTRAP_UP_TO", 10)
    normal = tail_intervals(values, [1, 0.1], rng=np.random.default_rng(1))
    for one, other in zip(resampled, normal, strict=True):
        assert one.value == other.value
        assert one.low == pytest.approx(other.low, abs=0.01)
        assert one.high == pytest.approx(other.high, abs=0.01)


def delta_method(values: np.ndarray, share: float) -> Interval:
    """The definition: spread of t − (t − X)⁺ n/k over the runs, at the k-th value t."""
    n, k = len(values), tail_size(len(values), share)
    t = np.sort(values)[k - 1]
    contributions = t - np.maximum(t - values, 0) * n / k
    half = 1.959963984540054 * contributions.std(ddof=1) / np.sqrt(n)
    return Interval(cvar(values, share), cvar(values, share) - half, cvar(values, share) + half)


@given(
    st.lists(st.floats(-5, 5), min_size=2, max_size=200),
    st.lists(st.integers(0, 200), max_size=5),
    st.sampled_from([0.01, 0.1, 0.5, 1]),
)
def test_ordered_values_in_any_blocks_give_the_delta_methods_interval(values, cuts, share):
    ordered = np.sort(values)
    [whole] = ordered_tail_intervals([ordered], len(values), [share])
    blocks = np.split(ordered, sorted(cut for cut in cuts if cut < len(values)))
    assert ordered_tail_intervals(blocks, len(values), [share]) == [whole]
    wanted = delta_method(ordered, share)
    assert whole.value == pytest.approx(wanted.value, abs=1e-9)
    assert (whole.low, whole.high) == pytest.approx((wanted.low, wanted.high), abs=1e-6)


@pytest.mark.parametrize("limit", [5000, 10])
def test_intervals_hold_the_truth_about_as_often_as_they_say(monkeypatch, limit):
    """Uniform runs: the mean is 0.5 and the 10 %-CVaR 0.05."""
    monkeypatch.setattr(stats, "BOOTSTRAP_UP_TO", limit)
    rng = np.random.default_rng(2)
    inside = np.zeros(2)
    for _ in range(200):
        found = tail_intervals(rng.random(500), [1, 0.1], rng=rng)
        inside += [i.low <= t <= i.high for i, t in zip(found, (0.5, 0.05))]
    assert (inside / 200 >= 0.88).all()


def test_groups_of_equal_values_count_as_one_each():
    """Four copies of every run are no more evidence than the runs."""
    rng = np.random.default_rng(3)
    inside, widths = np.zeros(2), []
    for _ in range(100):
        runs = rng.random(60)
        found = tail_intervals(
            np.repeat(runs, 4), [1, 0.1], rng=rng, groups=np.repeat(np.arange(60), 4)
        )
        inside += [i.low <= t <= i.high for i, t in zip(found, (0.5, 0.05))]
        widths.append(found[0].high - found[0].low)
    assert (inside / 100 >= 0.85).all()
    assert np.mean(widths) == pytest.approx(2 * 1.96 * np.sqrt(1 / 12 / 60), rel=0.1)


def test_groups_of_one_are_runs():
    values = np.random.default_rng(4).random(300)
    alone = tail_intervals(values, [1, 0.1], rng=np.random.default_rng(5))
    grouped = tail_intervals(values, [1, 0.1], rng=np.random.default_rng(6), groups=np.arange(300))
    for one, other in zip(alone, grouped, strict=True):
        assert one.value == other.value
        assert (one.low, one.high) == pytest.approx((other.low, other.high), abs=0.01)
