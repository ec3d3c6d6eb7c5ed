"""Lower bounds on a policy's value, from its estimate."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spibb import checks
from spibb.bounds.means import bca_bound, bernstein_bound, betting_bound, student_t_bound
from spibb.errors import InputError
from spibb.ope.estimate import Estimate
from spibb.showing import Shown


@dataclass(frozen=True)
class LowerBound:
    """ρ(π) ≥ value with probability 1 − δ; `refusal` says why there is no such bound.

    `value` is NaN where the bound is refused.

    >>> report = spibb.off_policy_estimates(log, baseline, baseline, rng=np.random.default_rng(0))
    >>> ", ".join(bound.name for bound in report.rows[0].bounds)
    'bernstein, betting, student-t, bca'
    """

    name: str
    value: float
    delta: float
    refusal: str | None = None


@dataclass(frozen=True, eq=False)
class BoundedEstimate(Shown):
    """An estimate with its lower bounds.

    >>> report = spibb.off_policy_estimates(log, baseline, baseline, rng=np.random.default_rng(0))
    >>> report.rows[0].estimate.name, len(report.rows[0].bounds)
    ('is', 4)
    """

    estimate: Estimate
    bounds: tuple[LowerBound, ...]

    def _facts(self) -> Mapping[str, Any]:
        """The estimate, and each of its bounds."""
        mine = {"estimator": self.estimate.name, "value": self.estimate.value}
        return mine | {bound.name.replace("-", "_"): bound.value for bound in self.bounds}


def _limit(estimate: Estimate) -> float:
    """The least a contribution can be; exact bounds need it."""
    if estimate.limit == -math.inf:
        raise InputError(
            f"no exact bound ({', '.join(EXACT)}) of {estimate.name!r}: {estimate.no_limit}; "
            f"{estimate.remedy}"
        )
    return estimate.limit


_BOUNDS: Mapping[str, Callable[[Estimate, float, np.random.Generator], float]] = {
    "bernstein": lambda estimate, delta, _: max(
        bernstein_bound(estimate.limited, delta, lowest=_limit(estimate)), estimate.limit
    ),
    "betting": lambda estimate, delta, _: betting_bound(
        estimate.limited, delta, lowest=_limit(estimate)
    ),
    "student-t": lambda estimate, delta, _: student_t_bound(estimate.contributions, delta),
    "bca": lambda estimate, delta, rng: bca_bound(estimate.contributions, delta, rng=rng),
}
BOUNDS = tuple(_BOUNDS)
EXACT = ("bernstein", "betting")
"""Bounds that hold in samples of any size, given a limit that no contribution can be below."""


def lower_bound(
    estimate: Estimate,
    bound: str,
    delta: float,
    *,
    rng: np.random.Generator,
    despite_warning: bool = False,
) -> LowerBound:
    """A lower bound on ρ(π) that fails with probability `delta`: 0.9 means 10 % confidence.

    Only "bca" draws from `rng`. Bounds that are not exact trust the spread of the episodes seen,
    which says nothing of an estimate that is not to be relied on: it holds what a few episodes, or
    the short ones, happened to earn. They are refused then, unless the caller takes them
    `despite_warning`.
    """
    checks.choice("bound", bound, BOUNDS)
    if estimate.warning and bound not in EXACT and not despite_warning:
        raise InputError(estimate.warning)
    return LowerBound(bound, _BOUNDS[bound](estimate, delta, rng), delta)


def with_bounds(
    estimate: Estimate, names: Sequence[str], delta: float, rng: np.random.Generator
) -> BoundedEstimate:
    """Bounds of an estimate; one that does not apply says why instead of stopping the rest."""
    bounds = []
    for name in names:
        try:
            found = lower_bound(estimate, name, delta, rng=rng)
        except InputError as error:
            found = LowerBound(name, math.nan, delta, refusal=str(error))
        bounds.append(found)
    return BoundedEstimate(estimate, tuple(bounds))
