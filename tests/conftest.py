"""Shared settings: no stale kernels, and hypothesis never times an example, since they compile."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))


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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """First what forks this process while it is small, then files with slow tests, so that no
    worker is left alone with one at the end."""
    forks, slow = (
        {item.path for item in items if item.get_closest_marker(mark)} for mark in ("forks", "slow")
    )
    items.sort(key=lambda item: (item.path not in forks, item.path not in slow))


settings.register_profile(
    "spibb", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("spibb")
