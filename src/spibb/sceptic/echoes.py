"""Do decisions and outcomes go together with those nearby in time? Permutation tests.

A group of episodes (`drift`) shows change that is slow, and a previous pair of state and action
(`markov`) what differs from pair to pair. Two things show in neither: shifts and weekdays that
alternate faster than any group, and a cause that stays, such as how ill a patient is, of which
every single step says little. Both leave echoes: what is taken, or what follows, resembles what was
taken or what followed some episodes, or one step, before.

Outcomes are compared with those of the same pair of state and action, decisions with those of the
same state, so that neither a change of the states nor a policy that looks at them leaves an echo.
"""

from __future__ import annotations

import numpy as np

from spibb.kernels import exchange as kernel
from spibb.log import Log, returns_to_go
from spibb.sceptic.exchange import LONG, centred, rarity

LAGS = 20
"""Episodes up to which an echo is looked for."""


def outcomes(log: Log) -> np.ndarray:
    """What follows each row, less the mean of its pair [N]: the reward, and what the next state is
    worth, which is the mean of what followed it. 0 where the successor is not known."""
    pair = log.state.astype(np.int64) * len(log.actions) + log.action
    ahead, known = returns_to_go(log, 1.0), log.known
    visits = np.bincount(log.state, minlength=len(log.states) + 1)
    worth = np.bincount(log.state, ahead, minlength=len(visits)) / np.maximum(visits, 1)
    found = np.zeros(len(log))
    found[known] = centred((log.reward + worth[log.next_state])[known], _dense(pair[known]))
    return found


def decisions(log: Log) -> np.ndarray:
    """Which action each row takes, less how often it is taken in that state [N, A]."""
    taken = np.zeros((len(log), len(log.actions)))
    taken[np.arange(len(log)), log.action] = 1.0
    state = _dense(log.state)
    shares = np.zeros((int(state.max()) + 1, len(log.actions)))
    np.add.at(shares, (state, log.action), 1.0)
    return np.asarray(taken - (shares / shares.sum(axis=1, keepdims=True))[state])


def per_episode(log: Log, values: np.ndarray) -> np.ndarray:
    """Sums of rows [N, d] by episode [E, d]."""
    return np.asarray(np.add.reduceat(values, log.episode_starts[:-1], axis=0))


def echo_p(values: np.ndarray, rng: np.random.Generator) -> float:
    """The p-value of "no episode resembles those before it", of values [E, d].

    Σ_k (Σ_i y_i·y_{i+k})² over the lags k, compared with that of other orders; the last episode is
    followed by the first.
    """
    lags = min(LAGS, len(values) // 2)
    sort = kernel.orders if len(values) >= LONG else _orders

    def squares(keys: np.ndarray) -> np.ndarray:
        moved = values[sort(keys)]
        power = (np.abs(np.fft.rfft(moved, axis=1)) ** 2).sum(axis=2)
        return np.asarray((np.fft.irfft(power, len(values))[:, 1 : lags + 1] ** 2).sum(axis=1))

    still = (np.arange(len(values)) + 0.5) / len(values)
    return rarity(squares, still[None], rng) if values.any() else 1.0


def slope_p(
    stratum: np.ndarray, before: np.ndarray, after: np.ndarray, rng: np.random.Generator
) -> float:
    """The p-value of "what was before [N, d] does not go with what is after [N, e], given strata".

    The squares of Σ y_before y_after, compared with those of exchanges within strata.
    """
    rows = np.argsort(_dense(stratum), kind="stable")
    stratum, before, after = _dense(stratum)[rows], before[rows], after[rows]
    sizes = np.bincount(stratum)
    before = before - (_sums(stratum, before) / sizes[:, None])[stratum]

    def squares(keys: np.ndarray) -> np.ndarray:
        orders = np.argsort(stratum + keys, axis=1)
        return np.asarray(((before[orders].swapaxes(1, 2) @ after) ** 2).sum(axis=(1, 2)))

    still = (np.arange(len(rows)) / (len(rows) + 1))[None]
    alone = not len(rows) or not before.any() or not after.any()
    return 1.0 if alone else rarity(squares, still, rng)


def _orders(keys: np.ndarray) -> np.ndarray:
    return np.argsort(keys, axis=1)


def _sums(stratum: np.ndarray, values: np.ndarray) -> np.ndarray:
    found = np.zeros((int(stratum.max(initial=-1)) + 1, values.shape[1]))
    np.add.at(found, stratum, values)
    return found


def _dense(codes: np.ndarray) -> np.ndarray:
    return np.asarray(np.unique(codes, return_inverse=True)[1]).reshape(-1)
