"""Defaults that several calls and the command line share."""

DISCOUNT = 0.95
"""γ, where none is given."""
DELTA = 0.05
"""The failure probability of a certificate and of a verdict, where none is given."""
