"""Is the state enough? What came before must not predict what follows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from spibb.log import Log
from spibb.sceptic import echoes
from spibb.sceptic.echoes import slope_p
from spibb.sceptic.exchange import Exchange, exchange_test, in_any_order


def markov_check(log: Log, rng: np.random.Generator) -> Exchange:
    """Does what came before predict successor or reward, given the present state and action?

    Asked of the previous pair of state and action, of which action it was whatever the state, and
    of what followed it (`echoes`).

    If it does, the states lack something that matters, and every number that rests on a model of
    them is in doubt. First steps of episodes have nothing before them and are left out, as are rows
    whose successor is not known.
    """
    log = in_any_order(log)
    pair = log.pair
    rows = _with_a_past(log, log.known)
    found = exchange_test(pair[rows], log.next_state[rows], log.reward[rows], pair[rows - 1], rng)
    return replace(found, p_value=_both(found.p_value, _echo(log, rows, pair, rng)))


def clock_check(log: Log, rng: np.random.Generator) -> Exchange:
    """Does the number of steps so far predict successor, end or reward, given state and action?

    It does where episodes have a fixed length and the states do not say how many steps are left.
    """
    log = in_any_order(log)
    rows = np.flatnonzero(log.known)
    return exchange_test(
        log.pair[rows], log.next_state[rows], log.reward[rows], log.step[rows], rng
    )


def decisions_remember(log: Log, rng: np.random.Generator) -> float:
    """Does what came before predict the action, given the state? The p-value of "no".

    If it does, whoever decided may have looked at something that the states lack.
    """
    log = in_any_order(log)
    rows = _with_a_past(log, np.ones(len(log), dtype=bool))
    state, nothing = log.state.astype(np.int64), np.zeros(len(rows))
    found = exchange_test(
        state[rows], log.action[rows], nothing, log.pair[rows - 1], rng
    ).successors_p
    taken = echoes.unusual_decisions(log, rng)
    return _both(found, _slope_p(log, rows, state, taken.value, taken, rng))


def _echo(log: Log, rows: np.ndarray, pair: np.ndarray, rng: np.random.Generator) -> float:
    """Whether what follows rows goes with the actions before them, or with what followed those."""
    followed = echoes.residuals(log, rng)
    first, second = (
        _slope_p(log, rows, pair, before, followed, rng)
        for before in (echoes.decisions(log), followed.value)
    )
    return _both(first, second)


def _slope_p(
    log: Log, rows: np.ndarray, stratum: np.ndarray, before: np.ndarray, after: echoes.CrossFitted,
    rng: np.random.Generator,
) -> float:  # fmt: skip
    """`slope_p` of rows, given their strata [N], and what was before each of them."""
    stratum = 2 * stratum + after.half
    return slope_p(stratum[rows], log.episode[rows], before[rows - 1], after.value[rows], rng)


def _both(first: float, second: float) -> float:
    """The p-value of two questions."""
    return min(1.0, 2 * min(first, second))


def _with_a_past(log: Log, among: np.ndarray) -> np.ndarray:
    """The rows among some [N] that have another one before them in their episode."""
    later = among.copy()
    later[log.episode_starts[:-1]] = False
    return np.flatnonzero(later)
