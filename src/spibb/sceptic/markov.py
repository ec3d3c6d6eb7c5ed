"""Is the state enough? What came before must not predict what follows."""

from __future__ import annotations

import numpy as np

from spibb.log import Log
from spibb.sceptic.exchange import Exchange, exchange_test, some_episodes


def markov_check(log: Log, rng: np.random.Generator) -> Exchange:
    """Does the previous pair of state and action predict successor or reward, given the present?

    If it does, the states lack something that matters, and every number that rests on a model of
    them is in doubt. First steps of episodes have nothing before them and are left out, as are rows
    whose successor is not known.
    """
    log = some_episodes(log, rng)
    pair = log.state.astype(np.int64) * len(log.actions) + log.action
    first = np.zeros(len(log), dtype=bool)
    first[log.episode_starts[:-1]] = True
    rows = np.flatnonzero(~first & log.known)
    return exchange_test(
        pair[rows], log.next_state[rows], log.reward[rows], pair[rows - 1], rng,
    )  # fmt: skip
