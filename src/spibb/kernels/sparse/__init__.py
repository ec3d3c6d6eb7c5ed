"""Sweeps over sparse rows, for MDPs too large to eliminate."""
