"""The comparison of two means at any time: errors under optional stopping, power, and its proof."""

from __future__ import annotations

import math

import numpy as np
import pytest

from spibb.bounds.means import betting_shares
from spibb.kernels.wealth import wealth
from spibb.monitoring.evidence import (
    CAPITAL,
    IN_HAND,
    NEVER,
    SHARES,
    Reference,
    drop_to_show,
    episodes_to_show,
    first_shown_worse,
    highest_difference,
    interval,
    interval_at_any_time,
)

DELTA = 0.2


def coins(p):
    return lambda rng, n: (rng.random(n) < p).astype(float)


def skewed(rng, n):
    """Mostly near 0, seldom near 1."""
    return rng.beta(0.2, 2.0, n)


def disasters(rng, n):
    """Nearly always 0.9, seldom 0."""
    return np.where(rng.random(n) < 0.02, 0.0, 0.9)


WORLDS = {
    "fair coin": coins(0.5), "rare success": coins(0.03), "rare failure": coins(0.97),
    "all lowest": coins(0.0), "all highest": coins(1.0), "skewed": skewed,
    "rare disasters": disasters,
}  # fmt: skip


def slow_log_wealth(y, mean, shares, capital):
    """log Σ_k c_k Π_{i ≤ t} (1 + κ_k (y_i/mean − 1)) for t = 0 … n."""
    logs = np.cumsum(np.log1p(shares[:, None] * (y / mean - 1)), axis=1)
    return np.append(0.0, np.logaddexp.reduce(logs + np.log(capital)[:, None], axis=0))


def slow_evidence(x, z, delta, margin, means):
    """sup_{s ≤ t} log B(m)·W_s(m) [M, n + 1] for means m of the new policy."""
    shares = np.append(betting_shares(len(z), delta), 0.0)
    capital = np.append(np.full(9, (1 - IN_HAND) / 9), IN_HAND)
    return np.array([
        slow_log_wealth(z, m + margin, shares, capital)[-1]
        + np.maximum.accumulate(slow_log_wealth(1 - x, 1 - m, SHARES, CAPITAL))
        for m in means
    ])  # fmt: skip


@pytest.mark.parametrize("world", WORLDS)
def test_false_alarms_at_any_look_are_as_rare_as_promised(world):
    """2,000 streams looked at after every episode, where the new policy is exactly as good.

    An alarm stays, so one look at the end finds an alarm of any look (see the test of prefixes).
    """
    rng, draw = np.random.default_rng(1), WORLDS[world]
    alarms = sum(
        first_shown_worse(draw(rng, 400), Reference.of(draw(rng, 60), DELTA), 0.0) != NEVER
        for _ in range(2000)
    )
    assert alarms <= DELTA * 2000


@pytest.mark.parametrize("size", [5, 800])
def test_false_alarms_are_rare_whatever_the_size_of_the_baselines_log(size):
    rng, draw = np.random.default_rng(2), coins(0.4)
    alarms = sum(
        first_shown_worse(draw(rng, 300), Reference.of(draw(rng, size), DELTA), 0.0) != NEVER
        for _ in range(2000)
    )
    assert alarms <= DELTA * 2000


@pytest.mark.parametrize("p", [0.5, 0.03, 0.97])
@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (0.2, 0.9)])
def test_the_wealth_at_the_true_mean_is_a_martingale(p, low, high):
    """Its mean over all outcomes of ten values is 1: that is all the proof needs."""
    mean, n, expected = p * high + (1 - p) * low, 10, 0.0
    for k in range(n + 1):
        y = np.repeat([high, low], [k, n - k])
        chance = math.comb(n, k) * p**k * (1 - p) ** (n - k)
        expected += chance * math.exp(wealth(y, mean, SHARES, CAPITAL, math.inf)[1])
    assert expected == pytest.approx(1, abs=1e-9)


def test_the_kernel_is_the_slow_transcription():
    rng = np.random.default_rng(4)
    for n, mean in ((1, 0.3), (50, 0.5), (3000, 0.05), (3000, 0.9)):
        y = rng.random(n)
        slow = slow_log_wealth(y, mean, SHARES, CAPITAL)
        for wanted in (-1.0, 0.0, 0.5, 3.0, 400.0):
            reached, final = wealth(y, mean, SHARES, CAPITAL, wanted)
            expected = int(np.argmax(slow >= wanted)) if (slow >= wanted).any() else NEVER
            assert (reached, final) == (expected, pytest.approx(slow[-1], abs=1e-8))


def test_the_kernel_leaves_the_range_of_floats_unharmed():
    y = np.ones(20_000)
    assert wealth(y, 0.1, SHARES, CAPITAL, 5000.0)[0] > 0
    rich = wealth(y, 0.1, SHARES, CAPITAL, math.inf)[1]
    assert rich == pytest.approx(20_000 * math.log(1 + SHARES[0] * 9) + math.log(CAPITAL[0]))
    poor = wealth(0 * y, 0.1, np.array([0.5]), np.array([1.0]), math.inf)[1]
    assert poor == pytest.approx(20_000 * math.log(0.5))


@pytest.mark.parametrize("seed", range(12))
def test_cells_prove_what_a_dense_grid_of_means_shows(seed):
    rng = np.random.default_rng(seed)
    drop, margin = rng.choice([0.15, 0.25, 0.4]), rng.choice([0.0, 0.05])
    z, x = rng.beta(3, 2, 80), np.clip(rng.beta(3, 2, 150) - drop, 0, 1)
    shown = first_shown_worse(x, Reference.of(z, 0.05), margin)
    least = slow_evidence(
        x, z, 0.05, margin, np.linspace(1e-6 - margin, 1 - margin, 1500)[1:-1]
    ).min(axis=0)
    if shown != NEVER:
        assert least[shown] >= math.log(20) - 1e-9
    later = least >= math.log(20) + 0.7  # what cells may lose
    assert shown != NEVER or not later.any()
    assert shown == NEVER or not later.any() or shown <= np.argmax(later)


def test_an_alarm_stays_and_comes_at_the_same_episode_for_every_longer_log():
    rng = np.random.default_rng(5)
    reference, x = Reference.of(coins(0.8)(rng, 300), 0.05), coins(0.5)(rng, 200)
    since = first_shown_worse(x, reference, 0.0)
    assert since > 0
    for n in range(1, 201):
        assert first_shown_worse(x[:n], reference, 0.0) == (since if n >= since else NEVER)


def test_a_drop_is_shown_after_about_as_many_episodes_as_predicted():
    rng, drop = np.random.default_rng(6), 0.15
    z = [coins(0.6)(rng, 1000) for _ in range(40)]
    spread, error = math.sqrt(0.45 * 0.55), math.sqrt(0.24 / 1000)
    n = math.ceil(episodes_to_show(drop, spread, error, 0.05))
    assert drop_to_show(n, spread, error, 0.05) == pytest.approx(drop, rel=0.01)
    shown = [
        first_shown_worse(coins(0.45)(rng, 2 * n), Reference.of(one, 0.05), 0.0) for one in z
    ]  # fmt: skip
    assert sum(0 < since <= n for since in shown) >= 10
    assert sum(0 < since <= 2 * n for since in shown) >= 34


def test_a_small_log_of_the_baseline_never_shows_a_small_drop():
    assert episodes_to_show(0.01, 0.5, 0.1, 0.05) == math.inf


def test_two_samples_are_better_than_two_intervals():
    """The rule "the intervals at δ/2 do not overlap" needs more episodes."""
    rng, together, apart = np.random.default_rng(7), 0, 0
    for _ in range(60):
        z, x = coins(0.6)(rng, 300), coins(0.42)(rng, 300)
        together += first_shown_worse(x, Reference.of(z, 0.05), 0.0) != NEVER
        apart += interval_at_any_time(x, 0.05)[1] < interval(z, 0.05)[0]
    assert together > apart + 10


def test_intervals_cover_at_all_times_together():
    rng, missed = np.random.default_rng(8), 0
    for _ in range(2000):
        low, high = interval_at_any_time(skewed(rng, 150), DELTA)
        missed += not low <= 0.2 / 2.2 <= high
    assert missed <= DELTA * 2000


def test_the_difference_agrees_with_the_test_and_covers():
    rng, missed = np.random.default_rng(9), 0
    for _ in range(200):
        z, x = coins(0.6)(rng, 100), coins(0.5)(rng, 150)
        reference = Reference.of(z, DELTA)
        most = highest_difference(x, reference)
        assert first_shown_worse(x, reference, -most) != NEVER
        assert first_shown_worse(x, reference, -most + 1e-6) == NEVER
        missed += most < -0.1
    assert missed <= DELTA * 200


def test_the_order_of_the_baselines_log_does_not_matter():
    rng = np.random.default_rng(10)
    z, x = rng.random(100), rng.random(100) * 0.6
    one, two = (Reference.of(order, 0.05) for order in (z, np.sort(z)))
    assert first_shown_worse(x, one, 0.0) == first_shown_worse(x, two, 0.0) > 0
    np.testing.assert_allclose(one.log_b, two.log_b)


def test_a_bet_that_lost_for_long_is_not_forgotten():
    y = np.r_[np.zeros(3000), np.ones(3000)]
    slow = slow_log_wealth(y, 0.3, SHARES, CAPITAL)
    reached, final = wealth(y, 0.3, SHARES, CAPITAL, 3.0)
    assert reached == int(np.argmax(slow >= 3.0))
    np.testing.assert_allclose(final, slow[-1], rtol=1e-9)
