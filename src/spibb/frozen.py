"""Frozen: arrays that cannot be written to, in the original, in copies and after pickling."""

from __future__ import annotations

from typing import Any

import numpy as np

from spibb.showing import Shown


class Frozen(Shown):
    """Base of dataclasses whose arrays are read-only.

    NumPy forgets the mark when an array is pickled or deeply copied; an object remembers it. A
    subclass that has a `__post_init__` of its own calls this one, or `freeze`.
    """

    def __post_init__(self) -> None:
        self.freeze()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.freeze()

    def freeze(self) -> None:
        """Make every array that this object holds read-only."""
        for value in self.__dict__.values():
            _freeze(value)


def _freeze(value: Any) -> None:
    if isinstance(value, np.ndarray):
        value.flags.writeable = False
    elif isinstance(value, tuple):
        for part in value:
            _freeze(part)
