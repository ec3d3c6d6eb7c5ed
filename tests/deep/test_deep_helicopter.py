"""The committed baseline of the helicopter: performance, entropy, and room for improvement."""

from __future__ import annotations

from pathlib import Path

import deep_extra  # noqa: F401 (skips without JAX, fails without it in CI)
import numpy as np

from spibb.deep import helicopter
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

QUIET = Path(__file__).parents[2] / "docs" / "results" / "helicopter" / "quiet" / "baseline.npz"


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


def test_the_command_writes_a_baseline_that_the_study_can_read(tmp_path, monkeypatch, capsys):
    asked = []

    def trained(*wanted):
        asked.append(wanted)
        return helicopter_baseline()

    monkeypatch.setattr(helicopter, "train_baseline", trained)
    path = tmp_path / "quiet.npz"
    monkeypatch.setattr("sys.argv", ["helicopter", str(path), "--noise", "0", "--epochs", "20"])
    helicopter.main()
    assert asked == [(SEED, 20, 0.0)]
    assert capsys.readouterr().out.count("mean return 2.") == 3
    states = simulator().reset(np.random.default_rng(0), 9)
    assert np.array_equal(helicopter.load_baseline(path)(states), helicopter_baseline()(states))


def test_the_baseline_trained_without_noise_gains_more_from_silence_than_the_usual_one():
    """What the noise claim is repeated with: near the best return (5 to 6) where it was trained."""
    quiet = helicopter.load_baseline(QUIET)
    found = [
        play(quiet, 3000, rng=np.random.default_rng(0), noise_factor=noise).mean
        for noise in (0.0, 1.0)
    ]
    assert found[0] > 4.3 and found[0] - found[1] > 1.2


def test_the_simulator_steps_as_the_environment():
    states = simulator().reset(np.random.default_rng(0), 5)
    following, rewards, terminated = simulator().step(
        states, np.full(5, 8), np.random.default_rng(1)
    )
    assert following.shape == (5, 4)
    assert rewards.shape == terminated.shape == (5,)
