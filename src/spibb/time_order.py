"""The order of episodes in time: by times where there are any, and else by their names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self, TypeVar

import numpy as np

from spibb.checks import some
from spibb.frozen import Frozen

_WHOLE = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"([0-9]+)")
_MONTH, _DAY = "(0[1-9]|1[0-2])", "(0[1-9]|[12][0-9]|3[01])"
_DATE = re.compile(f"[^0-9]*(19|20)[0-9]{{2}}([^0-9]+{_MONTH}|{_MONTH}{_DAY}[0-9]{{0,6}})(?![0-9])")


class HasEpisodes(Protocol):
    """A log, of which only the episodes matter here."""

    def episodes(self, which: np.ndarray) -> Self:
        """The log of some episodes, given by number, in that order."""


Kind = TypeVar("Kind", bound=HasEpisodes)


@dataclass(frozen=True, eq=False)
class TimeOrder(Frozen):
    """Numbers of the episodes [E] in the order of time, None for that of the log; and in words.

    `known` is false where the order is unknown.
    """

    places: np.ndarray | None
    how: str
    known: bool = True

    def of(self, log: Kind) -> Kind:
        """A log in this order, which says whether that is known."""
        moved: Any = log if self.places is None else log.episodes(self.places)
        found: Kind = moved if self.known else replace(moved, untimed=True)
        return found


def by_names(names: Sequence[str], how: str) -> TimeOrder:
    """By text: numbers by value, also within text of one form (p9, p10; 2026-01-31)."""
    if all(map(_WHOLE.fullmatch, names)):
        return TimeOrder(_sorted_by([int(name) for name in names]), how)
    if (places := _by_numbers_within(names)) is None:
        unclear = f"{how}, which is text ({some(names, 3)}) and may not be the order of time"
        return TimeOrder(None, unclear, known=False)
    return TimeOrder(places, f"{how}, by the numbers in it")


def _by_numbers_within(names: Sequence[str]) -> np.ndarray | None:
    """Numbers of names [E] by the numbers in them; None where they differ in anything else, or in
    several numbers of which the first may not count most, as in 31.01.2026."""
    parts = [_NUMBER.split(name) for name in names]
    if len({tuple(part[::2]) for part in parts}) > 1 or len(parts[0]) == 1:
        return None
    groups = list(zip(*(part[1::2] for part in parts)))
    if sum(len(set(group)) > 1 for group in groups) > 1 and not _begin_with_dates(names, groups):
        return None
    return _sorted_by([tuple(map(int, part[1::2])) for part in parts])


def _begin_with_dates(names: Sequence[str], groups: Sequence[Sequence[str]]) -> bool:
    """Whether year and month come first (2026-01, 20260131T0930), and all numbers are padded."""
    padded = all(len(set(map(len, group))) == 1 for group in groups)
    return padded and all(map(_DATE.match, names))


def _sorted_by(keys: Sequence[Any]) -> np.ndarray:
    """Places [E] in the order of the keys; equal ones stay as they are."""
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), np.int64)
