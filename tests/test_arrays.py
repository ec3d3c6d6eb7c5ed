"""Arrays: dense codes against NumPy's own."""

from __future__ import annotations

import numpy as np
import pytest

from spibb.arrays import densify


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
