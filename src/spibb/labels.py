"""Vocabulary: the labels of states or actions, in order, and the codes 0, 1, 2, … behind them.

A label is a string, a whole number, or a tuple of these when a state spans several columns.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np

from spibb.arrays import as_type, densify, from_arrow
from spibb.checks import InputError, check_present, is_masked, positive, several, shown, some
from spibb.showing import Shown

Label = Any

EXACT_FLOATS = 2.0**53
"""Below this a float names one whole number; above, several round to it."""
LEAST, LARGEST = -(2**63), 2**63 - 1
"""Whole numbers that files and frames can keep."""


@dataclass(frozen=True, eq=False)
class Vocabulary(Shown):
    """Ordered, distinct labels; `names` are the columns that a label spans in a file.

    Parameters:
        labels: text, whole numbers, or tuples of these, all of one form.
        names: one column per part of a label.

    >>> states = spibb.Vocabulary(["mild", "severe"], ("state",))
    >>> states.code("severe"), states[0], len(states)
    (1, 'mild', 2)
    """

    labels: Sequence[Label]
    names: tuple[str, ...] = ("label",)

    def __post_init__(self) -> None:
        if isinstance(self.labels, range):
            return
        labels = tuple(_named_by(_plain(label), self.kind) for label in self.labels)
        label, times = self._most_frequent(labels) if labels else (None, 1)
        if times > 1:
            raise InputError(f"{self.kind} {label!r} is listed {times} times: list it once")
        same_kind(labels, self.kind)
        object.__setattr__(self, "labels", labels)
        if labels and isinstance(labels[0], tuple) and len(self.names) != len(labels[0]):
            names = tuple(f"{self.names[0]}_{part}" for part in range(len(labels[0])))
            object.__setattr__(self, "names", names)

    def _most_frequent(self, labels: Sequence[Label]) -> tuple[Label, int]:
        try:
            return Counter(labels).most_common(1)[0]
        except TypeError:
            bad = next(label for label in labels if not _hashable(label))
            raise InputError(
                f"{self.kind} {shown(bad)} is not a label: labels are text, whole numbers, or "
                "tuples of these"
            ) from None

    def _facts(self) -> Mapping[str, Any]:
        """How many, the first ones, and their columns."""
        return {"size": len(self), "begins": some(self.labels[:3]), "columns": self.kind}

    @property
    def kind(self) -> str:
        """What the labels name, for messages."""
        return "/".join(self.names)

    @classmethod
    def of_size(cls, n: int, *names: str) -> Vocabulary:
        """The labels 0 … n−1, stored as a range."""
        return cls(range(n), names)

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, code: int) -> Label:
        return self.labels[code]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Vocabulary):
            return NotImplemented
        return self is other or (
            len(self) == len(other)
            and not self._crosses(other.names)
            and all(a == b for a, b in zip(self.labels, other.labels))
        )

    def __hash__(self) -> int:
        return hash((len(self.labels), self.labels[0] if self.labels else None))

    @cached_property
    def index(self) -> Mapping[Label, int]:
        """Code of each label."""
        return {label: code for code, label in enumerate(self.labels)}

    def find(self, label: Label) -> int | None:
        """The code of a label, None if it is unknown; true is not 1."""
        code = self.index.get(_plain(label)) if _hashable(label) else None
        for part in label if isinstance(label, tuple) else (label,):
            check_exact(part, self.kind)
        return code if code is not None and _flags(label) == _flags(self[code]) else None

    def code(self, label: Label) -> int:
        """The code of one label."""
        code = self.find(label)
        if code is None:
            raise InputError(
                f"{self.kind} {label!r} is unknown: the {len(self)} known ones begin with "
                f"{some(self.labels[:3])}"
            )
        return code

    def _crosses(self, names: tuple[str, ...]) -> bool:
        """Whether a column of ours is among these names, in another place."""
        return any(name in self.names and self.names[k : k + 1] != (name,)
                   for k, name in enumerate(names))  # fmt: skip

    def named(self, names: tuple[str, ...]) -> Vocabulary:
        """The same labels in the same order, which span columns of these names.

        Where the names are ours in another order, so are the parts of each label; columns of other
        names are renamed in their places.
        """
        if self.names == names:
            return self
        if not self._crosses(names):
            return Vocabulary(self.labels, names)
        if sorted(names) != sorted(self.names):
            raise InputError(
                f"the columns {', '.join(self.names)} are not {', '.join(names)} in another "
                "order: give both tables the same columns"
            )
        places = [self.names.index(name) for name in names]
        parts = [tuple(label[k] for k in places) for label in self.labels]  # type: ignore[index]
        return Vocabulary(tuple(parts), names)

    def as_text_like(self, other: Vocabulary) -> Vocabulary:
        """The same labels, numbers turned into text in the parts where `other` has text."""
        if not self.labels or not other.labels or _kind(self[0]) == _kind(other[0]):
            return self
        return Vocabulary(
            tuple(_as_text_like(label, other[0]) for label in self.labels), self.names
        )

    def codes(self, other: Vocabulary) -> np.ndarray:
        """Code here of each label of `other` [len(other)], −1 where it is not a label here."""
        index = self.named(other.names).index
        return np.array([index.get(label, -1) for label in other.labels], dtype=np.int32)

    def codes_in(self, other: Vocabulary) -> np.ndarray:
        """The code in `other` of each label here [len(self)]; every one must be known there."""
        return translate(self, np.arange(len(self)), other, f"{self.kind} of the log")


def vocabulary(labels: Vocabulary | Sequence[Label] | int, *names: str) -> Vocabulary:
    """Make a vocabulary from a size, a sequence of labels, or a vocabulary."""
    if isinstance(labels, Vocabulary):
        return labels
    if isinstance(labels, int | np.integer):
        return Vocabulary.of_size(positive(f"number of {'/'.join(names)}s", labels), *names)
    return Vocabulary(several(f"{'/'.join(names)}s", labels, "['a', 'b']"), names)


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


def translate(
    found: Vocabulary, codes: np.ndarray, vocabulary: Vocabulary, what: str
) -> np.ndarray:
    """Codes [N] ≥ 0 in another vocabulary, which must hold every label that occurs."""
    mapped = vocabulary.codes(found.as_text_like(vocabulary))
    occurs = np.zeros(len(found), dtype=bool)
    occurs[codes] = True
    unknown = [found[code] for code in np.flatnonzero(occurs & (mapped < 0)).tolist()]
    if unknown:
        raise InputError(
            f"{what} {some(unknown)} not among the {len(vocabulary)} labels given: "
            "add them or drop those rows"
        )
    return mapped[codes]


def same_kind(labels: Sequence[Label], name: str) -> None:
    """Text and numbers in one column could be neither sorted nor written."""
    if len(types := set(map(type, labels))) <= 1 and tuple not in types:
        return
    kinds = {_kind(label): label for label in labels}
    if len(kinds) > 1:
        raise InputError(
            f"{name} mixes labels like {some(kinds.values(), 2)}: make every label a string, "
            "or a number, or tuples alike"
        )


def _as_text_like(label: Label, example: Label) -> Label:
    if isinstance(label, tuple) and isinstance(example, tuple) and len(label) == len(example):
        return tuple(_as_text_like(part, other) for part, other in zip(label, example))
    return str(label) if isinstance(example, str) and isinstance(label, int) else label


def _spread(names: tuple[str, ...], columns: Sequence[Any]) -> Iterable[str]:
    return names if len(names) == len(columns) else [names[0]] * len(columns)


def label_parts(values: Any, name: str) -> list[Any]:
    """The parts of a column of labels: one per element of a tuple label."""
    if isinstance(values, list) and values and _is_arrow(values[0]):
        return values if len(values) > 1 else label_parts(values[0], name)
    if is_masked(values):
        return [part.tolist() for part in (values.T if values.ndim == 2 else [values])]
    if isinstance(values, np.ndarray) and (values.ndim == 2 or values.dtype.kind != "O"):
        return list(values.T) if values.ndim == 2 else [values]
    if _is_arrow(values):
        if not _is_nested(values):
            return [values]
        values = values.to_pylist()
    return _tuple_parts(list(values), name)


def _is_arrow(values: Any) -> bool:
    return type(values).__module__.startswith("pyarrow")


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
    whole = tuple(_checked(label, name) for label in labels.tolist())
    return whole, codes.reshape(-1).astype(np.int32)


def _to_arrow(column: Any, name: str) -> Any:
    """A column as an Arrow array, which knows missing values."""
    import pyarrow as pa

    if isinstance(column, np.ndarray) and column.ndim != 1:
        raise InputError(f"{name} has shape {column.shape}, expected one label per row")
    try:
        array = column if _is_arrow(column) else pa.array(column, from_pandas=True)
    except UnicodeError:
        raise InputError(f"{name} holds text that is not valid Unicode: fix the column") from None
    except OverflowError:
        raise InputError(
            f"{name} holds a whole number beyond 64 bits: turn the column into text"
        ) from None
    except (pa.ArrowException, TypeError, ValueError):
        raise InputError(f"{name} mixes types: make every label a string, or a number") from None
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
    values = [_checked(value, name) for value in array.dictionary.to_pylist()]
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


def _checked(value: Any, name: str) -> Label:
    if isinstance(value, float | Decimal):
        return None if value != value else _whole(value, name)
    if isinstance(value, int) and not isinstance(value, bool) and not LEAST <= value <= LARGEST:
        raise InputError(f"{name} holds {value}, beyond 64 bits: turn the column into text")
    return value if isinstance(value, str | int | bool) or value is None else str(value)


def _whole(value: Any, name: str) -> int:
    if not math.isfinite(value) or value != int(value):
        raise InputError(
            f"{name} holds the fraction {value:g}: labels are strings or whole numbers; "
            "bin the column or turn it into text"
        )
    check_exact(float(value), name)
    return int(value)


def check_exact(value: Any, name: str) -> None:
    """Refuse a float that several whole numbers round to: it names none of them."""
    if isinstance(value, float | np.floating) and EXACT_FLOATS <= abs(float(value)) < math.inf:
        raise InputError(
            f"{name} holds {value:.0f}, too large for a float to tell from its neighbours: "
            "turn the column into text"
        )


def _kind(label: Label) -> Any:
    if isinstance(label, tuple):
        return tuple(_kind(part) for part in label)
    return "number" if isinstance(label, int | float) else type(label).__name__


def _hashable(label: Label) -> bool:
    try:
        hash(label)
    except TypeError:
        return False
    return True


def _flags(label: Label) -> Any:
    """Which parts of a label are true or false, which Python takes for 1 and 0."""
    if isinstance(label, tuple):
        return tuple(_flags(part) for part in label)
    return isinstance(label, bool | np.bool_)


def _named_by(label: Label, name: str) -> Label:
    """A label given by the caller: a float must be a whole number."""
    if isinstance(label, tuple):
        return tuple(_named_by(part, name) for part in label)
    if label is None or isinstance(label, complex):
        raise InputError(
            f"{name} {label!r} is not a label: labels are text, whole numbers, or tuples of these"
        )
    return _whole(label, name) if isinstance(label, float) else label


def _plain(label: Label) -> Label:
    """A label without NumPy scalar types, so that it hashes and prints as the user wrote it."""
    if isinstance(label, tuple):
        return tuple(_plain(part) for part in label)
    return label.item() if isinstance(label, np.generic) else label
