"""What may be a label: text, a whole number that is exact, or a tuple of these."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from spibb.checks import shown, some
from spibb.errors import InputError

Label = Any

EXACT_FLOATS = 2.0**53
"""Below this a float names one whole number; above, several round to it."""
LEAST, LARGEST = -(2**63), 2**63 - 1
"""Whole numbers that files and frames can keep."""


def cell_label(value: Any, name: str) -> Label:
    """A label in a cell of a column: None where it is missing, whole where it is a number."""
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
            f"{name} holds {value:.0f}, too large for a float to be exact: turn the column into "
            "text"
        )


def same_kind(labels: Sequence[Label], name: str) -> None:
    """Text and numbers in one column could be neither sorted nor written; true is not 1."""
    if len(types := set(map(type, labels))) <= 1 and tuple not in types:
        return
    kinds = {kind(label): label for label in labels}
    if len(kinds) > 1:
        raise InputError(
            f"{name} mixes labels like {some(kinds.values(), 2)}: make every label a string, "
            "or every label a number, or all of them tuples of one form"
        )


def sorted_places(labels: Sequence[Label]) -> list[int]:
    """The places of labels in the order in which files give them back: sorted.

    Labels that cannot be compared, which no file keeps, stay in the order given.
    """
    try:
        return sorted(range(len(labels)), key=labels.__getitem__)
    except TypeError:
        return list(range(len(labels)))


def in_form_of(label: Label, example: Label) -> Label:
    """A label, its numbers as text where the example has text, its flags as numbers likewise."""
    if isinstance(label, tuple) and isinstance(example, tuple) and len(label) == len(example):
        return tuple(in_form_of(part, other) for part, other in zip(label, example))
    if isinstance(label, bool) and type(example) is int:
        return int(label)
    return str(label) if isinstance(example, str) and isinstance(label, int) else label


def kind(label: Label) -> Any:
    """The kinds of a label's parts: numbers, text, true and false, or something else."""
    if isinstance(label, tuple):
        return tuple(kind(part) for part in label)
    if isinstance(label, bool):
        return "flag"
    return "number" if isinstance(label, int | float) else type(label).__name__


def is_hashable(label: Label) -> bool:
    """Whether a label can be looked up; a list cannot."""
    try:
        hash(label)
    except TypeError:
        return False
    return True


def disguise(label: Label) -> Any:
    """Which parts of a label are true, false or complex, which Python takes for whole numbers."""
    if isinstance(label, tuple):
        return tuple(disguise(part) for part in label)
    if isinstance(label, complex | np.complexfloating):
        return "complex"
    return "flag" if isinstance(label, bool | np.bool_) else None


def given_label(label: Label, name: str) -> Label:
    """A label given by the caller: a float must be a whole number."""
    if isinstance(label, tuple):
        return tuple(given_label(part, name) for part in label)
    if isinstance(label, str | int):
        return label
    nameless = repr(label) == object.__repr__(label)  # such as object(): no two are equal
    if label is None or isinstance(label, complex) or nameless:
        raise InputError(
            f"{name} {shown(label)} is not a label: labels are text, whole numbers, or tuples of "
            "these"
        )
    return _whole(label, name) if isinstance(label, float) else label


def plain(label: Label) -> Label:
    """A label without NumPy scalar types, so that it hashes and prints as the user wrote it."""
    if isinstance(label, tuple):
        return tuple(plain(part) for part in label)
    return label.item() if isinstance(label, np.generic) else label
