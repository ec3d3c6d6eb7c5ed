"""Columns of labels become a vocabulary and codes, whatever form the columns come in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from spibb.arrays import as_type, densify, from_arrow, is_arrow
from spibb.checks import check_present, is_masked, one_kind
from spibb.errors import InputError
from spibb.labels.kinds import LARGEST, Label, cell_label
from spibb.labels.vocabularies import Vocabulary, translate


def factorize(values: Any, *names: str) -> tuple[Vocabulary, np.ndarray]:
    """Split a column of labels into its sorted vocabulary and its codes [N], all ≥ 0.

    `values` is a sequence of labels, an array [N] or [N, k] (labels of k parts), or a list of
    `k` Arrow columns. None, NaN and masked entries are missing, and the first one is refused with
    its row. Sorting makes the codes independent of the order of the rows.
    """
    found, codes, present = factorize_present(values, *names)
    check_present(present, "/".join(names))
    return found, codes


def factorize_present(values: Any, *names: str) -> tuple[Vocabulary, np.ndarray, np.ndarray]:
    """The sorted vocabulary, codes ≥ 0 of the rows that have a label, and which rows have one.

    `values` are those of `factorize`; the last result is a mask [N], the codes are as many as it
    marks. A label of several parts is missing as soon as one part is.
    """
    columns = label_parts(values, "/".join(names))
    coded = [_factorize_one(column, name) for column, name in zip(columns, _spread(names, columns))]
    present = np.logical_and.reduce([codes >= 0 for _, codes in coded])
    parts = [(labels, codes[present]) for labels, codes in coded]
    labels, codes = parts[0] if len(parts) == 1 else _combined(parts)
    return Vocabulary(labels, names), codes, present


def _combined(parts: Sequence[tuple[Sequence[Label], np.ndarray]]) -> tuple[Any, np.ndarray]:
    """Tuple labels and their codes, from the labels and codes of each part.

    Parts are joined one by one, and codes made dense after each: the product of all the parts'
    sizes may be beyond 64 bits, that of two parts, each with at most as many labels as there are
    rows, is not.
    """
    labels: list[tuple[Label, ...]] = [(label,) for label in parts[0][0]]
    codes = parts[0][1]
    for more, other in parts[1:]:
        seen, codes = densify(codes.astype(np.int64) * len(more) + other, len(labels) * len(more))
        pairs = (divmod(key, len(more)) for key in seen.tolist())
        labels = [(*labels[left], more[right]) for left, right in pairs]
    return tuple(labels), codes


def encode(values: Any, vocabulary: Vocabulary, what: str) -> np.ndarray:
    """Codes [N] ≥ 0 of a column of labels in a given vocabulary; none may be missing."""
    return translate(*factorize(values, *vocabulary.names), vocabulary, what)


def _spread(names: tuple[str, ...], columns: Sequence[Any]) -> Iterable[str]:
    return names if len(names) == len(columns) else [names[0]] * len(columns)


def label_parts(values: Any, name: str) -> list[Any]:
    """The parts of a column of labels: one per element of a tuple label."""
    if isinstance(values, list) and values and is_arrow(values[0]):
        return values if len(values) > 1 else label_parts(values[0], name)
    if is_masked(values):
        return [part.tolist() for part in (values.T if values.ndim == 2 else [values])]
    if isinstance(values, np.ndarray) and (values.ndim == 2 or values.dtype.kind != "O"):
        return list(values.T) if values.ndim == 2 else [values]
    if is_arrow(values):
        if not _is_nested(values):
            return [values]
        values = values.to_pylist()
    return _tuple_parts(list(values), name)


def _is_nested(column: Any) -> bool:
    """Arrow turns a column of tuples into lists."""
    import pyarrow.types as kinds

    return bool(
        kinds.is_list(column.type)
        or kinds.is_large_list(column.type)
        or kinds.is_fixed_size_list(column.type)
    )


def _tuple_parts(values: list[Any], name: str) -> list[Any]:
    """Split tuple labels (or lists) into one column per part; leave other labels whole."""
    width = next((len(value) for value in values if isinstance(value, tuple | list)), None)
    if width is None:
        return [values]
    missing = (None,) * width
    rows = [
        missing if value is None or (isinstance(value, float) and value != value) else value
        for value in values
    ]
    for row in rows:
        if not isinstance(row, tuple | list) or len(row) != width:
            raise InputError(
                f"{name} mixes labels of {width} parts with {row!r}: give all labels the same form"
            )
    return [list(part) for part in zip(*rows)]


def _factorize_one(column: Any, name: str) -> tuple[tuple[Label, ...], np.ndarray]:
    """Sorted labels, and codes [N] that are −1 where a value is missing."""
    if isinstance(column, np.ndarray) and column.dtype.kind in "iu":
        return _factorize_whole(column, name)
    return _factorize_arrow(_to_arrow(column, name), name)


def _factorize_whole(column: np.ndarray, name: str) -> tuple[tuple[Label, ...], np.ndarray]:
    """Sorted labels and codes [N] of whole numbers."""
    low, high = (int(column.min()), int(column.max())) if len(column) else (0, 0)
    if max(high - low, high) < LARGEST:
        seen, codes = densify(column.astype(np.int64) - low, high - low + 1)
        return tuple((seen + low).tolist()), codes
    labels, codes = np.unique(column, return_inverse=True)
    whole = tuple(cell_label(label, name) for label in labels.tolist())
    return whole, codes.reshape(-1).astype(np.int32)


def _to_arrow(column: Any, name: str) -> Any:
    """A column as an Arrow array, which knows missing values."""
    import pyarrow as pa

    if isinstance(column, np.ndarray) and column.ndim != 1:
        raise InputError(f"{name} has shape {column.shape}, expected one label per row")
    try:
        array = column if is_arrow(column) else pa.array(column, from_pandas=True)
    except UnicodeError:
        raise InputError(f"{name} holds text that is not valid Unicode: fix the column") from None
    except OverflowError:
        raise InputError(
            f"{name} holds a whole number beyond 64 bits: turn the column into text"
        ) from None
    except (pa.ArrowException, TypeError, ValueError):
        raise InputError(f"{name} mixes types: make every label a string, or a number") from None
    if not is_arrow(column):
        one_kind(column, array.type, name)
    if pa.types.is_nested(array.type) or not (
        pa.types.is_dictionary(array.type) or pa.types.is_primitive(array.type)
        or pa.types.is_string(array.type) or pa.types.is_large_string(array.type)
        or pa.types.is_string_view(array.type) or pa.types.is_null(array.type)
        or pa.types.is_decimal(array.type)
    ):  # fmt: skip
        raise InputError(
            f"{name} holds values of type {array.type}, expected strings or whole numbers: turn "
            "the column into text"
        )
    return array


def _factorize_arrow(array: Any, name: str) -> tuple[tuple[Label, ...], np.ndarray]:
    """Dictionary encoding by Arrow, fast on strings."""
    import pyarrow as pa

    if pa.types.is_null(array.type):
        return (), np.full(len(array), -1, dtype=np.int32)
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if pa.types.is_integer(array.type) and not array.null_count:
        return _factorize_whole(from_arrow(array), name)
    if not pa.types.is_dictionary(array.type):
        array = array.dictionary_encode()
    values = [cell_label(value, name) for value in array.dictionary.to_pylist()]
    codes = from_arrow(as_type(array.indices, pa.int32()), missing=-1)
    labels = sorted(set(_used(values, codes)))
    rank = {label: code for code, label in enumerate(labels)}
    mapped = np.array([rank.get(value, -1) for value in values] + [-1], dtype=np.int32)
    return tuple(labels), mapped[codes]


def _used(values: Sequence[Label], codes: np.ndarray) -> list[Label]:
    """The labels that occur; a categorical column may declare more."""
    used = np.zeros(len(values) + 1, dtype=bool)
    used[codes] = True  # the last one stands for the code −1
    return [value for value, occurs in zip(values, used.tolist()) if occurs and value is not None]
