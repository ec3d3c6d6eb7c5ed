"""Variances of a few visits are raised towards those of the action, as far as these may hide."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spibb.episodes.noise import Noise


def lacking(state, action, off, weight, shape):
    """Pair by pair, as the docstring says it."""
    found = np.zeros(shape[0])
    for a in np.unique(action):
        of_action = off[action == a]
        squares = np.mean(of_action**2)
        kurtosis = np.mean(of_action**4) / squares**2 if squares else 1.0
        here = {x: (state == x) & (action == a) for x in np.unique(state[action == a])}
        share = {x: rows.sum() / (rows.sum() + kurtosis) for x, rows in here.items()}
        own = {x: np.mean(off[rows] ** 2) for x, rows in here.items()}
        usual = sum(share[x] * own[x] for x in here) / sum(share.values())
        for x, rows in here.items():
            raised = own[x] + (1 - share[x]) * max(usual - own[x], 0)
            found[x] += (weight[rows] ** 2).sum() * (raised - own[x])
    return found


@given(st.integers(0, 10_000))
def test_as_written_and_in_any_parts(seed):
    rng = np.random.default_rng(seed)
    n, shape = int(rng.integers(1, 60)), (4, 3)
    state, action = rng.integers(4, size=n), rng.integers(3, size=n)
    off = np.where(rng.random(n) < 0.3, 0.0, rng.standard_cauchy(n))
    weight = rng.normal(size=n)
    whole, parts = Noise(*shape), Noise(*shape)
    whole.add(state, action, off, weight)
    cut = int(rng.integers(n + 1))
    for part in (slice(cut), slice(cut, n)):
        parts.add(state[part], action[part], off[part], weight[part])
    assert whole.lacking() == pytest.approx(
        lacking(state, action, off, weight, shape), rel=1e-9, abs=1e-12
    )
    assert (parts.lacking() == whole.lacking()).all()


def test_a_prize_that_may_be_missing_counts_almost_as_if_it_had_been_seen():
    """A prize of 50 in 2 % of 5,000 visits, and in none of the 20 of the last state."""
    rng = np.random.default_rng(0)
    off = 50.0 * (rng.random(5000) < 0.02)
    off[-20:] = 0.0
    state, noise = np.repeat(np.arange(250), 20), Noise(250, 1)
    noise.add(state, np.zeros(5000, dtype=int), off, np.ones(5000))
    assert 0.6 < noise.lacking()[-1] / (20 * np.mean(off**2)) < 0.8
    assert noise.lacking()[off.reshape(250, 20).max(axis=1) > 0] == pytest.approx(0)


def test_normal_noise_hardly_hides():
    rng = np.random.default_rng(0)
    off, noise = rng.normal(size=5000), Noise(50, 1)
    noise.add(np.repeat(np.arange(50), 100), np.zeros(5000, dtype=int), off, np.ones(5000))
    assert (noise.lacking() < 0.03 * (off**2).reshape(50, 100).sum(axis=1)).all()


def test_a_state_that_never_varies_and_is_visited_often_hides_nothing():
    """Nine tenths of the visits are of the last state, in which nothing varies."""
    rng = np.random.default_rng(0)
    off = np.append(50.0 * (rng.random(5000) < 0.02), np.zeros(45_000))
    off[:20] = 0.0
    state = np.append(np.repeat(np.arange(250), 20), np.full(45_000, 250))
    noise = Noise(251, 1)
    noise.add(state, np.zeros(50_000, dtype=int), off, np.ones(50_000))
    assert noise.lacking()[0] > 0.6 * 20 * np.mean(off[:5000] ** 2)
