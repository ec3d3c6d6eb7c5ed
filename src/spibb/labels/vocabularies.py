"""Vocabulary: the labels of states or actions, in order, and the codes 0, 1, 2, … behind them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from spibb.checks import iterable, positive, several, shown, some
from spibb.errors import InputError
from spibb.labels.kinds import (
    Label,
    check_exact,
    disguise,
    given_label,
    in_form_of,
    is_hashable,
    kind,
    plain,
    same_kind,
    sorted_places,
)
from spibb.showing import Shown

MOST = 2**31 - 1
"""Labels that codes of 32 bits tell apart."""


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
        object.__setattr__(self, "names", column_names("names", self.names))
        if isinstance(self.labels, range):
            return
        labels = self.labels
        if isinstance(labels, str) or not iterable(labels):
            raise InputError(
                f"labels is {shown(labels)}, expected a list of labels or a range: write "
                'Vocabulary(["mild", "severe"]) or Vocabulary(range(3))'
            )
        labels = tuple(given_label(plain(label), self.kind) for label in self.labels)
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
            bad = next(label for label in labels if not is_hashable(label))
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

    @cached_property
    def in_order(self) -> np.ndarray:
        """The codes in the order of their labels, sorted, whatever order these are given in.

        >>> spibb.Vocabulary(["wait", "refer", "treat"]).in_order
        array([1, 2, 0])
        """
        return np.array(sorted_places(self.labels), dtype=np.int64)

    def find(self, label: Label) -> int | None:
        """The code of a label, None if it is unknown; true is not 1, and neither is 1 + 0j."""
        code = self.index.get(plain(label)) if is_hashable(label) else None
        for part in label if isinstance(label, tuple) else (label,):
            check_exact(part, self.kind)
        return code if code is not None and disguise(label) == disguise(self[code]) else None

    def code(self, label: Label) -> int:
        """The code of one label."""
        code = self.find(label)
        if code is None:
            raise InputError(f"{self.kind} {shown(label)} is unknown: {self._known()}")
        return code

    def _known(self) -> str:
        """The labels, or the first of many, in words."""
        first = some(self.labels[:3])
        if len(self) <= 3:
            return (
                f"choose {'one of ' if len(self) > 1 else ''}{first}" if first else "none is known"
            )
        return f"the {len(self)} known ones begin with {first}"

    def _crosses(self, names: tuple[str, ...]) -> bool:
        """Whether a column of ours is among these names, in another place."""
        return any(name in self.names and self.names[k : k + 1] != (name,)
                   for k, name in enumerate(names))  # fmt: skip

    def named(self, names: tuple[str, ...]) -> Vocabulary:
        """This vocabulary with other names for the columns that its labels span.

        Where the names are ours in another order, so are the parts of each label; columns of other
        names are renamed in their places.
        """
        names = column_names("names", names)
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

    def in_form_of(self, other: Vocabulary) -> Vocabulary:
        """These labels with numbers turned into text in the parts where `other` has text.

        True and false become 1 and 0 where it has numbers.
        """
        if not self.labels or not other.labels or kind(self[0]) == kind(other[0]):
            return self
        return Vocabulary(tuple(in_form_of(label, other[0]) for label in self.labels), self.names)

    def codes(self, other: Vocabulary) -> np.ndarray:
        """Code here of each label of `other` [len(other)], −1 where it is not a label here."""
        index = self.named(other.names).index
        return np.array([index.get(label, -1) for label in other.labels], dtype=np.int32)

    def codes_in(self, other: Vocabulary) -> np.ndarray:
        """The code in `other` of each label here [len(self)]; every one must be known there."""
        return translate(self, np.arange(len(self)), other, f"{self.kind} of the log")


def column_names(name: str, given: Any) -> tuple[str, ...]:
    """The names of the columns that a label spans, checked."""
    found = several(name, given, "('state',)")
    if not all(isinstance(column, str) for column in found):
        raise InputError(f"{name} is {shown(given)}, expected names of columns: write ('state',)")
    return found


Labels = Vocabulary | Sequence[Label]
"""Labels in the order of their codes."""


def vocabulary(
    labels: Vocabulary | Sequence[Label] | int, *names: str, argument: str = ""
) -> Vocabulary:
    """Make a vocabulary from a size, a sequence of labels, or a vocabulary.

    Messages call it `argument`, or by the names of its columns.
    """
    if isinstance(labels, Vocabulary):
        return labels
    if isinstance(labels, int | np.integer):
        number = argument or f"number of {'/'.join(names)}s"
        if positive(number, labels) > MOST:
            raise InputError(f"{number} is {labels}, expected at most {MOST:,}: codes have 32 bits")
        return Vocabulary.of_size(int(labels), *names)
    return Vocabulary(several(argument or f"{'/'.join(names)}s", labels, "['a', 'b']"), names)


def translate(
    found: Vocabulary, codes: np.ndarray, vocabulary: Vocabulary, what: str
) -> np.ndarray:
    """Codes [N] ≥ 0 in another vocabulary, which must hold every label that occurs."""
    mapped = vocabulary.codes(found.in_form_of(vocabulary))
    occurs = np.zeros(len(found), dtype=bool)
    occurs[codes] = True
    unknown = [found[code] for code in np.flatnonzero(occurs & (mapped < 0)).tolist()]
    if unknown:
        raise InputError(
            f"{what} {some(unknown)} not among the {len(vocabulary)} labels given: "
            "add them or drop those rows"
        )
    return mapped[codes]
