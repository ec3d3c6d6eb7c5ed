"""Lower bounds on a mean from a sample: Bernstein, betting, Student's t, BCa.

δ is the probability of failure: δ = 0.9 means 10 % confidence, and δ = 1 none, so that the bound is
infinite. Samples are measured in units of their largest value: squares neither vanish nor overflow.
No bound depends on the order of the values: logs are often sorted.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr, ndtri, stdtrit

from spibb import checks
from spibb.arrays import fair_permutation, on_grid
from spibb.bounds.betting import MOST, Sample, refuted_rate
from spibb.errors import InputError
from spibb.kernels import ope as kernels
from spibb.kernels.formulas import student_t
from spibb.solve import unit_of
from spibb.words import apart

RESAMPLES = 2_000
"""Of the bootstrap, where the caller does not say."""
TUNING_SHARE = 20
"""One in this many values chooses the threshold of the bound, and is not used by it."""
VARIATIONS = 2.0 ** np.arange(-4, 5)
"""Standard deviations per mean, around 1, that the nine bets of `betting_bound` are right for."""
SAME_VALUE = 1e-13
"""Differences below this, in units of the largest value, are rounding."""


def bernstein_bound(
    values: np.ndarray,
    delta: float,
    *,
    lowest: float = 0.0,
    thresholds: np.ndarray | float | None = None,
) -> float:
    """Empirical Bernstein with thresholds (Maurer & Pontil 2009; Thomas et al. 2015, Theorem 1).

    For independent X_i ≥ 0 of mean at most μ, any c_i > 0 fixed beforehand and Y_i = min(X_i, c_i),
    with probability at least 1 − δ

        μ ≥ (Σ 1/c_i)⁻¹ [ Σ Y_i/c_i − 7n ln(2/δ) / (3(n − 1))
                          − √( ln(2/δ)/(n − 1) · Σ_{i,j} (Y_i/c_i − Y_j/c_j)² ) ].

    1. Appendix B.2 prints Y_i = min{X_i, x_i} for c_i, and E[X_i] ≤ ν for the mean μ it bounds.
    2. The double sum is 2n Σ (z_i − z̄)², so the cost is O(n).
    3. `lowest` is a number that no X_i can be below: X_i − lowest is bounded, and it is added back.
       A value below it is an error, because the inequality then says nothing.
    4. Without `thresholds`, one c for all is chosen on a twentieth of the values (at least two) so
       as to maximise the bound predicted for the rest, and the rest gives the bound (Thomas et al.,
       section "tuning"): a c that saw the values it bounds would be invalid. The twentieth is drawn
       from the sorted values by `fair_permutation`, so that the order given does not matter.
    """
    checks.delta_or_one(delta)
    values = _sample("bernstein", values, 2 if thresholds is not None else 4)
    unit, x = _above("bernstein", values, lowest)
    if thresholds is None:
        x = np.sort(x)[fair_permutation(on_grid(x), 0)]
        first = max(2, len(x) // TUNING_SHARE)
        c, x = np.array(_tuned_threshold(x[:first], len(x) - first, delta)), x[first:]
    else:
        c = np.asarray(thresholds, dtype=np.float64) / unit
    if not (c > 0).all():
        raise InputError(f"thresholds holds {c.min() * unit:g}, expected numbers above 0")
    return lowest + unit * _bernstein(x, np.broadcast_to(c, x.shape), delta)


def _bernstein(x: np.ndarray, c: np.ndarray, delta: float) -> float:
    n, log_term = len(x), math.log(2 / delta)
    z = np.minimum(x, c) / c
    spread = 2 * n * np.square(z - z.mean()).sum()
    inside = z.sum() - 7 * n * log_term / (3 * (n - 1)) - math.sqrt(log_term / (n - 1) * spread)
    return float(inside / (1 / c).sum())


def _tuned_threshold(x: np.ndarray, n: int, delta: float) -> float:
    """The c that maximises the bound predicted for n values distributed as x; 1 if x is all 0."""
    largest = float(x.max())
    if largest <= 0:
        return 1.0
    grid = largest * np.logspace(-3, 0, 61)
    y = np.minimum(x[:, None], grid)
    log_term = math.log(2 / delta)
    predicted = (
        y.mean(axis=0)
        - 7 * grid * log_term / (3 * (n - 1))
        - np.sqrt(2 * log_term / n * y.var(axis=0, ddof=1))
    )
    return float(grid[np.argmax(predicted)])


def betting_bound(values: np.ndarray, delta: float, *, lowest: float = 0.0) -> float:
    """A lower bound on the mean by betting (Waudby-Smith & Ramdas 2024): `betting.refuted_rate`.

    For independent X_i of mean μ, none of which can be below `lowest`, the wealth
    W(m) = Σ_k w_k Π_i (1 + κ_k (X_i − m)/(m − lowest)) is an e-value at m = μ for any shares κ_k in
    [0, 1) that were fixed beforehand, so that W(μ) ≥ 1/δ with probability at most δ. The bound is
    the largest m with W(m) ≥ 1/δ. Nothing is assumed about how large a value can be: importance
    weights need no cap.

    1. κ = √(2 log(1/δ) / n) / v, at most 0.95, is what n normal values of standard deviation
       v·(μ − lowest) would call for. v is not known: nine of them, from 1/16 to 16, share the
       capital. That, and no look at the data, is why the order of the values does not matter.
    """
    checks.delta_or_one(delta)
    unit, x = _above("betting", _sample("betting", values, 2), lowest)
    if delta == 1:
        return math.inf
    sample = Sample(np.maximum(x, 0.0), np.ones(len(x)), loss=0.0, longest=1.0)
    bound = refuted_rate(sample, betting_shares(len(x), delta), math.log(1 / delta))
    return lowest + unit * bound


def betting_shares(n: int, delta: float) -> np.ndarray:
    """The nine shares of the capital that bets on the mean of n values stake."""
    return np.minimum(math.sqrt(2 * math.log(1 / delta) / n) / VARIATIONS, MOST)


def student_t_bound(values: np.ndarray, delta: float) -> float:
    """x̄ − σ/√n · t_{1−δ, n−1}, σ with Bessel's correction (appendix B.2).

    Exact if the X_i are normal, and in the limit of many episodes. It fails where the distribution
    of the mean is skewed: importance weights have a long right tail, a small sample misses the few
    large values, and mean and spread come out too low together. The bound then holds *more* often
    than 1 − δ; with returns that are rarely very low it holds less often. It is blind to what no
    episode shows: equal values give the mean itself.
    """
    checks.delta_or_one(delta)
    x = _sample("student-t", values, 2)
    if delta == 1:
        return math.inf
    unit = unit_of(x[None])
    x = x / unit
    square = float(np.square(x - x.mean()).sum())
    return unit * student_t(float(x.mean()), square, len(x), t_quantile(len(x) - 1, delta))


def t_quantile(freedom: int, delta: float) -> float:
    """t_{1−δ}, by symmetry: 1 − δ would round to 1."""
    return -float(stdtrit(freedom, delta))


def bca_bound(
    values: np.ndarray, delta: float, *, rng: np.random.Generator, resamples: int = RESAMPLES
) -> float:
    """Bias-corrected accelerated bootstrap of the mean (Efron 1987), one-sided.

    The quantile Φ(z_0 + (z_0 + z_δ)/(1 − a(z_0 + z_δ))) of the resampled means, where Φ(z_0) is the
    share of them below x̄ (ties count half) and a = Σ(x_i − x̄)³ / (6 (Σ(x_i − x̄)²)^{3/2}) is the
    jackknife's acceleration, which has this closed form for a mean. `scipy.stats.bootstrap` gives
    the same, but in O(n²), and takes a second to import. Where a(z_0 + z_δ) ≥ 1 the formula has
    passed its pole, and the bound is the extreme mean on its side. It fails as Student's t does,
    less with skew, more with few episodes: no resample holds a value that the sample lacks.
    """
    checks.delta_or_one(delta)
    x = np.sort(_sample("bca", values, 2))
    if delta == 1:
        return math.inf
    unit = unit_of(x[None])
    x = x / unit
    off = x - x.mean()
    square = float(np.square(off).sum())
    if square <= SAME_VALUE**2 * len(x):
        return unit * float(x.mean())
    means = np.empty(checks.positive("resamples", resamples))
    kernels.resampled_means(x, rng, means)
    above = means - x.mean()
    below = ((above < -SAME_VALUE).mean() + (above <= SAME_VALUE).mean()) / 2
    z0 = ndtri(np.clip(below, 1 / (resamples + 1), resamples / (resamples + 1)))
    acceleration = (off**3).sum() / (6 * square**1.5)
    z = z0 + ndtri(delta)
    along = z / (1 - acceleration * z) if acceleration * z < 1 else math.copysign(math.inf, z)
    return unit * float(np.quantile(means, ndtr(z0 + along)))


def _sample(bound: str, values: np.ndarray, least: int) -> np.ndarray:
    """Check a sample of contributions [n]."""
    x = np.asarray(values, dtype=np.float64)
    if len(x) < least:
        raise InputError(f"{bound} has {len(x)} episodes, expected at least {least}: add episodes")
    checks.finite(x, f"{bound}: contribution")
    return x


def _above(bound: str, values: np.ndarray, lowest: float) -> tuple[float, np.ndarray]:
    """A unit, and in it how far the values [n] are above what none of them can be below."""
    unit = unit_of(np.append(values, lowest)[None])
    x = values / unit - lowest / unit
    if x.min() < -SAME_VALUE:
        least, limit = apart(values.min(), lowest)
        raise InputError(
            f"{bound}: value {least} of episode {int(values.argmin())} is below the "
            f"limit {limit}: declare a lower one, or use student-t or bca"
        )
    return unit, x
