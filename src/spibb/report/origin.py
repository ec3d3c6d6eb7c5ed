"""Where an improvement comes from: command, files with their hashes, versions and seed."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import spibb
from spibb.errors import without_secrets
from spibb.files import sha256
from spibb.sql import sources

PACKAGES = ("numpy", "scipy", "numba", "pyarrow")


@dataclass(frozen=True)
class UsedFile:
    """A file that went in: what it is, its path as given, and its SHA-256 if it is one file."""

    role: str
    path: str
    sha256: str | None


@dataclass(frozen=True)
class Origin:
    """Everything needed to make the same result again."""

    command: str
    seed: int
    sources: tuple[UsedFile, ...]
    versions: tuple[tuple[str, str], ...]
    made: str

    @classmethod
    def of(cls, command: str, seed: int, given: Iterable[tuple[str, Any]] = ()) -> Origin:
        """The origin of a result that a command makes of sources (role, place), here and now."""
        found = [(role, sources.Source.of(source)) for role, source in given]
        versions = [("spibb", spibb.__version__), ("python", platform.python_version())]
        versions += [(name, version(name)) for name in PACKAGES]
        return cls(
            command=without_secrets(command),
            seed=seed,
            sources=tuple(UsedFile(role, source.name, digest(source)) for role, source in found),
            versions=tuple(versions),
            made=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        )


def digest(given: Any) -> str | None:
    """The SHA-256 of a file; None for anything else, such as a folder, a pattern or an address."""
    path = sources.Source.of(given).path
    return sha256(path) if path is not None and path.is_file() else None
