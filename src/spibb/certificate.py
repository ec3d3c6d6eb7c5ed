"""Error radii, N∧, and certificates of safe improvement.

Theorem 2 of the paper: with probability at least 1 − δ, Π_b-SPIBB is no worse than the baseline
minus ζ. Its radius comes from an L1 bound on every row of P̂, which pays |X| ln 2 inside the
logarithm. The two later radii (Wienhöft et al. 2023, "More for Less") first reduce the MDP to rows
of two successors, and so pay |X|²|A|² instead. The last of them, ζ_β, is a *credible* bound: its
probability is that of a posterior with a uniform prior, not a frequency over logs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from spibb import checks
from spibb.errors import InputError
from spibb.showing import Shown
from spibb.words import at_most, general, level

MOST = 1e150
"""Root of more visits than any log has."""


@dataclass(frozen=True)
class Premises:
    """What every bound depends on besides N∧."""

    n_states: int
    n_actions: int
    discount: float
    v_max: float
    delta: float

    def __post_init__(self) -> None:
        checks.discount(self.discount)
        checks.delta_or_one(self.delta)
        checks.number("v_max", self.v_max, 0, math.inf, "[)")

    @property
    def scale(self) -> float:
        """4 V_max / (1 − γ): an error of ε on every row costs at most this times ε."""
        return 4 * self.v_max / (1 - self.discount)


def error_radius(n: float, premises: Premises) -> float:
    """Proposition 1: ‖P − P̂‖₁ ≤ e with probability 1 − δ in every pair seen n times.

    e = √(2/n · log(2|X||A|2^|X|/δ)), with the power of two taken out of the logarithm: it
    overflows near 1,015 states otherwise.
    """
    pairs = premises.n_states * premises.n_actions
    log_term = math.log(2 * pairs / premises.delta) + premises.n_states * math.log(2)
    return math.sqrt(2 / n * log_term) if n > 0 else math.inf


def two_successor_radius(n: float, premises: Premises) -> float:
    """Hoeffding's radius on rows of two successors: √(2/n · log(8|X|²|A|²/δ))."""
    pairs = premises.n_states * premises.n_actions
    return math.sqrt(2 / n * math.log(8 * pairs**2 / premises.delta)) if n > 0 else math.inf


def beta_radius(n: float, premises: Premises) -> float:
    """1 − 2·I⁻¹(n/2 + 1, n/2 + 1; δ_T/2), δ_T = δ/(|X|²|A|²): a credible radius on two successors.

    The central 1 − δ_T of the posterior Beta(k + 1, n − k + 1) of a probability, at its widest,
    k = n/2, as a distance in L1. It holds with that posterior probability under a uniform prior; it
    is not a confidence bound.
    """
    if n <= 0 or math.isinf(n):
        return math.inf if n <= 0 else 0.0
    from scipy.special import betaincinv

    delta_t = premises.delta / (premises.n_states * premises.n_actions) ** 2
    return 1 - 2 * float(betaincinv(n / 2 + 1, n / 2 + 1, delta_t / 2))


RADII: Mapping[str, Callable[[float, Premises], float]] = {
    "theorem-2": error_radius,
    "two-successor": two_successor_radius,
    "beta": beta_radius,
}
CREDIBLE = frozenset({"beta"})
"""Bounds that hold with a posterior probability under a uniform prior, not in 1 − δ of all logs."""


def zeta(
    n_wedge: float, premises: Premises, *, gain: float = 0.0, bound: str = "theorem-2"
) -> float:
    """ζ = 4V_max/(1−γ) · radius(N∧) − (ρ(π⊙, M̂) − ρ(π_b, M̂)); `gain` is that last bracket."""
    checks.choice("bound", bound, tuple(RADII))
    return premises.scale * RADII[bound](checks.n_wedge(n_wedge), premises) - gain


def n_wedge_for(wanted: float, premises: Premises) -> int:
    """The smallest N∧ for which Theorem 2 gives ζ ≤ `wanted` before any gain is counted.

    N∧ = 32 V²_max / (ζ²(1−γ)²) · log(2|X||A|2^|X|/δ). Equation 5 prints 8 for another theorem.
    """
    checks.number("zeta", wanted, 0, math.inf, "()")
    root = premises.scale * error_radius(1, premises) / wanted
    if root > MOST:
        raise InputError(
            f"zeta is {wanted:g}, expected at least {wanted * root / MOST:.3g} for v_max = "
            f"{premises.v_max:g}: no log has 1e300 visits"
        )
    return math.ceil(root**2)


@dataclass(frozen=True)
class Bound:
    """One statement: ρ(π) ≥ ρ(π_b) − zeta with probability at least 1 − δ.

    The probability is over the log; for a `credible` bound it is that of the posterior given the
    log, with a uniform prior on every transition probability.

    >>> bound = spibb.PiBSpibb(n_wedge=1).improve(problem).certificate().bounds[0]
    >>> bound.name, bound.vacuous, bound.credible
    ('theorem-2', True, False)
    """

    name: str
    zeta: float
    vacuous: bool

    @property
    def credible(self) -> bool:
        """Whether this is a statement about the posterior, not about logs."""
        return self.name in CREDIBLE

    @property
    def title(self) -> str:
        """The name, with what kind of probability it speaks of."""
        return f"{self.name}, credible under a uniform prior" if self.credible else self.name


@dataclass(frozen=True)
class Certificate(Shown):
    """What is proven about an improved policy, under which assumptions, or why nothing is.

    `bounds` is empty and `refusal` says why when no theorem applies.

    >>> certificate = spibb.PiBSpibb(n_wedge=1).improve(problem).certificate(delta=0.1)
    >>> [bound.name for bound in certificate.bounds] == ["theorem-2", "two-successor", "beta"]
    True
    >>> print(spibb.BasicRL().improve(problem).certificate())
    No certificate: ...
    """

    delta: float
    n_wedge: float
    return_range: float
    bounds: tuple[Bound, ...]
    assumptions: tuple[str, ...]
    refusal: str | None = None

    def _facts(self) -> Mapping[str, Any]:
        """What is proven, or why nothing is."""
        best = self.best
        if best is None:
            return {"delta": self.delta, "refusal": self.refusal}
        return {"delta": self.delta, "bound": best.name, "credible": best.credible,
                "zeta": best.zeta, "vacuous": best.vacuous}  # fmt: skip

    @property
    def best(self) -> Bound | None:
        """The tightest bound."""
        return min(self.bounds, key=lambda bound: bound.zeta, default=None)

    def __str__(self) -> str:
        best = self.best
        if best is None:
            return f"No certificate: {self.refusal}."
        statement = (
            f"With {'posterior ' if best.credible else ''}probability at least {level(self.delta)} "
            f"the new policy loses at most {at_most(best.zeta, 4)} compared with the baseline "
            f"({best.title})"
        )
        if best.vacuous:
            return (
                f"The certificate is vacuous, and the verdict does not rest on it. {statement}, "
                f"but returns span only {general(self.return_range, 4)}. A larger n_wedge "
                "tightens the bound, but needs more data."
            )
        return f"{statement}."


def certify(n_wedge: float, premises: Premises, *, gain: float, return_range: float,
            assumptions: tuple[str, ...]) -> Certificate:  # fmt: skip
    """All bounds of Π_b-SPIBB at N∧; a bound wider than the range of returns is vacuous."""
    values = {name: zeta(n_wedge, premises, gain=gain, bound=name) for name in RADII}
    bounds = tuple(Bound(name, value, value >= return_range) for name, value in values.items())
    return Certificate(premises.delta, n_wedge, return_range, bounds, assumptions)


def refuse(n_wedge: float, delta: float, reason: str) -> Certificate:
    """A certificate that says why there is none."""
    return Certificate(delta, n_wedge, math.nan, (), (), reason)
