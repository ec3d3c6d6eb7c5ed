"""Arrays: dense codes against NumPy's own."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from spibb.arrays import (
    as_floats,
    as_type,
    densify,
    from_arrow,
    release_memory,
    texts_to_arrow,
    to_arrow,
)


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


@pytest.mark.parametrize("kind", ["int32", "int64", "float64", "bool", "uint8"])
@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 1000])
def test_columns_of_arrow_are_those_of_pyarrow(kind, n):
    rng = np.random.default_rng(n)
    values = rng.integers(0, 2 if kind == "bool" else 100, n).astype(kind)
    missing = rng.random(n) < 0.3
    assert to_arrow(values).equals(pa.array(values))
    assert to_arrow(values[::2]).equals(pa.array(values[::2]))
    assert to_arrow(values, missing).equals(pa.array(values, mask=missing))


@pytest.mark.parametrize("texts", [[], [""], ["a", "", "ß\n", "漢字", "x" * 1000]])
def test_texts_become_a_column_of_arrow(texts):
    assert texts_to_arrow(texts).equals(pa.array(texts, pa.string()))


def test_a_column_of_its_type_is_not_cast():
    column = pa.array([1, 2])
    assert as_type(column, pa.int64()) is column
    assert as_type(column, pa.float64()).equals(pa.array([1.0, 2.0]))


@pytest.mark.parametrize("kind", ["int8", "uint64", "float32", "float64", "decimal128(25, 2)"])
def test_numbers_of_any_type_become_floats(kind):
    wanted = pa.decimal128(25, 2) if "decimal" in kind else kind
    column = pa.chunked_array([pa.array([1, None, 3], pa.int64()).cast(wanted)])
    np.testing.assert_array_equal(as_floats(column), [1.0, np.nan, 3.0])
    assert as_floats(column).dtype == np.float64


def resident():
    """Bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(
    sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "malloc_trim"),
    reason="only GNU's C library gives memory back when it is asked",
)
def test_memory_that_was_freed_goes_back_to_the_system():
    """Many small pieces below one that stays: the C library keeps them by itself."""
    pieces = [b"x" * 100_000 for _ in range(2000)]
    stays = b"x" * 100_000
    held = resident()
    del pieces
    release_memory()
    assert held - resident() > 100_000_000 and stays
