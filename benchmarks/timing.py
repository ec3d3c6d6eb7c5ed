"""Best-of-several timing: the minimum is the measurement least disturbed by other work."""

from __future__ import annotations

import time
from collections.abc import Callable


def best_seconds(job: Callable[[], object], repeats: int = 5, calls: int = 1) -> float:
    """Seconds per call, the best of several rounds; the first call is not counted."""
    job()
    best = float("inf")
    for _ in range(repeats):
        begin = time.perf_counter()
        for _ in range(calls):
            job()
        best = min(best, (time.perf_counter() - begin) / calls)
    return best
