"""The normal distribution without SciPy, which takes longer to load than most logs to read."""

from __future__ import annotations

import math

import numpy as np

_ERFC = np.frompyfunc(math.erfc, 1, 1)
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
