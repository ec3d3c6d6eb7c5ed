"""A command leaves as soon as it is done, and leaves nothing undone."""

from __future__ import annotations

import atexit
import gc
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

from spibb.__main__ import run as started

PROGRAM = """
import atexit, gc, sys, threading, time
import spibb.cli.app as app
from spibb.__main__ import run

class Kept:
    def __del__(self): print("freed")

def main():
    atexit.register(print, "done at the exit")
    threading.Thread(target=lambda: (time.sleep(0.2), print("thread ended"))).start()
    print("looks for cycles after", gc.get_threshold()[0])
    {ending}

app.main, kept = main, Kept()
run()
"""
SAID = "looks for cycles after 300000\nthread ended\ndone at the exit\n"


def run(ending: str) -> subprocess.CompletedProcess:
    program = [sys.executable, "-c", PROGRAM.format(ending=ending)]
    return subprocess.run(program, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("code", "found"), [("0", 0), ("None", 0), ("2", 2), ("143", 143)])
def test_what_is_due_at_the_exit_is_done_and_objects_are_not_freed_one_by_one(code, found):
    done = run(f"sys.exit({code})")
    assert (done.returncode, done.stdout, done.stderr) == (found, SAID, "")


@pytest.mark.parametrize(
    ("ending", "words"), [("raise KeyError('why')", "KeyError: 'why'"), ("sys.exit('no')", "no")]
)
def test_what_python_has_to_tell_it_tells(ending, words):
    done = run(ending)
    assert (done.returncode, done.stdout) == (1, SAID + "freed\n")
    assert done.stderr.splitlines()[-1] == words


def test_a_full_disk_at_the_exit_is_noticed():
    program = [sys.executable, "-c", PROGRAM.format(ending="sys.exit(0)")]
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            program, stdout=full, stderr=subprocess.PIPE, env=buffered, check=False
        )
    assert done.returncode == 120  # Python's own
    assert b"No space left on device" in done.stderr


def test_the_installed_command_is_the_module():
    told = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    assert told["project"]["scripts"] == {"spibb": "spibb.__main__:run"}


@pytest.mark.parametrize(
    ("closed", "command", "code"),
    [
        (">&-", "inspect log.csv", 0),
        ("2>&-", "inspect log.csv", 0),
        (">&- 2>&-", "inspect log.csv", 0),
        (">&-", "inspect nofile.csv", 2),
        ("2>&-", "inspect nofile.csv", 2),
        ("2>/dev/full", "inspect nofile.csv", 2),
        ("2>/dev/full", "inspekt", 2),
    ],
)
def test_outputs_that_take_nothing_change_no_exit_code(tmp_path, closed, command, code):
    rows = "".join(f"{i // 2},{i % 2},x,{'ab'[i % 3 % 2]},{i % 2}\n" for i in range(20))
    (tmp_path / "log.csv").write_text("episode,step,state,action,reward\n" + rows)
    line = f'"{sys.executable}" -m spibb {command} {closed}'
    done = subprocess.run(line, shell=True, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    if code == 2:
        assert done.stdout == ""


def test_an_interrupt_while_modules_are_loaded_is_one_line(monkeypatch, capsys):
    class Loading(ModuleType):
        def __getattr__(self, name):
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "spibb.cli.app", Loading("spibb.cli.app"))
    monkeypatch.setattr(atexit, "register", lambda *_: None)
    monkeypatch.setattr(gc, "set_threshold", lambda *_: None)
    with pytest.raises(SystemExit) as ended:
        started()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "spibb: interrupted\n"
