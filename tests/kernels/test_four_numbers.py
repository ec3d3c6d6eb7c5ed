"""Four numbers in a register: the same as one by one."""

from __future__ import annotations

import numpy as np
from numba import njit

from spibb.kernels import vectors


@njit
def combined(flat, factor):
    """x + y·z, then less factor·x, into flat[13:17]; their sum."""
    x, y, z = vectors.load(flat, 1), vectors.load(flat, 5), vectors.load(flat, np.uint64(9))
    found = vectors.minus(vectors.plus(x, y, z), factor, x)
    vectors.store(flat, 13, found)
    return vectors.total(found), vectors.total(vectors.zeros())


def test_each_place_is_computed_alone():
    flat = np.arange(18.0)
    before, x, y, z = flat.copy(), flat[1:5].copy(), flat[5:9].copy(), flat[9:13].copy()
    total, nothing = combined(flat, 3.0)
    np.testing.assert_array_equal(flat[13:17], x + y * z - 3.0 * x)
    np.testing.assert_array_equal(flat[[*range(13), 17]], before[[*range(13), 17]])
    assert (total, nothing) == (flat[13:17].sum(), 0.0)
