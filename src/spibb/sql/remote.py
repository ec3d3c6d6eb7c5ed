"""Files at an address: copied to a private folder first, and then read like any other.

DuckDB would need an extension from outside for this; Arrow brings S3 and Google Cloud Storage, and
Python the web.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

from spibb.errors import InputError, cause_of, masked
from spibb.sql.duck import private_path
from spibb.sql.sources import KINDS, PACKED, Source, ending
from spibb.sql.staging import BLOCK, write_copy

SCHEMES = ("https", "http", "s3", "gs", "gcs")
SECONDS = 60
"""How long a server may be silent."""


def fetched(source: Source) -> tuple[Source, str]:
    """The source of a private copy, and how messages call it."""
    address = str(source.place)
    name = repr(masked(address))
    file = PurePosixPath(unquote(urlsplit(address).path))
    if ending(Path(file.name)) not in KINDS:
        raise InputError(
            f"cannot read {name}: the name before any ? must end like a file name, such as log.csv"
        )
    copy = private_path("".join(end for end in file.suffixes[-2:] if _known(end)).lower())
    try:
        write_copy(copy, _web(address) if source.scheme in ("https", "http") else _store(address),
                   name)  # fmt: skip
    except InputError:
        raise
    except Exception as error:  # every service has its own
        copy.unlink(missing_ok=True)
        reason = masked(cause_of(error))
        raise InputError(
            f"cannot read {name} ({reason}): check the address, the network and your credentials"
        ) from None
    return replace(source, place=copy), name


def _known(suffix: str) -> bool:
    return suffix.lower() in KINDS or suffix.lower() in PACKED


def _web(address: str) -> Iterator[bytes]:
    """The content at an address of the web; a name and a password in it are sent apart from it."""
    from urllib.request import Request, urlopen

    parts = urlsplit(address)
    person, _, host = parts.netloc.rpartition("@")
    request = Request(urlunsplit(parts._replace(netloc=host)))
    if person:
        proof = base64.b64encode(unquote(person).encode()).decode()
        request.add_unredirected_header("Authorization", f"Basic {proof}")
    with urlopen(request, timeout=SECONDS) as answer:
        yield from iter(lambda: answer.read(BLOCK), b"")


def _store(address: str) -> Iterator[bytes]:
    """The content of an object in S3 or Google Cloud Storage, with the usual credentials."""
    from pyarrow import fs

    store: Any
    store, path = fs.FileSystem.from_uri(address)
    with store.open_input_stream(path, compression=None) as stream:
        yield from iter(lambda: stream.read(BLOCK), b"")
