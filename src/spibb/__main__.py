"""`python -m spibb` is `spibb`: a process that starts, answers and leaves."""

from __future__ import annotations

import atexit
import contextlib
import gc
import io
import os
import signal
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType

ALLOCATED = 300_000
"""New objects after which Python looks for cycles, 700 by default: imports make few cycles and many
objects, which it would look through again and again, a tenth of what `spibb improve` takes."""
POSTPONED = ("numpy.f2py", "numpy.testing")
"""SciPy asks NumPy for all its parts, and uses none of these: a twentieth of what `spibb improve`
takes."""


class Postponing:
    """Finds the modules of `POSTPONED`; they are executed once something of theirs is used."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """As Python finds it, with a loader that waits."""
        spec = PathFinder.find_spec(name, path, target) if name in POSTPONED else None
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec


def run() -> None:
    """Run the command line, and leave without tearing everything down.

    To free one by one all objects of all modules takes Python a fifth of what `spibb improve`
    takes; the operating system frees them at once. What has to happen happens before: threads are
    waited for, and what others registered for the exit is done, because the first to register is
    the last to be called.
    """
    _open_outputs()
    gc.set_threshold(ALLOCATED)
    sys.meta_path.insert(0, Postponing)
    codes: list[int] = []
    atexit.register(_leave, codes)
    try:
        from spibb.cli.app import main

        main()
    except KeyboardInterrupt:  # before there was anything that could be stopped
        codes.append(_interrupted())
        raise SystemExit(codes[0]) from None
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            codes.append(end.code or 0)
        raise


def _interrupted() -> int:
    """Say so as a command that was at work would, and with its code."""
    from spibb.cli.stopping import Stopped

    stop = Stopped(signal.SIGINT)
    print("spibb:", stop, file=sys.stderr)
    return 128 + stop.number


def _open_outputs() -> None:
    """Replace a closed stream (`spibb … >&-`), which is None in Python, by one that discards all.

    Else the next file that is opened would take its number, and what is printed. Signs that the
    encoding of the output does not have (γ in cp1252) become question marks, and end no command.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115, it stays open
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def _leave(codes: list[int]) -> None:
    """End the process with its code, if it has one and the output is written; messages may not."""
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.flush()
        for code in codes:
            os._exit(code)


if __name__ == "__main__":
    run()
