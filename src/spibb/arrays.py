"""Arrays: dense codes, fair permutations, and columns of Arrow without pandas."""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa

NUMBERS = 63
"""Bits of a whole number ≥ 0."""
GRID = 1e6 * (1 + math.sqrt(5)) / 2
"""Points of `on_grid`: an irrational number, so that no value of a round log lies between two."""
PROBABILITY_ROUNDING = 1e-12
"""A probability up to this is what rounding left of none, and what a row lacks of 1."""
RETURN_ROUNDING = 1e-12
"""Returns and values that differ by less, in units of their size, are the same."""
NO_SPAN = 1e-9
"""Spans below this, in units of the largest value, are rounding."""


def largest(a: np.ndarray) -> float:
    """max |a|, NaN if it holds one."""
    return float(np.abs(a).max(initial=0.0))


def rounding_of(*returns: np.ndarray | float) -> float:
    """Differences below this are rounding, for returns or values of this size."""
    return RETURN_ROUNDING * max(largest(np.asarray(some)) for some in returns)


def stable_order(codes: np.ndarray, size: int) -> np.ndarray:
    """The order that sorts codes in [0, size) and leaves equal ones as they stand."""
    narrow = codes.astype(np.uint16) if size <= 1 << 16 else codes  # sorted by digits, in one pass
    return np.argsort(narrow, kind="stable")


def owners(indptr: np.ndarray) -> np.ndarray:
    """The row that each entry of sparse rows belongs to [K]."""
    return np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))


def is_arrow(values: Any) -> bool:
    """Whether an object is one of PyArrow's, asked without importing that."""
    return type(values).__module__.startswith("pyarrow")


def densify(keys: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """The keys in [0, size) that occur, sorted, and the position of each key [N] among them."""
    if size <= max(4 * len(keys), 1 << 20):
        occurs = np.zeros(size, dtype=bool)
        occurs[keys] = True
        return np.flatnonzero(occurs), (np.cumsum(occurs, dtype=np.int32) - 1)[keys]
    if size.bit_length() + len(keys).bit_length() <= NUMBERS:
        return _by_sorting(keys)
    seen, codes = np.unique(keys, return_inverse=True)
    return seen, codes.reshape(-1).astype(np.int32)


def _by_sorting(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same, by sorting keys that carry their row in their last digits: twice as fast."""
    bits = len(keys).bit_length()
    carried = np.sort(keys.astype(np.int64) << bits | np.arange(len(keys)))
    row, found = carried & ((1 << bits) - 1), carried >> bits
    first = np.diff(found, prepend=-1) != 0
    codes = np.empty(len(keys), dtype=np.int32)
    codes[row] = np.cumsum(first, dtype=np.int32) - 1
    return found[first], codes


def as_type(column: Any, kind: pa.DataType) -> Any:
    """A column of Arrow with this type; Arrow's cast loads all its functions even for nothing."""
    return column if column.type == kind else column.cast(kind)


def as_floats(column: Any) -> np.ndarray:
    """A column of numbers [N] as floats, NaN where there is none."""
    import pyarrow as pa

    exact = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
    return from_arrow(column if exact else column.cast("float64")).astype(np.float64)


def from_arrow(column: Any, missing: float = math.nan) -> np.ndarray:
    """A column of numbers or flags [N], with `missing` where there is none.

    `to_numpy` gives the same, and imports pandas, which takes longer than most columns.
    """
    import pyarrow as pa

    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    valid, values = array.buffers()
    rows = slice(array.offset, array.offset + len(array))
    if pa.types.is_boolean(array.type):
        found = _bits(values)[rows]
    else:
        found = np.frombuffer(values or b"", array.type.to_pandas_dtype())[rows]
    return np.where(_bits(valid)[rows], found, missing) if array.null_count else found


def _bits(buffer: Any) -> np.ndarray:
    """The flags that a buffer of bits holds, and some zeros behind."""
    return np.unpackbits(np.frombuffer(buffer or b"", np.uint8), bitorder="little").astype(bool)


def release_memory() -> None:
    """Give memory that was freed back to the system: Arrow and the C library keep it for later.

    Arrow does not ask the C library itself, and of those only GNU's can be asked.
    """
    import pyarrow as pa

    pa.default_memory_pool().release_unused()
    if sys.platform == "linux":
        getattr(ctypes.CDLL(None), "malloc_trim", lambda pad: 0)(0)


def scrambled(x: np.ndarray) -> np.ndarray:
    """A permutation of the 64-bit numbers that spreads neighbours (splitmix64)."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> np.uint64(31)))


def on_grid(values: np.ndarray) -> np.ndarray:
    """A whole number for each value [N] that knows neither the unit of the values nor their zero.

    Values that differ by less than about a millionth of their span may share one.
    """
    x = values / (largest(values) or 1.0)
    span = float(np.ptp(x))
    return np.rint((x - x.min()) * (GRID / (span if span > NO_SPAN else 1.0))).astype(np.uint64)


def fair_permutation(content: np.ndarray, seed: int) -> np.ndarray:
    """A random permutation of items [E] that are sorted by what they are.

    `content` [E] are 64-bit numbers made of the items; their order does not matter. Other items get
    another permutation: one that the seed alone decides would put the same places of the sorted
    items into a share of every log, and where items are of few kinds a place tells the kind.
    """
    with np.errstate(over="ignore"):
        whole = int(scrambled(content).sum(dtype=np.uint64))
    return np.random.default_rng([seed, whole]).permutation(len(content))


def to_arrow(values: np.ndarray, missing: np.ndarray | None = None) -> pa.Array:
    """A column of Arrow from numbers or flags [N]; `missing` [N] marks rows without a value.

    `pyarrow.array` gives the same, and imports pandas.
    """
    import pyarrow as pa

    flags = values.dtype == bool
    data = _packed(values) if flags else pa.py_buffer(np.ascontiguousarray(values))
    valid = None if missing is None else _packed(~missing)
    kind = pa.from_numpy_dtype(values.dtype)
    return pa.Array.from_buffers(kind, len(values), [valid, data])


def texts_to_arrow(texts: Sequence[str]) -> pa.Array:
    """A column of Arrow from texts, without pandas."""
    import pyarrow as pa

    encoded = [text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.large_string(), len(texts), buffers).cast(pa.string())


def _packed(flags: np.ndarray) -> Any:
    """A buffer with a bit per flag."""
    import pyarrow as pa

    return pa.py_buffer(np.packbits(flags, bitorder="little"))


def python_values(array: pa.Array) -> list[Any]:
    """The values of an array; times that Python cannot hold become text that is never a label."""
    try:
        return list(array.to_pylist())
    except (OverflowError, ValueError):
        return [python_value(value) for value in array]


def python_value(value: pa.Scalar) -> Any:
    """One value; see `python_values`."""
    try:
        return value.as_py()
    except (OverflowError, ValueError):
        return f"{value.type} {value.value}"
