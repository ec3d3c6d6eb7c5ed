"""Rare disasters that a pair has not shown."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import betaln
from scipy.stats import beta

from spibb.algorithms.auto.own_order import OrderedProblem
from spibb.algorithms.problem import Problem
from spibb.assurance.disasters import EXPOSED, RATES, Disasters, _odds
from spibb.log import Log
from spibb.policy import Policy


def walks(
    falls: int, n: int, fall: float = -10.0, shift: float = 0.0, scale: float = 1.0
) -> Problem:
    """Four states; `walk` n times in each with some falls in the first two, `run` 12 times without.

    Rewards are 1 or 2, so that they take three values.
    """
    rows = []
    for state in range(4):
        lost = falls if state < 2 else 0
        rows += [(f"s{state}", "walk", fall if i < lost else 1.0 + i % 2) for i in range(n)]
        rows += [(f"s{state}", "run", 2.0 + i % 2) for i in range(12)]
    state, action, reward = zip(*rows)
    log = Log.from_arrays(
        state, action, np.array(reward) * scale + shift, terminated=[True] * len(rows)
    )
    baseline = Policy(np.tile([0.8, 0.2], (4, 1)), [f"s{k}" for k in range(4)], ["walk", "run"])
    return Problem.from_log(log, baseline, discount=0.9)


def disasters(problem: Problem) -> Disasters:
    return OrderedProblem.of(problem).belief.disasters


def test_a_log_without_disasters_has_none():
    assert disasters(walks(0, 60)).size == 0


def normal(seed: int, n: int, *, apart: float = 0.0, lowest: float | None = None) -> Problem:
    """Single decisions with normal rewards, around a constant of each state; one is `lowest`."""
    rng = np.random.default_rng(seed)
    state, action = rng.integers(0, 10, n), rng.integers(0, 3, n)
    reward = rng.standard_normal(n) + apart * state
    if lowest is not None:
        reward[0] = lowest
    return Problem.from_log(
        Log.from_arrays(state, action, reward, terminated=[True] * n), None, discount=0.0
    )


@pytest.mark.parametrize("apart", [0.0, 50.0])
@pytest.mark.parametrize("n", [300, 3000, 30_000])
def test_ordinary_noise_is_no_disaster_however_long_the_log(n, apart):
    assert sum(disasters(normal(seed, n, apart=apart)).size > 0 for seed in range(10)) <= 1
    assert apart or disasters(normal(0, n, lowest=-30.0)).size > 0


def test_pairs_that_have_shown_none_may_still_hold_one():
    found = disasters(walks(2, 60))
    assert found.size > 0
    assert len(found.pairs) == 6  # all but `walk` in the first two states
    lost = found.draw(4000, np.random.default_rng(0))
    assert (lost >= 0).all()
    assert (lost.mean(axis=0) > 0).all()


def test_the_more_visits_without_one_the_less_is_lost():
    found = disasters(walks(2, 60))
    some = Disasters(
        1.0, np.arange(3), np.array([5.0, 50.0, 500.0]), np.zeros(3, dtype=int), found.odds
    )
    lost = some.draw(4000, np.random.default_rng(0)).mean(axis=0)
    assert (np.diff(lost) < 0).all()


@pytest.mark.parametrize(("shift", "scale"), [(7.0, 1.0), (0.0, 1e5), (-3.0, 0.25)])
def test_units_and_constants_do_not_matter(shift, scale):
    given = OrderedProblem.of(walks(2, 60)).belief
    other = OrderedProblem.of(walks(2, 60, shift=shift, scale=scale)).belief
    np.testing.assert_array_equal(given.disasters.pairs, other.disasters.pairs)
    np.testing.assert_allclose(given.disasters.odds, other.disasters.odds, rtol=1e-6)
    size = other.disasters.size * other.unit / scale
    assert size == pytest.approx(given.disasters.size * given.unit, rel=1e-6)


def test_the_odds_are_those_of_a_slow_transcription():
    events, visits = np.array([0.0, 2.0, 0.0, 1.0]), np.array([30.0, 40.0, 0.0, 5.0])
    wanted = []
    for share in EXPOSED:
        for rate in RATES:
            likelihood = 1.0
            for k, n in zip(events, visits):
                if n == 0:
                    continue
                shown = np.exp(betaln(1 + k, 1 / rate + n - k) - betaln(1, 1 / rate))
                likelihood *= share * shown + (1 - share) * (k == 0)
            wanted.append(likelihood)
    np.testing.assert_allclose(_odds(events, visits), np.array(wanted) / sum(wanted), rtol=1e-9)


def test_draws_have_the_distribution_that_is_promised():
    """One point of the grid: φ = 0.4 and m = 1/8, 10 visits."""
    odds = np.zeros((2, len(EXPOSED) * len(RATES)))
    odds[:, list(EXPOSED).index(0.4) * len(RATES) + 2] = 1.0
    found = Disasters(1.0, np.array([0]), np.array([10.0]), np.array([0]), odds)
    lost = found.draw(40_000, np.random.default_rng(0))[:, 0]
    shown = 0.4 / (1 + 10 / 8)
    exposed = shown / (shown + 0.6)
    assert (lost > 0).mean() == pytest.approx(exposed, abs=0.01)
    for level in (0.25, 0.5, 0.9):
        wanted = beta.ppf(level, 1, 8 + 10)
        assert np.quantile(lost[lost > 0], level) == pytest.approx(wanted, rel=0.05)


def test_a_pair_fears_for_its_own_part_only():
    """What it takes from its state has the falls of its state already.

    Otherwise actions that were hardly tried would lose most, and a policy that drops them would
    seem to gain.
    """
    belief = OrderedProblem.of(walks(2, 60)).belief
    found = belief.disasters
    calm = replace(belief, disasters=replace(found, size=0.0))
    with_fear, without = (
        next(one.models(6000, np.random.default_rng(1))) for one in (belief, calm)
    )
    own = with_fear.weight[:, found.pairs]
    assert own.mean() < 0.5
    lost = (without.rewards - with_fear.rewards)[:, found.pairs]
    wanted = own.mean(axis=0) * found.draw(6000, np.random.default_rng(2)).mean(axis=0)
    np.testing.assert_allclose(lost.mean(axis=0), wanted, rtol=0.25)
