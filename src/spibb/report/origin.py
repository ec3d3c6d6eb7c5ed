"""Where an improvement comes from: command, files with their hashes, versions and seed."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import spibb
from spibb.files import sha256

PACKAGES = ("numpy", "scipy", "numba", "pyarrow")


@dataclass(frozen=True)
class Source:
    """A file that went in: what it is, its path as given, and its SHA-256 if it is one file."""

    role: str
    path: str
    sha256: str | None


@dataclass(frozen=True)
class Origin:
    """Everything needed to make the same result again."""

    command: str
    seed: int
    sources: tuple[Source, ...]
    versions: tuple[tuple[str, str], ...]
    made: str

    @classmethod
    def of(cls, command: str, seed: int, files: Iterable[tuple[str, str | Path]] = ()) -> Origin:
        """The origin of a result that a command makes of files (role, path), here and now."""
        versions = [("spibb", spibb.__version__), ("python", platform.python_version())]
        versions += [(name, version(name)) for name in PACKAGES]
        return cls(
            command=command,
            seed=seed,
            sources=tuple(Source(role, str(path), digest(path)) for role, path in files),
            versions=tuple(versions),
            made=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        )


def digest(path: str | Path) -> str | None:
    """The SHA-256 of a file; None for anything else, such as a folder or a pattern."""
    path = Path(path)
    return sha256(path) if path.is_file() else None
