"""SPIBB-DQN on CartPole-v1: collect a log with an imperfect policy, improve it, compare.

    python examples/cartpole.py [--transitions 5000] [--passes 100]

Needs the extra: pip install ".[deep]".
"""

from __future__ import annotations

import argparse

import gymnasium
import numpy as np

from spibb.deep import SpibbDQN, collect, episode_returns
from spibb.pseudocounts import NeighbourCounts


def baseline(states: np.ndarray) -> np.ndarray:
    """Push towards the side the pole falls to, three times out of four."""
    right = np.where(states[:, 2] + 0.3 * states[:, 3] > 0, 0.75, 0.25)
    return np.stack([1 - right, right], axis=1)


def main() -> None:
    """Collect, improve, compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--transitions", type=int, default=5000)
    parser.add_argument("--passes", type=int, default=100)
    parser.add_argument("--episodes", type=int, default=50)
    arguments = parser.parse_args()
    env, rng = gymnasium.make("CartPole-v1").unwrapped, np.random.default_rng(0)
    log = collect(env, baseline, arguments.transitions, rng=rng, max_steps=500)
    counts = NeighbourCounts(log.state, log.action, 2)
    grid = SpibbDQN(discount=0.95, passes=arguments.passes).grid(n_wedges=(0, 5, 20))
    print(f"log: {len(log.action)} transitions; pseudo-count radius {counts.radius:.2f}")
    rows = {"baseline": baseline}
    for config in grid:
        rows[f"n_wedge {config.n_wedge:g}"] = config.train(log, counts).policy
    for name, policy in rows.items():
        returns = episode_returns(env, policy, arguments.episodes, rng=rng, max_steps=500)
        error = returns.std() / len(returns) ** 0.5
        print(f"{name:12} mean return {returns.mean():6.1f} ± {error:.1f}")


if __name__ == "__main__":
    main()
