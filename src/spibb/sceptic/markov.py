"""Is the state enough? What came before must not predict what follows."""

from __future__ import annotations

import numpy as np

from spibb.log import Log
from spibb.sceptic.exchange import Exchange, exchange_test, ordered_episodes


def markov_check(log: Log, rng: np.random.Generator) -> Exchange:
    """Does the previous pair of state and action predict successor or reward, given the present?

    If it does, the states lack something that matters, and every number that rests on a model of
    them is in doubt. First steps of episodes have nothing before them and are left out, as are rows
    whose successor is not known.
    """
    log = ordered_episodes(log, rng)
    pair = _pairs(log)
    rows = _with_a_past(log, log.known)
    return exchange_test(pair[rows], log.next_state[rows], log.reward[rows], pair[rows - 1], rng)


def decisions_remember(log: Log, rng: np.random.Generator) -> float:
    """Does the previous pair predict the action, given the state? The p-value of "no".

    If it does, whoever decided may have looked at something that the states lack.
    """
    log = ordered_episodes(log, rng)
    rows = _with_a_past(log, np.ones(len(log), dtype=bool))
    state, nothing = log.state[rows].astype(np.int64), np.zeros(len(rows))
    return exchange_test(state, log.action[rows], nothing, _pairs(log)[rows - 1], rng).successors_p


def _pairs(log: Log) -> np.ndarray:
    """State and action of each row as one code [N]."""
    return np.asarray(log.state.astype(np.int64) * len(log.actions) + log.action)


def _with_a_past(log: Log, among: np.ndarray) -> np.ndarray:
    """The rows among some [N] that have another one before them in their episode."""
    later = among.copy()
    later[log.episode_starts[:-1]] = False
    return np.flatnonzero(later)
