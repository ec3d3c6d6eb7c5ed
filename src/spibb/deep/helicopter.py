"""The helicopter's baseline: an online DQN stopped before it converges, softened (section 3.4).

    python -m spibb.deep.helicopter

trains such a baseline, replaces the committed weights and prints what it is worth. Another
processor rounds otherwise and training amplifies that: the same seed gives other weights there.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np

from spibb.deep.lanes import Simulator
from spibb.deep.online import OnlineDQN
from spibb.deep.policy import SoftmaxBaseline
from spibb.envs.helicopter import N_ACTIONS, collect, draw_noise, initial_states, play
from spibb.kernels.helicopter import step

WEIGHTS = Path(__file__).parent / "data" / "helicopter_baseline.npz"
SEED = 1
EPOCHS = 3
"""Epochs of 10,000 steps; the network of the last one is kept, whatever it is worth."""
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


def train_baseline(seed: int = SEED, epochs: int = EPOCHS) -> SoftmaxBaseline:
    """Train online and soften: softmax(Q / 0.1)."""
    result = OnlineDQN(epochs=epochs, seed=seed).train(simulator())
    return SoftmaxBaseline(result.networks[-1], TEMPERATURE)


@cache
def helicopter_baseline() -> SoftmaxBaseline:
    """The committed baseline of the helicopter study."""
    return SoftmaxBaseline.load(WEIGHTS)


def mean_entropy(baseline: SoftmaxBaseline, *, rng: np.random.Generator) -> float:
    """Entropy of its rows in nats, averaged over the states that it visits."""
    probs = baseline(collect(baseline, 20_000, rng=rng).states)
    return float(-(probs * np.log(np.maximum(probs, 1e-300))).sum(axis=1).mean())


def main() -> None:
    """Make the weights, and say what they are worth."""
    baseline, rng = train_baseline(), np.random.default_rng(0)
    WEIGHTS.parent.mkdir(exist_ok=True)
    baseline.save(WEIGHTS)
    for noise in (0.0, 0.5, 1.0, 2.0):
        found = play(baseline, 10_000, rng=rng, noise_factor=noise)
        print(
            f"noise factor {noise}: mean return {found.mean:.2f} ± {found.standard_error:.2f}, "
            f"{found.lengths.mean():.1f} steps"
        )
    print(f"mean entropy {mean_entropy(baseline, rng=rng):.2f} nats")


if __name__ == "__main__":
    main()
