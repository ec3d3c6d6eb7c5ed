"""Checks of arrays: kernels do not check what they read, so it is done here."""

from __future__ import annotations

import numbers
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

import numpy as np

from spibb import words
from spibb.checks.wording import shown, such_rows
from spibb.errors import InputError

ROW_SUM_TOLERANCE = 1e-6
"""How far from 1 a row of probabilities may sum: files keep about six digits."""


def column(name: str, values: Any) -> np.ndarray:
    """Check an array [N] of numbers, and return it as floats."""
    array = real_array(name, values)
    if array.ndim != 1:
        raise InputError(f"{name} has shape {array.shape}, expected one value per row")
    return array


def real_array(name: str, values: Any) -> np.ndarray:
    """Numbers as floats, in any shape; text, times and complex numbers are refused."""
    array = unmasked(name, values)
    kind = array.dtype.kind
    if kind not in "biufO" or (kind == "O" and not all(map(_is_real, array.flat))):
        raise InputError(f"{name} is {shown(values)}, expected an array of numbers")
    try:
        return array.astype(np.float64, copy=False)
    except OverflowError:
        raise InputError(f"{name} has a number beyond 1.8e308: give finite numbers") from None


def _is_real(value: Any) -> bool:
    return isinstance(value, numbers.Real | Decimal)


def whole_array(name: str, values: Any) -> np.ndarray:
    """Codes [N]: whole numbers of any type."""
    array = unmasked(name, values)
    if array.size and array.dtype.kind not in "iu":
        raise InputError(f"{name} holds {array.dtype}, expected whole numbers: give codes 0, 1, …")
    if array.ndim != 1:
        raise InputError(f"{name} has shape {array.shape}, expected one code per row")
    return array if array.dtype.kind in "iu" else array.astype(np.int64)


def is_masked(values: Any) -> bool:
    """Whether values are a masked array; nobody has made one before numpy.ma is loaded."""
    return "numpy.ma" in sys.modules and isinstance(values, np.ma.MaskedArray)


def unmasked(name: str, values: Any) -> np.ndarray:
    """Values as a plain array; a masked entry is missing, and refused with its row."""
    if is_masked(values) and values.size and values.ndim:
        masked = np.ma.getmaskarray(values).reshape(len(values), -1)
        check_present(np.asarray(~masked.any(axis=1)), name)
    try:
        return np.asarray(values)
    except ValueError:  # rows of different lengths
        raise InputError(
            f"{name} has rows of different lengths: give rows of equal length"
        ) from None


def check_present(present: np.ndarray, name: str) -> None:
    """Refuse a column with missing values; name the first row."""
    if not present.all():
        n = len(present) - int(present.sum())
        raise InputError(
            f"{name} is missing in row {int(np.argmin(present))} ({such_rows(n)}): fill or drop "
            "them"
        )


def per_cent(largest: float) -> str:
    """A hint for probabilities of which the largest shows that they are given in per cent."""
    return "; if these are per cent, divide by 100" if 1 < largest <= 100 else ""


def probability_rows(
    probs: np.ndarray, labels: Sequence[Any], columns: Sequence[Any], what: str = "policy"
) -> None:
    """Check that every row [A] of probs [S, A] is a distribution; name the first that is not."""
    bad = ~((probs >= 0) & (probs <= 1 + ROW_SUM_TOLERANCE))  # also catches NaN
    if bad.any():
        s, a = np.argwhere(bad)[0]
        found, _ = words.apart(probs[s, a], 1)
        raise InputError(
            f"{what} row {labels[s]!r}, action {columns[a]!r}: probability is {found}, "
            f"expected a number in [0, 1]: fix that entry{per_cent(np.nanmax(probs))}"
        )
    sums = probs.sum(axis=1)
    off = np.abs(sums - 1) > ROW_SUM_TOLERANCE
    if off.any():
        s = int(np.argmax(off))
        raise InputError(
            f"{what} row {labels[s]!r} sums to {words.apart(sums[s], 1)[0]}, expected 1: "
            "renormalise it or check its source"
        )


def whole_rows(probs: np.ndarray) -> np.ndarray:
    """Rows [S, A] divided by their sums; those that sum to 1 up to rounding stay as they are."""
    sums = probs.sum(axis=1, keepdims=True)
    rounding = probs.shape[1] * np.finfo(np.float64).eps
    return probs / np.where(np.abs(sums - 1) <= rounding, 1.0, sums)


def finite(values: np.ndarray, what: str) -> None:
    """Check that an array [N] holds finite numbers; name the first row that does not."""
    bad = ~np.isfinite(values)
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"{what} in row {row} is {values[row]}, expected a finite number: "
            f"fix or drop the row ({such_rows(bad.sum())})"
        )


def same_length(**columns: np.ndarray | None) -> int:
    """Check that all columns given have one length, and return it."""
    for name, given in columns.items():
        sized = hasattr(given, "__len__") and getattr(given, "ndim", 1) > 0
        if given is not None and not sized:
            raise InputError(f"{name} is {shown(given)}, expected one value per transition")
    sizes = {name: len(column) for name, column in columns.items() if column is not None}
    if len(set(sizes.values())) > 1:
        listed = ", ".join(f"{name} {size}" for name, size in sizes.items())
        raise InputError(f"columns differ in length ({listed}): give one value per transition")
    return next(iter(sizes.values()))


def sparse_rows(what: str, indptr: np.ndarray, n_rows: int, **entries: np.ndarray) -> None:
    """Refuse rows that do not fit together: kernels read without a check."""
    for name, array in {"indptr": indptr, **entries}.items():
        if array.ndim != 1:
            raise InputError(f"{name} of {what} has {array.ndim} dimensions, expected 1")
    if len(indptr) != n_rows + 1:
        raise InputError(f"indptr of {what} has {len(indptr)} entries, expected {n_rows + 1}")
    size = same_length(**entries)
    if indptr[0] != 0 or indptr[-1] != size or (indptr[1:] < indptr[:-1]).any():
        raise InputError(f"indptr of {what} must rise from 0 to {size}, where its rows end")


def narrow(owner: Any) -> None:
    """Give `indptr` and `successors` the types that kernels read; they were checked before."""
    for name, kind in (("indptr", np.int64), ("successors", np.int32)):
        array = getattr(owner, name)
        if array.dtype != kind or not array.flags.c_contiguous:
            object.__setattr__(owner, name, np.ascontiguousarray(array, dtype=kind))


def codes(what: str, values: np.ndarray, n: int, least: int = 0) -> None:
    """Refuse codes that are not from `least` to n − 1."""
    if values.size and (values.min() < least or values.max() >= n):
        wrong = values[(values < least) | (values >= n)][0]
        raise InputError(f"{what} hold {wrong}, expected codes from {least} to {n - 1}")


def action_codes(name: str, values: Any, n_actions: int, remedy: str) -> np.ndarray:
    """Check the codes of actions [N], and return a copy of them; the remedy is for the caller."""
    array = np.array(values)
    if array.ndim != 1 or array.dtype.kind not in "iuf" or (array != np.floor(array)).any():
        raise InputError(
            f"{name} has shape {array.shape} and type {array.dtype}, expected one whole number "
            "per transition: give codes 0 … A − 1"
        )
    bad = (array < 0) | (array >= n_actions)
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"{name} in row {row} is {array[row]}, expected a code in 0 … {n_actions - 1}: "
            f"{remedy} ({such_rows(bad.sum())})"
        )
    return array.astype(np.int64)


def one_kind(values: Any, found: Any, name: str) -> None:
    """Refuse values that are not alike, and that Arrow made alike without a word.

    `found` is the type of the Arrow column that it made of them. Times without a zone would be UTC
    beside times with one, and true would be 1.0 beside floats; beside whole numbers Arrow refuses
    it.
    """
    if isinstance(values, np.ndarray) and values.dtype != object:
        return
    kind = str(found)
    if kind.startswith("timestamp"):
        _one_kind_of_time(values, name)
    elif kind in ("double", "float", "halffloat"):
        _no_flags(values, name)


def _one_kind_of_time(values: Iterable[Any], name: str) -> None:
    zones = {value.tzinfo is None for value in values if isinstance(value, datetime)}
    if len(zones) > 1:
        raise InputError(
            f"{name} mixes times with and without a time zone: give all of them a zone, or none"
        )


def _no_flags(values: Iterable[Any], name: str) -> None:
    if not {bool, np.bool_}.isdisjoint(map(type, values)):
        raise InputError(
            f"{name} mixes types, true or false beside numbers: make every value a number, or "
            "true or false"
        )
