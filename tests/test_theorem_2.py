"""Theorem 2, its inverse, and the two tighter bounds."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spibb.certificate import RADII, Premises, error_radius, n_wedge_for, zeta
from spibb.errors import InputError

CHECK = Premises(n_states=25, n_actions=4, discount=0.95, v_max=1, delta=0.1)


@pytest.mark.parametrize(
    ("bound", "wanted"), [("theorem-2", 17.863), ("two-successor", 13.190), ("beta", 11.112)]
)
def test_the_check_values_of_the_three_bounds(bound, wanted):
    assert zeta(1000, CHECK, bound=bound) == pytest.approx(wanted, abs=5e-4)


def test_theorem_2_written_out():
    log_term = math.log(2 * 25 * 4 * 2**25 / 0.1)
    wanted = 4 / 0.05 * math.sqrt(2 / 7 * log_term) - 0.3
    assert zeta(7, CHECK, gain=0.3) == pytest.approx(wanted, rel=1e-12)


@given(st.floats(0.01, 100), st.integers(1, 2000), st.integers(1, 30))
def test_n_wedge_for_a_wanted_zeta_is_the_smallest_that_reaches_it(wanted, n_states, n_actions):
    premises = Premises(n_states, n_actions, 0.9, 2.0, 0.05)
    n = n_wedge_for(wanted, premises)
    assert zeta(n, premises) <= wanted * (1 + 1e-9)
    assert n == 1 or zeta(n - 1, premises) > wanted * (1 - 1e-9)


def test_n_wedge_has_the_constant_32_of_theorem_2():
    wanted = 32 / (0.5**2 * 0.05**2) * (math.log(2 * 100 / 0.1) + 25 * math.log(2))
    assert n_wedge_for(0.5, CHECK) == math.ceil(wanted)


def test_two_to_the_number_of_states_does_not_overflow():
    assert math.isfinite(error_radius(10, Premises(10**6, 4, 0.95, 1, 0.05)))


@pytest.mark.parametrize("bound", RADII)
@given(st.integers(1, 10**6))
def test_bounds_tighten_with_n_wedge_and_vanish_at_infinity(bound, n):
    assert zeta(n + 1, CHECK, bound=bound) <= zeta(n, CHECK, bound=bound)
    assert zeta(math.inf, CHECK, bound=bound) == 0
    assert zeta(0, CHECK, bound=bound) == math.inf


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("delta", 0.0, r"delta is 0.0, expected a number in \(0, 1\]"),
        ("discount", 1.0, r"discount is 1.0, expected a number in \[0, 1\)"),
        ("v_max", -1.0, r"v_max is -1.0"),
    ],
)
def test_impossible_settings_are_named(field, value, message):
    values = {"n_states": 2, "n_actions": 2, "discount": 0.9, "v_max": 1.0, "delta": 0.1}
    with pytest.raises(InputError, match=message):
        Premises(**{**values, field: value})
