"""The committed baseline of the helicopter: performance, entropy, and room for improvement."""

from __future__ import annotations

import deep_extra  # noqa: F401 (skips without JAX, fails without it in CI)
import numpy as np
import pytest

from spibb.deep.helicopter import helicopter_baseline, mean_entropy, simulator, train_baseline
from spibb.envs.helicopter import play


def test_the_baseline_is_neither_good_nor_bad_and_undecided():
    """Section 3.4 and the authors' own (2.30): between 1.5 and 3.0, 1.0 to 1.5 nats."""
    rng = np.random.default_rng(0)
    found = play(helicopter_baseline(), 5000, rng=rng)
    assert 1.5 < found.mean < 3.0
    assert 1.0 < mean_entropy(helicopter_baseline(), rng=rng) < 1.5


def test_the_baseline_gets_better_without_noise_and_worse_with_more():
    means = [
        play(helicopter_baseline(), 3000, rng=np.random.default_rng(0), noise_factor=noise).mean
        for noise in (0.0, 1.0, 2.0)
    ]
    assert means[0] > means[1] > means[2]


def test_training_again_gives_a_baseline_about_as_good():
    """Not the same weights: other processors round otherwise, and training amplifies it."""
    again = train_baseline()
    rng = np.random.default_rng(0)
    assert play(again, 3000, rng=rng).mean == pytest.approx(
        play(helicopter_baseline(), 3000, rng=rng).mean, abs=1.0
    )


def test_the_simulator_steps_as_the_environment():
    states = simulator().reset(np.random.default_rng(0), 5)
    following, rewards, terminated = simulator().step(
        states, np.full(5, 8), np.random.default_rng(1)
    )
    assert following.shape == (5, 4)
    assert rewards.shape == terminated.shape == (5,)
