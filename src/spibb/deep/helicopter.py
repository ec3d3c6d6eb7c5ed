"""The helicopter's baseline: an online DQN stopped before it converges, softened (section 3.4).

    python -m spibb.deep.helicopter FILE.npz [--noise 1] [--epochs 3] [--seed 1]

trains such a baseline, writes it to a file and prints what it is worth. Another processor rounds
otherwise and training amplifies that: the same seed gives other weights there.
"""

from __future__ import annotations

import argparse
from functools import cache
from pathlib import Path

import numpy as np

from spibb.deep.lanes import Simulator
from spibb.deep.online import OnlineDQN
from spibb.deep.policy import SoftmaxBaseline
from spibb.envs.helicopter import FEATURES, N_ACTIONS, collect, draw_noise, initial_states, play
from spibb.errors import InputError
from spibb.kernels.helicopter import step

WEIGHTS = Path(__file__).parent / "data" / "helicopter_baseline.npz"
SEED = 1
EPOCHS = 3
"""Epochs of 10,000 steps; the network of the last one is kept, even if it is not the best."""
TEMPERATURE = 0.1


def simulator(noise_factor: float = 1.0) -> Simulator:
    """The helicopter, many episodes at a time."""
    return Simulator(
        reset=lambda rng, n: initial_states(n, rng),
        step=lambda states, actions, rng: step(
            states, actions, draw_noise(len(states), noise_factor, rng)
        ),
        n_actions=N_ACTIONS,
    )


def train_baseline(
    seed: int = SEED, epochs: int = EPOCHS, noise_factor: float = 1.0
) -> SoftmaxBaseline:
    """Train online and soften: softmax(Q / 0.1)."""
    result = OnlineDQN(epochs=epochs, seed=seed).train(simulator(noise_factor))
    return SoftmaxBaseline(result.networks[-1], TEMPERATURE)


@cache
def helicopter_baseline() -> SoftmaxBaseline:
    """The committed baseline of the helicopter study.

    >>> from spibb.deep.helicopter import helicopter_baseline
    >>> helicopter_baseline().network.sizes[0]
    4
    """
    return SoftmaxBaseline.load(WEIGHTS)


def load_baseline(path: str | Path) -> SoftmaxBaseline:
    """A baseline that `SoftmaxBaseline.save` wrote, if it can fly the helicopter."""
    baseline = SoftmaxBaseline.load(path)
    sizes = baseline.network.sizes
    if (sizes[0], sizes[-1]) != (len(FEATURES), N_ACTIONS):
        raise InputError(
            f"baseline {str(path)!r} has {sizes[0]} inputs and {sizes[-1]} outputs, expected "
            f"{len(FEATURES)} and {N_ACTIONS}, the helicopter's features and actions: name another"
        )
    return baseline


def mean_entropy(
    baseline: SoftmaxBaseline, noise_factor: float = 1.0, *, rng: np.random.Generator
) -> float:
    """Entropy of its rows in nats, averaged over the states that it visits."""
    probs = baseline(collect(baseline, 20_000, rng=rng, noise_factor=noise_factor).state)
    return float(-(probs * np.log(np.maximum(probs, 1e-300))).sum(axis=1).mean())


def main() -> None:
    """Make a baseline, and say what it is worth."""
    parser = argparse.ArgumentParser(prog="python -m spibb.deep.helicopter", description=__doc__)
    parser.add_argument("file", type=Path, help="where to write the baseline (.npz)")
    parser.add_argument("--noise", type=float, default=1.0, help="noise factor of the training")
    parser.add_argument("--epochs", type=int, default=EPOCHS, help="epochs of 10,000 steps")
    parser.add_argument("--seed", type=int, default=SEED)
    given = parser.parse_args()
    baseline, rng = train_baseline(given.seed, given.epochs, given.noise), np.random.default_rng(0)
    baseline.save(given.file)
    for noise in (0.0, 0.5, 1.0, 2.0):
        found = play(baseline, 10_000, rng=rng, noise_factor=noise)
        entropy = mean_entropy(baseline, noise, rng=rng)
        print(
            f"noise factor {noise}: mean return {found.mean:.2f} ± {found.standard_error:.2f}, "
            f"{found.lengths.mean():.1f} steps, entropy {entropy:.2f} nats"
        )


if __name__ == "__main__":
    main()
