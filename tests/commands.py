"""Commands in forks of one process that has imported what they need: each starts at once."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from datetime import datetime, tzinfo
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from killing import RENAMES, Countdown


class Ended(NamedTuple):
    """How a command ended: its exit code, or minus the signal; seconds; what it said, and where."""

    code: int
    seconds: float
    out: str
    err: str

    @property
    def killed(self) -> bool:
        return self.code == -signal.SIGKILL

    @property
    def said(self) -> str:
        return self.out + self.err


class Server:
    """A process that only imports, and forks for every command."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, *words: object, **how: Any) -> Ended:
        """Run a command, in this folder unless `folder` names another.

        `renames`, `seconds`: SIGKILL it before a rename of this number, or after so long.
        `largest`: bytes that a file of its may have.
        `encoding`: of what it says, as PYTHONIOENCODING would set it.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        how = {"folder": os.getcwd()} | how
        print(json.dumps([list(words), how], default=str), file=self._process.stdin, flush=True)
        return Ended(*json.loads(self._process.stdout.readline()))

    def close(self) -> None:
        """End the process, which may still import what the last command has imported."""
        self._process.kill()
        self._process.communicate()


class Clock(datetime):
    """Stands still, so that results can be compared to the bit."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:
        return datetime(2026, 11, 16, tzinfo=tz)


def serve() -> None:
    """Run the commands that come in, one after the other, always at the same date."""
    import typer.main
    from numba import njit

    from spibb.cli.app import app
    from spibb.report import origin

    origin.datetime = Clock
    typer.main.get_command = cache(typer.main.get_command)
    typer.main.get_command(app)  # builds all commands, 30 ms
    njit(lambda: None)()  # Numba is slow the first time, whatever the kernel
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        words, how = json.loads(line)
        with tempfile.TemporaryDirectory() as folder:
            begin = time.monotonic()
            child = os.fork()
            if child == 0:
                _become([str(word) for word in words], Path(folder), **how)
            code = _ended(child, how.get("seconds"))
            took = time.monotonic() - begin
            said = how.get("encoding", "utf-8")
            out, err, modules = (
                _text(Path(folder) / name, said) for name in ("out", "err", "modules")
            )
        print(json.dumps([code, took, out, err]), file=answers, flush=True)
        _import_all(modules.split())


def _become(
    words: list[str], private: Path, folder: str, renames: int | None = None,
    largest: int | None = None, seconds: float | None = None, encoding: str = "utf-8",
) -> NoReturn:  # fmt: skip
    from spibb.__main__ import run

    _redirect(private)
    sys.stdout.reconfigure(encoding=encoding, errors="strict")
    sys.stderr.reconfigure(encoding=encoding)
    os.chdir(folder)
    sys.path[0], sys.argv = folder, ["spibb", *words]
    if renames is not None:
        Countdown(RENAMES, renames)
    code, limits = 1, resource.getrlimit(resource.RLIMIT_FSIZE)
    if largest is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, limits[1]))
    try:
        run()
    except SystemExit as end:
        code = end.code or 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        (private / "modules").write_text(" ".join(sys.modules))
        os._exit(code)


def _redirect(private: Path) -> None:
    """Say everything into files, read nothing, and leave nothing in shared folders."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(private / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
    tempfile.tempdir = str(private)


def _text(path: Path, encoding: str) -> str:
    return path.read_text(encoding) if path.exists() else ""


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
