"""The one exception that a user of the library meets, and how a missing extra is installed."""


class InputError(ValueError):
    """Something the caller gave cannot be used; the message says what, where, and the remedy."""


def install(extra: str) -> str:
    """The command that brings an optional part, as printed in messages."""
    return f'pip install ".[{extra}]" in a clone of spibb'
