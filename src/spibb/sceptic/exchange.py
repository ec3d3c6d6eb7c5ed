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

import numpy as np

from spibb.frozen import Frozen
from spibb.log import Log

SUSPICIOUS = 0.01
"""p-values below this are worth a word."""
PERMUTATIONS = 999
"""The smallest p-value is then 0.001: it stays below 0.01 when it is doubled here and tripled for
drift."""
ENOUGH = 20
"""Exchanges with as large a statistic, after which no further one is tried."""
MOST_ROWS = 20_000
"""Rows of a longer log beyond these are left out, by whole episodes drawn at random."""
LONG = 3000
"""Rows from which sorting digit by digit is faster than by comparing."""
SPARSE = 8
"""Codes per row from which counting them one by one is slower than sorting."""
CANCELLED = 1e-13
"""Differences of values of size 1 below this are rounding."""
ROUNDING = 1e-9
"""Statistics that differ by less, relative to their size, are equal."""


@dataclass(frozen=True)
class Exchange:
    """p-values of successors and rewards, and of both together; how much was compared.

    `oddest` is the code state · A + action of the pair whose successors differ most.
    """

    p_value: float
    successors_p: float
    rewards_p: float
    rows: int
    pairs: int
    oddest: int | None


def exchange_test(
    pair: np.ndarray, outcome: np.ndarray, reward: np.ndarray, group: np.ndarray,
    rng: np.random.Generator,
) -> Exchange:  # fmt: skip
    """Test whether outcomes and rewards [N] depend on the groups [N], given the pairs [N]."""
    by_pair = _Stratified.of(pair, group)
    by_outcome = _Stratified.of(_codes(pair, outcome), group)
    cells = _codes(by_pair.stratum, outcome[by_pair.rows])
    centred = _centred(reward[by_outcome.rows], by_outcome.stratum)

    def chi(g: np.ndarray) -> float:
        return float(_chi_square(by_pair.stratum, g, cells).sum())

    def between(g: np.ndarray) -> float:
        return float((np.bincount(g, centred) ** 2 / np.bincount(g)).sum())

    first = by_pair.p_value(chi, rng)
    second = by_outcome.p_value(between, rng) if centred.any() else by_outcome.without_effect(rng)
    return Exchange(
        min(1.0, 2 * min(first, second)), first, second, len(by_pair.rows),
        len(np.unique(by_pair.stratum)), by_pair.oddest(pair, cells),
    )  # fmt: skip


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

    def p_value(self, statistic: Callable[[np.ndarray], float], rng: np.random.Generator) -> float:
        """How rarely an exchange of groups within strata gives as large a statistic."""
        if not len(self.rows):
            return 1.0
        found, larger = statistic(self.group), 0
        for tried in range(1, PERMUTATIONS + 1):
            order = self._order(rng.random(len(self.rows)))
            larger += statistic(self.group[order]) >= found * (1 - ROUNDING) - ROUNDING**2
            if larger == ENOUGH:
                return larger / tried
        return (1 + larger) / (1 + PERMUTATIONS)

    def without_effect(self, rng: np.random.Generator) -> float:
        """The p-value of a statistic that is always 0; takes the numbers that a test would."""
        for _ in range(ENOUGH if len(self.rows) else 0):
            rng.random(len(self.rows))
        return 1.0

    def _order(self, key: np.ndarray) -> np.ndarray:
        """The order of the rows by stratum, and by a key in [0, 1) within each."""
        if not len(key) >= LONG or self.stratum[-1] >= 1 << 16:
            return np.argsort(self.stratum + key)
        digits = (key * 2.0**32).astype(np.uint32)
        order = np.argsort(digits.astype(np.uint16), kind="stable")
        for part in (digits >> np.uint32(16), self.stratum):
            order = order[np.argsort(part.astype(np.uint16)[order], kind="stable")]
        same = (np.diff(digits[order]) == 0) & (np.diff(self.stratum) == 0)
        return np.argsort(self.stratum + key) if same.any() else order

    def oddest(self, pair: np.ndarray, cells: np.ndarray) -> int | None:
        """The pair whose χ² exceeds its degrees of freedom most."""
        if not len(self.rows):
            return None
        chi = _chi_square(self.stratum, self.group, cells)
        kinds = (_per_stratum(self.stratum, part) for part in (self.group, cells))
        freedom = np.prod([kind - 1 for kind in kinds], axis=0)
        return int(pair[self.rows[np.searchsorted(self.stratum, int(np.argmax(chi - freedom)))]])


def _codes(*parts: np.ndarray) -> np.ndarray:
    """A code 0, 1, … for each combination of values."""
    if len(parts) == 1:
        return np.unique(parts[0], return_inverse=True)[1].reshape(-1)
    first, second = (_codes(part) for part in parts)
    return _codes(first.astype(np.int64) * (int(second.max(initial=0)) + 1) + second)


def _per_stratum(stratum: np.ndarray, part: np.ndarray) -> np.ndarray:
    """How many different values each stratum has."""
    width = int(part.max(initial=0)) + 1
    cells, _ = _counted(stratum * width + part, (int(stratum.max(initial=-1)) + 1) * width)
    return np.bincount(cells // width)


def _chi_square(stratum: np.ndarray, group: np.ndarray, outcome: np.ndarray) -> np.ndarray:
    """Pearson's χ² of each stratum: n (Σ_{g,o} n_go²/(n_g n_o) − 1).

    Groups and outcomes [n] have codes of their own in each stratum.
    """
    width = int(outcome.max()) + 1
    cells, n = _counted(group * width + outcome, (int(group.max()) + 1) * width)
    g, o = np.divmod(cells, width)
    of_outcome = np.empty(width, dtype=np.int64)
    of_outcome[outcome] = stratum
    share = np.bincount(of_outcome[o], n**2 / (np.bincount(group)[g] * np.bincount(outcome)[o]))
    return np.asarray(np.bincount(stratum) * (share - 1))


def _counted(codes: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """The codes in [0, size) that occur, in order, and how often each does."""
    if size > SPARSE * len(codes):
        codes = np.sort(codes)
        first = np.flatnonzero(np.diff(codes, prepend=-1))
        return codes[first], np.diff(np.append(first, len(codes)))
    n = np.bincount(codes, minlength=size)
    cells = np.flatnonzero(n)
    return cells, n[cells]


def _centred(x: np.ndarray, stratum: np.ndarray) -> np.ndarray:
    """Values less the mean of their stratum, in units of the largest difference; 0 if rounding."""
    if not len(x):
        return x
    x = x / (float(np.abs(x).max()) or 1.0)
    apart = x - (np.bincount(stratum, x) / np.bincount(stratum))[stratum]
    largest = float(np.abs(apart).max())
    return np.asarray(apart / largest if largest > CANCELLED else np.zeros(len(x)))


def some_episodes(log: Log, rng: np.random.Generator) -> Log:
    """The log, or about `MOST_ROWS` rows of it: whole episodes in their order."""
    if len(log) <= MOST_ROWS:
        return log
    n = max(2, log.n_episodes * MOST_ROWS // len(log))
    return log.episodes(np.sort(rng.permutation(log.n_episodes)[:n]))
