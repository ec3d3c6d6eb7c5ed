"""Kills, signals, full disks, dead workers: nothing is lost, nothing is mixed."""

from __future__ import annotations

import importlib
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Timer

import duckdb
import numpy as np
import pytest
from commands import Server
from parts import lacking

from spibb.cli.stopping import Stopped, stoppable
from spibb.files import MANIFEST
from spibb.ingest.policy_files import load_policy

SPIBB = (sys.executable, "-m", "spibb")
STUDY = ("experiment", "gridworld", "--sizes", "10,20", "--column", "basic-rl", "--column",
         "pi-b:n_wedge=5", "--runs", "12", "--jobs", "1")  # fmt: skip
FILES = 7
"""That an improvement writes."""
LOG = "episode,step,state,action,reward,terminated\n" + "".join(
    f"{i},0,mild,{i % 2},0,0\n{i},1,severe,{i % 3 % 2},{i % 3 % 2},1\n" for i in range(40)
)
BASELINE = "state,action,probability\nmild,0,0.5\nmild,1,0.5\nsevere,0,0.5\nsevere,1,0.5\n"
LONG = ("experiment", "gridworld", "--sizes", "10,5000", "--column", "basic-rl")


def contents(folder: Path) -> dict[str, bytes]:
    """What any program can open in a folder; our own traces begin with a dot."""
    if not folder.is_dir():
        return {}
    found = (path for path in folder.iterdir() if path.is_file() and path.name[0] != ".")
    return {path.name: path.read_bytes() for path in found}


def traces(folder: Path) -> list[str]:
    """What a killed process left."""
    return [p.name for p in folder.iterdir() if p.name[0] == "." or p.is_symlink()]


class Improvement:
    """`spibb improve` into one folder, with two options that give different results."""

    def __init__(self, commands: Server, folder: Path) -> None:
        self.commands, self.out = commands, folder / "out"
        files = (folder / "log.csv", "--baseline", folder / "baseline.csv")
        files[0].write_text(LOG)
        files[2].write_text(BASELINE)
        self.words = ("improve", *files, "--out", self.out, "--force", "--n-wedge")
        assert self(7).code == 0
        self.old = contents(self.out)
        self.seconds = self(1e6).seconds
        self.new = contents(self.out)
        assert len(self.old.keys() & self.new.keys()) == len(self.old) == FILES
        same = {name for name in self.old if self.old[name] == self.new[name]}
        assert same == {"returns.parquet"}  # of the log, whatever was made of it

    def __call__(self, n_wedge: float, **kill):
        return self.commands.run(*self.words, n_wedge, **kill)

    def restore(self) -> None:
        """The old result and somebody's notes."""
        shutil.rmtree(self.out)
        self.out.mkdir()
        for name, data in self.old.items():
            (self.out / name).write_bytes(data)
        (self.out / "notes.txt").write_text("mine")

    def check(self) -> bool:
        """The folder shows the old or the new result, and is loaded; whether it is the new."""
        found = contents(self.out)
        assert found.pop("notes.txt") == b"mine"
        assert found in (self.old, self.new)
        load_policy(self.out)
        return found == self.new


@pytest.fixture(scope="module")
def improvement(commands, tmp_path_factory) -> Improvement:
    return Improvement(commands, tmp_path_factory.mktemp("improvement"))


@pytest.mark.slow
def test_improve_killed_at_any_rename_leaves_the_old_result_or_the_new(improvement):
    found = []
    for renames in count():
        improvement.restore()
        killed = improvement(1e6, renames=renames).killed
        found.append(improvement.check())
        if not killed:
            break
    assert found == sorted(found)
    assert (
        len(found) == FILES + FILES + 1 + FILES + 1
    )  # written, linked, turned, put in place; not killed
    assert found.index(True) == FILES + FILES + 1
    assert traces(improvement.out) == []


def test_improve_killed_at_random_moments_leaves_the_old_result_or_the_new(improvement):
    improvement.restore()
    rng = np.random.default_rng(13)
    for moment in rng.uniform(0.2, 1, 10):
        improvement(1e6, seconds=moment * improvement.seconds)
        improvement.check()
    assert improvement(1e6).code == 0
    assert improvement.check()
    assert traces(improvement.out) == []


def test_of_three_that_write_one_folder_one_wins_whole(improvement, tmp_path):
    """Whoever comes while another writes is refused, and so is who comes too late."""
    words = [str(word) for word in improvement.words if word != "--force"]
    words[words.index(str(improvement.out))] = str(tmp_path / "out")
    processes = {
        n_wedge: subprocess.Popen([*SPIBB, *words, n_wedge], stderr=subprocess.PIPE, text=True,
                                  stdout=subprocess.DEVNULL)
        for n_wedge in ("5", "50", "500")
    }  # fmt: skip
    said = {n_wedge: process.communicate(timeout=120)[1] for n_wedge, process in processes.items()}
    codes = {n_wedge: process.returncode for n_wedge, process in processes.items()}
    assert sorted(codes.values()) == [0, 2, 2], said
    winner = next(n_wedge for n_wedge, code in codes.items() if code == 0)
    for n_wedge, text in said.items():
        if n_wedge != winner:
            assert text.count("\n") == 1
            assert "is being written by" in text or "is not empty" in text
    subprocess.run(["sha256sum", "--check", "--quiet", MANIFEST], cwd=tmp_path / "out", check=True)
    command = load_policy(tmp_path / "out").origin["command"]
    assert command.endswith(f"--n-wedge {winner}")
    assert traces(tmp_path / "out") == []


# Studies


@pytest.fixture(scope="module")
def undisturbed(commands, tmp_path_factory) -> dict[str, bytes]:
    """All files of a study that nothing disturbs."""
    out = tmp_path_factory.mktemp("undisturbed") / "out"
    assert commands.run(*STUDY, "--out", out).code == 0
    assert len(contents(out)) == 1 + 4
    return contents(out)


def test_a_study_killed_at_any_rename_goes_on_to_the_same_bits(commands, tmp_path, undisturbed):
    for renames in count():
        out = tmp_path / str(renames)
        killed = commands.run(*STUDY, "--out", out, renames=renames).killed
        assert contents(out).items() <= undisturbed.items()
        assert len(contents(out)) == renames
        assert commands.run(*STUDY, "--out", out).code == 0
        assert contents(out) == undisturbed
        assert traces(out) == []
        if not killed:
            break
    assert renames == 5


def test_a_study_killed_again_and_again_ends_with_the_same_bits(commands, tmp_path, undisturbed):
    times = 0
    while commands.run(*STUDY, "--out", tmp_path / "out", renames=1).killed:
        times += 1
    assert times == 4
    assert contents(tmp_path / "out") == undisturbed


def test_a_study_killed_at_random_moments_ends_with_the_same_bits(commands, tmp_path, undisturbed):
    rng = np.random.default_rng(13)
    alone = commands.run(*STUDY, "--out", tmp_path / "alone").seconds
    for moment in rng.uniform(0.2, 1.1, 10):
        commands.run(*STUDY, "--out", tmp_path / "out", seconds=moment * alone)
        assert contents(tmp_path / "out").items() <= undisturbed.items()
    assert commands.run(*STUDY, "--out", tmp_path / "out").code == 0
    assert contents(tmp_path / "out") == undisturbed
    assert traces(tmp_path / "out") == []


def wait_for(condition: Callable[[], object], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def start(out: Path, *words: str) -> subprocess.Popen:
    """A long study, once it has stored a part."""
    process = subprocess.Popen(
        [*SPIBB, *LONG, "--out", str(out), *words],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    wait_for(lambda: process.poll() is not None or list(out.glob("part-*")))
    assert process.poll() is None
    return process


@pytest.mark.parametrize(
    ("number", "jobs"),
    [(signal.SIGTERM, 1), (signal.SIGTERM, 2), (signal.SIGHUP, 1), (signal.SIGINT, 1)],
)
def test_a_signal_stops_a_study_and_keeps_what_is_done(tmp_path, number, jobs):
    process = start(tmp_path / "out", "--runs", "4000", "--jobs", str(jobs))
    workers = children(process.pid)
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    reason = "interrupted" if number == signal.SIGINT else f"stopped by {number.name}"
    last = said.splitlines()[-1]
    stored = sum(int(p.name[15:24]) - int(p.name[5:14]) for p in (tmp_path / "out").glob("part-*"))
    assert last == (
        f"spibb: {reason}: {stored:,} of 4,000 runs are stored; the same command continues"
    )
    assert "Traceback" not in said
    assert traces(tmp_path / "out") == []
    wait_for(lambda: not alive(workers))


def test_a_signal_stops_an_improvement_and_leaves_nothing(improvement, tmp_path):
    words = [*map(str, improvement.words), "5"]
    words[words.index(str(improvement.out))] = str(tmp_path / "new" / "out")
    process = subprocess.Popen(
        [*SPIBB, *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    wait_for((tmp_path / "new" / "out" / ".spibb-lock").exists)
    process.terminate()
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (143, "spibb: stopped by SIGTERM\n")
    assert not (tmp_path / "new").exists()


def test_a_signal_during_an_import_waits_for_its_end(tmp_path, monkeypatch):
    """Compiled modules lose exceptions while they are loaded, as this one does."""
    (tmp_path / "loses_signals.py").write_text(
        "import contextlib, signal\n"
        "with contextlib.suppress(BaseException):\n"
        "    signal.raise_signal(signal.SIGTERM)\n"
        "    complete = True\n"
    )
    monkeypatch.syspath_prepend(tmp_path)

    def load_and_wait() -> None:
        importlib.import_module("loses_signals")
        time.sleep(30)

    with pytest.raises(Stopped, match="SIGTERM"), stoppable():
        load_and_wait()
    assert sys.modules["loses_signals"].complete


def query_until(number: int) -> None:
    """DuckDB says only that it was interrupted, and only once it has done most of the query."""
    timer = Timer(0.2, os.kill, (os.getpid(), number))
    timer.start()
    duckdb.sql("SELECT COUNT(*) FROM range(5000000) a, range(100) b WHERE a.range > b.range").show()
    timer.cancel()


def return_with(number: int) -> None:
    """CPython says that a result came with an exception."""
    try:
        signal.raise_signal(number)
    except Stopped as stop:
        raise SystemError("returned a result with an exception set") from stop


class Finalised:
    """Whose last breath is interrupted."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __del__(self) -> None:
        signal.raise_signal(self.number)


def finalise_with(number: int) -> None:
    """Python drops what a finaliser raises."""
    Finalised(number)
    time.sleep(30)


@pytest.mark.parametrize("work", [query_until, return_with, finalise_with])
def test_a_signal_that_python_loses_is_still_that_signal(work):
    with pytest.raises(Stopped, match="stopped by SIGHUP"), stoppable():
        work(signal.SIGHUP)
    with pytest.raises(SystemError, match="something else"), stoppable():
        raise SystemError("something else")


def test_an_ignored_signal_stays_ignored():
    """As `nohup` wants it."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stoppable():
            os.kill(os.getpid(), signal.SIGHUP)
            with pytest.raises(Stopped, match="stopped by SIGTERM"):
                os.kill(os.getpid(), signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGHUP, before)


def children(parent: int) -> list[int]:
    """The processes that a process has started."""
    found = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(parent)], capture_output=True, text=True, check=False
    )
    return [int(word) for word in found.stdout.split()]


def alive(processes: list[int]) -> list[int]:
    """Those that still run."""
    words = ["ps", "-o", "pid=,stat=", "-p", ",".join(map(str, processes))]
    lines = subprocess.run(words, capture_output=True, text=True, check=False).stdout.splitlines()
    return [int(line.split()[0]) for line in lines if "Z" not in line.split()[1]]


def test_workers_end_when_their_parent_is_killed(tmp_path):
    process = start(tmp_path / "out", "--runs", "4000", "--jobs", "2")
    workers = children(process.pid)
    assert len(workers) >= 2
    process.kill()
    process.communicate()
    wait_for(lambda: not alive(workers), seconds=20)


# Full disks


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A disk of one megabyte; only root can mount one."""
    with TemporaryDirectory() as folder:
        command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            lacking(f"cannot mount a small disk: {done.stderr}")
        try:
            yield Path(folder)
        finally:
            subprocess.run(["umount", folder], check=True)


def fill(disk: Path, leave: int) -> Path:
    """Take all space but some kilobytes."""
    free = shutil.disk_usage(disk).free
    (disk / "filler").write_bytes(bytes(max(0, free - leave * 1024)))
    return disk / "filler"


def is_one_line(said: str, message: str) -> None:
    assert said.startswith("spibb: cannot write "), said
    assert message in said
    assert said.count("\n") == 1


@pytest.mark.parametrize("leave", [0, 64])
def test_improve_on_a_full_disk_is_one_line_and_keeps_the_old_result(
    improvement, small_disk, leave
):
    out = small_disk / "out"
    out.mkdir()
    for name, data in improvement.old.items():
        (out / name).write_bytes(data)
    filler = fill(small_disk, leave)
    words = [out if word == improvement.out else word for word in improvement.words]
    ended = improvement.commands.run(*words, 1e6)
    assert ended.code == 2
    is_one_line(ended.said, "No space left on device; free some space")
    assert contents(out) == improvement.old
    assert traces(out) == []
    filler.unlink()
    assert improvement.commands.run(*words, 1e6).code == 0
    assert contents(out)["policy.csv"] == improvement.new["policy.csv"]


@pytest.mark.parametrize("leave", [0, 12])
def test_a_study_on_a_full_disk_is_one_line_and_keeps_its_parts(
    commands, small_disk, leave, undisturbed
):
    out = small_disk / "out"
    filler = fill(small_disk, leave)
    ended = commands.run(*STUDY, "--out", out)
    assert ended.code == 2
    message = ended.said[ended.said.index("spibb: ") :]
    is_one_line(message, "No space left on device; free some space")
    assert contents(out).items() <= undisturbed.items()
    filler.unlink()
    assert commands.run(*STUDY, "--out", out).code == 0
    assert contents(out) == undisturbed


@pytest.mark.parametrize("command", ["figures", "claims"])
def test_figures_and_claims_on_a_full_disk_are_one_line(commands, small_disk, command):
    out = small_disk / "out"
    assert commands.run(*STUDY, "--out", out).code == 0
    fill(small_disk, 0)
    ended = commands.run(command, out)
    assert ended.code == 2
    is_one_line(ended.said[ended.said.index("spibb: ") :], "No space left on device")


def test_a_limit_on_files_is_one_line(improvement, tmp_path):
    """For those who cannot mount a disk."""
    words = [str(tmp_path / "out") if w == improvement.out else str(w) for w in improvement.words]
    done = subprocess.run(
        [*SPIBB, *words, "5"], capture_output=True, text=True, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)),
    )  # fmt: skip
    assert done.returncode == 2
    is_one_line(done.stderr, "File too large; free some space")
    assert list(tmp_path.iterdir()) == []


def test_output_that_cannot_be_printed_is_one_line(improvement, tmp_path):
    log = str(improvement.words[1])
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*SPIBB, "inspect", log], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 2
    assert done.stderr == "spibb: No space left on device (no file): free some space\n"


@pytest.mark.parametrize("command", ["inspect", "monitor"])
def test_a_reader_that_has_seen_enough_is_no_error_and_no_alarm(improvement, command):
    words = str(improvement.words[1]) if command == "inspect" else "--help"
    with subprocess.Popen(
        [*SPIBB, command, words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 141  # as in shells; 1 is the alarm of monitor
