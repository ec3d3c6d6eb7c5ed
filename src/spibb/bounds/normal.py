"""The normal and the χ² distribution without SciPy, which takes longer to load than most logs."""

from __future__ import annotations

import math

import numpy as np

_ERFC = np.frompyfunc(math.erfc, 1, 1)
ONE_SIDED_95 = 1.645
"""Standard errors below a mean that a one-sided 95 % interval begins."""
TWO_SIDED_95 = 1.96
"""Standard errors on each side of a mean that a two-sided 95 % interval holds."""
MANY = 1 << 16
"""Values from which loading SciPy is quicker."""


def normal_cdf(x: np.ndarray) -> np.ndarray:
    """Φ(x) of every value.

    >>> import numpy as np
    >>> from spibb.bounds.normal import normal_cdf
    >>> normal_cdf(np.array([-np.inf, 0.0, 1.0])).round(4).tolist()
    [0.0, 0.5, 0.8413]
    """
    if x.size > MANY:
        from scipy.special import ndtr

        return np.asarray(ndtr(x))
    return np.asarray(_ERFC(x * -math.sqrt(0.5)) * 0.5, dtype=np.float64)


def below(x: float) -> float:
    """Φ(x) of one value."""
    return math.erfc(-x * math.sqrt(0.5)) * 0.5


def chi_square_tail(statistic: float, freedom: int) -> float:
    """How often χ² with this many degrees of freedom exceeds a statistic.

    Q(k/2, x) = Σ x^i e^{−x} / Γ(i + 1) over i = k/2 − 1, k/2 − 2, … ≥ 0, plus erfc(√x) if k is odd,
    at half the statistic x.

    >>> from spibb.bounds.normal import chi_square_tail
    >>> round(chi_square_tail(5.991, 2), 4), chi_square_tail(3.0, 0)
    (0.05, 1.0)
    """
    x, half = statistic / 2, (freedom % 2) / 2
    if x <= 0 or freedom < 1:
        return 1.0
    if x == math.inf:
        return 0.0
    powers = np.arange(half, freedom / 2)
    logs = powers * math.log(x) - x - [math.lgamma(power + 1) for power in powers]
    return min(1.0, float(np.exp(logs).sum()) + (math.erfc(math.sqrt(x)) if half else 0.0))
