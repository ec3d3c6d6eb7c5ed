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

from typing import NamedTuple

import numpy as np

from spibb.kernels import exchange as kernel
from spibb.log import Log, returns_to_go
from spibb.sceptic.exchange import CANCELLED, LONG, centred, rarity

LAGS = 20
"""Episodes up to which an echo is looked for."""


def outcomes(log: Log) -> np.ndarray:
    """What follows each row, less the mean of its pair [N]: the reward, and what the next state is
    worth, which is the mean of what followed it. 0 where the successor is not known."""
    ahead, known = returns_to_go(log, 1.0), log.known
    visits = np.bincount(log.state, minlength=len(log.states) + 1)
    worth = np.bincount(log.state, ahead, minlength=len(visits)) / np.maximum(visits, 1)
    found = np.zeros(len(log))
    found[known] = centred((log.reward + worth[log.next_state])[known], _dense(log.pair[known]))
    return found


class CrossFitted(NamedTuple):
    """Differences [N, d] from what the other `half` [N] of the episodes lets expect.

    In a state that few episodes visit, what an episode earned is most of what the state is worth:
    values that it taught itself would go with what follows in it.
    """

    value: np.ndarray
    half: np.ndarray


def residuals(log: Log, rng: np.random.Generator) -> CrossFitted:
    """How much better than expected from its pair each row went on [N, 1]; 0 where its successor is
    not known."""
    ahead, known, half = returns_to_go(log, 1.0), log.known, _halves(log, rng)
    pair = log.pair
    found, scale = np.zeros(len(log)), 0.0
    for taught in (half == 0, half == 1):
        usual = np.full(len(log.states), ahead[taught].mean() if taught.any() else 0.0)
        worth = _means(log.state, ahead, taught, usual)
        follows = log.reward + np.append(worth, 0.0)[log.next_state]
        expected = _means(pair, follows, taught & known, np.repeat(worth, len(log.actions)))
        found = np.where(taught, found, follows - expected[pair])
        scale = max(scale, float(np.abs(follows).max(initial=0.0)))
    found = np.where(known & (np.abs(found) > CANCELLED * scale), found / (scale or 1.0), 0.0)
    return CrossFitted(found[:, None], half)


def unusual_decisions(log: Log, rng: np.random.Generator) -> CrossFitted:
    """Which action each row takes, less how often it is taken in that state [N, A]."""
    half, taken = _halves(log, rng), np.eye(len(log.actions))[log.action]
    found = np.zeros(taken.shape)
    for taught in (half == 0, half == 1):
        shares = [
            _means(log.state, of_action, taught, np.zeros(len(log.states))) for of_action in taken.T
        ]
        found = np.where(taught[:, None], found, taken - np.stack(shares, axis=1)[log.state])
    return CrossFitted(found, half)


def _halves(log: Log, rng: np.random.Generator) -> np.ndarray:
    """Half of the episodes, drawn at random: 0 or 1 for every row [N]."""
    return np.repeat(rng.permutation(log.n_episodes) % 2, log.lengths)


def _means(
    codes: np.ndarray, values: np.ndarray, rows: np.ndarray, default: np.ndarray
) -> np.ndarray:
    """Means of values [N] by code, over some rows [N]; of codes without any, the default [C]."""
    n = np.bincount(codes[rows], minlength=len(default))
    sums = np.bincount(codes[rows], values[rows], minlength=len(default))
    return np.where(n > 0, sums / np.maximum(n, 1), default)


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
    stratum: np.ndarray, episode: np.ndarray, before: np.ndarray, after: np.ndarray,
    rng: np.random.Generator,
) -> float:  # fmt: skip
    """The p-value of "what was before [N, d] does not go with what is after [N, e], given strata".

    The square of Σ_i (b_i − b̄) a_i, where b̄ is the mean in the stratum over *other* episodes,
    compared with those of exchanges within strata. With a mean over all rows the sum would be too
    low: in an episode that returns to a stratum, what was before is what came after the last visit.
    """
    rows = np.argsort(_dense(stratum), kind="stable")
    stratum, episode = _dense(stratum)[rows], _dense(episode)[rows]
    before, after = before[rows], after[rows]
    own = _dense(stratum * (len(rows) + 1) + episode)
    others = (np.bincount(stratum)[stratum] - np.bincount(own)[own])[:, None]
    rest = _sums(stratum, before)[stratum] - _sums(own, before)[own]
    apart = np.where(others > 0, before - rest / np.maximum(others, 1), 0.0)

    def squares(keys: np.ndarray) -> np.ndarray:
        orders = np.argsort(stratum + keys, axis=1)
        return np.asarray(((apart[orders].swapaxes(1, 2) @ after) ** 2).sum(axis=(1, 2)))

    still = (np.arange(len(rows)) / (len(rows) + 1))[None]
    alone = not len(rows) or not apart.any() or not after.any()
    return 1.0 if alone else rarity(squares, still, rng)


def _orders(keys: np.ndarray) -> np.ndarray:
    return np.argsort(keys, axis=1)


def _sums(stratum: np.ndarray, values: np.ndarray) -> np.ndarray:
    found = np.zeros((int(stratum.max(initial=-1)) + 1, values.shape[1]))
    np.add.at(found, stratum, values)
    return found


def _dense(codes: np.ndarray) -> np.ndarray:
    return np.asarray(np.unique(codes, return_inverse=True)[1]).reshape(-1)
