"""Run something in a child process that kills itself at a chosen system call."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable
from datetime import datetime, tzinfo
from typing import IO, NamedTuple, NoReturn

RENAMES = ("replace", "rename")
CHANGES = (
    *RENAMES, "open", "write", "truncate", "mkdir", "rmdir", "link", "symlink", "unlink", "fsync",
)  # fmt: skip


class Countdown:
    """Stands in for functions of `os`; sends SIGKILL before the k-th call of any of them."""

    def __init__(self, names: Iterable[str], calls: int) -> None:
        self.left = calls
        for name in names:
            setattr(os, name, self._counted(getattr(os, name)))

    def _counted(self, function: Callable) -> Callable:
        def call(*arguments, **options):
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            self.left -= 1
            return function(*arguments, **options)

        return call


def killed_at(calls: int, work: Callable[[], object], names: Iterable[str] = CHANGES) -> bool:
    """Whether a child that does the work dies before the call of this number."""
    child = os.fork()
    if child == 0:
        try:
            Countdown(names, calls)
            work()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return True
    assert os.WEXITSTATUS(status) == 0
    return False


class Server:
    """A process that only imports: each command runs in a fork of it, which starts at once."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(
        self, *words: object, renames: int | None = None, seconds: float | None = None
    ) -> Ended:
        """Run a command; SIGKILL it before a rename, or after some seconds."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps([list(map(str, words)), renames, seconds]), file=self._process.stdin)
        self._process.stdin.flush()
        return Ended(*json.loads(self._process.stdout.readline()))

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=10)


class Ended(NamedTuple):
    """How a command ended: its exit code, or minus the signal; seconds; what it said."""

    code: int
    seconds: float
    said: str

    @property
    def killed(self) -> bool:
        return self.code == -signal.SIGKILL


class Clock(datetime):
    """Stands still, so that results can be compared to the bit."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:
        return datetime(2026, 11, 16, tzinfo=tz)


def serve() -> None:
    """Run the commands that come in, one after the other, always at the same date."""
    from spibb.report import origin

    origin.datetime = Clock
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        words, renames, seconds = json.loads(line)
        with tempfile.TemporaryFile("w+") as said, tempfile.TemporaryFile("w+") as modules:
            begin = time.monotonic()
            child = os.fork()
            if child == 0:
                _become(words, renames, said, modules)
            code = _ended(child, seconds)
            took = time.monotonic() - begin
            said.seek(0)
            print(json.dumps([code, took, said.read()]), file=answers)
            answers.flush()
            modules.seek(0)
            _import_all(modules.read().split())


def _become(words: list[str], renames: int | None, said: IO[str], modules: IO[str]) -> NoReturn:
    from spibb.cli.app import main

    os.dup2(said.fileno(), 1)
    os.dup2(said.fileno(), 2)
    sys.argv = ["spibb", *words]
    if renames is not None:
        Countdown(RENAMES, renames)
    code = 1
    try:
        main()
    except SystemExit as end:
        code = end.code or 0
    except BaseException:
        traceback.print_exc()
    finally:
        print(*sys.modules, file=modules, flush=True)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _import_all(names: list[str]) -> None:
    """Import what a command has imported, so that the next need not."""
    for name in names:
        if name not in sys.modules:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)


def _ended(child: int, seconds: float | None) -> int:
    if seconds is not None:
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    serve()
