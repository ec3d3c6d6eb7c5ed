"""Tests and lower bounds by betting: validity, and slow transcriptions."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles_betting import betting_wealth, closed_p_values, e_value, e_value_with_rests, holm
from scipy.stats import binom

from spibb.bounds.betting import Rests, Sample, adjusted_p_values, log_e_value, lower_rate, together
from spibb.bounds.means import betting_bound, student_t_bound
from spibb.errors import InputError


def sample_of(x, c, times=None, longest=1.0):
    x = np.asarray(x, dtype=float)
    times = np.ones(len(x)) if times is None else np.asarray(times, dtype=float)
    return Sample(x, times, c / longest, longest)


values = st.lists(st.floats(-1, 5), min_size=0, max_size=12)


@given(values, st.floats(0.01, 3))
def test_the_wealth_is_that_of_the_slow_transcription_in_any_order(x, bet):
    found = log_e_value(sample_of(x, 1.0), bet)
    assert found == pytest.approx(math.log(e_value(x, 1.0, bet)), abs=1e-9)
    assert log_e_value(sample_of(x[::-1], 1.0), bet) == pytest.approx(found, abs=1e-9)


@pytest.mark.parametrize(("gain", "bet"), [(1.0, 0.1), (4.0, 0.9), (20.0, 5.0)])
def test_a_fair_game_has_a_mean_wealth_of_exactly_one(gain, bet):
    """X = gain with probability 1/(1 + gain), else −1: all 2^8 outcomes, each with its chance."""
    chance, total = 1 / (1 + gain), 0.0
    for won in itertools.product([False, True], repeat=8):
        x = np.where(won, gain, -1.0)
        likely = np.prod(np.where(won, chance, 1 - chance))
        total += likely * math.exp(log_e_value(sample_of(x, 1.0), bet))
    assert total == pytest.approx(1.0, abs=1e-12)


def test_under_the_null_the_wealth_is_rarely_large():
    """Skewed values of mean 0: 4,000 samples of 60; P(e ≥ 1/δ) ≤ δ and the mean is about 1."""
    rng = np.random.default_rng(0)
    wealth = np.exp([
        log_e_value(sample_of(rng.exponential(size=60) - 1, 1.0), 0.2) for _ in range(4000)
    ])  # fmt: skip
    assert abs(wealth.mean() - 1) < 4 * wealth.std() / math.sqrt(len(wealth))
    for delta in (0.05, 0.2):
        assert (wealth >= 1 / delta).mean() <= delta


# ---- values that lack a number which groups share -----------------------------------------------


def unsure_sample(seed: int, n: int = 9):
    """Values of which some lie between two ends, with a number that up to three groups share."""
    rng = np.random.default_rng(seed)
    x, other = rng.uniform(-1, 2, size=(2, n))
    group = rng.integers(-1, 3, size=n)
    place = np.flatnonzero(group >= 0)
    return Sample(x, np.ones(n), 1.0, 1.0, Rests(place, other[place], group[place])), other, group


@given(st.integers(0, 10_000), st.floats(0.01, 3))
def test_the_worst_number_of_each_group_is_found(seed, bet):
    sample, other, group = unsure_sample(seed)
    names = [None if g < 0 else g for g in group.tolist()]
    wanted = e_value_with_rests(sample.x, other, names, 1.0, bet)
    assert log_e_value(sample, bet) == pytest.approx(math.log(wanted), abs=1e-9)


@given(st.integers(0, 10_000), st.floats(0.01, 3))
def test_the_wealth_and_the_bound_are_at_most_those_at_any_numbers(seed, bet):
    sample, other, group = unsure_sample(seed)
    share = np.append(np.random.default_rng(seed).random(3), 0.0)[group]
    true = sample_of(sample.x + share * (other - sample.x), 1.0)
    assert log_e_value(sample, bet) <= log_e_value(true, bet) + 1e-9
    assert lower_rate(sample, bet, 1.0) <= lower_rate(true, bet, 1.0) + 1e-9
    assert -1 <= lower_rate(sample, bet, 1.0) <= sample.rate + 1e-9 <= true.rate + 2e-9


def test_a_fair_game_with_a_hidden_number_has_a_mean_wealth_of_at_most_one():
    """X = (w − 1)(g + V − 0.7), V = 0.3 hidden in [0, 1], w of mean 1: all 4^5 outcomes."""
    outcomes = [(w, g) for w in (0.0, 2.0) for g in (0.0, 0.5)]
    total = 0.0
    for drawn in itertools.product(outcomes, repeat=5):
        w, g = np.array(drawn).T
        low, high = ((w - 1) * (g + v - 0.7) for v in (0.0, 1.0))
        rests = Rests(np.arange(5), high, np.zeros(5, dtype=int))
        sample = Sample(low, np.ones(5), 0.8, 1.0, rests)
        total += math.exp(log_e_value(sample, 0.8)) / len(outcomes) ** 5
    assert 0.3 < total <= 1


def test_samples_put_together_keep_what_is_unknown_of_each():
    first, second = unsure_sample(1)[0], unsure_sample(2, 5)[0]
    both = together([first, second])
    assert both.total == pytest.approx(first.total + second.total)
    np.testing.assert_array_equal(both.x[both.rests.place[:2]], first.x[first.rests.place[:2]])


@given(st.lists(st.floats(-20, 40), min_size=1, max_size=8))
def test_adjusted_p_values_are_those_of_all_subsets(log_e):
    found = adjusted_p_values(np.array(log_e))
    np.testing.assert_allclose(found, closed_p_values(np.exp(log_e)), rtol=1e-9)


@given(st.lists(st.floats(-5, 12), min_size=1, max_size=10), st.sampled_from([0.05, 0.2]))
def test_what_holm_accepts_is_accepted(log_e, delta):
    accepted = set(np.flatnonzero(adjusted_p_values(np.array(log_e)) <= delta * (1 + 1e-12)))
    assert holm(np.minimum(1, np.exp(-np.array(log_e))), delta) <= accepted


def test_more_is_accepted_than_by_holm():
    e = np.array([30.0, 19.0])  # Holm: 30 < 2/0.05
    assert adjusted_p_values(np.log(e))[0] <= 0.05
    assert holm(1 / e, 0.05) == set()


@given(st.integers(0, 10_000))
def test_a_rate_is_positive_exactly_where_the_test_rejects(seed):
    rng = np.random.default_rng(seed)
    times = rng.integers(1, 4, size=40)
    sample = Sample(rng.uniform(-1, 2, size=40) * times, times.astype(float), 1.0, 3.0)
    wanted = math.log(20)
    bound = lower_rate(sample, 0.3, wanted)
    assert (bound >= 0) == (log_e_value(sample, 0.3) >= wanted)
    assert -1 <= bound <= sample.rate


def test_a_lower_rate_misses_rarely():
    rng, missed = np.random.default_rng(1), 0
    for _ in range(1000):
        times = rng.integers(1, 4, size=50)
        x = np.array([rng.choice([-1.0, 1.0], p=[0.4, 0.6], size=t).sum() for t in times])
        sample = Sample(x, times.astype(float), 1.0, 3.0)
        missed += lower_rate(sample, 0.2, math.log(5)) > 0.2
    assert missed <= 200


@given(st.lists(st.floats(0, 10), min_size=2, max_size=15), st.sampled_from([0.05, 0.5]))
def test_the_bound_on_a_mean_is_that_of_the_slow_transcription(x, delta):
    x = [round(value, 3) for value in x]
    bound = betting_bound(np.array(x) - 2, delta, lowest=-2)
    if bound > -2 + 1e-9:
        shifted = [value - 2 for value in x]
        wanted = pytest.approx(1 / delta, rel=1e-6)
        assert betting_wealth(shifted, delta, -2, bound) == wanted
    else:
        assert betting_wealth([value - 2 for value in x], delta, -2, -2 + 1e-6) < 1 / delta


@pytest.mark.parametrize("delta", [0.05, 0.2])
def test_the_bound_on_a_mean_holds_where_the_others_fail(delta):
    """Rare large values, as importance weights have them: 2,000 samples of 40."""
    rng = np.random.default_rng(2)
    samples = rng.exponential(size=(2000, 40)) ** 3
    missed = np.mean([betting_bound(x, delta) > 6 for x in samples])
    assert missed <= delta
    disasters = np.where(rng.random((2000, 20)) < 0.05, -20.0, 1.0)
    assert np.mean([betting_bound(x, delta, lowest=-20) > -0.05 for x in disasters]) <= delta


def test_the_bound_scales_and_shifts_with_the_values():
    x = np.random.default_rng(3).exponential(size=60)
    bound = betting_bound(x, 0.05)
    assert betting_bound(7 * x + 3, 0.05, lowest=3) == pytest.approx(7 * bound + 3, rel=1e-9)
    assert 0 < bound < x.mean()
    assert betting_bound(x, 0.01) < bound


def test_the_bound_approaches_the_mean():
    x = np.random.default_rng(4).random(20_000)
    assert x.mean() - betting_bound(x, 0.05) < 2 * (x.mean() - student_t_bound(x, 0.05))


@pytest.mark.parametrize("scale", [1e-300, 2.0**-600, 1e-12, 1.0, 1e200, 1e300])
def test_the_bound_on_a_mean_has_no_scale(scale):
    x = np.random.default_rng(5).exponential(size=200)
    bound = betting_bound(x, 0.05)
    assert betting_bound(x * scale, 0.05) == pytest.approx(bound * scale, rel=1e-9, abs=0)
    with pytest.raises(InputError, match="below the limit"):
        betting_bound(np.append(x, -1e-3) * scale, 0.05)


def test_a_sorted_or_drifting_log_bounds_no_more_than_a_shuffled_one():
    """The wealth's running maximum said 0.97 of the sorted zeros and ones."""
    x = np.repeat([0.0, 1.0], 100)
    assert betting_bound(x, 0.05) == pytest.approx(betting_bound(x[::-1], 0.05), rel=1e-9)
    assert 0.3 < betting_bound(x, 0.05) < 0.5
    rng = np.random.default_rng(6)
    for _ in range(50):
        drifting = (rng.random(400) < np.repeat([0.7, 0.3], 200)).astype(float)
        assert betting_bound(drifting, 0.05) < drifting.mean()


@given(st.lists(st.floats(-1, 100), min_size=2, max_size=40), st.floats(0.01, 0.99))
def test_no_bound_is_above_the_mean(x, delta):
    assert betting_bound(np.array(x), delta, lowest=-1) <= np.mean(x) + 1e-12 * np.max(np.abs(x))


@pytest.mark.parametrize("n", [20, 200])
@pytest.mark.parametrize("chance", [0.1, 0.5, 0.9])
def test_the_bound_on_a_chance_misses_rarely_exactly(n, chance):
    """All outcomes of n coins, each with its probability: no simulation."""
    k = np.arange(n + 1)
    missed = [betting_bound(np.repeat([0.0, 1.0], [n - i, i]), 0.05) > chance for i in k]
    assert binom.pmf(k, n, chance)[missed].sum() <= 0.05


def test_a_value_below_the_limit_is_an_error():
    with pytest.raises(InputError, match=r"value -1 of episode 1 is below the limit 0"):
        betting_bound(np.array([1.0, -1.0]), 0.05)
    with pytest.raises(InputError, match="1 episodes, expected at least 2"):
        betting_bound(np.array([1.0]), 0.05)


def test_values_that_are_all_the_lowest_bound_nothing():
    assert betting_bound(np.zeros(30), 0.05) == 0.0
