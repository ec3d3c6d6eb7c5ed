"""Parts: the stored rows of an experiment, in files that say what they are.

A part is a Parquet file. Its name has its runs and the beginning of its SHA-256; inside, it has
its runs again, the fingerprint and the seed of its experiment, and the version that made it. So a
flipped byte, a copy, another name, and rows of another experiment, seed or version all show.
"""

from __future__ import annotations

import hashlib
import platform
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import numpy as np

import spibb
from spibb.errors import InputError
from spibb.experiments.spec import Experiment
from spibb.files import sha256, write_whole

if TYPE_CHECKING:
    import pyarrow as pa

DIGITS = 16
"""How many hexadecimal digits of the hash a name has."""
NAME = re.compile(rf"part-(\d{{9}})-(\d{{9}})-([0-9a-f]{{{DIGITS}}})\.parquet")
REMOVE = "move it out of the folder, and give the command of the experiment again"


@dataclass(frozen=True, order=True)
class Chunk:
    """Runs start … stop − 1."""

    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start

    def __str__(self) -> str:
        return f"{self.start} to {self.stop - 1}"


@dataclass(frozen=True)
class Part:
    """A part that is whole, and what it says about itself."""

    path: Path
    chunk: Chunk
    version: str


@dataclass(frozen=True)
class StoredParts:
    """The parts of a folder in the order of their runs, and the files that are damaged."""

    parts: tuple[Part, ...]
    damaged: tuple[Path, ...]

    @property
    def chunks(self) -> list[Chunk]:
        """The runs of the parts."""
        return [part.chunk for part in self.parts]


def store(
    experiment: Experiment, folder: Path, chunk: Chunk, columns: dict[str, np.ndarray]
) -> Path:
    """Write the rows of a chunk as a part."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table(columns).replace_schema_metadata(_identity(experiment, chunk))
    stream = pa.BufferOutputStream()
    pq.write_table(table, stream)
    data = stream.getvalue().to_pybytes()
    digest = hashlib.sha256(data).hexdigest()[:DIGITS]
    path = folder / f"part-{chunk.start:09d}-{chunk.stop:09d}-{digest}.parquet"
    write_whole(path, lambda place: place.write_bytes(data))
    return path


def _identity(experiment: Experiment, chunk: Chunk) -> dict[str, str]:
    return {
        "spibb": spibb.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "experiment": experiment.fingerprint,
        "seed": str(experiment.seed),
        "runs": str(chunk),
    }


def part_files(folder: Path) -> list[Path]:
    """All files of a folder that are named as parts."""
    return sorted(folder.glob("part-*.parquet"))


def chunk_of(path: Path) -> Chunk:
    """The runs that a part's name says."""
    match = NAME.fullmatch(path.name)
    if match is None:
        _refuse(path, "is not a part as spibb names them")
    return Chunk(int(match[1]), int(match[2]))


def stored_parts(experiment: Experiment, folder: Path) -> StoredParts:
    """Read and check the parts of a folder; what does not belong there is refused by name.

    Damaged parts are only listed: they can be set aside and done again.
    """
    parts, damaged = [], []
    for path in part_files(folder):
        chunk = chunk_of(path)
        if not path.stem.endswith(sha256(path)[:DIGITS]):
            damaged.append(path)
        else:
            parts.append(_checked(path, chunk, experiment))
    parts.sort(key=lambda part: part.chunk)
    _check_together(parts)
    return StoredParts(tuple(parts), tuple(damaged))


def _checked(path: Path, chunk: Chunk, experiment: Experiment) -> Part:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path, columns=["run"])
        metadata = table.schema.metadata or {}
        said = {key.decode(): value.decode() for key, value in metadata.items()}
    except (pa.ArrowException, OSError, UnicodeError) as error:
        _refuse(path, f"cannot be read ({str(error).splitlines()[0]})")
    wanted = {"experiment": experiment.fingerprint, "seed": str(experiment.seed)}
    if "runs" not in said or "spibb" not in said or not wanted.keys() <= said.keys():
        _refuse(path, "does not say what made it")
    if said["seed"] != wanted["seed"]:
        _refuse(path, f"was made with seed {said['seed']}, not {wanted['seed']}")
    if said["experiment"] != wanted["experiment"]:
        _refuse(path, "belongs to another experiment, with other sizes, columns or options")
    if said["runs"] != str(chunk):
        _refuse(path, f"has runs {said['runs']}, and its name says {chunk}")
    if not _has_runs(table, chunk):
        _refuse(path, f"does not have the rows of runs {chunk}")
    return Part(path, chunk, said["spibb"])


def _has_runs(table: pa.Table, chunk: Chunk) -> bool:
    """Whether the rows are those of the chunk's runs, equally many of each."""
    runs, rows = np.unique(table["run"].to_numpy(), return_counts=True)
    return np.array_equal(runs, np.arange(chunk.start, chunk.stop)) and len(set(rows)) == 1


def _check_together(parts: Sequence[Part]) -> None:
    """Parts of one folder do not overlap, and one version made them."""
    for left, right in pairwise(parts):
        if right.chunk.start < left.chunk.stop:
            _refuse(right.path, f"has runs that {left.path.name!r} has too")
        if right.version != left.version:
            _refuse(
                right.path,
                f"was made by spibb {right.version}, and {left.path.name!r} by {left.version}",
            )


def check_version(parts: Iterable[Part]) -> None:
    """Refuse to add rows to those of another version."""
    for part in parts:
        if part.version != spibb.__version__:
            raise InputError(
                f"{str(part.path)!r} was made by spibb {part.version}, and this is "
                f"{spibb.__version__}: continue with that version, or name another folder"
            )


def _refuse(path: Path, reason: str) -> NoReturn:
    raise InputError(f"{str(path)!r} {reason}: {REMOVE}")
