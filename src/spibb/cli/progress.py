"""What the command line shows while it works: what, how far, since when, and what compiles once."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

KERNELS = Path(__file__).parent.parent / "kernels"
SHOWN_FROM = 2.0
"""Seconds that pass before they are shown."""

SOLVER = ("dense.policy_iteration", 8.0)
STEP_SUMS = ("ope.step_sums", 4.0)
STUDY = ("study.train", 30.0)
"""A kernel of each kind of work, and seconds of compiling (python -m benchmarks start)."""


def new_console() -> Console:
    """What prints; made late, because loading Rich takes a while."""
    from rich.console import Console

    return Console()


@dataclass
class ProgressLine:
    """The line that is drawn again and again; it says how long the work has taken so far."""

    text: str
    share: str = ""
    begun: float = field(default_factory=time.monotonic)

    def __rich__(self) -> str:
        elapsed = time.monotonic() - self.begun
        since = f", {elapsed:.0f} s" if elapsed >= SHOWN_FROM else ""
        return f"{self.text}{self.share}{since}"


@contextmanager
def progress(
    console: Console,
    text: str,
    of: str = "of the log scanned",
    *,
    compiles: tuple[str, float] | None = None,
) -> Iterator[Callable[[float], None]]:
    """A line that says what is going on, and how far it is.

    `compiles` names a kernel of the work, and how many seconds of compiling the work costs where
    that kernel was never compiled before.
    """
    line = ProgressLine(text + _compiling(compiles))

    def tell(share: float) -> None:
        line.share = f" ({share:.0%} {of})"

    with console.status(line):
        yield tell


def _compiling(compiles: tuple[str, float] | None) -> str:
    """What to add to a line if a kernel must be compiled first."""
    if compiles is None or is_compiled(compiles[0]):
        return ""
    return f" (compiling once, about {compiles[1]:.0f} s)"


@contextmanager
def stages(
    console: Console, *, compiles: tuple[str, float] | None = None
) -> Iterator[Callable[[str, float], None]]:
    """A line that names the stage of the work, its share, what has passed, and what is left."""
    note = _compiling(compiles)
    line, begun = ProgressLine(f"starting{note}"), time.monotonic()

    def tell(stage: str, share: float) -> None:
        nonlocal begun
        if stage + note != line.text:
            line.text, begun = stage + note, time.monotonic()
        passed = time.monotonic() - begun
        left = passed * (1 - share) / share if 0 < share < 1 else 0.0
        more = f", about {left:.0f} s left" if left >= SHOWN_FROM else ""
        line.share = f" ({share:.0%}{more})" if share > 0 else ""

    with console.status(line):
        yield tell


def is_compiled(kernel: str) -> bool:
    """Whether the disk holds a compiled version of a kernel, named as ``module.function``.

    Numba keeps it beside the source, or where NUMBA_CACHE_DIR says.
    """
    elsewhere = os.environ.get("NUMBA_CACHE_DIR")
    found = Path(elsewhere).rglob if elsewhere else (KERNELS / "__pycache__").glob
    return any(found(f"{kernel}-*.nbi"))
