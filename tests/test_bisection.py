"""Where a condition turns."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spibb.bisection import enclosed, halved


@given(st.floats(1e-6, 1 - 1e-6), st.sampled_from(["line", "cube", "log", "steps", "plateau"]))
def test_enclosed_ends_where_halving_ends(turn, shape):
    shapes = {
        "line": lambda x: turn - x,
        "cube": lambda x: (turn - x) ** 3,
        "log": lambda x: math.log(turn) - math.log(x),
        "steps": lambda x: 1.0 if x <= turn else -1.0,
        "plateau": lambda x: min(turn - x, 1e-3),
    }
    f = shapes[shape]
    low, high = enclosed(f, 1e-9, 1.0, 1e-14)
    assert f(low) >= 0 > f(high)
    assert abs(high - low) <= 2e-14
    assert low == pytest.approx(halved(lambda x: f(x) >= 0, 1e-9, 1.0, 60)[0], abs=3e-14)


def test_a_smooth_function_is_tried_a_few_times():
    tried = []

    def f(x):
        tried.append(x)
        return 50 * math.log1p(0.3 / x - 0.5) - 4

    enclosed(f, 1e-12, 1.0, 2.0**-53)
    assert len(tried) <= 20


def test_an_interval_that_is_narrow_enough_stays():
    assert enclosed(lambda x: 1 - x, 1.0, 1.0 + 1e-9, 1e-9) == (1.0, 1.0 + 1e-9)
