"""Runs in chunks on worker processes, here or on a cluster; a worker that dies is replaced."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from typing import Any

import numpy as np

from spibb.errors import InputError, install
from spibb.experiments.parts import Chunk
from spibb.experiments.spec import Experiment
from spibb.experiments.studies import study_of

ChunkRows = tuple[Chunk, dict[str, np.ndarray]]
ATTEMPTS = 3
"""How often in a row a worker may die before any chunk is done."""
ANSWERS_WITHIN = "10s"
"""How long a Dask scheduler may take to answer."""


def run_chunk(experiment: Experiment, chunk: Chunk) -> ChunkRows:
    """All rows of a chunk, by column."""
    repeat = study_of(experiment).repeat
    rows = [row for run in range(chunk.start, chunk.stop) for row in repeat(experiment, run)]
    return chunk, {name: _column(name, [row[name] for row in rows]) for name in rows[0]}


def _column(name: str, values: list[Any]) -> np.ndarray:
    """Names as text, whole numbers as int32, known values as float64, the rest as float32."""
    whole = dict.fromkeys(("run", "size", "passes", "seed"), np.int32)
    kinds = whole | dict.fromkeys(("eta", "noise", "baseline", "optimal"), np.float64)
    named = dict.fromkeys(("family", "quality"), np.str_)
    return np.array(values, dtype=(kinds | named).get(name, np.float32))


def run_chunks(
    experiment: Experiment, chunks: Sequence[Chunk], jobs: int, dask: str | None
) -> Generator[ChunkRows, None, None]:
    """The rows of all chunks as they arrive; those of a local worker that died are done again.

    A Dask cluster does the same by itself.
    """
    left, deaths = dict.fromkeys(chunks), 0
    with _backend(jobs, dask) as options:
        while left:
            try:
                for chunk, columns in _arriving(experiment, list(left), options):
                    del left[chunk]
                    deaths = 0
                    yield chunk, columns
            except BrokenProcessPool:
                deaths += 1
                if deaths == ATTEMPTS:
                    raise InputError(
                        f"workers died {ATTEMPTS} times in a row before they finished a chunk of "
                        "runs, perhaps for lack of memory: run the command again with fewer "
                        "--jobs; all finished parts are kept"
                    ) from None


def _arriving(
    experiment: Experiment, chunks: Sequence[Chunk], options: dict[str, Any]
) -> Iterator[ChunkRows]:
    from joblib import Parallel, delayed

    pool = Parallel(return_as="generator_unordered", **options)
    tasks = (delayed(run_chunk)(experiment, chunk) for chunk in chunks)
    with contextlib.closing(pool(tasks)) as rows:
        yield from rows


@contextlib.contextmanager
def _backend(jobs: int, dask: str | None) -> Iterator[dict[str, Any]]:
    """joblib on this machine, one thread per process; or an existing Dask cluster."""
    from joblib import parallel_config

    if dask is None:
        with parallel_config(
            backend="loky", n_jobs=jobs, inner_max_num_threads=1,
            initializer=live_with, initargs=(os.getpid(),),
        ):  # fmt: skip
            yield {"n_jobs": jobs}
        return
    try:
        from distributed import Client
    except ImportError:
        raise InputError(f"--dask needs the package distributed: {install('cluster')}") from None
    try:
        client: Any = Client(dask, timeout=ANSWERS_WITHIN)  # type: ignore[no-untyped-call]
    except (OSError, TimeoutError, ValueError) as error:
        raise InputError(f"no Dask scheduler answers at {dask!r} ({error}): check it") from None
    with client, parallel_config(backend="dask"):
        yield {"n_jobs": -1}


def live_with(parent: int, every: float = 1.0) -> None:
    """End this process when its parent has died, even by SIGKILL; nobody else would end it."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(every)
        os._exit(1)

    threading.Thread(target=watch, name="live_with", daemon=True).start()
