"""Split a log into episodes for different purposes, fairly and repeatably."""

from __future__ import annotations

from hashlib import sha256

import numpy as np

from spibb import checks
from spibb.arrays import fair_permutation, on_grid, scrambled
from spibb.errors import InputError
from spibb.labels import Vocabulary
from spibb.log import Log


@checks.takes(log=Log)
def split_episodes(log: Log, share: float, seed: int) -> tuple[Log, Log]:
    """Two logs of whole episodes: a random 1 − `share` of them, and the others, at least one each.

    The split depends on the seed and on what the episodes are, not on their order in the log.

    Parameters:
        log: the log.
        share: the share of the episodes in the second log, between 0 and 1.
        seed: seed of the split.

    Returns:
        The log to train on, and the one to test with.

    >>> train, test = spibb.splits.split_episodes(log, 0.3, seed=0)
    >>> train.n_episodes, test.n_episodes
    (2, 1)
    """
    checks.seed(seed)
    checks.number("share", share, 0, 1, "()")
    n = log.n_episodes
    if n < 2:
        raise InputError(f"the log has {n} episode, and a split needs at least 2: add episodes")
    kept = min(max(round((1 - share) * n), 1), n - 1)
    order = shuffled_by_content(log, seed)
    return log.episodes(order[:kept]), log.episodes(order[kept:])


def shuffled_by_content(log: Log, seed: int) -> np.ndarray:
    """A random order of the episodes [E] that depends on what they are, not on where they stand.

    Each episode gets numbers made of its labels, its rewards and its ends. Sorted by them, the
    episodes stand in an order that any permuted log has too, because only equal episodes tie; then
    `fair_permutation` shuffles them, so that every share is a fair sample. The order of the labels
    and the unit and zero of the rewards do not matter. Neither do the names of states and actions:
    a label is known by what the log says of it, and names decide only between labels of which it
    says the same.
    """
    keys = _sorting_keys(log, *_numbers_without_names(log))
    keys += _sorting_keys(log, _label_numbers(log.states), _label_numbers(log.actions))
    return np.asarray(np.lexsort(keys[::-1])[fair_permutation(keys[0], seed)])


def ordered_without_names(log: Log) -> tuple[Vocabulary, Vocabulary]:
    """The states and actions in an order that depends on where the log has them, not on names.

    Names decide only between labels that the log treats alike. The order is arbitrary.
    """
    found = zip((log.states, log.actions), _numbers_without_names(log))
    states, actions = (_sorted(labels, numbers.tolist()) for labels, numbers in found)
    return states, actions


def _sorted(labels: Vocabulary, numbers: list[int]) -> Vocabulary:
    places = sorted(range(len(numbers)), key=lambda i: (numbers[i], repr(labels[i])))
    return Vocabulary(tuple(labels[i] for i in places), labels.names)


def _sorting_keys(log: Log, states: np.ndarray, actions: np.ndarray) -> tuple[np.ndarray, ...]:
    """Numbers of the episodes [E] to sort them by, the first one first; labels have numbers."""
    values = np.unique(log.reward)
    exact, grid = np.searchsorted(values, log.reward).astype(np.uint64), on_grid(values)
    content = _content(log, grid[exact], states, actions)
    finer = content
    if log.action_prob is not None:
        finer = _content(
            log, np.bitwise_xor(scrambled(exact), log.action_prob.view(np.uint64)), states, actions
        )
    elif not np.diff(grid).all():  # values that share a point
        finer = _content(log, exact, states, actions)
    return content, finer


def _content(log: Log, rewards: np.ndarray, states: np.ndarray, actions: np.ndarray) -> np.ndarray:
    """A number for each episode [E] that differs where anything but its place in the log does.

    `rewards` [N] are whole numbers that stand for them, `states` [S] and `actions` [A] those of the
    labels.
    """
    with np.errstate(over="ignore"):
        rows = _rows(log, rewards, states, actions)
        return np.asarray(np.add.reduceat(rows, log.episode_starts[:-1]))


def _rows(log: Log, rewards: np.ndarray, states: np.ndarray, actions: np.ndarray) -> np.ndarray:
    """A number for each row [N]."""
    following = np.where(log.next_state < 0, np.uint64(0), states[log.next_state])
    parts = (
        states[log.state], actions[log.action], following, log.terminated, log.truncated, log.step,
    )  # fmt: skip
    number = scrambled(rewards)
    for part in parts:
        number = scrambled(number + part.astype(np.uint64))
    return number


ROUNDS = 3
"""What a label is known by, in turn: its rows, the labels in them, and the labels beside those."""


def _numbers_without_names(log: Log) -> tuple[np.ndarray, np.ndarray]:
    """64 bits for each state [S] and action [A] that depend on where the log has them.

    A label's number is a sum over its rows, and a row's number is made of its labels' numbers and
    of the rows of its episode (colour refinement). All of them depend on all episodes alike.
    """
    states = np.ones(len(log.states), dtype=np.uint64)
    actions = np.ones(len(log.actions), dtype=np.uint64)
    rewards = on_grid(log.reward)
    followed = log.next_state >= 0
    with np.errstate(over="ignore"):
        for _ in range(ROUNDS):
            rows = _rows(log, rewards, states, actions)
            episodes = scrambled(np.add.reduceat(rows, log.episode_starts[:-1]))
            rows = scrambled(rows + episodes[log.episode])
            states, actions = np.zeros_like(states), np.zeros_like(actions)
            np.add.at(states, log.state, rows)
            np.add.at(states, log.next_state[followed], scrambled(rows[followed]))
            np.add.at(actions, log.action, rows)
    return states, actions


def _label_numbers(labels: Vocabulary) -> np.ndarray:
    """64 bits for each label that depend on its name alone."""
    digests = b"".join(sha256(repr(label).encode()).digest()[:8] for label in labels.labels)
    return np.frombuffer(digests, dtype="<u8").astype(np.uint64)
