"""The fast steps of the permutation test, against plain ones."""

from __future__ import annotations

import numpy as np
import pytest

from spibb.sceptic import exchange
from spibb.sceptic.exchange import _chi_square, _codes, _Stratified, exchange_test


def rows_of(seed: int, n: int):
    rng = np.random.default_rng(seed)
    stratum, group, outcome = (rng.integers(k, size=n) for k in (7, 4, 9))
    return stratum, group, outcome, rng


@pytest.mark.parametrize("n", [40, 5000])
def test_long_columns_are_sorted_in_the_same_order(n):
    stratum, group, _, rng = rows_of(n, n)
    found = _Stratified.of(stratum, group)
    for _ in range(20):
        key = rng.random(len(found.rows))
        assert (found._order(key) == np.argsort(found.stratum + key, kind="stable")).all()


def test_keys_that_agree_in_their_first_digits_are_compared_in_full():
    stratum, group, _, rng = rows_of(1, 4000)
    found = _Stratified.of(stratum, group)
    key = 0.5 + rng.random(len(found.rows)) * 2.0**-33
    assert (found._order(key) == np.argsort(found.stratum + key)).all()


@pytest.mark.parametrize("sparse", [0, 10**9])
def test_chi_square_is_that_of_a_table(sparse, monkeypatch):
    monkeypatch.setattr(exchange, "SPARSE", sparse)
    stratum, group, outcome, _ = rows_of(2, 300)
    found = _chi_square(stratum, _codes(stratum, group), _codes(stratum, outcome))
    for s in range(7):
        table = np.zeros((4, 9))
        np.add.at(table, (group[stratum == s], outcome[stratum == s]), 1)
        expected = table.sum(1, keepdims=True) * table.sum(0) / table.sum()
        there = expected > 0
        wanted = ((table - expected)[there] ** 2 / expected[there]).sum()
        assert found[s] == pytest.approx(wanted)


def test_rewards_that_never_differ_leave_the_random_numbers_where_a_test_would():
    stratum, group, outcome, _ = rows_of(3, 200)
    tested, skipped = np.random.default_rng(0), np.random.default_rng(0)
    by_outcome = _Stratified.of(_codes(stratum, outcome), group)
    assert by_outcome.p_value(lambda _: 0.0, tested) == by_outcome.without_effect(skipped) == 1
    assert tested.random() == skipped.random()
    result = exchange_test(stratum, outcome, np.ones(200), group, np.random.default_rng(0))
    assert result.rewards_p == 1
