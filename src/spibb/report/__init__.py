"""Figures and tables of results; reads results only."""
