"""Parts that a machine may lack: a test skips there on a user's machine, and fails in CI."""

from __future__ import annotations

import os
from importlib import import_module
from types import ModuleType
from typing import Any

import pytest

IN_CI = bool(os.environ.get("CI"))


def needed(module: str) -> ModuleType:
    """Import a module, or skip."""
    found: Any = import_module(module) if IN_CI else pytest.importorskip(module)
    return found


def lacking(reason: str) -> None:
    """Skip because a part is missing."""
    assert not IN_CI, reason
    pytest.skip(reason)
