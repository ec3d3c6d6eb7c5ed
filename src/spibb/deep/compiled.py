"""Where compiled programs are kept, so that the next process need not compile them again."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

import jax


def cache_folder() -> Path:
    """The folder of this user's caches, by the rules of XDG."""
    given = os.environ.get("XDG_CACHE_HOME")
    return (Path(given) if given else Path.home() / ".cache") / "spibb" / "jax"


def keep_programs() -> None:
    """Have JAX keep what it compiles, unless the caller has said where or that it must not.

    If the folder cannot be made, the program is compiled every time.
    """
    config: Any = jax.config
    if config.jax_compilation_cache_dir or os.environ.get("JAX_ENABLE_COMPILATION_CACHE"):
        return
    with contextlib.suppress(OSError, RuntimeError):
        folder = cache_folder()
        folder.mkdir(parents=True, exist_ok=True)
        config.update("jax_compilation_cache_dir", str(folder))
        config.update("jax_persistent_cache_min_compile_time_secs", 0.2)
