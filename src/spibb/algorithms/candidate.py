"""A candidate: one policy of a sweep, from which a log chooses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class OffPolicyValue:
    """An off-policy estimate of ρ(π) from the log that trained π, so it is optimistic."""

    value: float
    interval: tuple[float, float]
    effective_sample_size: float


@dataclass(frozen=True)
class Candidate:
    """One policy of the sweep.

    `value` is ρ(π, M̂), `probability` P(ρ(π, M) ≥ ρ(π_b, M) − ζ | D), `gain` the posterior mean of
    ρ(π, M) − ρ(π_b, M) with its central 95 % `interval`, `lower` its quantile at the `level`
    that δ leaves to each candidate, and `states_changed` the number of rows that differ from the
    baseline's. `n_wedge` is NaN for the cautious policy, which has none. `probability` is None
    where too few episodes judge. `off_policy` is None where the log is not kept, where the baseline
    cannot have made it, or where fewer than two episodes, in effect, are like the policy's.

    >>> candidate = spibb.Auto().improve(problem).sweep[0]
    >>> candidate.lower <= candidate.gain
    True
    """

    algorithm: str
    n_wedge: float
    value: float
    probability: float | None = field(repr=False)
    gain: float
    interval: tuple[float, float]
    lower: float
    states_changed: int
    off_policy: OffPolicyValue | None = None
    level: float | None = field(default=None, repr=False)

    @property
    def title(self) -> str:
        """The candidate in words."""
        if math.isnan(self.n_wedge):
            return f"the {self.algorithm} policy"
        return f"{self.algorithm} with n_wedge = {self.n_wedge:g}"


def surest(candidates: Sequence[Candidate]) -> Candidate | None:
    """The one with the largest quantile; of equal ones that with the largest N∧."""
    return max(
        candidates,
        key=lambda c: (c.lower, -math.inf if math.isnan(c.n_wedge) else c.n_wedge),
        default=None,
    )
