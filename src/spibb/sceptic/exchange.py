"""Do rows of one kind behave alike, whatever group they are in? A permutation test.

Rows of a log that belong to the same pair of state and action should have the same distribution of
successors and rewards, whatever preceded them (Markov) and whenever they happened (no drift). If
so, their groups may be exchanged within the pair. Two statistics are compared with those after up
to `PERMUTATIONS` random exchanges:

    successors:  Σ_pairs Σ_{g,o} (n_go − n_g n_o/n)² / (n_g n_o/n)      (Pearson's χ²)
    rewards:     Σ_pairs Σ_g n_g (r̄_g − r̄)²                            (between groups)

p = (1 + how many are at least as large) / (1 + `PERMUTATIONS`): nothing asymptotic, small cells do
no harm. As soon as `ENOUGH` are as large, p is their share so far (Besag and Clifford 1991): only
small p-values take all exchanges. The rewards are compared within pairs and successors, so that
both tests ask for different things; the smaller p is doubled for two.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from spibb.frozen import Frozen
from spibb.kernels import exchange as kernel
from spibb.log import Log
from spibb.splits import ordered_without_names, shuffled_by_content

SUSPICIOUS = 0.01
"""p-values below this are worth a word."""
PERMUTATIONS = 999
"""The smallest p-value is then 0.001: it stays below 0.01 when it is doubled here and tripled for
drift."""
ENOUGH = 20
"""Exchanges with as large a statistic, after which no further one is tried."""
MOST_ROWS = 20_000
"""Rows of a longer log beyond these are left out, by whole episodes drawn at random."""
AT_ONCE = 1 << 16
"""Rows that are exchanged at once, about: as many as fit a core's cache."""
LONG = 1000
"""Rows from which it pays to compile a kernel."""
SPARSE = 8
"""Codes per row from which a table of all of them is slower than sorting."""
CANCELLED = 1e-13
"""Differences of values of size 1 below this are rounding."""
SAME_STATISTIC = 1e-9
"""Statistics that differ by less, relative to their size, are equal."""

Statistic = Callable[[np.ndarray], np.ndarray]
"""Of keys [B, n] that order the rows within their strata: one number for each exchange [B]."""


@dataclass(frozen=True)
class Exchange:
    """p-values of successors and rewards, and of both together; how much was compared."""

    p_value: float
    successors_p: float
    rewards_p: float
    rows: int
    pairs: int


def exchange_test(
    pair: np.ndarray, outcome: np.ndarray, reward: np.ndarray, group: np.ndarray,
    rng: np.random.Generator,
) -> Exchange:  # fmt: skip
    """Test whether outcomes and rewards [N] depend on the groups [N], given the pairs [N]."""
    by_pair = _Stratified.of(pair, group)
    by_outcome = _Stratified.of(_codes(pair, outcome), group)
    cells = _codes(by_pair.stratum, outcome[by_pair.rows])
    paid = centred(reward[by_outcome.rows], by_outcome.stratum)
    first = by_pair.p_value(_chi_squares(by_pair, cells), rng)
    second = by_outcome.p_value(_squares_between(by_outcome, paid), rng)
    return Exchange(
        min(1.0, 2 * min(first, second)), first, second, len(by_pair.rows),
        len(np.unique(by_pair.stratum)),
    )  # fmt: skip


def rarity(statistic: Statistic, still: np.ndarray, rng: np.random.Generator) -> float:
    """How rarely random keys give as large a statistic as those that move nothing [1, n]."""
    n, larger, tried = still.shape[1], 0, 0
    least = float(statistic(still)[0]) * (1 - SAME_STATISTIC) - SAME_STATISTIC**2
    while larger < ENOUGH and tried < PERMUTATIONS:
        # at most as many as are needed in any case
        size = min(ENOUGH - larger, PERMUTATIONS - tried, max(1, AT_ONCE // n))
        larger += int((statistic(rng.random((size, n))) >= least).sum())
        tried += size
    return larger / tried if larger == ENOUGH else (1 + larger) / (1 + PERMUTATIONS)


class _Summed(NamedTuple):
    """Values [n] that are summed by cell, and the `weight` of the square of each sum [C].

    A row's cell is `first` [n] of its group and its own `place` [n] after that.
    """

    first: np.ndarray
    place: np.ndarray
    value: np.ndarray
    weight: np.ndarray


@dataclass(frozen=True, eq=False)
class _Stratified(Frozen):
    """Rows [n] of strata with at least two groups, sorted by stratum [n].

    `group` [n] has a code of its own for each group of each stratum.
    """

    rows: np.ndarray
    stratum: np.ndarray
    group: np.ndarray

    @classmethod
    def of(cls, stratum: np.ndarray, group: np.ndarray) -> _Stratified:
        stratum = _codes(stratum)
        several = _per_stratum(stratum, _codes(group)) > 1
        rows = np.flatnonzero(several[stratum])
        rows = rows[np.argsort(stratum[rows], kind="stable")]
        return cls(rows, _codes(stratum[rows]), _codes(stratum[rows], group[rows]))

    def p_value(self, statistic: Statistic | None, rng: np.random.Generator) -> float:
        """How rarely an exchange of groups within strata gives as large a statistic.

        None is one that is always 0; it takes the random numbers that another would.
        """
        n = len(self.rows)
        if not n or statistic is None:
            rng.random((ENOUGH, n))
            return 1.0
        return rarity(statistic, self._unmoved, rng)

    def orders(self, keys: np.ndarray) -> np.ndarray:
        """The row whose group each row gets [B, n]: the next one of its stratum by its key."""
        size, begin = self._strata
        return np.argsort(begin + size * keys, axis=1)

    def squares(self, sums: _Summed) -> Statistic:
        """The weighted squares of the sums, by the kernel."""
        sums = _Summed(*(part.copy() for part in sums))  # writable: one type, one compilation
        return lambda keys: kernel.squares(keys, *self._strata, *sums)

    @cached_property
    def _strata(self) -> tuple[np.ndarray, np.ndarray]:
        """The number of rows of each row's stratum, and where they begin [n]."""
        size = np.bincount(self.stratum).astype(np.float64)
        return size[self.stratum], (np.cumsum(size) - size)[self.stratum]

    @property
    def _unmoved(self) -> np.ndarray:
        """Keys that leave every row where it is [1, n]."""
        size, begin = self._strata
        return np.asarray((np.arange(len(size)) + 0.5 - begin) / size)[None]


def _codes(*parts: np.ndarray) -> np.ndarray:
    """A code 0, 1, … for each combination of whole numbers, in their order."""
    if len(parts) == 2:
        first, second = (_codes(part) for part in parts)
        return _codes(first * (int(second.max(initial=0)) + 1) + second)
    values = parts[0].astype(np.int64)
    values -= values.min(initial=0)
    if values.max(initial=0) >= SPARSE * len(values):
        return np.unique(values, return_inverse=True)[1].reshape(-1)
    used = np.zeros(values.max(initial=-1) + 1, dtype=np.int64)
    used[values] = 1
    return np.asarray((np.cumsum(used) - 1).take(values))


def _per_stratum(stratum: np.ndarray, part: np.ndarray) -> np.ndarray:
    """How many different values each stratum has."""
    codes = _codes(stratum, part)
    of_code = np.empty(codes.max(initial=-1) + 1, dtype=np.int64)
    of_code[codes] = stratum
    return np.bincount(of_code)


def _chi_squares(rows: _Stratified, cells: np.ndarray) -> Statistic | None:
    """χ² of all strata together for outcomes [n]; None if no stratum has several."""
    if rows.stratum.max(initial=-1) == cells.max(initial=-1):
        return None
    n, shares = len(cells), _Shares.of(rows.stratum, rows.group, cells)
    if n < LONG or shares.size > SPARSE * n:
        return lambda keys: np.round(shares(rows.orders(keys)).sum(axis=1) - n, 9)
    sums = _Summed(
        shares.begin, shares.place, np.ones(n), _weights(rows.stratum, rows.group, cells)
    )
    squares = rows.squares(sums)
    return lambda keys: np.round(squares(keys) - n, 9)


def _squares_between(rows: _Stratified, values: np.ndarray) -> Statistic | None:
    """Squares between groups of values [n] less the means of their strata; None if all are 0."""
    if not values.any():
        return None
    n = np.bincount(rows.group)
    if len(values) >= LONG:
        sums = _Summed(rows.group, np.zeros(len(values), dtype=np.int64), values, 1 / n)
        return rows.squares(sums)

    def squares(keys: np.ndarray) -> np.ndarray:
        group = rows.group[rows.orders(keys)] + np.arange(len(keys))[:, None] * len(n)
        sums = np.bincount(group.reshape(-1), np.tile(values, len(keys)))
        return np.asarray((sums.reshape(len(keys), -1) ** 2 / n).sum(axis=1))

    return squares


@dataclass(frozen=True, eq=False)
class _Shares(Frozen):
    """n n_go/(n_g n_o) of each row, which add up to n Σ_{g,o} n_go²/(n_g n_o) in a stratum.

    Groups and outcomes [n] have codes of their own in each stratum, in the order of the strata.
    `begin` [n] is where the outcomes of a row's group begin in a table of both, `place` [n] which
    of them its own is; `of_group` [n] is n/n_g, `of_outcome` [n] 1/n_o. The table has `size` cells.
    """

    begin: np.ndarray
    place: np.ndarray
    of_group: np.ndarray
    of_outcome: np.ndarray
    size: int

    @classmethod
    def of(cls, stratum: np.ndarray, group: np.ndarray, outcome: np.ndarray) -> _Shares:
        """For rows [n] before any exchange."""
        outcomes = _per_stratum(stratum, outcome)
        n, n_group, n_outcome = (np.bincount(codes) for codes in (stratum, group, outcome))
        width = np.empty(len(n_group), dtype=np.int64)
        width[group] = outcomes[stratum]
        begin = (np.cumsum(width) - width)[group]
        place = outcome - (np.cumsum(outcomes) - outcomes)[stratum]
        return cls(
            begin, place, n[stratum] / n_group[group], 1 / n_outcome[outcome], int(width.sum())
        )

    def __call__(self, orders: np.ndarray) -> np.ndarray:
        """After each of several exchanges [B, n]."""
        codes = self.begin.take(orders) + self.place
        codes += np.arange(len(orders))[:, None] * self.size
        found = (
            _alike(codes.reshape(-1), len(orders) * self.size).reshape(codes.shape)
            * self.of_outcome
        )
        found *= self.of_group.take(orders)
        return found


def _weights(stratum: np.ndarray, group: np.ndarray, outcome: np.ndarray) -> np.ndarray:
    """n/(n_g n_o) of each cell of the table that `_Shares` has."""
    outcomes = _per_stratum(stratum, outcome)
    n, n_group, n_outcome = (np.bincount(codes) for codes in (stratum, group, outcome))
    of_group = np.empty(len(n_group), dtype=np.int64)
    of_group[group] = stratum
    width, first = outcomes[of_group], (np.cumsum(outcomes) - outcomes)[of_group]
    of_cell = np.repeat(np.arange(len(width)), width)
    place = np.arange(len(of_cell)) - (np.cumsum(width) - width)[of_cell]
    return np.asarray((n[of_group] / n_group)[of_cell] / n_outcome[first[of_cell] + place])


def _alike(codes: np.ndarray, size: int) -> np.ndarray:
    """How many of the codes in [0, size) are equal to each of them."""
    if size > SPARSE * len(codes):
        codes = _codes(codes)
    return np.asarray(np.bincount(codes).take(codes))


def centred(x: np.ndarray, stratum: np.ndarray) -> np.ndarray:
    """Values less the mean of their stratum, in units of the largest difference; 0 if rounding."""
    if not len(x):
        return x
    x = x / (float(np.abs(x).max()) or 1.0)
    apart = x - (np.bincount(stratum, x) / np.bincount(stratum))[stratum]
    largest = float(np.abs(apart).max())
    return np.asarray(apart / largest if largest > CANCELLED else np.zeros(len(x)))


def in_time(log: Log, rng: np.random.Generator) -> Log:
    """About `MOST_ROWS` rows of a log, as whole episodes in their order, with labels in an order
    that depends on no name."""
    if (n := _most_episodes(log)) < log.n_episodes:
        log = log.episodes(np.sort(rng.permutation(log.n_episodes)[:n]))
    return log.with_labels(*ordered_without_names(log))


def in_any_order(log: Log) -> Log:
    """The same where time does not matter: the order of the episodes depends on what they are."""
    log = log.episodes(shuffled_by_content(log, seed=0)[: _most_episodes(log)])
    return log.with_labels(*ordered_without_names(log))


def _most_episodes(log: Log) -> int:
    """How many episodes have about `MOST_ROWS` rows."""
    if len(log) <= MOST_ROWS:
        return log.n_episodes
    return max(2, log.n_episodes * MOST_ROWS // len(log))
