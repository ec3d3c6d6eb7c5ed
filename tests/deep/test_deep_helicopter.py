"""The committed baseline of the helicopter: performance, entropy, and room for improvement."""

from __future__ import annotations

import deep_extra  # noqa: F401 (skips without JAX, fails without it in CI)
import numpy as np

from spibb.deep.helicopter import (
    SEED,
    TEMPERATURE,
    helicopter_baseline,
    mean_entropy,
    simulator,
    train_baseline,
)
from spibb.deep.network import HIDDEN, MLP
from spibb.deep.policy import SoftmaxBaseline
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


def test_training_again_gives_a_policy_far_above_an_untrained_one_and_as_good_as_other_trainings():
    """Training is chaotic in rounding, so that the committed weights cannot be made again.

    Seed 1 earned 2.19 on the processor that made the committed weights, 3.20 on another, and 4.01
    there without AVX. What is true of the procedure: 20 seeds earned from 2.40 to 4.04, on average
    3.25 with a standard deviation of 0.44 (the standard error of each is 0.09), and 30 untrained
    networks from −1 to 0.05. The limits are four of those standard deviations from that average.
    """
    untrained = SoftmaxBaseline(MLP.init((4, *HIDDEN, 9), np.random.default_rng(SEED)), TEMPERATURE)
    before, after = (
        play(policy, 3000, rng=np.random.default_rng(0)).mean
        for policy in (untrained, train_baseline())
    )
    assert after - before > 1.5
    assert 3.25 - 4 * 0.44 < after < 3.25 + 4 * 0.44


def test_the_simulator_steps_as_the_environment():
    states = simulator().reset(np.random.default_rng(0), 5)
    following, rewards, terminated = simulator().step(
        states, np.full(5, 8), np.random.default_rng(1)
    )
    assert following.shape == (5, 4)
    assert rewards.shape == terminated.shape == (5,)
