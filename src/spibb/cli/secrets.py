"""Passwords on the command line: masked in what is printed, and in the list of processes."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import sys
from pathlib import Path

from spibb.errors import masked, without_secrets

SECRET = re.compile(rb"(?is)://(.*)@|\?([^#]*)|password=([^&\s#]*)")
"""What an address may have that nobody else should read, as bytes."""


def without_passwords(text: str) -> str:
    """A text that may repeat an argument of this command, without the secrets in it."""
    for argument in sys.argv[1:]:
        text = text.replace(argument, masked(argument))
    return without_secrets(text)


def hide_passwords() -> None:
    """Overwrite secrets of our arguments where other users of the machine can list them.

    Only Linux keeps the arguments where a process can change them; elsewhere they stay.
    """
    given = [os.fsencode(text) for text in sys.argv[1:] if "://" in text]
    if not given or not sys.platform.startswith("linux"):
        return
    with contextlib.suppress(OSError, ValueError, IndexError):
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        start, end = int(fields[45]), int(fields[46])
        if 0 < start < end:
            _overwrite(start, ctypes.string_at(start, end - start), given)


def _overwrite(start: int, title: bytes, arguments: list[bytes]) -> None:
    for argument in arguments:
        place = title.find(argument)
        for found in SECRET.finditer(argument) if place >= 0 else ():
            group = found.lastindex or 0
            size = found.end(group) - found.start(group)
            ctypes.memset(start + place + found.start(group), ord("*"), size)
