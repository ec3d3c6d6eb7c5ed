"""The exception that users of the library see, and how to install a missing extra."""

import re
from collections.abc import Iterable
from typing import Any

SECRETS = (
    (re.compile(r"(\w+:/+)[^\s'\"]*@"), r"\1***@"),
    (re.compile(r"(\w+://[^\s?#'\"]*)\?[^\s#'\"]*"), r"\1?***"),
    (re.compile(r"(?i)\b(password|passwd|pwd|passphrase|token|secret|api_?key)(\s*[=:]\s*)"
                r"('[^']*'|\"[^\"]*\"|[^\s,;&)}]+?(?=['\"]?[:.]?(?:[\s,;&)}]|$)))"), r"\1\2***"),
)  # fmt: skip
"""What names a person or proves who they are, in addresses and in settings of a connection. The
quote after an address that ends with such a setting is not part of it."""
PERSON = re.compile(r"""(?i)\b(user|role)[ =:]*("[^"]*"|'[^']*'(?:@'[^']*')?)""")
"""How PostgreSQL, MySQL and MariaDB name somebody in their messages."""


class InputError(ValueError):
    """Input that cannot be used; the message names it and its value, the limit, and the remedy.

    No message contains a password, even where a database driver's own message would.

    >>> spibb.Policy([[0.5, -0.6]])
    Traceback (most recent call last):
        ...
    spibb.errors.InputError: policy row 0, action 1: probability is -0.6, expected a number in
    [0, 1]: fix that entry
    """

    def __init__(self, message: object = "") -> None:
        super().__init__(without_secrets(str(message)))


class FixableError(InputError):
    """Data that cannot be used as they are, but may be if they are read in another way.

    `changes` are those of a `Handling` or a `Source`: ``{"missing": "drop"}``.
    """

    def __init__(self, message: object = "", **changes: Any) -> None:
        super().__init__(message)
        self.changes = changes


def without_secrets(text: str) -> str:
    """A text without the names and passwords of addresses, and without settings that are secret."""
    for pattern, replacement in SECRETS:
        text = pattern.sub(replacement, text)
    return text


def without_people(text: str, names: Iterable[str] = ()) -> str:
    """A message of a database, without these names and those that it says are of users."""
    for name in filter(None, names):
        text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", "***", text)
    return without_secrets(PERSON.sub(r"\1 ***", text))


def masked(text: str) -> str:
    """A path or an address without credentials, whatever characters a password has.

    All that follows a ``?`` goes too: signatures, tokens, and users and passwords of databases.

    >>> from spibb.errors import masked
    >>> masked("postgresql://ann:pass word@db/clinic#visits")
    'postgresql://***@db/clinic#visits'
    >>> masked("s3://bucket/log.csv?secret_key=x&region=us-east-1")
    's3://bucket/log.csv?***'
    """
    text = re.sub(r"(?s)(\w+://).*@", r"\1***@", text)
    return without_secrets(re.sub(r"(?s)(\w+://[^?#]*)\?.*?(?=#[^#]*$|$)", r"\1?***", text))


def cause_of(error: BaseException) -> str:
    """Another library's error on one line; its kind where it has no message."""
    return " ".join(str(error).split()) or type(error).__name__


def install(extra: str) -> str:
    """The command that brings an optional part, as printed in messages."""
    return f'pip install ".[{extra}]" in a clone of spibb'
