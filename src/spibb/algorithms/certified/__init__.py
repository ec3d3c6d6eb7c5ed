"""Certified: changes that some episodes choose and others test."""

from spibb.algorithms.certified.algorithm import Certified
from spibb.algorithms.certified.result import CertifiedImprovement

__all__ = ["Certified", "CertifiedImprovement"]
