"""The largest of many χ² variables, against closed forms and another way of drawing them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import chdtr, chdtri

from spibb.bounds.chance import chance_of_largest


@pytest.mark.parametrize("freedom", [[1], [3, 1, 2], [2] * 40])
@pytest.mark.parametrize("delta", [0.2, 0.05, 1e-6])
def test_all_of_them_are_chi_square(freedom, delta):
    found = chance_of_largest(np.array(freedom), len(freedom), delta)
    assert found == pytest.approx((sum(freedom), chdtri(sum(freedom), delta)))


@pytest.mark.parametrize("m", [2, 10, 300])
@pytest.mark.parametrize(("delta", "off"), [(0.2, 0.03), (0.05, 0.03), (1e-4, 0.1)])
def test_the_largest_of_independent_ones_has_a_product_as_its_distribution(m, delta, off):
    freedom = 1 + np.arange(m) % 3
    exact = brentq(lambda x: np.prod(chdtr(freedom, x)) - (1 - delta), 1e-9, 1e3)
    assert chance_of_largest(freedom, 1, delta).limit == pytest.approx(exact, rel=off)


def test_the_sum_of_the_largest_is_that_of_sorted_normal_squares():
    rng, m, k = np.random.default_rng(5), 30, 12
    squares = (rng.standard_normal((20_000, m, 2)) ** 2).sum(axis=2)
    sums = np.sort(squares, axis=1)[:, -k:].sum(axis=1)
    found = chance_of_largest(np.full(m, 2), k, 0.05)
    assert found.mean == pytest.approx(sums.mean(), rel=0.01)
    assert found.limit == pytest.approx(np.quantile(sums, 0.95), rel=0.02)


@pytest.mark.parametrize("k", [1, 15, 60])
def test_the_order_of_the_states_does_not_matter(k):
    freedom = np.repeat([1, 2, 5], [30, 20, 10])
    orders = [freedom, freedom[::-1], np.random.default_rng(0).permutation(freedom)]
    assert len({chance_of_largest(order, k, 0.05) for order in orders}) == 1
