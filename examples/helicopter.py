"""SPIBB-DQN on the helicopter: one log of the committed baseline, several thresholds, two seeds.

    python examples/helicopter.py [--transitions 10000] [--passes 200] [--episodes 3000]

Needs the extra: pip install ".[deep]".
"""

from __future__ import annotations

import argparse

import numpy as np

from spibb.deep import DeepLog, SpibbDQN, train_many
from spibb.deep.helicopter import helicopter_baseline
from spibb.envs.helicopter import N_ACTIONS, collect, play
from spibb.pseudocounts import DistanceCounts

N_WEDGES = (0, 2, 5, 10, 20)


def main() -> None:
    """Collect, improve, compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--transitions", type=int, default=10_000)
    parser.add_argument("--passes", type=int, default=200)
    parser.add_argument("--episodes", type=int, default=3000)
    arguments = parser.parse_args()
    baseline, rng = helicopter_baseline(), np.random.default_rng(0)
    drawn = collect(baseline, arguments.transitions, rng=rng)
    log = DeepLog(
        drawn.state, drawn.action, drawn.reward, drawn.next_state, drawn.terminated, baseline
    )
    counts = DistanceCounts(drawn.state, drawn.action, N_ACTIONS, radius=0.2)
    found = counts(drawn.state)
    probs = baseline(drawn.state)
    grid = SpibbDQN(passes=arguments.passes, seeds=(0, 1)).grid(n_wedges=N_WEDGES)
    print(f"baseline: {play(baseline, arguments.episodes, rng=rng).mean:.2f}")
    for config, result in zip(grid, train_many(log, counts, grid)):
        copied = (probs * (found < config.n_wedge)).sum(axis=1).mean()
        means = [play(policy, arguments.episodes, rng=rng).mean for policy in result.policies]
        listed = ", ".join(f"{mean:.2f}" for mean in means)
        print(f"n_wedge {config.n_wedge:3g}: {listed} (baseline mass copied {copied:.0%})")


if __name__ == "__main__":
    main()
