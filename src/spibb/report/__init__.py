"""The report of one improvement."""
