"""Private copies of what DuckDB cannot read as it is: archives, other encodings, addresses.

A copy is in a folder that only we may open, under a name of ours, and goes when the process ends.
"""

from __future__ import annotations

import codecs
import shutil
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath

from spibb.checks import did_you_mean, some
from spibb.errors import InputError, cause_of
from spibb.sql.duck import private_path
from spibb.sql.sources import KINDS, PACKED, TEXTS, Files, Source, ending

LIMIT = 16 * 2**30
"""Bytes that a copy may have: an archive that unpacks to more is refused."""
BLOCK = 1 << 20
"""Bytes that are copied at a time."""
WINDOWS = range(0x80, 0xA0)
"""Bytes that are signs in texts of Windows (cp1252), and none that can be seen in Latin-1."""


def staged(files: Files, source: Source) -> Files:
    """The files as DuckDB reads them: unpacked and in UTF-8 where they are not."""
    if files.kind == ".zip":
        files = _unzipped(files, source)
    _check_form(files, source)
    encoding = "utf-8" if source.encoding is None else _codec(source.encoding)
    files = replace(files, separator=source.separator, decimal=source.decimal)
    packed = any(path.suffix.lower() == ".bz2" for path in files.paths)
    if files.kind not in TEXTS or (encoding == "utf-8" and not packed):
        return files
    copies = tuple(_as_utf8(path, encoding) for path in files.paths)
    return replace(files, paths=copies, called=files.called or repr(str(files.paths[0])))


def _check_form(files: Files, source: Source) -> None:
    """Only text has an encoding, and only CSV files have separators and decimal signs."""
    if files.kind not in TEXTS and source.written:
        raise InputError(
            f"{files.name} is not text, so encoding, decimal and separator do not apply: leave "
            "them out"
        )
    if not files.untyped and replace(source, encoding=None).written:
        raise InputError(
            f"{files.name} is JSON, which has neither decimal commas nor separators: leave them out"
        )


def _codec(encoding: str) -> str:
    """The usual name of an encoding of text."""
    try:
        found = codecs.lookup(encoding)
    except (LookupError, ValueError):
        found = None
    if found is None or not found._is_text_encoding:
        raise InputError(
            f"encoding {encoding!r} is not known: give one such as utf-8, latin-1, cp1252, utf-16 "
            "or shift-jis"
        )
    return found.name


def _as_utf8(path: Path, encoding: str) -> Path:
    """A copy of a text in UTF-8, unpacked."""
    import pyarrow as pa

    copy = private_path(ending(path))
    try:
        write_copy(copy, _decoded(_blocks(path), encoding), repr(str(path)))
    except UnicodeError as error:
        where = f", byte {error.start}" if isinstance(error, UnicodeDecodeError) else ""
        raise InputError(
            f"cannot read {str(path)!r} as {encoding} ({error.__class__.__name__}{where}): name "
            "the encoding that it was written in"
        ) from None
    except (OSError, pa.ArrowException) as error:
        raise InputError(
            f"cannot read {str(path)!r} ({cause_of(error)}): check that it is complete"
        ) from None
    return copy


def _decoded(blocks: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)()
    for block in blocks:
        yield decoder.decode(block).encode()
    yield decoder.decode(b"", final=True).encode()


def likely_encoding(paths: Iterable[Path]) -> str | None:
    """The encoding that texts seem to have been written in; None if that is UTF-8, or unknown.

    Windows writes signs such as € in bytes that stand for no visible sign in Latin-1.
    """
    try:
        found = {_encoding(path) for path in paths} - {None}
    except OSError:  # a damaged file cannot be unpacked: its reader says so
        return None
    return found.pop() if len(found) == 1 else None


def _encoding(path: Path) -> str | None:
    decoder, signs, is_utf8 = codecs.getincrementaldecoder("utf-8")(), set[int](), True
    for block in _blocks(path):
        if not signs and block.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            return "utf-16"
        signs.update(block)
        try:
            decoder.decode(block)
        except UnicodeDecodeError:
            is_utf8 = False
    if is_utf8:
        return None
    return "latin-1" if signs.isdisjoint(WINDOWS) else "cp1252"


def _blocks(path: Path) -> Iterator[bytes]:
    """The bytes of a file, unpacked."""
    import pyarrow as pa

    with pa.input_stream(path, compression="detect") as stream:
        yield from iter(lambda: stream.read(BLOCK), b"")


def write_copy(copy: Path, blocks: Iterable[bytes], name: str) -> None:
    """Write a copy, of at most LIMIT bytes and what the disk has room for."""
    room = min(LIMIT, shutil.disk_usage(copy.parent).free)
    size = 0
    with copy.open("xb") as file:
        for block in blocks:
            size += len(block)
            if size > room:
                copy.unlink()
                raise InputError(too_large(name, room))
            file.write(block)


def too_large(name: str, room: int) -> str:
    """What is said of something that does not fit."""
    limit = "our limit" if room == LIMIT else "what the disk has room for"
    return (
        f"{name} unpacks to more than {room / 2**30:.3g} GiB, {limit}: unpack it yourself, or give "
        "it as .parquet"
    )


def _unzipped(files: Files, source: Source) -> Files:
    """The one file of each archive, or that which the source names."""
    copies = [_unpack(path, source.table, files.called) for path in files.paths]
    kinds = {KINDS[ending(copy)] for copy, _ in copies}
    if len(kinds) > 1:
        raise InputError(f"{files.name} hold files of different formats: give files of one format")
    called = f"{files.called or repr(str(files.paths[0]))} ({copies[0][1]!r})"
    paths = tuple(copy for copy, _ in copies)
    return Files(paths, kinds.pop(), called=called, unpacked=True)


def _unpack(path: Path, wanted: str | None, called: str) -> tuple[Path, str]:
    """A copy of one file of an archive, and its name there, which is never used as a path."""
    name = called or repr(str(path))
    try:
        with zipfile.ZipFile(path) as archive:
            member = _member(archive, wanted, name)
            if member.flag_bits & 1:
                raise InputError(f"{name} is encrypted: decrypt and unpack it first")
            end = "".join(s for s in PurePosixPath(member.filename).suffixes[-2:] if _known(s))
            copy = private_path(end.lower())
            if member.file_size > LIMIT:
                raise InputError(too_large(name, LIMIT))
            with archive.open(member) as file:
                write_copy(copy, iter(lambda: file.read(BLOCK), b""), name)
    except InputError:
        raise
    except Exception as error:  # damaged archives raise whatever their bytes happen to lead to
        raise InputError(
            f"cannot read {name} ({cause_of(error)}): check that it is a complete .zip file"
        ) from None
    return copy, member.filename


def _known(suffix: str) -> bool:
    return suffix.lower() in KINDS or suffix.lower() in PACKED


def _member(archive: zipfile.ZipFile, wanted: str | None, name: str) -> zipfile.ZipInfo:
    """The file of an archive that is named, or the only one."""
    inside = {
        info.filename: info
        for info in archive.infolist()
        if not info.is_dir() and not _hidden(PurePosixPath(info.filename))
    }
    if wanted is not None and wanted not in inside:
        raise InputError(
            f"{name} holds no file {wanted!r}{did_you_mean(wanted, inside)}: it holds "
            f"{some(inside) or 'none'}"
        )
    if wanted is None and len(inside) != 1:
        remedy = f"name one, as {Path(name[1:-1]).name}#{next(iter(inside))}" if inside else ""
        raise InputError(
            f"{name} holds {len(inside)} files ({some(inside)}), expected one: {remedy}"
            if inside
            else f"{name} holds no file: check what wrote it"
        )
    member = inside[wanted if wanted is not None else next(iter(inside))]
    end = ending(Path(PurePosixPath(member.filename).name))
    if end not in KINDS or end == ".zip":
        raise InputError(
            f"{name} holds {member.filename!r}, which is not a table: its name must end in .csv, "
            ".tsv, .json, .jsonl, .parquet or .feather"
        )
    return member


def _hidden(path: PurePosixPath) -> bool:
    """What archivers of other systems add."""
    return path.name.startswith(".") or "__MACOSX" in path.parts
