"""Where a table is: files, patterns, folders of partitions; and how its text is written."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from spibb.checks import choice, instance, some
from spibb.errors import InputError, masked, without_secrets
from spibb.files import possible

KINDS = {
    ".csv": ".csv", ".tsv": ".tsv", ".tab": ".tsv", ".parquet": ".parquet", ".jsonl": ".jsonl",
    ".ndjson": ".jsonl", ".feather": ".arrow", ".arrow": ".arrow", ".ipc": ".arrow",
    ".json": ".json", ".xlsx": ".xlsx", ".xlsm": ".xlsx", ".h5": ".h5", ".hdf5": ".h5",
    ".zip": ".zip", ".duckdb": ".duckdb", ".ddb": ".duckdb", ".db": ".sqlite", ".sqlite": ".sqlite",
    ".sqlite3": ".sqlite",
}  # fmt: skip
"""Endings of names of tables, and the reader of each: a folder is searched for these."""
FOREIGN = (
    ".xls", ".xlsb", ".ods", ".orc", ".avro", ".dta", ".sav", ".sas7bdat", ".rds", ".mdb", ".accdb",
    ".tar", ".tgz", ".7z", ".rar", ".xz", ".lz4",
)  # fmt: skip
"""Endings of tables and archives that nothing here reads: a folder with one is not read in part."""
TEXTS = (".csv", ".tsv", ".json", ".jsonl")
"""Readers of text; CSV and TSV files have no types."""
PACKED = (".gz", ".zst", ".bz2")
"""What may follow the ending of a text."""
ENDINGS = (
    ".csv, .tsv, .json or .jsonl (also with .gz, .zst or .bz2), .parquet, .feather, .arrow, .xlsx, "
    ".h5, .zip, .sqlite or .duckdb"
)
HIDDEN = (".", "_")
NO_TABLES = ("thumbs.db",)
"""What Windows leaves in folders."""
OBJECTS = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:\[\s*\{|\{.*\}\s*?\n\s*\{)")
"""How a JSON file of rows begins: with a list of objects, or with two objects on two lines."""
WRITTEN = ("encoding", "decimal", "separator")
"""How text is written: options of the command line, and fields of a `Source`."""
SCHEME = re.compile(r"(?i)([a-z][a-z0-9+.-]*)://|(minari):")
"""How an address begins."""

PathLike = str | Path


@dataclass(frozen=True, repr=False)
class Source:
    """Where a table is and how to read it, if its name alone does not say this.

    Everything that takes the name of a log or of a policy also takes a `Source`.

    Parameters:
        place: a file, a pattern, a folder, a list of these; the address of a database
            (``postgresql://``, ``mysql://``, ``sqlite:///``, ``duckdb:///``), of a file
            (``https://``, ``s3://``, ``gs://``), or a Minari dataset (``minari:lake/expert-v0``).
            What follows a ``#`` is the table: ``clinic.xlsx#Visits``.
        table: the table of a database, the sheet of a workbook, the file in a .zip.
        query: a SELECT in the place of a table, in the database's own SQL.
        encoding: of text, such as ``latin-1``; UTF-8 if None.
        decimal: ``.`` or ``,``, in CSV files.
        separator: one character between cells of CSV files; detected if None.

    >>> _ = log.save("log.csv")
    >>> spibb.read_log(spibb.Source("log.csv", separator=","))
    Log(transitions=6, episodes=3, states=2, actions=2, rewards=0 to 1)
    """

    place: PathLike | tuple[PathLike, ...]
    table: str | None = None
    query: str | None = None
    encoding: str | None = None
    decimal: str = "."
    separator: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.place, list):
            object.__setattr__(self, "place", tuple(self.place))
        for place in self.place if isinstance(self.place, tuple) else (self.place,):
            instance("place", place, (str, Path), "name a file, or give its address")
            if isinstance(self.place, tuple) and SCHEME.match(str(place)):
                raise InputError(f"{masked(str(place))!r} is an address in a list: give it alone")
        for name in ("table", "query", "encoding", "separator"):
            instance(name, getattr(self, name), (str, type(None)), "give a text, or None")
        choice("decimal", self.decimal, (".", ","))
        if self.table is not None and self.query is not None:
            raise InputError("table and query are both given: give the table, or a query on it")
        if self.separator is not None and (len(self.separator) != 1 or self.separator in '\n\r"'):
            raise InputError(
                f"separator is {self.separator!r}, expected one character such as ';': give one"
            )
        if self.decimal == "," == self.separator:
            raise InputError(
                "separator and decimal are both ',': give another separator, such as ';'"
            )

    @classmethod
    def of(cls, given: Any) -> Self:
        """A source, or what names one, with its table apart from its place."""
        source = given if isinstance(given, cls) else cls(given)
        place = source.place
        if source.table or source.query or isinstance(place, tuple) or "#" not in str(place):
            return source
        if source.scheme is None and os.path.exists(place):
            return source
        start = str(place).rfind("@") + 1 if source.scheme else 0
        before, _, table = str(place)[start:].partition("#")
        return replace(source, place=str(place)[:start] + before, table=table or None)

    def in_its_kind(self) -> Self:
        """This source without options that its kind of file lacks: a workbook has no separator."""
        if isinstance(self.place, tuple):
            return self
        place = str(self.of(self).place)
        name = urlsplit(place).path if self.scheme else place
        kind = KINDS.get(ending(Path(name)), ".zip" if self.scheme is None else ".duckdb")
        if kind in (".csv", ".tsv", ".zip"):
            return self
        kept = self.encoding if kind in TEXTS else None
        return replace(self, encoding=kept, decimal=".", separator=None)

    @property
    def scheme(self) -> str | None:
        """What the address begins with, in lower case; None for files."""
        found = SCHEME.match(self.place) if isinstance(self.place, str) else None
        if found is None or os.path.exists(str(self.place)):
            return None
        return (found[1] or found[2]).lower()

    @property
    def name(self) -> str:
        """How messages and files call it: no password is in it."""
        inside = f"#{self.table}" if self.table else f" ({self.query})" if self.query else ""
        if isinstance(self.place, tuple):
            return some((masked(str(place)) for place in self.place), 3)
        return masked(str(self.place)) + without_secrets(inside)

    @property
    def written(self) -> dict[str, str]:
        """How text is written, as far as that is said."""
        said = {option.name: option for option in fields(self) if option.name in WRITTEN}
        return {
            name: getattr(self, name)
            for name, option in said.items()
            if getattr(self, name) != option.default
        }

    @property
    def path(self) -> Path | None:
        """The one file or folder that it names; None for lists and addresses."""
        return None if isinstance(self.place, tuple) or self.scheme else possible(self.place)

    @property
    def short(self) -> str:
        """A name of few signs."""
        return self.name if self.path is None else self.path.name

    def __repr__(self) -> str:
        said = [f"{name}={value!r}" for name, value in self.written.items()]
        return f"Source({', '.join([repr(self.name), *said])})"


@dataclass(frozen=True)
class Files:
    """Files of one kind; `hive` says that folders named ``ward=3`` below the source are columns.

    `called` is how messages call them where they are copies, `unpacked` says that they were in an
    archive; `separator` and `decimal` are how a CSV file is written.
    """

    paths: tuple[Path, ...]
    kind: str
    hive: bool = False
    called: str = ""
    unpacked: bool = False
    separator: str | None = None
    decimal: str = "."

    @property
    def name(self) -> str:
        """How messages call the files."""
        more = f" and {len(self.paths) - 1} more files" if len(self.paths) > 1 else ""
        return (self.called or repr(str(self.paths[0]))) + more

    def renamed(self, text: str) -> str:
        """A message in which our copies have the names of what they are copies of."""
        for path in self.paths if self.called else ():
            text = text.replace(repr(str(path)), self.called).replace(str(path), self.called)
        return text

    @property
    def untyped(self) -> bool:
        """Whether cells are text whose values decide their types."""
        return self.kind in (".csv", ".tsv")

    @property
    def size(self) -> int:
        """Bytes in all files."""
        return sum(path.stat().st_size for path in self.paths)


def find_files(source: PathLike | Sequence[PathLike]) -> Files:
    """The files that a path, a pattern such as ``logs/*.parquet``, a folder, or a list names.

    A name that exists is taken as it is written, even if it looks like a pattern. Of a folder, what
    is not a table is left out, and so is a name that begins with a dot or an underscore.
    """
    if isinstance(source, str | Path):
        return _of_kind(*_expand(source))
    parts = [_expand(part) for part in source]
    if not parts:
        raise InputError("the list of files is empty: name at least one")
    return _of_kind([path for paths, _ in parts for path in paths], any(hive for _, hive in parts))


def _expand(source: PathLike) -> tuple[list[Path], bool]:
    path = possible(source)
    if path.is_dir() and ending(path) not in KINDS:
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
    files = _without_settings([path for path in sorted(_below(folder)) if _is_table(path)])
    if not files:
        raise InputError(
            f"the folder {str(folder)!r} holds no file whose name ends in {ENDINGS}: check the name"
        )
    for file in files:
        check_readable(file)
    hive = any("=" in part for path in files for part in path.relative_to(folder).parts[:-1])
    return files, hive


def _below(folder: Path) -> Iterator[Path]:
    """All files in and below a folder but hidden ones; every folder must be ours to read."""

    def refuse(error: OSError) -> None:
        reason = (error.strerror or str(error)).lower()
        raise InputError(
            f"cannot read the folder {str(error.filename)!r}: {reason}; check its permissions"
        )

    for place, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(HIDDEN)]
        yield from (Path(place, name) for name in names if not name.startswith(HIDDEN))


def _is_table(path: Path) -> bool:
    """Whether a file of a folder is a table, be it one that nothing here reads."""
    known = ending(path) in KINDS or ending(path) in FOREIGN
    return known and path.name.lower() not in NO_TABLES and path.is_file()


def _without_settings(files: list[Path]) -> list[Path]:
    """The tables of a folder: beside others, a JSON file of one object holds settings, not rows."""
    others = [path for path in files if ending(path) != ".json"]
    rows = any(_holds_rows(path) for path in files if ending(path) == ".json")
    return files if rows or not others else others


def _holds_rows(path: Path) -> bool:
    """Whether a JSON file seems to hold several objects; one that is packed is not looked into."""
    if path.suffix.lower() in PACKED or not os.access(path, os.R_OK):
        return True
    with path.open("rb") as file:
        return OBJECTS.match(file.read(1 << 16)) is not None


def _of_kind(paths: Iterable[Path], hive: bool) -> Files:
    paths = tuple(paths)
    kinds = {ending(path): path for path in paths}
    for end, path in kinds.items():
        if end not in KINDS or (path.suffix.lower() in PACKED and KINDS[end] not in TEXTS):
            text = "; rename delimited text to .csv, or .tsv with tabs" if end == ".txt" else ""
            text = "; convert it, or take it away" if end in FOREIGN else text
            raise InputError(f"cannot read {str(path)!r}: the name must end in {ENDINGS}{text}")
    readers = {KINDS[end] for end in kinds}
    if len(readers) > 1:
        names = some((path.name for path in kinds.values()), 3)
        pattern = f"'*{paths[0].suffix}'"
        raise InputError(
            f"the log mixes file formats ({names}): give files of one format, as a pattern such as "
            f"{pattern}"
        )
    return Files(paths, readers.pop(), hive)


def ending(path: Path) -> str:
    """The ending of a name, in lower case; of log.csv.gz it is .csv."""
    packed = path.suffix.lower() in PACKED
    return (Path(path.stem) if packed else path).suffix.lower()


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
