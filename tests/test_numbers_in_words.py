"""Numbers as they are printed."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spibb.words import apart, at_least, at_most, general, level, listed, number, surely

FINITE = st.floats(-1e300, 1e300)


def read(text: str) -> Decimal:
    return Decimal(text.replace("−", "-").replace(",", ""))


@given(FINITE | st.floats(-2, 2), st.sampled_from([None, 3, 4]))
def test_a_bound_is_never_printed_tighter_than_it_is(value, digits):
    exact = Decimal(repr(value))
    assert read(at_least(value, digits)) <= exact <= read(at_most(value, digits))
    assert read(surely(value)) <= exact


@given(st.floats(-2, 2) | FINITE)
def test_a_bound_is_printed_within_a_digit_of_the_number(value):
    low, near, high = (read(show(value)) for show in (at_least, number, at_most))
    assert low <= near <= high
    assert near in (low, high)


@given(FINITE, st.integers(1, 6))
def test_significant_digits_are_those_of_the_number(value, digits):
    nearest = abs(read(general(value, digits)) - Decimal(repr(value)))
    assert all(
        nearest <= abs(read(show(value, digits)) - Decimal(repr(value)))
        for show in (at_least, at_most)
    )


@pytest.mark.parametrize(
    ("value", "low", "high"),
    [
        (8.299e-07, "8.2e−07", "8.3e−07"),
        (0.3, "0.300", "0.300"),
        (-0.6255, "−0.626", "−0.625"),
        (1999.9, "1,999", "2,000"),
        (float("inf"), "∞", "∞"),
        (float("nan"), "–", "–"),
    ],
)
def test_bounds_are_rounded_to_their_side(value, low, high):
    assert (at_least(value), at_most(value)) == (low, high)


def test_names_are_listed():
    assert [listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"])] == [
        "a", "a and b", "a, b and c",
    ]  # fmt: skip


@given(st.lists(FINITE | st.sampled_from([1.0, 1.000001, 2e9, 2e9 + 1]), min_size=2, max_size=3))
def test_numbers_that_differ_look_different(values):
    assert len(set(apart(*values))) >= len(set(values))


def test_six_digits_where_they_suffice():
    assert apart(2 / 3, 1, -5) == ["0.666667", "1", "-5"]
    assert apart(1.000001, 1) == ["1.000001", "1"]
    assert apart(2e9, 2e9 + 1) == ["2000000000", "2000000001"]
    assert apart(float("nan"), 1, float("inf")) == ["nan", "1", "inf"]


@pytest.mark.parametrize(
    ("delta", "text"),
    [
        (0.5, "0.5"), (0.3, "0.7"), (0.2, "0.8"), (0.05, "0.95"), (0.05 / 2, "0.975"),
        (0.0123456, "0.9876544"), (1e-3, "0.999"), (1e-3 / 2, "1 − 0.0005"),
        (1e-4, "1 − 0.0001"), (1e-7, "1 − 1e-7"), (1e-12, "1 − 1e-12"),
    ],
)  # fmt: skip
def test_a_level_has_all_its_digits_and_is_never_one(delta, text):
    assert level(delta) == text
