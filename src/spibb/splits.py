"""Split a log into episodes for different purposes, fairly and repeatably."""

from __future__ import annotations

import numpy as np

from spibb import checks
from spibb.errors import InputError
from spibb.log import Log


def split_episodes(log: Log, share: float, seed: int) -> tuple[Log, Log]:
    """Two logs of whole episodes: a random 1 − `share` of them, and the others, at least one each.

    The split depends on the seed and on what the episodes are, not on their order in the log.
    """
    checks.number("share", share, 0, 1, "()")
    n = log.n_episodes
    if n < 2:
        raise InputError(f"the log has {n} episode, and a split needs at least 2: add episodes")
    kept = min(max(round((1 - share) * n), 1), n - 1)
    order = shuffled_by_content(log, seed)
    return log.episodes(order[:kept]), log.episodes(order[kept:])


def shuffled_by_content(log: Log, seed: int) -> np.ndarray:
    """A random order of the episodes [E] that depends on what they are, not on where they stand.

    Each episode gets a number made of its rewards' ranks and of how often its pairs and states
    occur in the log: nothing that labels or units of reward could change. Sorted by it, the
    episodes stand in an order that any permuted log has too; the shuffle that follows knows nothing
    of them, so that every share of them is a fair sample.
    """
    n_actions = len(log.actions)
    pair = log.state.astype(np.int64) * n_actions + log.action
    pairs, states = np.bincount(pair)[pair], np.bincount(log.state)[log.state]
    unit = float(np.abs(log.reward).max()) or 1.0
    ranks = np.unique(np.round(log.reward / unit, 9), return_inverse=True)[1]
    lengths = np.diff(log.episode_starts)
    step = np.arange(len(log)) - np.repeat(log.episode_starts[:-1], lengths)
    with np.errstate(over="ignore"):
        number = _scrambled(ranks.astype(np.uint64))
        for part in (pairs, states, log.terminated, step):
            number = _scrambled(number + part.astype(np.uint64))
        content = np.add.reduceat(number, log.episode_starts[:-1])
    order = np.argsort(content, kind="stable")
    return np.asarray(order[np.random.default_rng(seed).permutation(len(order))])


def _scrambled(x: np.ndarray) -> np.ndarray:
    """A permutation of the 64-bit numbers that spreads neighbours (splitmix64)."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> np.uint64(31)))
