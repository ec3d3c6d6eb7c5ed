"""Files of decisions on full disks and in killed processes: whole or not there, and cleared."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pyarrow as pa
import pytest

from spibb import Policy
from spibb.files import write_whole
from spibb.ingest.loaded import LoadedPolicy
from spibb.sql.writing import write_rows
from spibb.tables import write_table


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    LoadedPolicy(Policy(np.eye(2), ["mild", "severe"], ["wait", "treat"]), {}, {}).save("p.spibb")
    n = 2000
    log = pa.table({
        "episode_id": [i // 2 for i in range(n)], "step": [i % 2 for i in range(n)],
        "state": ["mild", "severe"] * (n // 2), "action": ["wait"] * n, "reward": [0.0] * n,
    })  # fmt: skip
    write_table(log, tmp_path / "log.csv")
    (tmp_path / "out").mkdir()
    return tmp_path


@pytest.mark.parametrize("command", [
    "act p.spibb --cases log.csv --out out/d.csv",
    "act p.spibb --cases log.csv --out out/d.parquet",
    "split log.csv --out out",
    "split log.csv --out new",
])  # fmt: skip
def test_a_full_disk_is_one_line_and_nothing_is_written(home, commands, command):
    done = commands.run(*command.split(), largest=1000)
    assert done.code == 2, done.err
    assert done.err.startswith("spibb: cannot write 'out/d." if "act" in command else "spibb: ")
    assert done.err.endswith("File too large; free some space, or name another place\n")
    assert done.err.count("\n") == 1
    assert list((home / "out").iterdir()) == []
    assert not (home / "new").exists()


def test_an_old_file_survives_a_full_disk(home, commands):
    (home / "out" / "d.csv").write_text("old")
    command = "act p.spibb --cases log.csv --out out/d.csv --force"
    assert commands.run(*command.split(), largest=1000).code == 2
    assert {path.name: path.read_text() for path in (home / "out").iterdir()} == {"d.csv": "old"}


KILLED = """
import os, signal, sys, threading, time
import pyarrow as pa
from pathlib import Path
from spibb.sql.writing import write_rows

def kill():
    while not any(size > 0 for size in sizes()):
        time.sleep(0.0005)
    os.kill(os.getpid(), signal.SIGKILL)

def sizes():
    return [path.stat().st_size for path in Path("out").iterdir()]

threading.Thread(target=kill, daemon=True).start()
write_rows(pa.table({"x": ["some text"] * 3_000_000}), Path("out") / "d.csv")
"""


def test_what_a_killed_process_leaves_is_cleared_by_the_next_write(home):
    """DuckDB's own temporary file used to stay, and an empty one of ours."""
    done = subprocess.run([sys.executable, "-c", KILLED], capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    left = [path.name for path in (home / "out").iterdir()]
    assert left and all(name.startswith(".spibb-") for name in left)
    write_rows(pa.table({"x": [1]}), home / "out" / "e.csv")
    assert os.listdir("out") == ["e.csv"]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_writers_into_one_folder_do_not_remove_each_others_files(home, ending):
    """Eight at once, in one process and its threads; each sweeps before it writes."""
    table = pa.table({"x": ["some text"] * 20_000})
    failed = []

    def write(name):
        try:
            for _ in range(5):
                write_rows(table, home / "out" / f"{name}.{ending}")
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=write, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert sorted(os.listdir("out")) == [f"{i}.{ending}" for i in range(8)]
    assert len({path.stat().st_size for path in (home / "out").iterdir()}) == 1


def test_a_writer_that_replaces_its_file_would_lose_the_lock(home):
    def replacing(place):
        place.unlink()
        place.write_text("new")

    with pytest.raises(AssertionError, match="its lock is lost"):
        write_whole(home / "out" / "x.txt", replacing)
    assert os.listdir("out") == []
