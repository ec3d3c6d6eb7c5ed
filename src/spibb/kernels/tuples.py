"""What kernels take and give, by name: one order of the parts everywhere."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


def _in_short(self: Any) -> str:
    """A repr with arrays by type and shape."""
    parts = (
        f"{value.dtype}{list(value.shape)}" if isinstance(value, np.ndarray) else repr(value)
        for value in self
    )
    named = ", ".join(f"{name}={part}" for name, part in zip(self._fields, parts))
    return f"{type(self).__name__}({named})"


class Rows(NamedTuple):
    """Sparse rows of P: pair p = x·A + a has the entries indptr[p] … indptr[p + 1] − 1."""

    indptr: np.ndarray
    """int64 [P + 1]"""
    successors: np.ndarray
    """int32 [K]"""
    probs: np.ndarray
    """[K]; a row that sums to less than one ends with the rest."""

    def __repr__(self) -> str:
        return _in_short(self)


class Box(NamedTuple):
    """The policies allowed: lower ≤ π ≤ upper [S, A], and one of them, `start` [S, A].

    Where no allowed row is better than `start`'s in the model, `start`'s is kept.
    """

    lower: np.ndarray
    upper: np.ndarray
    start: np.ndarray

    def __repr__(self) -> str:
        return _in_short(self)


class Model(NamedTuple):
    """M̂: visits N and mean rewards R̂, 0 where there are none [S, A]; P̂; γ."""

    counts: np.ndarray
    rewards: np.ndarray
    rows: Rows
    discount: float

    def __repr__(self) -> str:
        return _in_short(self)


class Task(NamedTuple):
    """A known MDP: what a policy is worth is measured in it."""

    rows: Rows
    rewards: np.ndarray
    discount: float
    initial: np.ndarray


class Ambiguous(NamedTuple):
    """The models around P̂: rewards [S, A] that are already the worst of their interval, and the
    radius e [S, A] of the L1 ball around each row."""

    rows: Rows
    rewards: np.ndarray
    radius: np.ndarray
    discount: float


class Codebook(NamedTuple):
    """What each outcome code means [C]: (x, a, x', r) and the pair x·A + a; x' is −1 at an end."""

    state: np.ndarray
    action: np.ndarray
    successor: np.ndarray
    reward: np.ndarray
    pair: np.ndarray

    def __repr__(self) -> str:
        return _in_short(self)


class Episodes(NamedTuple):
    """Episodes one after the other, as outcome codes [N], and their lengths [E]."""

    codes: np.ndarray
    lengths: np.ndarray

    def __repr__(self) -> str:
        return _in_short(self)


class Record(NamedTuple):
    """The episodes themselves, and with which probability their actions were taken, per code [C].

    For off-policy estimates.
    """

    episodes: Episodes
    codebook: Codebook
    propensity: np.ndarray

    def __repr__(self) -> str:
        return _in_short(self)


class Data(NamedTuple):
    """All that an algorithm may look at: what a log says, and the baseline [S, A].

    `initial` [S] is the distribution of first states; rewards lie between `r_low` and `r_high`;
    `v_max` bounds returns. `record` is empty where only counts are at hand.
    """

    model: Model
    baseline: np.ndarray
    initial: np.ndarray
    r_low: float
    r_high: float
    v_max: float
    record: Record

    def __repr__(self) -> str:
        return _in_short(self)
