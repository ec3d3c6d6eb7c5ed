"""Four numbers in a register: the same as one by one."""

from __future__ import annotations

import numpy as np
from numba import njit

from spibb.kernels import simd


@njit
def combined(flat, factor):
    """x + y·z, then less factor·x, into flat[13:17]; their sum."""
    x, y, z = simd.load(flat, 1), simd.load(flat, 5), simd.load(flat, np.uint64(9))
    found = simd.minus(simd.plus(x, y, z), factor, x)
    simd.store(flat, 13, found)
    return simd.total(found), simd.total(simd.zeros())


def test_each_place_is_computed_alone():
    flat = np.arange(18.0)
    before, x, y, z = flat.copy(), flat[1:5].copy(), flat[5:9].copy(), flat[9:13].copy()
    total, nothing = combined(flat, 3.0)
    np.testing.assert_array_equal(flat[13:17], x + y * z - 3.0 * x)
    np.testing.assert_array_equal(flat[[*range(13), 17]], before[[*range(13), 17]])
    assert (total, nothing) == (flat[13:17].sum(), 0.0)
