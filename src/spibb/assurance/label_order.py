"""Labels in an order that depends on what a log says of them, and on no name.

Whatever is drawn in that order is the same whatever states and actions are called and however they
are listed, except between labels of which nothing differs.
"""

from __future__ import annotations

import numpy as np

from spibb.arrays import GRID, scrambled
from spibb.counts import Counts
from spibb.labels import Vocabulary
from spibb.policy import Policy

SUM_DIGITS = 6
"""Of sums of rewards in units of their range: those beyond are rounding."""
MOST_ROUNDS = 200
"""Labels that differ only farther away than this are told apart by their names."""


def by_content(counts: Counts, *policies: Policy) -> tuple[Vocabulary, Vocabulary]:
    """States and actions by visits, first states and rewards, then by what is around them.

    `policies` have the labels of the counts; what they do in a state belongs to it as well.
    """
    visits, paid = counts.pairs, _paid(counts)
    of_states, of_actions = (np.round(paid.sum(axis=axis), SUM_DIGITS) for axis in (1, 0))
    with np.errstate(over="ignore"):
        states, actions = _numbers(counts, policies)
    return (
        _in_order(counts.states, visits.sum(axis=1), counts.starts, of_states, states),
        _in_order(counts.actions, visits.sum(axis=0), of_actions, actions),
    )


def _in_order(labels: Vocabulary, *facts: np.ndarray) -> Vocabulary:
    """The labels sorted by facts of each [K], the first one first, and at last by their names."""
    columns = zip(*(fact.tolist() for fact in facts), map(repr, labels.labels), labels.labels)
    return Vocabulary(tuple(row[-1] for row in sorted(columns, key=lambda row: row[:-1])),
                      labels.names)  # fmt: skip


def _numbers(counts: Counts, policies: tuple[Policy, ...]) -> tuple[np.ndarray, np.ndarray]:
    """64 bits for each state [S] and action [A], made of its pairs and their neighbours.

    In each round a label's number takes in those of the labels that it occurs with, until no more
    labels differ (colour refinement).
    """
    outcome, pair = _outcomes(counts), counts.pair_of_outcome
    plays = np.zeros(counts.shape, dtype=np.uint64)
    for policy in policies:
        plays = scrambled(plays + _whole(policy.probs))
    states = scrambled(counts.starts.astype(np.uint64))
    actions = np.zeros(counts.shape[1], dtype=np.uint64)
    of_state, of_action = np.divmod(pair, counts.shape[1])
    differ = 0
    for _ in range(MOST_ROUNDS):
        followed = scrambled(outcome + np.append(states, np.uint64(0))[counts.successors])
        pairs = plays.copy()
        np.add.at(pairs.reshape(-1), pair, followed)
        reached = scrambled(outcome + scrambled(states[of_state] + scrambled(actions[of_action])))
        known = counts.successors >= 0
        states, actions = (
            scrambled(states + scrambled(pairs + actions).sum(axis=1, dtype=np.uint64)),
            scrambled(actions + scrambled(pairs + states[:, None]).sum(axis=0, dtype=np.uint64)),
        )
        np.add.at(states, counts.successors[known], reached[known])
        before, differ = differ, len(np.unique(states)) + len(np.unique(actions))
        if differ in (before, sum(counts.shape)):
            break
    return states, actions


def _outcomes(counts: Counts) -> np.ndarray:
    """64 bits for the visits and rewards of each outcome [K]."""
    low, high = counts.reward_range
    span = (high - low) or counts.unit
    squares = counts.reward_sq * (counts.unit / span) ** 2
    number = scrambled(counts.n.astype(np.uint64))
    for sums in (_above_centre(counts), squares):
        number = scrambled(number + _whole(sums))
    return number


def _whole(values: np.ndarray) -> np.ndarray:
    """Numbers on a grid on which no round value lies between two points."""
    return np.rint(values * GRID).astype(np.int64).view(np.uint64)


def _above_centre(counts: Counts) -> np.ndarray:
    """Sums of rewards above the middle of their range [K], in terms of it."""
    low, high = counts.reward_range
    found = (counts.reward_sum - counts.n * counts.centre) / ((high - low) or counts.unit)
    return np.asarray(found)


def _paid(counts: Counts) -> np.ndarray:
    """The same of each pair [S, A]."""
    sums = np.bincount(counts.pair_of_outcome, _above_centre(counts), minlength=counts.pairs.size)
    return sums.reshape(counts.shape)
