"""Run an experiment in chunks, on this machine or on a cluster, and continue what was stopped.

Every chunk of runs becomes one Parquet part, written whole. The rows of run r depend
on the experiment and on r alone, so that neither the number of workers nor the chunks change one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from spibb.checks import positive
from spibb.errors import InputError
from spibb.experiments.parts import Chunk, check_version, chunk_of, part_files, store, stored_parts
from spibb.experiments.spec import Experiment
from spibb.experiments.studies import study_of
from spibb.experiments.workers import run_chunks
from spibb.files import hold, occupied
from spibb.loading import read_text

SPEC = "experiment.toml"
WORTH_PROCESSES = 10.0  # seconds of work


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

    A folder of another experiment, or with parts that do not belong to it, is refused; a damaged
    part is set aside. `dry` only looks, and leaves the disk as it is.
    """
    positive("runs", runs)
    positive("jobs", jobs)
    study_of(experiment).prepare(experiment)
    with contextlib.nullcontext() if dry else hold(folder):
        _check_folder(experiment, folder)
        if not (dry or (folder / SPEC).is_file()):
            experiment.write(folder / SPEC)
        stored = stored_parts(experiment, folder)
        check_version(stored.parts)
        broken = stored.damaged if dry else tuple(map(_set_aside, stored.damaged))
    chunks = tuple(_missing(stored.chunks, runs, _chunk_size(experiment, runs, jobs)))
    seconds = study_of(experiment).seconds(experiment, chunks[0].start) if chunks else 0.0
    return Plan(experiment, folder, runs, _finished(stored.chunks, runs), chunks, broken, seconds)


def _finished(chunks: Iterable[Chunk], runs: int) -> int:
    return sum(min(chunk.stop, runs) - min(chunk.start, runs) for chunk in chunks)


def stored_runs(plan: Plan) -> int:
    """How many of the wanted runs the folder holds now, by the names of its parts."""
    return _finished(map(chunk_of, part_files(plan.folder)), plan.runs)


def execute(plan: Plan, *, jobs: int = 1, dask: str | None = None) -> Generator[Chunk, None, None]:
    """Run the chunks of a plan and yield each when its part is stored.

    Nobody else can write to the folder meanwhile; the workers only send their rows.
    """
    with hold(plan.folder):
        _check_current(plan)
        arriving = run_chunks(plan.experiment, plan.chunks, jobs, dask)
        with contextlib.closing(arriving):
            for chunk, columns in arriving:
                _store(plan, chunk, columns)
                yield chunk


def read_spec(folder: Path) -> Experiment:
    """The experiment whose results a folder holds."""
    path = folder / SPEC
    if not path.is_file():
        raise InputError(
            f"{str(folder)!r} holds no experiment: there is no {SPEC}; name the folder that "
            "`spibb experiment` wrote"
        )
    return Experiment.from_toml(read_text(path, repr(str(path))), repr(str(path)))


def _check_folder(experiment: Experiment, folder: Path) -> None:
    """Refuse a folder that holds something else."""
    if (folder / SPEC).is_file():
        stored = read_spec(folder)
        if stored != experiment:
            raise InputError(
                f"{str(folder)!r} holds another experiment ({_difference(stored, experiment)}): "
                "name another folder, or repeat the options of the first run"
            )
    elif folder.is_dir() and occupied(folder):
        raise InputError(f"output folder {str(folder)!r} is not empty: name another")


def _check_current(plan: Plan) -> None:
    """Refuse a plan whose runs somebody else has stored since it was made."""
    planned = {run for chunk in plan.chunks for run in range(chunk.start, chunk.stop)}
    for path in part_files(plan.folder):
        chunk = chunk_of(path)
        if not planned.isdisjoint(range(chunk.start, chunk.stop)):
            raise InputError(
                f"another process has stored runs {chunk} in {str(plan.folder)!r} in the "
                "meantime: run the same command again to continue"
            )


def _set_aside(path: Path) -> Path:
    return path.rename(path.with_suffix(".broken"))


def _difference(stored: Experiment, wanted: Experiment) -> str:
    """Name the first entry in which two experiments differ."""
    names = (
        "study", "baseline", "network", "seed", "max_steps", "sizes", "etas", "training",
        "families",
    )  # fmt: skip
    for name in names:
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


def _store(plan: Plan, chunk: Chunk, columns: dict[str, np.ndarray]) -> None:
    try:
        store(plan.experiment, plan.folder, chunk, columns)
    except InputError as error:
        raise InputError(
            f"{error}; then run the same command again: all finished parts are kept"
        ) from None
