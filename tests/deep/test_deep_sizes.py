"""Columns of any size are scaled, and a network that gives no number decides nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("deep_extra", exc_type=ImportError)

from test_deep_live import vector_policy

from spibb.deep.network import MLP
from spibb.deep.scaling import Scaling
from spibb.errors import InputError

X = np.array([[0.0, 1.0], [1.0, 2.0], [2.0, 3.0], [1.0, 1.0]])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("size", [2.0**-1000, 1e-165, 1e-200, 1e-300, 1e60, 2.0**300])
def test_a_varying_column_of_any_size_has_the_same_inputs(size):
    scaled = X * [size, 1.0]
    np.testing.assert_array_equal(Scaling.of(scaled, "ab")(scaled), Scaling.of(X, "ab")(X))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("size", [1e-310, 5e-324])
@pytest.mark.parametrize("column", [[0, 1, 2, 1], [1, 1, 1, 1], [0, 0, 0, 1]])
def test_no_deviation_is_zero(size, column):
    states = np.column_stack([np.array(column) * size, X[:, 1]])
    scaling = Scaling.of(states, "ab")
    assert (scaling.spread > 0).all() and np.isfinite(scaling(states)).all()


def test_usual_columns_keep_their_bits():
    rows = np.random.default_rng(0).lognormal(0, 3, (1000, 3))
    scaling = Scaling.of(rows, "abc")
    np.testing.assert_array_equal(scaling.centre, rows.mean(axis=0))
    np.testing.assert_array_equal(scaling.spread, rows.std(axis=0))


@pytest.mark.filterwarnings("ignore:overflow|invalid:RuntimeWarning")
@pytest.mark.parametrize("variant", ["pi-b", "pi-leq-b"])
@pytest.mark.parametrize("part", ["network", "baseline"])
def test_networks_that_overflow_decide_nothing(part, variant):
    policy = replace(vector_policy("p"), variant=variant)
    huge = tuple(np.full(shape, 3e38, np.float32) for shape in ((2, 4), (4, 3)))
    none = tuple(np.zeros(n, np.float32) for n in (4, 3))
    network = MLP((huge[0], -huge[1]), none)
    broken = network if part == "network" else replace(policy.baseline, network=network)
    policy = replace(policy, **{part: broken})
    with pytest.raises(InputError, match=r"NaN or infinity in row 1 of the states \(1 such row\)"):
        policy(np.array([[1.0, -2.0], [900.0, 900.0]]))
    with pytest.raises(InputError, match="the networks returned NaN or infinity"):
        policy.act_many({"x": [900.0], "y": [900.0]})
