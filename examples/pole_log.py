"""A log of vectors with a known truth: a pole on a cart, in millimetres and degrees.

    python examples/pole_log.py --episodes 120 --out pole.csv
    spibb improve pole.csv --algorithm dqn --state x_mm,speed,angle,spin --out pole
    python examples/pole_log.py --play pole

The last command plays the current policy and the new one. Both need: pip install ".[deep]".
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv

UNITS = np.array([1000, 1000, 180 / np.pi, 180 / np.pi])
FEATURES = ("x_mm", "speed", "angle", "spin")
LIMITS = np.array([2400, 12.0])
DISCOUNT = 0.95
LONGEST = 200


def current(states: np.ndarray) -> np.ndarray:
    """Push towards the side the pole falls to, three times out of four."""
    right = np.where(states[:, 2] + 0.3 * states[:, 3] > 0, 0.75, 0.25)
    return np.stack([1 - right, right], axis=1)


def move(states: np.ndarray, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """One fiftieth of a second (Barto, Sutton and Anderson 1983)."""
    x, v, angle, spin = (states / UNITS).T
    force = np.where(actions == 1, 10.0, -10.0)
    cos, sin = np.cos(angle), np.sin(angle)
    pull = (force + 0.05 * spin**2 * sin) / 1.1
    turn = (9.8 * sin - cos * pull) / (0.5 * (4 / 3 - 0.1 * cos**2 / 1.1))
    push = pull - 0.05 * turn * cos / 1.1
    after = np.stack([x + 0.02 * v, v + 0.02 * push, angle + 0.02 * spin, spin + 0.02 * turn], 1)
    after = after * UNITS
    return after, (np.abs(after[:, [0, 2]]) > LIMITS).any(axis=1)


def play(policy: Any, n_episodes: int, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Rows (episode, step, state, action, probability, ended) of whole episodes."""
    states, episode = rng.uniform(-0.05, 0.05, (n_episodes, 4)) * UNITS, np.arange(n_episodes)
    parts = []
    for step in range(LONGEST):
        probs = policy(states)
        action = (rng.random(len(states)) < probs[:, 1]).astype(int)
        after, ended = move(states, action)
        chance = probs[np.arange(len(action)), action]
        parts.append((episode, np.full(len(action), step), states, action, chance, ended))
        states, episode = after[~ended], episode[~ended]
        if not len(states):
            break
    return tuple(np.concatenate(column) for column in zip(*parts))


def mean_length(policy: Any, n_episodes: int, seed: int) -> float:
    """The mean undiscounted return: a reward of 1 per step."""
    return len(play(policy, n_episodes, np.random.default_rng(seed))[0]) / n_episodes


def table(
    n_episodes: int, seed: int = 0, *, recorded: bool = False, policy: Any = current
) -> pa.Table:
    """A log of a policy, with its probabilities if they are recorded."""
    episode, step, states, action, chance, ended = play(
        policy, n_episodes, np.random.default_rng(seed)
    )
    columns = {"episode_id": episode, "step": step}
    columns |= {name: states[:, k] for k, name in enumerate(FEATURES)}
    columns |= {"action": np.array(["left", "right"])[action], "reward": np.ones(len(step)),
                "terminated": ended}  # fmt: skip
    return pa.table(columns | ({"action_prob": chance} if recorded else {}))


def main() -> None:
    """Write a log, or play a policy."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=120)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--recorded", action="store_true", help="add the column action_prob")
    parser.add_argument("--out", type=Path, default=Path("pole.csv"))
    parser.add_argument("--play", type=Path, help="a folder that spibb improve wrote")
    arguments = parser.parse_args()
    if arguments.play is not None:
        from spibb.deep import load_vector_policy

        policies = {"current": current, "new": load_vector_policy(arguments.play)}
        for name, policy in policies.items():
            print(f"{name:8} mean return {mean_length(policy, arguments.episodes, 9):.1f}")
        return
    log = table(arguments.episodes, arguments.seed, recorded=arguments.recorded)
    pyarrow.csv.write_csv(log, arguments.out)
    print(f"{arguments.out}: {len(log):,} rows")


if __name__ == "__main__":
    main()
