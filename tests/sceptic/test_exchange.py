"""The fast steps of the permutation test, against plain ones."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2_contingency

from spibb.kernels import exchange as kernel
from spibb.sceptic import echoes, exchange
from spibb.sceptic.exchange import _codes, _Stratified, exchange_test


def rows_of(seed: int, n: int):
    rng = np.random.default_rng(seed)
    stratum, group, outcome = (rng.integers(k, size=n) for k in (7, 4, 9))
    return stratum, group, outcome, rng


def chi_square(stratum, group, outcome):
    """Pearson's χ², summed over the strata, by SciPy."""
    strata = map(np.flatnonzero, stratum == np.unique(stratum)[:, None])
    tables = [table_of(group[rows], outcome[rows]) for rows in strata]
    return sum(chi2_contingency(table, correction=False).statistic for table in tables)


def table_of(group, outcome):
    table = np.zeros((len(set(group)), len(set(outcome))))
    np.add.at(table, (_codes(group), _codes(outcome)), 1)
    return table


@pytest.mark.parametrize("spread", [1.0, 2.0**-12, 2.0**-24])
def test_the_kernel_exchanges_as_the_order_of_the_keys_says(spread):
    stratum, group, outcome, rng = rows_of(1, 1200)
    rows = _Stratified.of(stratum, group)
    cells = _codes(rows.stratum, outcome[rows.rows])
    keys = 0.5 * (1 - spread) + rng.random((4, len(rows.rows))) * spread
    orders = np.argsort(rows.stratum + keys, kind="stable")
    kept = outcome[rows.rows]
    expected = [chi_square(rows.stratum, rows.group[order], kept) for order in orders]
    chi = exchange._chi_squares(rows, cells)
    assert chi(keys) == pytest.approx(expected, rel=1e-11)
    assert chi(rows._unmoved) == pytest.approx(chi_square(rows.stratum, rows.group, kept))


@pytest.mark.parametrize("spread", [1.0, 2.0**-12, 2.0**-24])
@pytest.mark.parametrize("n", [0, 1, 2, 1200])
def test_the_kernel_orders_keys_as_numpy_does(n, spread):
    keys = 0.5 * (1 - spread) + np.random.default_rng(n).random((5, n)) * spread
    assert np.array_equal(kernel.orders(keys), np.argsort(keys, axis=1))


def test_echoes_are_as_rare_with_the_kernel_as_without(monkeypatch):
    found = []
    for long in (1, 10_000):
        monkeypatch.setattr(echoes, "LONG", long)
        rng = np.random.default_rng(5)
        logs = [rng.normal(size=(n, 2)) for n in (2, 7, 40, 1500) for _ in range(5)]
        found.append([echoes.echo_p(values, rng) for values in logs])
    assert found[0] == found[1]
    assert len(set(found[0])) > 10


def test_the_kernel_sums_values_by_group():
    stratum, group, _, rng = rows_of(2, 1200)
    rows = _Stratified.of(stratum, group)
    values, keys = rng.normal(size=len(rows.rows)), rng.random((3, len(rows.rows)))
    groups = rows.group[np.argsort(rows.stratum + keys, kind="stable")]
    expected = [(np.bincount(g, values) ** 2 / np.bincount(g)).sum() for g in groups]
    assert exchange._squares_between(rows, values)(keys) == pytest.approx(expected, rel=1e-11)


def test_a_table_that_is_mostly_empty_is_not_made(monkeypatch):
    stratum, group, outcome, rng = rows_of(3, 1200)
    rows = _Stratified.of(stratum, group)
    cells = _codes(rows.stratum, outcome[rows.rows])
    keys = rng.random((3, len(rows.rows)))
    dense = exchange._chi_squares(rows, cells)(keys)
    monkeypatch.setattr(exchange, "SPARSE", 0)
    assert exchange._chi_squares(rows, cells)(keys) == pytest.approx(dense, rel=1e-11)


def plain_p_values(stratum, outcome, reward, group, rng):
    """One exchange after the other, every table and every mean anew."""

    def exchanged(within):
        found = group.copy()
        strata = map(np.flatnonzero, within == np.unique(within)[:, None])
        rows = [r for r in strata if len(set(group[r])) > 1]
        keys = np.split(rng.random(sum(map(len, rows))), np.cumsum([len(r) for r in rows])[:-1])
        for r, key in zip(rows, keys):
            found[r] = group[r][np.argsort(key)]
        return found

    def between(g):
        total = 0.0
        for r in map(np.flatnonzero, both == np.unique(both)[:, None]):
            means = [reward[r][g[r] == one] - reward[r].mean() for one in set(g[r])]
            total += sum(len(part) * part.mean() ** 2 for part in means)
        return total

    both = stratum * (outcome.max() + 1) + outcome
    for within, statistic in (
        (stratum, lambda g: chi_square(stratum, g, outcome)),
        (both, between),
    ):
        least, larger, tried = statistic(group) * (1 - 1e-9) - 1e-12, 0, 0
        while larger < exchange.ENOUGH and tried < exchange.PERMUTATIONS:
            larger, tried = larger + (statistic(exchanged(within)) >= least), tried + 1
        yield larger / tried if larger == exchange.ENOUGH else (1 + larger) / (1 + tried)


@pytest.mark.parametrize("seed", range(4))
def test_p_values_are_those_of_one_exchange_after_the_other(seed, monkeypatch):
    monkeypatch.setattr(exchange, "PERMUTATIONS", 59)
    rng = np.random.default_rng(seed)
    stratum, group, outcome = (rng.integers(k, size=60) for k in (3, 3, 2))
    outcome[stratum == 2] = 1  # nothing to compare there
    reward = rng.normal(size=60) + (seed % 2) * group
    wanted = tuple(plain_p_values(stratum, outcome, reward, group, np.random.default_rng(seed)))
    found = exchange_test(stratum, outcome, reward, group, np.random.default_rng(seed))
    assert (found.successors_p, found.rewards_p) == wanted


@pytest.mark.parametrize("sparse", [0, 10**9])
def test_chi_square_is_that_of_a_table(sparse, monkeypatch):
    monkeypatch.setattr(exchange, "SPARSE", sparse)
    stratum, group, outcome, _ = rows_of(2, 300)
    rows = _Stratified.of(stratum, group)
    found = exchange._chi_squares(rows, _codes(rows.stratum, outcome[rows.rows]))(rows._unmoved)
    assert found == pytest.approx(chi_square(stratum, group, outcome))


def test_what_never_differs_leaves_the_random_numbers_where_a_test_would():
    stratum, group, outcome, _ = rows_of(3, 200)
    tested, skipped = np.random.default_rng(0), np.random.default_rng(0)
    by_outcome = _Stratified.of(_codes(stratum, outcome), group)
    nothing = by_outcome.p_value(lambda orders: np.zeros(len(orders)), tested)
    assert nothing == by_outcome.p_value(None, skipped) == 1
    assert tested.random() == skipped.random()
    result = exchange_test(stratum, outcome, np.ones(200), group, np.random.default_rng(0))
    assert result.rewards_p == 1
    result = exchange_test(stratum, stratum, np.ones(200), group, np.random.default_rng(0))
    assert result.successors_p == 1
