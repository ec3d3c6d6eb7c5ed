"""Whole files, locked folders, and sets of files that change at once."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from killing import Killer

from spibb import files
from spibb.errors import InputError
from spibb.files import MANIFEST, check_manifest, hold, sha256, sweep, write_text, write_whole

OLD = {"policy": b"old policy", "report": b"old report"}
NEW = {"policy": b"new policy", "report": b"new report", "bins": b"new bins"}
OTHER = {"notes": b"mine"}


def put(content: dict[str, bytes], folder: Path) -> None:
    for name, data in content.items():
        (folder / name).write_bytes(data)


def publish(folder: Path, content: dict[str, bytes]) -> None:
    with hold(folder) as held:
        held.publish(lambda aside: put(content, aside))


def seen(folder: Path) -> dict[str, bytes]:
    """What any program can open there, apart from the manifest."""
    if not folder.is_dir():
        return {}
    found = (path for path in folder.iterdir() if path.is_file())
    return {p.name: p.read_bytes() for p in found if p.name not in (MANIFEST, files.LOCK)}


def manifest_fits(folder: Path) -> bool:
    """Whether the system's own tool finds every file as listed."""
    command = ["sha256sum", "--check", "--status", MANIFEST]
    return subprocess.run(command, cwd=folder, check=False).returncode == 0


@pytest.fixture
def quick():
    """A folder in memory, where the system has one: waiting for the disk changes nothing here."""
    memory = Path("/dev/shm")
    with TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def killer():
    process = Killer()
    yield process
    process.close()


def enter(folder: Path) -> None:
    with hold(folder):
        pass


# A single file


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("old")

    def half(place):
        place.write_text("ne")
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        write_whole(path, half)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["t.csv"]


def test_a_write_killed_at_any_call_leaves_the_old_file_or_the_new(quick, killer):
    path = quick / "spec.toml"
    results = set()
    for calls in count():
        path.write_text("old")
        killed = killer.killed_at(calls, write_text, path, "new")
        results.add(path.read_text())
        sweep(quick)
        assert os.listdir(quick) == ["spec.toml"]
        if not killed:
            break
    assert results == {"old", "new"}
    assert calls >= 4


def test_sweeping_leaves_what_a_living_process_writes(tmp_path):
    def write(place):
        place.write_text("new")
        sweep(tmp_path)

    write_whole(tmp_path / "t", write)
    assert (tmp_path / "t").read_text() == "new"


def test_every_write_sweeps_its_folder(tmp_path):
    (tmp_path / ".spibb-0123.csv").write_text("half")
    (tmp_path / ".spibb-folder").mkdir()
    (tmp_path / ".spibb-link").symlink_to(tmp_path / "mine")
    (tmp_path / "mine").write_text("mine")
    write_text(tmp_path / "t", "new")
    assert sorted(os.listdir(tmp_path)) == [".spibb-folder", ".spibb-link", "mine", "t"]


def test_without_locks_nothing_is_swept(tmp_path, monkeypatch):
    """Who lives cannot be told there."""

    def flock(handle, how):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(files.fcntl, "flock", flock)
    (tmp_path / ".spibb-0123").write_text("perhaps being written")
    with pytest.warns(UserWarning, match="this disk has no file locks"):
        write_text(tmp_path / "t", "new")
    assert sorted(os.listdir(tmp_path)) == [".spibb-0123", "t"]


def test_a_write_waits_for_a_sweep_that_has_its_file(tmp_path):
    """The sweeper has the file for a moment, and removes it; the writer makes another."""
    import fcntl
    import threading

    path = tmp_path / "temporary"
    handle = os.open(path, os.O_RDWR | os.O_CREAT)
    fcntl.flock(handle, fcntl.LOCK_EX)

    def remove():
        path.unlink()
        os.close(handle)

    timer = threading.Timer(0.1, remove)
    timer.start()
    with files._exclusively(path, wait=True):
        assert path.exists()
    timer.join()


# A set of files


@pytest.mark.parametrize("before", [{}, OLD, NEW], ids=["nothing", "fewer", "as many"])
def test_a_set_is_old_or_new_at_any_call_at_which_its_writer_is_killed(quick, killer, before):
    before = {name: b"old " + data for name, data in before.items()}
    outcomes = []
    for calls in count():
        folder = quick / str(calls)
        if before:
            publish(folder, before)
            put(OTHER, folder)
        others = OTHER if before else {}
        killed = killer.killed_at(calls, publish, folder, NEW)
        after = seen(folder)
        assert after in (before | others, NEW | others), f"killed at call {calls}"
        if MANIFEST in os.listdir(folder) if folder.is_dir() else ():
            listed = files.read_manifest(folder)
            present = {name: files.sha256(folder / name) for name in after if name in listed}
            assert present == listed, f"killed at call {calls}"
        outcomes.append(after == NEW | others)
        with hold(folder):  # the next to come finds the folder as if nothing had been
            assert files.occupied(folder) == bool(after)
        names = set(os.listdir(folder)) if folder.is_dir() else set()
        assert names == set(after) | ({MANIFEST} if after else set())
        assert not any((folder / name).is_symlink() for name in names)
        publish(folder, NEW)
        assert seen(folder) == NEW | others
        assert manifest_fits(folder)
        if not killed:
            break
    assert sorted(outcomes) == outcomes  # one call changes all
    assert 20 < sum(not new for new in outcomes) < len(outcomes)


def test_the_one_that_clears_up_may_be_killed_at_any_call_too(quick, killer):
    for first in (30, 38, 42, 46):
        for calls in count():
            folder = quick / f"{first}-{calls}"
            publish(folder, OLD)
            assert killer.killed_at(first, publish, folder, NEW)
            left = seen(folder)
            assert left in (OLD, NEW)
            killed = killer.killed_at(calls, enter, folder)
            assert seen(folder) == left
            if not killed:
                break
        assert sorted(os.listdir(folder)) == sorted({*left, MANIFEST})


def test_a_failed_write_of_a_set_leaves_the_old_one(tmp_path):
    publish(tmp_path, OLD)

    def half(aside):
        put({"policy": b"new"}, aside)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    message = r"cannot write '.*': No space left on device; free some space, or name another place"
    with pytest.raises(InputError, match=message), hold(tmp_path) as held:
        held.publish(half)
    assert seen(tmp_path) == OLD
    assert sorted(os.listdir(tmp_path)) == sorted({*OLD, MANIFEST})


def test_links_of_the_user_keep_their_content(tmp_path):
    (tmp_path / "shared").write_bytes(b"shared")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "policy").symlink_to("../shared")
    publish(tmp_path / "out", NEW)
    assert seen(tmp_path / "out") == NEW
    assert (tmp_path / "shared").read_bytes() == b"shared"


@pytest.mark.parametrize("missing", ["symlink", "link"])
def test_a_disk_without_links_gets_the_set_all_the_same(tmp_path, monkeypatch, missing):
    def refuse(*_):
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    publish(tmp_path, OLD)
    monkeypatch.setattr(os, missing, refuse)
    publish(tmp_path, NEW)
    assert seen(tmp_path) == NEW
    assert manifest_fits(tmp_path)
    assert sorted(os.listdir(tmp_path)) == sorted({*NEW, MANIFEST})


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: path.write_bytes(b"new Policy"), "was changed after it was written"),
        (Path.unlink, r"is missing, though manifest\.sha256 lists it"),
    ],
)
def test_the_manifest_shows_what_is_not_as_it_was_written(tmp_path, damage, message):
    publish(tmp_path, NEW)
    check_manifest(tmp_path, NEW)
    damage(tmp_path / "policy")
    check_manifest(tmp_path, ["report", "unlisted"])
    with pytest.raises(InputError, match=message):
        check_manifest(tmp_path, NEW)


def test_the_hash_is_that_of_the_standard(tmp_path):
    (tmp_path / "abc").write_bytes(b"abc")
    wanted = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"  # FIPS 180-2, B.1
    assert sha256(tmp_path / "abc") == wanted


# A lock


HOLD = """
import sys, time
from pathlib import Path
from spibb.files import hold
with hold(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path):
    """A process that has the lock of a folder."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "out")], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_a_folder_in_use_is_refused_with_the_name_of_its_user(tmp_path, holder):
    message = rf"out' is being written by process {holder.pid} on .* since .* UTC: wait until"
    with pytest.raises(InputError, match=message), hold(tmp_path / "out"):
        pass


def test_the_kernel_frees_the_folder_of_a_killed_process(tmp_path, holder):
    holder.kill()
    holder.wait()
    with hold(tmp_path / "out"):
        assert not files.occupied(tmp_path / "out")
    assert os.listdir(tmp_path / "out") == []


@pytest.mark.parametrize("place", ["results", "results/run1", "results/deep/run1"])
def test_a_link_that_leads_nowhere_is_named(tmp_path, place):
    (tmp_path / "results").symlink_to("not-mounted")
    message = r"cannot write '.*': '.*/results' is a link to 'not-mounted', which is not there; "
    with pytest.raises(InputError, match=message), hold(tmp_path / place):
        pass
    assert os.listdir(tmp_path) == ["results"]


def test_a_place_where_nothing_can_be_made_is_refused():
    with (
        pytest.raises(InputError, match=r"cannot write '/proc/x': No such file"),
        hold(Path("/proc/x")),
    ):
        pass


def test_a_lock_that_others_always_remove_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_is_at", lambda handle, path: False)
    with pytest.raises(InputError, match="others removed it 1,000 times"), hold(tmp_path / "out"):
        pass


def test_a_folder_made_for_nothing_is_removed(tmp_path):
    with pytest.raises(RuntimeError, match="no"), hold(tmp_path / "a" / "b" / "c"):
        raise RuntimeError("no")
    assert os.listdir(tmp_path) == []


def test_many_that_want_one_folder_take_turns(tmp_path):
    """Each adds one to a number; whoever is refused tries again."""
    code = """
import sys
from pathlib import Path
from spibb.errors import InputError
from spibb.files import hold
folder, left = Path(sys.argv[1]), 40
while left:
    try:
        with hold(folder / "out"):
            total = folder / "total"
            total.write_text(str(int(total.read_text()) + 1))
            left -= 1
    except InputError as error:
        assert "is being written by" in str(error), error
"""
    (tmp_path / "total").write_text("0")
    command = [sys.executable, "-c", code, str(tmp_path)]
    processes = [subprocess.Popen(command) for _ in range(4)]
    assert [process.wait(timeout=60) for process in processes] == [0] * 4
    assert (tmp_path / "total").read_text() == "160"
    assert not (tmp_path / "out").exists() or os.listdir(tmp_path / "out") == []
