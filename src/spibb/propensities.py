"""The probabilities with which logged actions were chosen: of a policy, or as recorded."""

from __future__ import annotations

import numpy as np

from spibb.errors import InputError
from spibb.log import Log

DECIMALS = 6
"""Recorded probabilities are compared to so many decimals, or as many as they have."""


LUCK = float(np.log(1e-6))
"""How unlikely it may be (log) that actions of the probability that is lacking were never taken."""
EPSILON = float(np.finfo(np.float64).eps)


def behaviour_probs(log: Log, behaviour: np.ndarray | None) -> np.ndarray:
    """μ(a_j|x_j) of every logged transition [N]: of a policy [S, A], or the log's own column."""
    if behaviour is None:
        if log.action_prob is None:
            raise InputError(
                "the log has no column 'action_prob': give the behaviour policy that made it"
            )
        check_recorded(log)
        return log.action_prob
    probs: np.ndarray = behaviour[log.state, log.action]
    if (probs <= 0).any():
        raise _impossible(log, probs <= 0)
    if wrong := disagreement(log, behaviour):
        raise InputError(f"{wrong}: give the policy that made the log, or none, to use action_prob")
    return probs


def _impossible(log: Log, bad: np.ndarray) -> InputError:
    """The error for logged actions that the behaviour policy never takes; names the commonest."""
    pair = log.state[bad].astype(np.int64) * len(log.actions) + log.action[bad]
    distinct, rows = np.unique(pair, return_counts=True)
    x, a = divmod(int(distinct[np.argmax(rows)]), len(log.actions))
    others = f" ({int(bad.sum())} rows in {len(distinct)} such pairs)" if len(distinct) > 1 else ""
    return InputError(
        f"behaviour gives probability 0 to action {log.actions[a]!r} in state {log.states[x]!r}, "
        f"which the log takes in {int(rows.max())} rows{others}: give the policy that made the "
        "log, or drop those episodes"
    )


def check_recorded(log: Log) -> None:
    """Refuse a column `action_prob` that no policy can have: see `_sums`."""
    assert log.action_prob is not None
    at_most, at_least = _sums(log, log.action_prob)
    slack = max(0.01, len(log.actions) * half_a_digit(log.action_prob))
    visits = np.bincount(log.state, minlength=len(log.states))
    lacking = np.clip(1 - slack - at_least, 0.0, 1 - EPSILON)
    for wrong, sums, limit in (
        (at_most > 1 + slack, at_most, "at most 1"),
        (visits * np.log1p(-lacking) < LUCK, at_least, "1, as all actions were taken there"),
    ):
        if wrong.any():
            x = int(np.argmax(np.where(wrong, np.abs(sums - 1), 0.0)))
            raise InputError(
                f"action_prob of state {log.states[x]!r} sums to {sums[x]:.4g} over its actions, "
                f"expected {limit}: check the column"
            )


def varies(log: Log) -> str | None:
    """Where `action_prob` depends on more than state and action, beyond how it is rounded."""
    if log.action_prob is None:
        return None
    least, largest = _extremes(log, log.action_prob)
    range_ = np.where(least < np.inf, largest - least, 0.0)
    if (range_ <= 2 * half_a_digit(log.action_prob)).all():
        return None
    x, a = np.unravel_index(int(np.argmax(range_)), range_.shape)
    return (
        f"action_prob is {least[x, a]:.6g} in one row and {largest[x, a]:.6g} in another of state "
        f"{log.states[int(x)]!r}, action {log.actions[int(a)]!r}"
    )


def _extremes(log: Log, column: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The least and the largest number that a column has for each pair [S, A]; ±∞ without any."""
    shape = len(log.states), len(log.actions)
    least, largest = np.full(shape, np.inf), np.full(shape, -np.inf)
    np.minimum.at(least, (log.state, log.action), column)
    np.maximum.at(largest, (log.state, log.action), column)
    return least, largest


def _sums(log: Log, column: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What the probabilities of a state's actions sum to [S]: at most 1, and at least 1.

    1. The least that each pair has: no more than 1 in sum, whatever else the policy depends on.
    2. The same where every action was taken, always with one probability; elsewhere 1.
    """
    least, largest = _extremes(log, column)
    one = (largest - least <= 2 * half_a_digit(column)) & (largest > -np.inf)
    sums = np.where(least < np.inf, least, 0.0).sum(axis=1)
    return sums, np.where(one.all(axis=1), sums, 1.0)


def disagreement(log: Log, policy: np.ndarray) -> str | None:
    """Where the log's `action_prob` contradicts a policy [S, A] that is said to have made it.

    Numbers may be rounded to the decimals that the column has, but at least two.
    """
    if log.action_prob is None:
        return None
    claimed = policy[log.state, log.action]
    wrong = np.abs(claimed - log.action_prob) > half_a_digit(log.action_prob)
    if not wrong.any():
        return None
    j = int(np.argmax(wrong))
    return (
        f"action_prob is not the policy's probability in {int(wrong.sum())} of {len(log)} rows "
        f"(state {log.states[log.state[j]]!r}, action {log.actions[log.action[j]]!r}: "
        f"{log.action_prob[j]:.4g} in the log, {claimed[j]:.4g} in the policy)"
    )


def half_a_digit(column: np.ndarray) -> float:
    """Half of the last decimal that a column of probabilities has: of the second to the sixth."""
    for decimals in range(2, DECIMALS):
        if np.allclose(column, np.round(column, decimals), rtol=0, atol=1e-12):
            return 0.5 * 10.0**-decimals + 1e-9
    return 0.5 * 10.0**-DECIMALS
