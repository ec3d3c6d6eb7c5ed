"""The probabilities with which logged actions were chosen: of a policy, or as recorded."""

from __future__ import annotations

import numpy as np

from spibb.errors import InputError
from spibb.log import Log
from spibb.words import apart

DECIMALS = 6
"""Recorded probabilities are compared to this many decimals, or as many as they have."""
EPSILON = float(np.finfo(np.float32).eps)
"""Of single precision."""
SINGLE = 1e-6
"""Relative differences up to this are the rounding of sums in single precision."""

SHARES = (0.01, 0.03, 0.1, 0.3, 0.6)
"""Of the capital that is staked on actions being taken more often than recorded, in equal parts."""
RUIN = 1e6
"""Capital that honest probabilities reach with probability 1e-6 at most."""


def behaviour_probs(log: Log, behaviour: np.ndarray | None) -> np.ndarray:
    """μ(a_j|x_j) of every logged transition [N]: of a policy [S, A], or the log's own column."""
    if wrong := unplayed(log, behaviour):
        raise InputError(wrong)
    probs = log.action_prob if behaviour is None else behaviour[log.state, log.action]
    return np.asarray(probs)


def unplayed(log: Log, behaviour: np.ndarray | None) -> str | None:
    """Why a log lacks such probabilities, if it does; `behaviour` as in `behaviour_probs`."""
    if behaviour is None:
        if log.action_prob is None:
            return (
                "the log has no column 'action_prob': give the behaviour policy that made it "
                "(--behaviour FILE, or --behaviour estimate), or name the column (--action-prob)"
            )
        return _unrecorded(log, log.action_prob)
    never = behaviour[log.state, log.action] <= 0
    if never.any():
        return _impossible(log, never)
    wrong = disagreement(log, behaviour)
    return wrong and f"{wrong}: give the policy that made the log, or none, to use action_prob"


def _impossible(log: Log, bad: np.ndarray) -> str:
    """That the behaviour policy never takes some of the logged actions; names the commonest."""
    distinct, rows = np.unique(log.pair[bad], return_counts=True)
    x, a = divmod(int(distinct[np.argmax(rows)]), len(log.actions))
    others = f" ({int(bad.sum())} rows in {len(distinct)} such pairs)" if len(distinct) > 1 else ""
    return (
        f"behaviour gives probability 0 to action {log.actions[a]!r} in state {log.states[x]!r}, "
        f"which the log takes in {int(rows.max())} rows{others}: give the policy that made the "
        "log, or drop those episodes"
    )


def check_recorded(log: Log) -> None:
    """Refuse a column `action_prob` that cannot be what was played: too large, or too small."""
    assert log.action_prob is not None
    if wrong := _unrecorded(log, log.action_prob):
        raise InputError(wrong)


def _unrecorded(log: Log, column: np.ndarray) -> str | None:
    """Why a column `action_prob` [N] cannot be what was played, if it cannot."""
    sums = _sums(log, column)
    x = int(np.argmax(sums))
    if sums[x] > 1 + max(0.01, len(log.actions) * half_a_digit(column)):
        return (
            f"action_prob of state {log.states[x]!r} sums to {sums[x]:.4g} over its actions, "
            "expected at most 1: check the column, or add to the state what it depends on"
        )
    wrong = _too_often(log, column)
    return wrong and (
        f"action_prob is too small to be right: {wrong}, which happens by chance less than "
        "once in a million such logs: check the column, or add to the state what it depends on"
    )


def _too_often(log: Log, column: np.ndarray) -> str | None:
    """Which actions were taken more often than recorded, if any.

    In a row of state x, 1{a}/p(a) has a mean of at most 1 for an action a that x has shown before,
    whatever else p depends on, and so has 1{known}/(K p) for the K actions that it has shown. Bets
    on more are test martingales (Ville), in the order of time. Of each pair one row counts as 0,
    that of the smallest p, and K is that of the whole log: that is no more than the bets win which
    start after a pair's first row, and it does not depend on the order of rows. p is as large as
    its rounding allows.
    """
    p = at_most(column)
    shown, index, n = np.unique(log.pair, return_inverse=True, return_counts=True)
    state = shown // len(log.actions)
    known, visits = np.bincount(state)[log.state], np.bincount(log.state)[state]
    counts = np.ones(len(p), dtype=bool)
    counts[np.lexsort((p, index))[np.cumsum(n) - n]] = False
    together, alone = [], []
    for share in SHARES:
        idle = np.log1p(-share)
        won = np.where(counts, np.log1p(share * (1 / (known * p) - 1)), idle)
        own = np.where(counts, np.log1p(share * (1 / p - 1)), idle)
        together.append(won.sum())
        alone.append(np.bincount(index, own) + (visits - n) * idle)
    whole, single = (np.logaddexp.reduce(logs) - np.log(len(SHARES)) for logs in (together, alone))
    limit = np.log(2 * RUIN)
    if whole > limit:
        return f"actions were taken {(counts / (known * p)).mean():.3g} times as often as it says"
    if np.logaddexp.reduce(single) - np.log(len(n) * (len(n) + 1)) <= limit:
        return None
    worst = int(np.argmax(single))
    x, a = divmod(int(shown[worst]), len(log.actions))
    often = (1 / p[index == worst]).sum() / visits[worst]
    return (
        f"action {log.actions[a]!r} was taken {often:.3g} times as often as it says in state "
        f"{log.states[x]!r}"
    )


def varies(log: Log) -> str | None:
    """Where `action_prob` depends on more than state and action.

    One number is rounded to the same decimals in every row, so that only the rounding of single
    precision may differ.
    """
    if log.action_prob is None:
        return None
    least, largest = _extremes(log, log.action_prob)
    if _one_number(least, largest).all():
        return None
    off = np.divide(largest, least, out=np.zeros(least.shape), where=least < np.inf)
    x, a = np.unravel_index(int(np.argmax(off)), off.shape)
    low, high = apart(least[x, a], largest[x, a])
    return (
        f"action_prob is {low} in one row and {high} in another of state "
        f"{log.states[int(x)]!r}, action {log.actions[int(a)]!r}"
    )


def _one_number(least: np.ndarray, largest: np.ndarray) -> np.ndarray:
    """bool [S, A]: the rows of a pair, if there are any, record one number."""
    return np.asarray(largest <= least * (1 + SINGLE))


def _extremes(log: Log, column: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The least and the largest number that a column has for each pair [S, A]; ±∞ without any."""
    shape = len(log.states), len(log.actions)
    least, largest = np.full(shape, np.inf), np.full(shape, -np.inf)
    np.minimum.at(least, (log.state, log.action), column)
    np.maximum.at(largest, (log.state, log.action), column)
    return least, largest


def _sums(log: Log, column: np.ndarray) -> np.ndarray:
    """What the probabilities of a state's actions sum to [S].

    Where the column depends on the pair alone: no pair has two probabilities, and none of the
    state's was seen once only. Elsewhere 0, as actions taken in unlike circumstances may sum to
    more than 1.
    """
    least, largest = _extremes(log, column)
    taken, one = largest > -np.inf, _one_number(least, largest)
    often = np.bincount(log.pair, minlength=taken.size) > 1
    steady = one[taken].all() & (often.reshape(taken.shape) | ~taken).all(axis=1)
    return np.asarray(np.where(steady, np.where(taken, least, 0.0).sum(axis=1), 0.0))


def disagreement(log: Log, policy: np.ndarray) -> str | None:
    """Where the log's `action_prob` contradicts a policy [S, A] that is said to have made it.

    Numbers may be rounded to the decimals that the column has, but at least two; each pair has one.
    """
    if log.action_prob is None:
        return None
    claimed = policy[log.state, log.action]
    wrong = np.abs(claimed - log.action_prob) > half_a_digit(log.action_prob)
    if not wrong.any():
        differs = varies(log)
        return differs and f"{differs}, where the policy has one probability"
    j = int(np.argmax(wrong))
    logged, wanted = apart(log.action_prob[j], claimed[j])
    return (
        f"action_prob is not the policy's probability in {int(wrong.sum())} of {len(log)} rows "
        f"(state {log.states[log.state[j]]!r}, action {log.actions[log.action[j]]!r}: "
        f"{logged} in the log, {wanted} in the policy)"
    )


def at_most(column: np.ndarray) -> np.ndarray:
    """The largest that recorded probabilities [N] can have been before they were rounded."""
    return np.minimum(column + half_a_digit(column), 1.0)


def half_a_digit(column: np.ndarray) -> float:
    """Half of the last decimal that a column of probabilities has: of the second to the sixth.

    The column may have been kept in single precision.
    """
    for decimals in range(2, DECIMALS):
        rounded = np.round(column, decimals)
        if np.allclose(column, rounded, rtol=EPSILON, atol=1e-12):
            return 0.5 * 10.0**-decimals + EPSILON
    return 0.5 * 10.0**-DECIMALS + EPSILON
