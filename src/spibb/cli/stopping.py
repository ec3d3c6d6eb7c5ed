"""Signals to stop: Ctrl-C, SIGTERM (a scheduler, a container) and SIGHUP (a closed terminal)."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


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

    A signal that is ignored stays so (`nohup`).
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {s: signal.getsignal(s) for s in SIGNALS if signal.getsignal(s) is not signal.SIG_IGN}
    try:
        for number in before:
            signal.signal(number, _stop)
        with unwrapped():
            yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def unwrapped() -> Iterator[None]:
    """See `Stopped` also where compiled code was about to return, which makes it a SystemError."""
    try:
        yield
    except SystemError as error:
        cause: BaseException | None = error
        while isinstance(cause, SystemError):
            cause = cause.__cause__
        if isinstance(cause, Stopped):
            raise cause from None
        raise


def _stop(number: int, frame: FrameType | None) -> None:
    raise Stopped(number)
