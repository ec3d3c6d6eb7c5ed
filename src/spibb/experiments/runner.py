"""Run an experiment in chunks, on this machine or on a cluster, and continue what was stopped.

Every chunk of runs becomes one Parquet part, written whole. Run r depends on the seed and on r
alone, so that neither the number of workers nor the chunks change a row.
"""

from __future__ import annotations

import contextlib
import errno
import platform
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import spibb
from spibb.checks import positive
from spibb.errors import InputError, install
from spibb.experiments.spec import Experiment
from spibb.experiments.studies import study_of
from spibb.loading import read_text
from spibb.tables import write_table

if TYPE_CHECKING:
    import pyarrow as pa

SPEC = "experiment.toml"
WORTH_PROCESSES = 10.0  # seconds of work
PART = re.compile(r"part-(\d{9})-(\d{9})\.parquet")


@dataclass(frozen=True)
class Chunk:
    """Runs start … stop − 1."""

    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start

    @property
    def file(self) -> str:
        """Name of the part that holds these runs."""
        return f"part-{self.start:09d}-{self.stop:09d}.parquet"


@dataclass(frozen=True)
class Plan:
    """What is left to do in a results folder, and what one run costs."""

    experiment: Experiment
    folder: Path
    runs: int
    done: int
    chunks: tuple[Chunk, ...]
    set_aside: tuple[Path, ...]
    seconds_per_run: float

    @property
    def missing(self) -> int:
        """Runs still to do."""
        return sum(len(chunk) for chunk in self.chunks)

    def processes(self, cores: int) -> int:
        """How many processes are worth starting: each imports and loads kernels for seconds."""
        return cores if self.missing * self.seconds_per_run > WORTH_PROCESSES else 1


def plan(
    experiment: Experiment, folder: Path, runs: int, jobs: int = 1, *, dry: bool = False
) -> Plan:
    """Open or create a results folder, look at what it holds, and time one run.

    A folder of another experiment is refused; a part that cannot be read is set aside. `dry` only
    looks, and leaves the disk as it is.
    """
    positive("runs", runs)
    positive("jobs", jobs)
    study_of(experiment).prepare(experiment)
    _check_folder(experiment, folder)
    if not dry:
        _make_folder(experiment, folder)
    done, broken = stored_chunks(folder)
    if not dry:
        broken = tuple(path.rename(path.with_suffix(".broken")) for path in broken)
    chunks = tuple(_missing(done, runs, _chunk_size(experiment, runs, jobs)))
    seconds = study_of(experiment).seconds(experiment, chunks[0].start) if chunks else 0.0
    finished = sum(min(c.stop, runs) - min(c.start, runs) for c in done)
    return Plan(experiment, folder, runs, finished, chunks, broken, seconds)


def execute(plan: Plan, *, jobs: int = 1, dask: str | None = None) -> Iterator[Chunk]:
    """Run the chunks of a plan and yield each when its part is stored."""
    from joblib import Parallel, delayed

    tasks = (delayed(run_chunk)(plan.experiment, chunk) for chunk in plan.chunks)
    with _backend(jobs, dask) as options:
        pool = Parallel(return_as="generator_unordered", **options)
        for chunk, columns in pool(tasks):
            _store(plan, chunk, columns)
            yield chunk


def run_chunk(experiment: Experiment, chunk: Chunk) -> tuple[Chunk, dict[str, np.ndarray]]:
    """All rows of a chunk, by column."""
    repeat = study_of(experiment).repeat
    rows = [row for run in range(chunk.start, chunk.stop) for row in repeat(experiment, run)]
    return chunk, {name: _column(name, [row[name] for row in rows]) for name in rows[0]}


def stored_chunks(folder: Path) -> tuple[list[Chunk], tuple[Path, ...]]:
    """The chunks that a folder holds, and its unreadable parts."""
    done, broken = [], []
    for path in sorted(folder.glob("part-*.parquet")):
        match = PART.fullmatch(path.name)
        if match and _readable(path):
            done.append(Chunk(int(match[1]), int(match[2])))
        else:
            broken.append(path)
    return done, tuple(broken)


def read_spec(folder: Path) -> Experiment:
    """The experiment whose results a folder holds."""
    path = folder / SPEC
    if not path.is_file():
        raise InputError(
            f"{str(folder)!r} holds no experiment: there is no {SPEC}; name the folder that "
            "`spibb experiment` wrote"
        )
    return Experiment.from_toml(read_text(path, repr(str(path))), repr(str(path)))


def _column(name: str, values: list[Any]) -> np.ndarray:
    """Whole numbers as int32, known values as float64, performances as float32."""
    whole = dict.fromkeys(("run", "size", "passes", "seed"), np.int32)
    kinds = whole | dict.fromkeys(("eta", "noise", "baseline", "optimal"), np.float64)
    return np.array(values, dtype=kinds.get(name, np.float32))


def _check_folder(experiment: Experiment, folder: Path) -> None:
    """Refuse a folder that holds something else."""
    if (folder / SPEC).is_file():
        stored = read_spec(folder)
        if stored != experiment:
            raise InputError(
                f"{str(folder)!r} holds another experiment ({_difference(stored, experiment)}): "
                "name another folder, or repeat the options of the first run"
            )
    elif folder.is_dir() and any(folder.iterdir()):
        raise InputError(f"output folder {str(folder)!r} is not empty: name another")


def _make_folder(experiment: Experiment, folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make {str(folder)!r}: {error.strerror}") from None
    if not (folder / SPEC).is_file():
        experiment.write(folder / SPEC)


def _difference(stored: Experiment, wanted: Experiment) -> str:
    """Name the first entry in which two experiments differ."""
    for name in ("suite", "seed", "max_steps", "sizes", "etas", "training"):
        if getattr(stored, name) != getattr(wanted, name):
            return f"{name} {getattr(stored, name)}, not {getattr(wanted, name)}"
    return f"{len(stored.columns)} columns, not these {len(wanted.columns)}"


def _chunk_size(experiment: Experiment, runs: int, jobs: int) -> int:
    """Small enough that all workers share short runs, and that random MDPs come in seconds.

    A kill loses at most one chunk per worker.
    """
    largest = max(1, study_of(experiment).largest_chunk // max(1, len(experiment.etas)))
    return max(1, min(largest, -(-runs // (4 * jobs))))


def _missing(done: Iterable[Chunk], runs: int, size: int) -> Iterator[Chunk]:
    """The runs below `runs` that no chunk holds, cut into chunks."""
    at = 0
    for chunk in [*sorted(done, key=lambda c: c.start), Chunk(runs, runs)]:
        while at < min(chunk.start, runs):
            stop = min(at + size, chunk.start, runs)
            yield Chunk(at, stop)
            at = stop
        at = max(at, chunk.stop)


def _readable(path: Path) -> bool:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(path).metadata.num_rows > 0
    except (pa.ArrowInvalid, OSError):
        return False


def _store(plan: Plan, chunk: Chunk, columns: dict[str, np.ndarray]) -> None:
    import pyarrow as pa

    versions = {"spibb": spibb.__version__, "numpy": np.__version__,
                "python": platform.python_version(), "seed": str(plan.experiment.seed)}  # fmt: skip
    table: pa.Table = pa.table(columns).replace_schema_metadata(versions)
    try:
        write_table(table, plan.folder / chunk.file)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        raise InputError(
            f"no space left for {str(plan.folder / chunk.file)!r}: free some and give the same "
            "command again; all finished parts are kept"
        ) from None


@contextlib.contextmanager
def _backend(jobs: int, dask: str | None) -> Iterator[dict[str, Any]]:
    """joblib on this machine, one thread per process; or an existing Dask cluster."""
    from joblib import parallel_config

    if dask is None:
        with parallel_config(backend="loky", n_jobs=jobs, inner_max_num_threads=1):
            yield {"n_jobs": jobs}
        return
    try:
        from distributed import Client
    except ImportError:
        raise InputError(f"--dask needs the package distributed: {install('cluster')}") from None
    try:
        client: Any = Client(dask, timeout="10s")  # type: ignore[no-untyped-call]
    except (OSError, TimeoutError, ValueError) as error:
        raise InputError(f"no Dask scheduler answers at {dask!r} ({error}): check it") from None
    with client, parallel_config(backend="dask"):
        yield {"n_jobs": -1}
