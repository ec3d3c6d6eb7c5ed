"""Signals to stop: Ctrl-C, SIGTERM (a scheduler, a container) and SIGHUP (a closed terminal)."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
AGAIN_SECONDS = 0.02
"""How long a signal that could not be obeyed waits before it comes again."""
_asked: list[int] = []
"""The signals that came since `stoppable` began."""


class Stopped(SystemExit):
    """A signal ended the work; the exit code is 128 + its number, as shells have it."""

    def __init__(self, number: int, note: str = "") -> None:
        super().__init__(128 + number)
        self.number = number
        self.note = note

    def __str__(self) -> str:
        name = signal.Signals(self.number).name
        by = "interrupted" if self.number == signal.SIGINT else f"stopped by {name}"
        return f"{by}: {self.note}" if self.note else by


@contextlib.contextmanager
def stoppable() -> Iterator[None]:
    """Raise `Stopped` at these signals, so that all that is open is closed on the way out.

    A signal that is ignored stays so (`nohup`). One that arrives during an import waits until it
    has ended: compiled modules lose an exception while they are loaded, or abort. One that Python
    had to drop (in a finaliser) comes again.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {s: signal.getsignal(s) for s in SIGNALS if signal.getsignal(s) is not signal.SIG_IGN}
    outside = _imports(sys._getframe())
    waiting: list[threading.Timer] = []
    _asked.clear()

    def again(number: int) -> None:
        main = threading.main_thread().ident
        waiting.append(threading.Timer(AGAIN_SECONDS, signal.pthread_kill, (main, number)))
        waiting[-1].start()

    def stop(number: int, frame: FrameType | None) -> None:
        if _imports(frame) > outside:
            return again(number)
        _asked.append(number)
        raise Stopped(number)

    def dropped(exception: sys.UnraisableHookArgs) -> None:
        if isinstance(exception.exc_value, Stopped):
            again(exception.exc_value.number)
        else:
            report_dropped(exception)

    report_dropped = sys.unraisablehook
    sys.unraisablehook = dropped
    try:
        for number in before:
            signal.signal(number, stop)
        with unwrapped():
            yield
    finally:
        sys.unraisablehook = report_dropped
        for timer in waiting:
            timer.cancel()
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def unwrapped() -> Iterator[None]:
    """See `Stopped` also where compiled code made another exception of it.

    DuckDB says that a query was interrupted; code about to return makes it a SystemError.
    """
    try:
        yield
    except Exception:
        if _asked:
            raise Stopped(_asked[-1]) from None
        raise


def _imports(frame: FrameType | None) -> int:
    """How many frames of the import system are open."""
    found = 0
    while frame is not None:
        found += frame.f_code.co_filename.startswith("<frozen importlib")
        frame = frame.f_back
    return found
