"""Auto: the log itself chooses among candidates, by a percentile of their gains."""

from spibb.algorithms.auto.algorithm import Auto
from spibb.algorithms.auto.result import AutoImprovement

__all__ = ["Auto", "AutoImprovement"]
