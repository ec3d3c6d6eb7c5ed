"""Numba kernels: arrays in, arrays out. No validation, no globals; `tests/oracles.py` has a slow
transcription of each."""
