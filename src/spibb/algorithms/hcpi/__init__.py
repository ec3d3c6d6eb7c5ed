"""HCPI: a mixture of a trained policy and the baseline, by the highest lower bound."""

from spibb.algorithms.hcpi.algorithm import HCPI
from spibb.algorithms.hcpi.result import HCPIImprovement

__all__ = ["HCPI", "HCPIImprovement"]
