"""`python -m spibb` is `spibb`: a process that starts, answers and leaves."""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import sys

ALLOCATED = 300_000
"""New objects after which Python looks for cycles, 700 by default: imports make few cycles and many
objects, which it would look through again and again, a tenth of what `spibb improve` takes."""


def run() -> None:
    """Run the command line, and leave without tearing everything down.

    To free one by one all objects of all modules takes Python a fifth of what `spibb improve`
    takes; the operating system frees them at once. What has to happen happens before: threads are
    waited for, and what others registered for the exit is done, because the first to register is
    the last to be called.
    """
    gc.set_threshold(ALLOCATED)
    codes: list[int] = []
    atexit.register(_leave, codes)
    from spibb.cli.app import main

    try:
        main()
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            codes.append(end.code or 0)
        raise


def _leave(codes: list[int]) -> None:
    """End the process with its code, if it has one and all that was printed is written."""
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
        for code in codes:
            os._exit(code)


if __name__ == "__main__":
    run()
