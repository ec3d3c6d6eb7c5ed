"""A pole on a cart, in millimetres and degrees: logs of vectors with a known truth."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

UNITS = np.array([1000, 1000, 180 / np.pi, 180 / np.pi])
FEATURES = ("x_mm", "speed", "angle", "spin")
LIMITS = np.array([2400, 12.0])
DISCOUNT = 0.95
LONGEST = 200


def current(states):
    """Push towards the side the pole falls to, three times out of four."""
    right = np.where(states[:, 2] + 0.3 * states[:, 3] > 0, 0.75, 0.25)
    return np.stack([1 - right, right], axis=1)


def move(states, actions):
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


def play(policy, n_episodes, rng):
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


def mean_length(policy, n_episodes, seed):
    """The mean undiscounted return: a reward of 1 per step."""
    return len(play(policy, n_episodes, np.random.default_rng(seed))[0]) / n_episodes


def table(n_episodes, seed=0, *, recorded=False):
    """A log of the current policy."""
    episode, step, states, action, chance, ended = play(
        current, n_episodes, np.random.default_rng(seed)
    )
    columns = {"episode_id": episode, "step": step}
    columns |= {name: states[:, k] for k, name in enumerate(FEATURES)}
    columns |= {"action": np.array(["left", "right"])[action], "reward": np.ones(len(step)),
                "terminated": ended}  # fmt: skip
    return pa.table(columns | ({"action_prob": chance} if recorded else {}))
