"""Pseudo-counts: how much evidence a log of vector states holds for each action at any state.

>>> from spibb.pseudocounts import DistanceCounts
>>> counts = DistanceCounts(np.array([[0.0], [0.1], [1.0]]), np.array([0, 0, 1]), 2, radius=0.2)
>>> counts(np.array([[0.0]])).round(2).tolist()  # two similar decisions for action 0
[[1.5, 0.0]]
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from spibb import checks
from spibb.errors import InputError
from spibb.frozen import Frozen
from spibb.kernels import pseudocounts as kernel

RADIUS = 0.2
"""Where the similarity of two helicopter states ends; the paper omits it."""
SAMPLE = 2000
"""Logged states whose neighbours are looked for when a radius is chosen."""


TREE_UP_TO = 20_000
"""Logged states up to which counting by a tree beats compiling the kernel."""
FAR = 1e100
"""Deviations beyond any radius: farther states count as if they were here, as squares overflow."""
PAIRS = 4_000_000
"""Pairs of query and logged state that a tree may find at once."""


class _Points(NamedTuple):
    """Logged states in radii around their mean [D, N], sorted by action; starts of actions."""

    points: np.ndarray
    starts: np.ndarray
    mean: np.ndarray


@dataclass(frozen=True, eq=False)
class DistanceCounts(Frozen):
    """The heuristic of section 3.4: a sum of similarities to the logged pairs of the same action.

    Ñ(x, a) = Σ_{i: a_i = a} max(0, 1 − ‖x − x_i‖₂ / radius) for states [N, d] and actions [N].

    Deviation: the paper prints radius 1; its experiments used 0.2 (and raw features).

    Exact for any radius, dimension and number of actions: what `kernels.pseudocounts` leaves out
    has similarity 0, and single precision errs by 1e-6 of the count (or of 1 if that is larger).
    Beside the result [M, A] it needs memory for a few copies of the log.
    `threads` workers share large sets of queries; their number does not change the result.
    """

    states: np.ndarray
    actions: np.ndarray
    n_actions: int
    radius: float = RADIUS
    threads: int = 1

    def __post_init__(self) -> None:
        checks.number("radius", self.radius, 0, np.inf, "()")
        checks.positive_field(self, "threads")
        _check_log(self)

    def __call__(self, queries: np.ndarray) -> np.ndarray:
        """Pseudo-counts [M, A] at states [M, d]."""
        queries = _state_rows("queries", queries, self.states.shape[1])
        counts = np.zeros((len(queries), self.n_actions))
        if counts.size and len(self.states):
            rows, order = self._in_radii(queries, self._index.mean), np.arange(len(queries))
            chunks = kernel.make_chunks(rows, order)
            workers = min(self.threads, len(chunks) - 1)
            arguments = self._index.points, self._index.starts, rows, order, chunks, counts
            if workers > 1:
                kernel.count_parallel(*arguments, workers)
            else:
                kernel.count(*arguments)
        return counts

    @cached_property
    def _index(self) -> _Points:
        mean = self.states.mean(axis=0)
        order = np.argsort(self.actions, kind="stable")
        starts = np.searchsorted(self.actions[order], np.arange(self.n_actions + 1))
        points = np.ascontiguousarray(self._in_radii(self.states[order], mean).T)
        return _Points(points, starts, mean)

    def _in_radii(self, rows: np.ndarray, mean: np.ndarray) -> np.ndarray:
        """(rows − mean) / radius, filled up with zeros to a multiple of four columns."""
        n_dims = rows.shape[1]
        filled = np.zeros((len(rows), -(-n_dims // 4) * 4))
        with np.errstate(over="ignore"):
            filled[:, :n_dims] = (rows - mean) / self.radius
        if not np.isfinite(filled).all():
            raise InputError(
                f"radius is {self.radius!r}, too small for states as large as "
                f"{np.abs(rows).max():g}: choose a larger radius or scale the states"
            )
        return filled


@dataclass(frozen=True, eq=False)
class TreeCounts(Frozen):
    """The counts of `DistanceCounts` by SciPy's k-d tree: nothing to compile, slower on large logs.

    On 10,000 states in four dimensions it takes some tenths of a second, and the kernel, once it is
    compiled, a tenth of that.
    """

    states: np.ndarray
    actions: np.ndarray
    n_actions: int
    radius: float

    def __post_init__(self) -> None:
        checks.number("radius", self.radius, 0, np.inf, "()")
        _check_log(self)

    def __call__(self, queries: np.ndarray) -> np.ndarray:
        """Pseudo-counts [M, A] at states [M, d]."""
        queries = _state_rows("queries", queries, self.states.shape[1])
        counts = np.zeros((len(queries), self.n_actions))
        size = int(np.clip(PAIRS // max(len(self.states), 1), 32, 4096))
        for first in range(0, len(queries), size) if len(self.states) else ():
            counts[first : first + size] = self._count(queries[first : first + size])
        return counts

    def _count(self, queries: np.ndarray) -> np.ndarray:
        from scipy.spatial import cKDTree

        near = self._tree.sparse_distance_matrix(
            cKDTree(queries), self.radius, output_type="ndarray"
        )
        place = near["j"] * self.n_actions + self.actions[near["i"]]
        similar = 1 - near["v"] / self.radius
        counts = np.bincount(place, similar, minlength=len(queries) * self.n_actions)
        return counts.reshape(len(queries), self.n_actions)

    @cached_property
    def _tree(self) -> Any:
        from scipy.spatial import cKDTree

        return cKDTree(self.states)


@dataclass(frozen=True, eq=False)
class NeighbourCounts(Frozen):
    """Distance counts whose scale comes from the log, where raw distances mean little.

    Features are standardised, z = (x − mean) / deviation over the logged states (a feature that
    never varies keeps its unit), and the radius is the median distance, in z, from a logged state
    to its k-th nearest other one, whatever their actions:
    Ñ(x, a) = Σ_{i: a_i = a} max(0, 1 − ‖z − z_i‖₂ / radius).

    A typical logged state thus has k others within reach, whose similarities sum to about
    k / (d + 1) over all actions. By default k is √N, rounded up: as the log grows, the reach
    shrinks and the counts grow. The median is over at most `SAMPLE` states, evenly spaced in the
    log; distances of 0 (repeated states) are left out, and if there are no others the radius is 1.
    Logs of up to `TREE_UP_TO` states are counted by `TreeCounts`, larger ones by `DistanceCounts`.
    """

    states: np.ndarray
    actions: np.ndarray
    n_actions: int
    k: int | None = None
    threads: int = 1

    def __post_init__(self) -> None:
        checks.positive_field(self, "threads")
        _check_log(self)
        if self.k is not None:
            checks.positive_field(self, "k")
        if not 0 < self.neighbours < len(self.states):
            raise InputError(
                f"k is {self.neighbours}, but the log holds {len(self.states)} states: "
                "choose a k below that number, or give more states"
            )

    def __call__(self, queries: np.ndarray) -> np.ndarray:
        """Pseudo-counts [M, A] at states [M, d]."""
        return self._counts(self._standardise(queries))

    @property
    def neighbours(self) -> int:
        """k, or √N rounded up where it was left open."""
        n = len(self.states)
        return min(math.ceil(math.sqrt(n)), n - 1) if self.k is None else self.k

    @property
    def radius(self) -> float:
        """The radius found, in standard deviations."""
        return self._counts.radius

    @cached_property
    def _scale(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and deviation of each feature."""
        mean, deviation = mean_and_deviation(self.states)
        constant = self.states.min(axis=0) == self.states.max(axis=0)
        return mean, np.where(constant | (deviation == 0), 1.0, deviation)

    def _standardise(self, rows: np.ndarray) -> np.ndarray:
        mean, deviation = self._scale
        with np.errstate(over="ignore"):
            z = (_state_rows("queries", rows, len(mean)) - mean) / deviation
        return np.clip(z, -FAR, FAR)

    @cached_property
    def _counts(self) -> DistanceCounts | TreeCounts:
        z = self._standardise(self.states)
        radius = median_distance(z, self.neighbours)
        return counts_within(z, self.actions, self.n_actions, radius, self.threads)


def mean_and_deviation(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of each column of rows [N, d], whatever their size.

    Columns are divided by powers of two, which rounds nothing, so that no square overflows.
    """
    exponent = np.frexp(np.abs(rows).max(axis=0, initial=0.0))[1]
    near_one = np.ldexp(rows, -exponent)
    return np.ldexp(near_one.mean(axis=0), exponent), np.ldexp(near_one.std(axis=0), exponent)


def counts_within(
    states: np.ndarray, actions: np.ndarray, n_actions: int, radius: float, threads: int = 1
) -> DistanceCounts | TreeCounts:
    """Distance counts, by the way that is fit for the size of the log."""
    if len(states) <= TREE_UP_TO:
        return TreeCounts(states, actions, n_actions, radius)
    return DistanceCounts(states, actions, n_actions, radius, threads)


def median_distance(z: np.ndarray, k: int) -> float:
    """Median of the positive distances from a state to its k-th nearest other one, else 1."""
    from scipy.spatial import cKDTree

    sample = z[np.linspace(0, len(z) - 1, min(SAMPLE, len(z))).astype(np.int64)]
    distance = cKDTree(z).query(sample, [k + 1])[0]  # the nearest is the state itself
    positive = distance[distance > 0]
    return float(np.median(positive)) if len(positive) else 1.0


def _check_log(counts: DistanceCounts | TreeCounts | NeighbourCounts) -> None:
    """Check the fields of a log and replace them by read-only copies."""
    states = _state_rows("states", counts.states).copy()
    actions = checks.action_codes(
        "actions",
        counts.actions,
        checks.positive("n_actions", counts.n_actions),
        "fix it or raise n_actions",
    )
    checks.same_length(states=states, actions=actions)
    object.__setattr__(counts, "states", states)
    object.__setattr__(counts, "actions", actions)
    counts.freeze()


def _state_rows(name: str, rows: np.ndarray, n_features: int | None = None) -> np.ndarray:
    """Check states [N, d]: numbers, finite, and as many features as expected."""
    try:
        array = np.asarray(rows, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} hold values that are not numbers: encode them first") from None
    if array.ndim != 2 or array.shape[1] == 0:
        raise InputError(
            f"{name} have shape {array.shape}, expected [N, d]: one row per state, "
            "one column per feature"
        )
    if n_features is not None and array.shape[1] != n_features:
        raise InputError(
            f"{name} have {array.shape[1]} features, the log's states have {n_features}: "
            "give the same features in the same order"
        )
    for k in range(array.shape[1]):
        checks.finite(array[:, k], f"{name}: feature {k}")
    return array
