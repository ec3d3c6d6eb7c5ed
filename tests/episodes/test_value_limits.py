"""Limits of values, from returns that may lack their end: validity, and a slow transcription."""

from __future__ import annotations

import math

import numpy as np
import pytest
from oracles_betting import lowest_value
from oracles_ope import exact_values, random_mdp, simulate

from spibb.episodes import value_limits
from spibb.episodes.value_limits import narrowed
from spibb.episodes.visits import ReturnBounds, Visits

BOUNDS = ReturnBounds(0.0, 10.0, "declared")


def drawn(seed: int, n: int, cap: int):
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, n_states=3, n_actions=2)
    pi = rng.dirichlet(np.ones(2), size=3)
    log = simulate(mdp, pi, n, rng, cap=cap)
    return Visits.of(log, mdp.discount, BOUNDS), exact_values(mdp, pi)[1]


def test_one_round_is_that_of_the_slow_transcription(monkeypatch):
    monkeypatch.setattr(value_limits, "ROUNDS", 1)
    visits, _ = drawn(0, 60, 3)
    found, noise = narrowed(visits, BOUNDS, np.full(3, 4.0), 0.05), 4.0
    wanted = math.log(2 * 3 / 0.05)
    for s in range(3):
        rows = visits.of_state(s)
        first = visits.rank[rows] == 0
        low, high = visits.low[rows][first], visits.high[rows][first]
        least = lowest_value(low.tolist(), noise, wanted, 0.0, 10.0)
        most = -lowest_value((-high).tolist(), noise, wanted, -10.0, 10.0)
        assert found.least[s] == pytest.approx(max(least, visits.least[s]), abs=0.006)
        assert found.most[s] == pytest.approx(min(most, visits.most[s]), abs=0.006)


def test_further_rounds_tighten_and_the_truth_stays_inside():
    """200 worlds, δ = 0.2: all limits of all states hold in at least 80 % of them."""
    missed, widths = 0, []
    for seed in range(200):
        visits, truth = drawn(seed, 150, 4)
        found = narrowed(visits, BOUNDS, np.full(3, 2.0), 0.2)
        again = narrowed(found, BOUNDS, np.full(3, 2.0), 0.2)
        assert (again.least >= found.least).all()
        assert (again.most <= found.most).all()
        missed += bool(((found.least[:3] > truth) | (found.most[:3] < truth)).any())
        widths.append((found.most - found.least)[:3].mean())
    assert missed <= 40
    assert np.mean(widths) < 4


def test_a_state_that_was_never_visited_keeps_the_declared_limits():
    visits, _ = drawn(3, 2, 2)
    found = narrowed(visits, BOUNDS, np.full(3, 2.0), 0.05)
    np.testing.assert_allclose(found.least, visits.least)


def halved_limits(visits, returns, lowest, noise, log_wanted, span):
    """The largest v with W(v) ≥ exp(log_wanted), by 25 halvings of the range."""
    found = []
    for s in range(visits.n_states):
        rows = visits.of_state(s)
        g = returns[rows][visits.rank[rows] == 0]
        bet = min(math.sqrt(2 * log_wanted / max(len(g) * noise, 1e-300)), 0.95 / span)
        low, high = lowest, lowest + span
        for _ in range(25):
            middle = (low + high) / 2
            refuted = np.log1p(bet * (g - middle)).sum() >= log_wanted
            low, high = (middle, high) if refuted else (low, middle)
        found.append(low)
    return np.array(found)


def test_limits_are_those_of_halving_the_range():
    for seed in range(60):
        visits, _ = drawn(seed, int(3 + 7 * seed), 2 + seed % 5)
        slow, wanted = visits, math.log(2 * 3 / 0.1)
        for _ in range(value_limits.ROUNDS):
            least = halved_limits(slow, slow.low, 0.0, 2.0, wanted, 10.0)
            most = -halved_limits(slow, -slow.high, -10.0, 2.0, wanted, 10.0)
            slow = slow.within(least, most)
        found = narrowed(visits, BOUNDS, np.full(3, 2.0), 0.1)
        np.testing.assert_allclose(found.least, slow.least, atol=1e-12)
        np.testing.assert_allclose(found.most, slow.most, atol=1e-12)
