"""Cloning: gradients by finite differences, and policies that are known."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("deep_extra", exc_type=ImportError)

from spibb.deep import cloning
from spibb.deep.cloning import Acted, clone

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("recorded", [False, True])
def test_the_gradient_is_that_of_finite_differences(recorded):
    z, action = RNG.normal(size=(700, 3)), RNG.integers(0, 4, 700)
    rows = Acted(z, action, RNG.uniform(0.05, 0.95, 700) if recorded else None)
    parts = [RNG.normal(size=shape) for shape in ((3, 5), (5, 4), (5,), (4,))]
    _, slopes = cloning._loss(parts, rows)
    for part, slope in zip(parts, slopes, strict=True):
        for place in [(0,) * part.ndim, tuple(np.array(part.shape) - 1)]:
            values = []
            for step in (1e-6, -1e-6):
                moved = part.copy()
                moved[place] += step
                values.append(cloning._loss([moved if p is part else p for p in parts], rows)[0])
            assert (values[0] - values[1]) / 2e-6 == pytest.approx(slope[place], rel=1e-4, abs=1e-7)


def draw(probs, rng):
    return (probs.cumsum(axis=1) < rng.random((len(probs), 1))).sum(axis=1)


def softmax(logits):
    weights = np.exp(logits)
    return weights / weights.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("bend", [0.0, 1.5])
def test_a_known_policy_is_found(bend):
    z = RNG.normal(size=(6000, 2))
    logits = np.stack([z[:, 0] + bend * np.abs(z[:, 1]), -z[:, 0], 0 * z[:, 1]], axis=1)
    probs = softmax(logits)
    found = clone(Acted(z, draw(probs, RNG), None), np.arange(0, 6001, 10), 3)
    assert np.abs(found.policy(z) - probs).mean() < 0.03
    entropy = -(probs * np.log(probs)).sum(axis=1).mean()
    assert found.log_loss == pytest.approx(entropy, abs=0.03)
    assert found.log_loss < found.marginal_loss


def test_without_a_pattern_the_frequencies_are_kept():
    z, action = RNG.normal(size=(300, 8)), (RNG.random(300) < 0.3).astype(int)
    found = clone(Acted(z, action, None), np.arange(0, 301, 10), 2)
    assert found.kind == "frequencies of the actions"
    assert found.log_loss == found.marginal_loss


def test_recorded_probabilities_of_few_rows_say_it_all():
    z = RNG.normal(size=(400, 2))
    probs = softmax(np.stack([z[:, 0], -z[:, 0], z[:, 1]], axis=1))
    action = draw(probs, RNG)
    prob = probs[np.arange(400), action]
    starts = np.arange(0, 401, 4)
    errors = [
        np.abs(clone(Acted(z, action, known), starts, 3).policy(z) - probs).mean()
        for known in (prob, None)
    ]
    assert errors[0] < 0.03 < errors[1] * 2
    assert errors[0] < errors[1]


def test_one_episode_and_an_action_never_taken():
    z, action = RNG.normal(size=(50, 2)), np.zeros(50, int)
    action[::2] = 1
    found = clone(Acted(z, action, None), np.array([0, 50]), 3)
    probs = found.policy(z)
    np.testing.assert_allclose(probs.sum(axis=1), 1, rtol=1e-6)
    assert probs[:, 2].max() < 0.05
