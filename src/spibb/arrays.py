"""Arrays: dense codes of sparse numbers."""

from __future__ import annotations

import numpy as np

NUMBERS = 63
"""Bits of a whole number ≥ 0."""


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
