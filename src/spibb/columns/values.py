"""A column of any type as an array of labels, numbers, steps or flags."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, ValuesView
from contextlib import suppress
from typing import Any

import numpy as np

from spibb.checks import check_present, finite, one_kind, shown, unmasked
from spibb.errors import InputError

FLAGS = {"true": True, "t": True, "yes": True, "1": True, "1.0": True,
         "false": False, "f": False, "no": False, "0": False, "0.0": False}  # fmt: skip


def labels_column(values: Any, name: str) -> Any:
    """Leave labels as they are, but let any array type through as NumPy."""
    sized = not isinstance(values, np.ndarray) or values.ndim
    if (isinstance(values, np.ndarray | list | tuple) and sized) or type(
        values
    ).__module__ == "pyarrow.lib":
        return values
    if isinstance(values, str | bytes) or not isinstance(values, Iterable) or not sized:
        raise InputError(f"{name} is {shown(values)}, expected one value per row")
    return values.to_numpy() if hasattr(values, "to_numpy") else list(values)


def to_arrow_table(frame: Any) -> Any:
    """An eager narwhals frame, or a mapping of arrays of one length, as an Arrow table."""
    import pyarrow as pa

    try:
        table = pa.table(frame) if isinstance(frame, Mapping) else frame.to_arrow()
    except UnicodeError:
        raise InputError(
            "a column of the log holds text that is not valid Unicode: fix the column"
        ) from None
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        raise InputError(
            f"a column of the log mixes types ({' '.join(str(error).split())}): "
            "make every value a string, or a number"
        ) from None
    for name in frame if isinstance(frame, Mapping) else frame.columns:
        kind = table.schema.field(name).type  # the table may also have pandas' index
        merged = pa.types.is_timestamp(kind) or pa.types.is_floating(kind)
        if merged and _of_objects(frame[name]):
            one_kind(list(frame[name]), kind, name)
    return table


def _of_objects(values: Any) -> bool:
    """Whether values may be of several types: those of a list, or of a column of objects."""
    return str(getattr(values, "dtype", "object")).lower() == "object"


def _array(values: Any, name: str) -> np.ndarray:
    """Values as an array [N], of an iterator too, as labels; a masked entry is missing."""
    array = unmasked(name, list(values) if isinstance(values, Iterator | ValuesView) else values)
    if array.ndim != 1:
        raise InputError(f"{name} has shape {array.shape}, expected one number per transition")
    return array


def float_column(values: Any, name: str) -> np.ndarray:
    """A column of numbers [N]; complex numbers and times are refused."""
    array = _array(values, name)
    try:
        if array.dtype.kind not in "biufOSUT" or _has_underscores(array):
            raise TypeError
        return array.astype(np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} holds something that is not a number: check the column") from None
    except OverflowError:
        raise InputError(f"{name} holds a number beyond 1.8e308: check the column") from None


def _has_underscores(array: np.ndarray) -> bool:
    """Python and NumPy would read 1_000 as 1000."""
    if array.dtype.kind == "S":
        return any(b"_" in value for value in array.tolist())
    if array.dtype.kind not in "OUT":
        return False
    return any(isinstance(value, str) and "_" in value for value in array.tolist())


def step_column(values: Any) -> np.ndarray:
    """Steps as finite numbers or times: sorted as text, 10 would come before 2."""
    array = _array(values, "step")
    for kind in ("float64", "datetime64[us]"):
        if array.dtype.kind in "OSUT" and not _has_underscores(array):
            with suppress(TypeError, ValueError):
                array = array.astype(kind)
    if array.dtype.kind not in "biufmM":
        raise InputError("step holds something that is neither a number nor a time: fix the column")
    missing: np.ndarray = np.isnat(array) if array.dtype.kind in "mM" else np.isnan(array)
    check_present(~missing, "step")
    if array.dtype.kind == "f":
        finite(array, "step")
    return array


def flag_column(values: Any, name: str) -> np.ndarray | None:
    """A column of booleans [N]: true/false, 0/1 or such words; None stays None."""
    if values is None:
        return None
    array = _array(values, name)
    if array.dtype.kind in "OSUT":
        meaning = [FLAGS.get(str(word).lower()) for word in array.tolist()]
        if None not in meaning:
            return np.array(meaning, dtype=bool)
    if array.dtype == bool:
        return array.copy()
    if array.dtype.kind in "iuf" and np.isin(array, (0, 1)).all():
        return array.astype(bool)
    raise InputError(f"{name} holds something other than true/false or 0/1: check the column")
