"""Which files a log lies in: one, several, a pattern, or a folder of partitions."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from spibb.checks import InputError, some

KINDS = {".csv": ".csv", ".parquet": ".parquet", ".jsonl": ".jsonl", ".ndjson": ".jsonl"}
"""Endings of names, and the reader of each."""
ENDINGS = ".csv, .parquet, .jsonl or .ndjson"

PathLike = str | Path


@dataclass(frozen=True)
class Files:
    """Files of one kind; `hive` says that folders named ``ward=3`` below the source are columns."""

    paths: tuple[Path, ...]
    kind: str
    hive: bool = False

    @property
    def name(self) -> str:
        """How messages call the files."""
        more = f" and {len(self.paths) - 1} more files" if len(self.paths) > 1 else ""
        return repr(str(self.paths[0])) + more

    @property
    def size(self) -> int:
        """Bytes in all files."""
        return sum(path.stat().st_size for path in self.paths)


def find_files(source: PathLike | Sequence[PathLike]) -> Files:
    """The files that a path, a pattern such as ``logs/*.parquet``, a folder, or a list names.

    A name that exists is taken as it is written, even if it looks like a pattern. Files of a folder
    whose names begin with a dot or an underscore are left out.
    """
    if isinstance(source, str | Path):
        return _of_kind(*_expand(source))
    parts = [_expand(part) for part in source]
    if not parts:
        raise InputError("the list of files is empty: name at least one")
    return _of_kind([path for paths, _ in parts for path in paths], any(hive for _, hive in parts))


def _expand(source: PathLike) -> tuple[list[Path], bool]:
    path = Path(source)
    if path.is_dir() and path.suffix.lower() not in KINDS:
        return _in_folder(path)
    if _exists(path) or not glob.has_magic(str(source)):
        check_readable(path)
        return [path], False
    found = [Path(name) for name in sorted(glob.glob(str(source), recursive=True))]
    files = [name for name in found if name.is_file()]
    if not files:
        raise InputError(f"no file matches {str(source)!r}: check the pattern and the folder")
    for file in files:
        check_readable(file)
    fixed = len(Path(str(source)[: _first_magic(str(source))] + "x").parent.parts)
    return files, any("=" in part for file in files for part in file.parts[fixed:-1])


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return True


def _first_magic(text: str) -> int:
    return min(text.index(mark) for mark in "*?[" if mark in text)


def _in_folder(folder: Path) -> tuple[list[Path], bool]:
    hidden = (".", "_")
    files = [
        path
        for path in sorted(folder.rglob("*"))
        if path.suffix.lower() in KINDS
        and path.is_file()
        and not any(part.startswith(hidden) for part in path.relative_to(folder).parts)
    ]
    if not files:
        raise InputError(
            f"the folder {str(folder)!r} holds no file whose name ends in {ENDINGS}: check the name"
        )
    for file in files:
        check_readable(file)
    hive = any("=" in part for path in files for part in path.relative_to(folder).parts[:-1])
    return files, hive


def _of_kind(paths: Iterable[Path], hive: bool) -> Files:
    paths = tuple(paths)
    kinds = {path.suffix.lower(): path for path in paths}
    for ending, path in kinds.items():
        if ending not in KINDS:
            raise InputError(f"cannot read {str(path)!r}: the name must end in {ENDINGS}")
    readers = {KINDS[ending] for ending in kinds}
    if len(readers) > 1:
        names = some((path.name for path in kinds.values()), 3)
        raise InputError(f"the log mixes kinds of files ({names}): give files of one kind")
    return Files(paths, readers.pop(), hive)


def check_readable(path: Path) -> None:
    """A file must be there, not empty, and ours to read."""
    try:
        size = path.stat().st_size if path.is_file() else None
        allowed = size is None or os.access(path, os.R_OK)
    except PermissionError:
        allowed = False
    if not allowed:
        raise InputError(f"cannot read {str(path)!r}: permission denied; check its permissions")
    if size is None:
        raise InputError(f"cannot read {str(path)!r}: there is no such file; check the name")
    if size == 0:
        raise InputError(f"cannot read {str(path)!r}: the file is empty; check what wrote it")
