"""The one exception that a user of the library meets."""


class InputError(ValueError):
    """Something the caller gave cannot be used; the message says what, where, and the remedy."""
