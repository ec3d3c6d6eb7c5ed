"""Run something in a child process that kills itself at a chosen system call."""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Callable, Iterable

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
