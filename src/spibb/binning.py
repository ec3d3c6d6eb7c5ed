"""Bins: a numeric feature cut into intervals, so that it can be part of a state."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from spibb.checks import as_float, mapping, several, shown
from spibb.errors import InputError

Request = int | Sequence[float]
"""What a user asks for: a number of quantile bins, or the edges."""
MOST_BINS = 1000
"""More quantiles than this are a mistake rather than states."""


@dataclass(frozen=True)
class Bins:
    """The intervals that `edges` cut a numeric column into.

    The first and the last are open. They are named as they are written: ``(-inf, 18)``,
    ``[18, 40)``, ``[40, inf)``.

    Parameters:
        edges: increasing finite numbers, at least one.

    >>> ages = spibb.Bins((18, 40))
    >>> ages.labels
    ('(-inf, 18)', '[18, 40)', '[40, inf)')
    >>> ages.label(31)
    '[18, 40)'
    """

    edges: tuple[float, ...]

    def __post_init__(self) -> None:
        edges = tuple(as_float(edge) for edge in several("bin edges", self.edges, "(18, 40, 65)"))
        if not all(map(math.isfinite, edges)) or sorted(set(edges)) != list(edges):
            raise InputError(
                f"bin edges {list(edges)} are not increasing finite numbers: write them in order, "
                "each once"
            )
        object.__setattr__(self, "edges", edges)

    @property
    def edge_names(self) -> tuple[str, ...]:
        """The edges as they are written, with all their digits."""
        return tuple(f"{edge:.0f}" if edge.is_integer() else repr(edge) for edge in self.edges)

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the intervals, one more than there are edges."""
        names = self.edge_names
        inner = (f"[{low}, {high})" for low, high in pairwise(names))
        return (f"(-inf, {names[0]})", *inner, f"[{names[-1]}, inf)")

    def label(self, value: float) -> str | None:
        """The interval that a number lies in; None for NaN."""
        return None if value != value else self.labels[bisect_right(self.edges, value)]

    def sql(self, number: str) -> str:
        """The label of a number, as an SQL expression over an expression of type double.

        NaN is what neither a difference nor a comparison with infinity finds: DuckDB folds other
        tests of it where a Parquet file's footer tells a range.
        """
        whens = [
            f"WHEN {number} < CAST('{edge!r}' AS DOUBLE) THEN '{label}'"
            for edge, label in zip(self.edges, self.labels)
        ]
        inside = f"CASE {' '.join(whens)} ELSE '{self.labels[-1]}' END"
        return (
            f"CASE WHEN {number} - {number} = 0 THEN {inside} "
            f"WHEN {number} = CAST('inf' AS DOUBLE) THEN '{self.labels[-1]}' "
            f"WHEN {number} = CAST('-inf' AS DOUBLE) THEN '{self.labels[0]}' END"
        )


def bins_at(edges: Iterable[float], column: str) -> Bins:
    """Bins at edges that are given for a column."""
    try:
        return Bins(edges)  # type: ignore[arg-type]  # made a tuple there
    except InputError as error:
        raise InputError(f"bins of {column!r}: {error}") from None


def quantile_bins(values: Iterable[float], column: str) -> Bins:
    """Bins between quantiles; equal quantiles are one edge."""
    edges = sorted({float(value) for value in values})
    if not edges:
        raise InputError(
            f"column {column!r} has no numbers to bin: leave it out of the state, or "
            "read decimal commas with --decimal ,"
        )
    return Bins(tuple(edges))


def parse_bins(texts: Iterable[str]) -> dict[str, Request]:
    """Read ``age:10`` (ten quantile bins) and ``age:18,40,65`` or ``age:18,`` (edges)."""
    found: dict[str, Request] = {}
    for text in texts:
        column, colon, rest = text.rpartition(":")
        try:
            if not colon or not column:
                raise ValueError
            if "," in rest:
                found[column] = [float(part) for part in rest.split(",") if part.strip()]
            else:
                found[column] = int(rest)
        except ValueError:
            raise InputError(
                f"--bin {text!r} is not understood: write age:10 for ten quantiles, or "
                "age:18,40,65 for edges"
            ) from None
    return found


def check_requests(bins: Mapping[str, Request | Bins], columns: Iterable[str]) -> None:
    """Bins are for columns of the state or the action, and there are at least two."""
    used = set(columns)
    for column, request in mapping("bins", bins, '{"age": 10, "dose": [0.5, 1]}').items():
        if column not in used:
            raise InputError(
                f"bins are given for {column!r}, which is not a column of the state or the action: "
                "add it to the state, or drop the bins"
            )
        if isinstance(request, int) and not 2 <= request <= MOST_BINS:
            raise InputError(
                f"bins of {column!r} are {request}, expected a number of quantiles in "
                f"[2, {MOST_BINS}]; a single edge is written {column}:{request},"
            )
        if isinstance(request, str) or not isinstance(request, int | Bins | Iterable):
            raise InputError(
                f"bins of {column!r} are {shown(request)}, expected a number of quantiles, or "
                "edges: write 10 or [18, 40, 65]"
            )
        if not isinstance(request, int | Bins):
            bins_at(request, column)
