"""Sums of X over the visits that a window counts, of many changes and windows at once.

A window counts the first m visits of a state in an episode that come before step T. Both only cut
the visits of an episode short: what is counted is always the first k of them, so that one running
sum over an episode's visits serves all windows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from spibb.episodes.visits import Visits

FOREVER = np.iinfo(np.int64).max
EARLIEST = np.array([0.2, 0.4, 0.6, 0.8])
"""Quantiles of the steps of a state's visits that are tried as the last step T."""
AT_ONCE = 1 << 13
"""Passages that are summed at once, so that a core's cache holds them."""


class Departing(NamedTuple):
    """Changes: the `state` [C], what the ratio less 1 is after each action [C, A], V̂ [C].

    With `played` [C, A] the ratio is this over each row's own probability instead.
    """

    state: np.ndarray
    ratio: np.ndarray
    centre: np.ndarray
    played: np.ndarray | None

    def among(self, which: slice) -> Departing:
        """Some of them."""
        played = None if self.played is None else self.played[which]
        return Departing(self.state[which], self.ratio[which], self.centre[which], played)


class Sums(NamedTuple):
    """Of each change and window [C, W]: ΣX² of the likely X, and what the worst rests cost ΣX."""

    squares: np.ndarray
    hurt: np.ndarray


@dataclass(frozen=True, eq=False)
class Passages:
    """The first visits of each state in each episode, at most `depth` of a passage [J].

    `counted` are the numbers m of visits that windows count, at most `depth`.
    """

    visits: Visits
    counted: tuple[int, ...]

    @cached_property
    def first(self) -> np.ndarray:
        """The row of each passage's first visit [J]."""
        return np.flatnonzero(self.visits.rank == 0)

    @cached_property
    def starts(self) -> np.ndarray:
        """Where the passages of each state begin [S + 1]."""
        return np.searchsorted(self.first, self.visits.starts)

    @cached_property
    def depth(self) -> int:
        """How many visits of a passage matter at most."""
        return int(min(self._length.max(initial=1), max(self.counted)))

    @cached_property
    def _length(self) -> np.ndarray:
        return np.diff(np.append(self.first, len(self.visits.rank)))

    @cached_property
    def _rows(self) -> np.ndarray:
        """The rows of each passage [J, depth]; its last one where it has no more."""
        last = self.first + self._length - 1
        return np.minimum(self.first[:, None] + np.arange(self.depth), last[:, None])

    @cached_property
    def lasts(self) -> np.ndarray:
        """The last steps T that are tried in each state [S, 5], in ascending order."""
        n, steps = np.diff(self.visits.starts), self.visits.step
        state = np.repeat(np.arange(len(n)), n)
        width = int(steps.max(initial=0)) + 1
        steps = np.sort(state * width + steps) % width
        place = np.maximum(n - 1, 0)[:, None] * EARLIEST
        below = np.floor(place).astype(np.int64)
        above = np.minimum(below + 1, np.maximum(n - 1, 0)[:, None])
        begin = np.minimum(self.visits.starts[:-1], max(len(steps) - 1, 0))[:, None]
        low, high, share = steps[begin + below], steps[begin + above], place - below
        between = np.where(
            share >= 0.5, high - (high - low) * (1 - share), low + (high - low) * share
        )
        forever = np.full((len(n), 1), FOREVER)
        return np.concatenate([between.astype(np.int64), forever], axis=1)

    @cached_property
    def k(self) -> np.ndarray:
        """How many visits of each passage each window counts [W, J]; windows by T, then by m."""
        state = np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))
        length, step = np.minimum(self._length, self.depth), self.visits.step[self._rows]
        within = [
            np.minimum((step <= last[state][:, None]).sum(axis=1), length)
            for last in self.lasts.T[:-1]
        ]
        return np.stack([np.minimum(n, m) for n in (*within, length) for m in self.counted])

    @cached_property
    def numbers(self) -> tuple[np.ndarray, np.ndarray]:
        """How many episodes and how many visits each window counts, by state: two of [W, S]."""
        ends = np.zeros((len(self.k), len(self.first) + 1), dtype=np.int64)
        found = []
        for each in (self.k > 0, self.k):
            np.cumsum(each, axis=1, out=ends[:, 1:])
            found.append(np.diff(ends[:, self.starts], axis=1))
        return found[0], found[1]

    @cached_property
    def _cut(self) -> tuple[np.ndarray, np.ndarray]:
        """The passages of cut episodes [J'], by state and rest, and where each state's begin."""
        cut = np.flatnonzero(self.visits.unseen[self.first] > 0)
        state = np.searchsorted(self.starts, cut, side="right") - 1
        order = np.lexsort((self.visits.rest[self.first[cut]], state))
        return cut[order], np.searchsorted(state[order], np.arange(len(self.starts)))

    def sums(self, changes: Departing, likely: Visits, windows: slice) -> Sums:
        """ΣX² of `likely` returns and the harm of the worst rests, of each change and window."""
        width = len(range(len(self.k))[windows])
        found = Sums(*(np.zeros((len(changes.state), width)) for _ in Sums._fields))
        for some in self._portions(changes.state):
            part = changes.among(some)
            found.squares[some] = self._squares(part, likely, windows)
            found.hurt[some] = self._hurt(part, likely, windows)
        return found

    def _portions(self, state: np.ndarray) -> Iterator[slice]:
        """Slices of changes that have few passages together."""
        ends, begin = np.cumsum(np.diff(self.starts)[state]), 0
        while begin < len(state):
            done = ends[begin - 1] if begin else 0
            end = max(begin + 1, int(np.searchsorted(ends, done + AT_ONCE, side="right")))
            yield slice(begin, end)
            begin = end

    def _squares(self, changes: Departing, likely: Visits, windows: slice) -> np.ndarray:
        passage, change, begin = _ranges(self.starts, changes.state)
        x = self._x(changes, change, passage, [likely.least], windows)[0]
        return np.add.reduceat(x * x, begin, axis=1).T

    def _hurt(self, changes: Departing, likely: Visits, windows: slice) -> np.ndarray:
        """Σ(likely X − X with the worst rests): each rest is at one of its ends for all."""
        cut, starts = self._cut
        place, change, begin = _ranges(starts, changes.state)
        found = np.zeros((len(changes.state), len(range(len(self.k))[windows])))
        if not len(place):
            return found
        passage = cut[place]
        ends = [likely.least, self.visits.least, self.visits.most]
        x, low, high = self._x(changes, change, passage, ends, windows)
        rest = self.visits.rest[self.first[passage]]
        new = np.flatnonzero(np.diff(rest, prepend=-1) | np.diff(change, prepend=-1))
        better = np.minimum(np.add.reduceat(high - low, new, axis=1), 0.0)
        affected = np.flatnonzero(np.diff(np.append(begin, len(place))))
        total = np.add.reduceat(x - low, begin[affected], axis=1)
        group = np.searchsorted(new, begin[affected])
        found[affected] = (total - np.add.reduceat(better, group, axis=1)).T
        return found

    def _x(
        self, changes: Departing, change: np.ndarray, passage: np.ndarray,
        rests: list[np.ndarray], windows: slice,
    ) -> list[np.ndarray]:  # fmt: skip
        """X of passages [W, J'] of a change each, with every one of some guesses of the rests."""
        visits, rows = self.visits, self._rows[passage]
        action, lane = visits.action[rows], change[:, None]
        departed = changes.ratio[lane, action]
        if changes.played is not None:
            assert visits.made is not None  # the log records it
            departed = changes.played[lane, action] / visits.made[rows] - 1
        place = np.arange(len(passage)) * (self.depth + 1) + self.k[windows, passage]
        recorded, lacks, which = visits.recorded[rows], visits.unseen[rows], visits.rest[rows]
        running, found = np.zeros((len(passage), self.depth + 1)), []
        for rest in rests:
            g = recorded + lacks * rest[which]
            np.cumsum(departed * (g - changes.centre[lane]), axis=1, out=running[:, 1:])
            found.append(running.reshape(-1)[place])
        return found


def _ranges(starts: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The members [N] of ranges starts[w] … starts[w + 1], whose they are, where each begins."""
    size = starts[which + 1] - starts[which]
    begin = np.cumsum(size) - size
    owner = np.repeat(np.arange(len(which)), size)
    return np.arange(len(owner)) + (starts[which] - begin)[owner], owner, begin
