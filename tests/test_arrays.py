"""Arrays: dense codes against NumPy's own."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from spibb.arrays import densify, from_arrow


@pytest.mark.parametrize("size", [3, 1000, 1 << 21, 1 << 50, (1 << 63) - 1])
@pytest.mark.parametrize("n", [0, 1, 2, 1000])
def test_dense_codes_are_positions_among_the_keys_that_occur(size, n):
    rng = np.random.default_rng(n)
    keys = rng.integers(size, size=n)
    keys[: n // 2] = keys[n - n // 2 :]  # some occur twice
    seen, codes = densify(keys, size)
    wanted, positions = np.unique(keys, return_inverse=True)
    np.testing.assert_array_equal(seen, wanted)
    np.testing.assert_array_equal(codes, positions)
    assert codes.dtype == np.int32


@pytest.mark.parametrize("kind", ["int8", "int32", "int64", "float32", "float64"])
@pytest.mark.parametrize("values", [[], [1], [3, None, 5, 7], [None, None]])
def test_arrow_columns_are_what_arrow_says(kind, values):
    column = pa.chunked_array([pa.array(values, kind), pa.array(values * 2, kind)])
    for part in (column, column.slice(1), column.chunk(1), column.chunk(1).slice(2)):
        found, wanted = (
            from_arrow(part),
            part.to_numpy(zero_copy_only=False) if isinstance(part, pa.Array) else part.to_numpy(),
        )
        np.testing.assert_array_equal(found, wanted)
    filled = [-1 if value is None else value for value in values * 3]
    assert from_arrow(column, missing=-1).tolist() == filled


@pytest.mark.parametrize("n", [0, 1, 9, 100])
def test_arrow_flags_are_what_arrow_says(n):
    rng = np.random.default_rng(n)
    values = [[True, False, None][k] for k in rng.integers(3, size=n)]
    column = pa.array(values, pa.bool_())
    for first in (0, 1, 5):
        assert from_arrow(column.slice(first), missing=False).tolist() == [
            bool(value) for value in values[first:]
        ]
