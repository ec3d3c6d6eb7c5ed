"""Changes that some episodes choose and others test: what `certified` does, and `forecast`.

Arrays and logs only; no solver is loaded.
"""
