"""Run something in a child process that kills itself at a chosen system call."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterable
from typing import IO, NoReturn

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


class Killer:
    """A small process that forks for every piece of work: to fork the tests' own takes 20 ms."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__, *sys.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def killed_at(self, calls: int, work: Callable, *arguments: object) -> bool:
        """Whether a child that does the work dies before the call of this number."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        pickle.dump((calls, work, arguments), self._process.stdin)
        self._process.stdin.flush()
        code = pickle.load(self._process.stdout)
        assert code in (0, -signal.SIGKILL)
        return bool(code)

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def serve(asked: IO[bytes], answers: IO[bytes]) -> None:
    """Do the work that comes in, one piece after the other."""
    while asked.peek():
        work = pickle.load(asked)
        child = os.fork()
        if child == 0:
            _do(*work)
        pickle.dump(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), answers)
        answers.flush()


def _do(calls: int, work: Callable, arguments: tuple[object, ...]) -> NoReturn:
    try:
        Countdown(CHANGES, calls)
        work(*arguments)
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


if __name__ == "__main__":
    sys.path[:] = sys.argv[1:]
    serve(sys.stdin.buffer, sys.stdout.buffer)
