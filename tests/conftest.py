"""Shared settings: no stale kernels, one thread a worker, and no example is timed."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.main
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))
gc.disable()  # until all tests are collected: modules stay, and make few cycles

ONE_THREAD = {
    "OPENBLAS_NUM_THREADS": "1",
    "NPROC": "1",  # size of XLA's thread pool
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
}
"""As commands and studies compute: there is a worker per core, and arrays are small, so that
threads would mostly wait for each other, some of them busily."""
for name, value in ONE_THREAD.items():
    os.environ.setdefault(name, value)

# What Python compiles is kept, as kernels are: tests start many processes.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

from engines import keep_engines  # noqa: E402 (NumPy looks at the number of threads)


def drop_stale_kernels() -> None:
    """Forget compiled kernels that are older than any kernel's source.

    Numba checks the file of a kernel only, not the files of the kernels that it calls.
    """
    folder = Path(__file__).parent.parent / "src" / "spibb" / "kernels"
    newest = max(source.stat().st_mtime for source in folder.rglob("*.py"))
    for index in folder.rglob("*.nbi"):
        with contextlib.suppress(FileNotFoundError):  # another run may clear up as well
            if index.stat().st_mtime < newest:
                index.unlink()


drop_stale_kernels()

# Typer builds all commands anew whenever one is called; tests call hundreds in one process.
typer.main.get_command = cache(typer.main.get_command)
keep_engines()


@pytest.fixture(scope="session")
def commands() -> Iterator[Any]:
    """Runs commands of `spibb`, where it is not tested how a process starts."""
    from commands import Server

    server = Server()
    yield server
    server.close()


@pytest.hookimpl(optionalhook=True)  # without pytest-xdist nobody asks
def pytest_xdist_auto_num_workers() -> int:
    """One more than cores: tests that wait for a process or a server leave a core to others."""
    return len(os.sched_getaffinity(0)) + 1


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """First files with slow tests, so that no worker is left alone with one at the end.

    The others from the last to the first: the last ones take longer than the first.
    """
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path, reverse=True)
    items.sort(key=lambda item: item.path not in slow)


def pytest_collection_finish() -> None:
    """Look for cycles among what tests make, not among half a million objects of modules."""
    gc.freeze()
    gc.enable()


settings.register_profile(
    "spibb", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("spibb")
