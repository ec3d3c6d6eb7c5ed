"""Files and folders on disk: written whole or not at all, by one process at a time.

A process can be killed between any two system calls. Three rules make that harmless:

- A file is written beside its place and moved there (`write_whole`).
- A folder is written by the process that has its lock, which the kernel releases at its death
  (`hold`). What a killed process leaves behind begins with `.spibb-`; whoever next writes into that
  folder clears it (`sweep`).
- Several files that belong together change together, by one rename (`Held.publish`): while they do,
  each name is a link through one pivot, and the rename turns the pivot from the old set to the new.
  Whoever opens the files, even with other programs, sees the old set or the new set at any time.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import shutil
import socket
import stat
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from spibb.errors import InputError

MANIFEST = "manifest.sha256"
"""Hashes of the files of a published folder, as `sha256sum` writes and checks them."""
OURS = ".spibb-"
LOCK = ".spibb-lock"
SWAP = ".spibb-swap"
NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP)
NO_LINKS = (errno.EPERM, errno.ENOSYS, errno.ENOTSUP, errno.EXDEV, errno.EMLINK)
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
TRIES = 1_000
"""How often a place that others remove meanwhile is made again: no process waits for ever."""


def possible(name: str | Path) -> Path:
    """The path of a name; a name that no file can have is refused on any disk."""
    path = Path(name)
    try:
        str(path).encode("utf-8")  # the disk may have others, which no reader of tables takes
        os.lstat(path)
    except ValueError:
        raise InputError(
            f"{str(name)[:60]!r} names no file: leave out its NUL or broken characters"
        ) from None
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise InputError(
                f"'{str(name)[:60]}…' names no file: {error.strerror}; shorten it"
            ) from None
    return path


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Call `write` on a temporary file beside `path`, then rename: never half a file.

    `write` must write into the file that is there, and not replace it: the lock on it tells others
    that its writer lives.
    """
    sweep(possible(path).parent)
    temporary = path.with_name(f"{OURS}{uuid.uuid4().hex}{path.suffix}")
    with disk_errors(path), _exclusively(temporary, wait=True) as handle:
        try:
            write(temporary)
            assert _is_at(handle, temporary), "the file was replaced, and its lock is lost"
            _sync(temporary)
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def write_text(path: Path, text: str) -> None:
    """Write a text file whole."""
    try:
        encoded = text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(
            f"cannot write {str(path)!r}: {text[error.start]!r} cannot be written as UTF-8; rename "
            "what contains it"
        ) from None
    write_whole(path, lambda temporary: temporary.write_bytes(encoded))


def sha256(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextlib.contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Say in one line what the disk refused, and what to do."""
    try:
        yield
    except OSError as error:
        raise disk_refusal(path, error) from None


def disk_refusal(path: Path, error: OSError) -> InputError:
    """What a disk refused to write, why, and what to do."""
    shown = str(path).replace(f"/{SWAP}/new", "")
    reason = _dead_link(path) or error.strerror or str(error)
    remedy = "free some space" if is_full(error) else "check the folder and the disk"
    return InputError(f"cannot write {shown!r}: {reason}; {remedy}, or name another place")


def _dead_link(path: Path) -> str | None:
    """The link on the way to a path that leads nowhere, in words; such as to a disk not mounted."""
    for part in (path, *path.parents):
        if os.path.islink(part) and not os.path.exists(part):
            return f"{str(part)!r} is a link to {os.readlink(part)!r}, which is not there"
    return None


def is_full(error: OSError) -> bool:
    """Whether a disk, a quota or a limit on files is used up; Arrow says it only in its message."""
    return error.errno in FULL or any(os.strerror(number) in str(error) for number in FULL)


def read_manifest(folder: Path) -> dict[str, str]:
    """The hashes of a published folder by file name; nothing where there is no manifest."""
    try:
        lines = (folder / MANIFEST).read_text(encoding="utf-8").splitlines()
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{str(folder / MANIFEST)!r} cannot be read: {error}") from None
    pairs = (line.split("  ", 1) for line in lines)
    return {pair[1]: pair[0] for pair in pairs if len(pair) == 2}


def check_manifest(folder: Path, names: Iterable[str]) -> None:
    """Refuse files that are not those that were published together."""
    hashes = read_manifest(folder)
    for name in names:
        wanted, path = hashes.get(name), folder / name
        if wanted is None:
            continue
        if not path.is_file():
            raise InputError(
                f"{str(path)!r} is missing, though {MANIFEST} lists it: restore it, or write the "
                "folder again"
            )
        if sha256(path) != wanted:
            raise InputError(
                f"{str(path)!r} was changed after it was written, as its hash in {MANIFEST} "
                "shows: restore it, or write the folder again"
            )


def occupied(folder: Path) -> bool:
    """Whether a folder has anything but what killed processes left of ours."""
    with disk_errors(folder):
        return any(not path.name.startswith(OURS) for path in folder.iterdir())


@dataclass(frozen=True)
class Held:
    """A folder that this process alone may write."""

    folder: Path

    def publish(self, write: Callable[[Path], object]) -> None:
        """Replace a set of files by those that `write` puts into an empty folder, all at once.

        The new set comes with a manifest. All other files of the folder stay. The steps, each of
        which leaves the old or the new set to be seen:

        1. The new files are written aside, then their hashes, and all of it reaches the disk.
        2. The old files get a second name aside; the pivot points to them.
        3. Each name becomes a link through the pivot: to the same content as before.
        4. The pivot is replaced by one that points to the new files: the one rename.
        5. Each link is replaced by the file that it points to: the same content again.

        A kill before step 4 leaves the old set, one after it the new; `hold` clears up.
        """
        new = self.folder / SWAP / "new"
        with disk_errors(self.folder):
            try:
                new.mkdir(parents=True)
                write(new)
                _write_manifest(new)
                self._exchange(sorted(path.name for path in new.iterdir()))
            finally:
                _settle(self.folder)

    def _exchange(self, names: list[str]) -> None:
        swap = self.folder / SWAP
        (swap / "old").mkdir()
        for name in names:
            _second_name(self.folder / name, swap / "old" / name)
        try:
            os.symlink("old", swap / "now")
        except OSError as error:
            if error.errno not in NO_LINKS:
                raise
            for name in names:  # a disk without links, such as FAT: the manifest shows a kill here
                os.replace(swap / "new" / name, self.folder / name)
            return
        for name in names:
            os.symlink(f"{SWAP}/now/{name}", swap / "link")
            os.replace(swap / "link", self.folder / name)
        _sync(self.folder)
        os.symlink("new", swap / "next")
        os.replace(swap / "next", swap / "now")
        _sync(swap)


@contextlib.contextmanager
def hold(folder: Path) -> Iterator[Held]:
    """Make a folder, if there is none, and be the only process that writes there.

    Refused with the holder's name while another has it. What killed processes left is cleared, and
    folders that were made for nothing are removed at the end.
    """
    with disk_errors(possible(folder)):
        made = [path for path in (folder, *folder.absolute().parents) if not path.exists()]
    try:
        with _lock(folder):
            with disk_errors(folder):
                _settle(folder)
                sweep(folder)
            yield Held(folder)
    finally:
        with contextlib.suppress(OSError):
            for path in made:
                path.rmdir()


def sweep(folder: Path) -> None:
    """Remove the temporary files of processes that are no more.

    A living writer has a lock on its file. Where the disk has no locks, everything stays.
    """
    with contextlib.suppress(OSError):
        for path in folder.glob(f"{OURS}*"):
            if path.name not in (LOCK, SWAP):
                _remove_unless_locked(path)


def _remove_unless_locked(path: Path) -> None:
    with contextlib.suppress(OSError):
        handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(handle, path):
                path.unlink()
        finally:
            os.close(handle)


@contextlib.contextmanager
def _lock(folder: Path) -> Iterator[None]:
    path = folder / LOCK
    with contextlib.ExitStack() as stack:
        try:
            handle = stack.enter_context(_lock_file(path))
        except BlockingIOError:
            raise InputError(
                f"{str(folder)!r} is being written by {_holder(path)}: wait until it has ended, or "
                "name another folder"
            ) from None
        except OSError as error:
            raise disk_refusal(folder, error) from None
        stack.callback(path.unlink, missing_ok=True)
        with disk_errors(folder):
            os.truncate(handle, 0)
            os.write(handle, _name_of_this_process().encode())
        yield


@contextlib.contextmanager
def _lock_file(path: Path) -> Iterator[int]:
    """The lock of a folder, which is made if there is none or its last holder has removed it."""
    with contextlib.ExitStack() as stack:
        for left in reversed(range(TRIES)):
            try:
                _make(path.parent)
                handle = stack.enter_context(_exclusively(path))
                break
            except FileNotFoundError:
                if not left:
                    raise
        yield handle


def _make(folder: Path) -> None:
    """Make a folder if there is none.

    Another process may remove it while we look: `mkdir` then says that something else is there.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        if not stat.S_ISDIR(folder.lstat().st_mode):
            raise


def _name_of_this_process() -> str:
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return f"process {os.getpid()} on {socket.gethostname()} since {now}"


def _holder(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8") or "another process"
    except (OSError, UnicodeDecodeError):
        return "another process"


@contextlib.contextmanager
def _exclusively(path: Path, wait: bool = False) -> Iterator[int]:
    """Open or create a file that the kernel gives to one process; BlockingIOError if it is taken.

    Its last holder may remove it between opening and locking; then a new one is made.
    """
    for _ in range(TRIES):
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            _flock(handle, wait)
            if _is_at(handle, path):
                yield handle
                return
        finally:
            os.close(handle)
    raise OSError(errno.EBUSY, f"others removed it {TRIES:,} times while it was being locked")


def _flock(handle: int, wait: bool) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
        warnings.warn(
            "this disk has no file locks: let only one process at a time write to a folder",
            stacklevel=2,
        )


def _is_at(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False


def _settle(folder: Path) -> None:
    """End an exchange that was broken off: the files that the pivot points to take their places."""
    swap = folder / SWAP
    if not swap.is_dir():
        return
    if os.path.lexists(swap / "now"):
        for path in list(folder.iterdir()):
            if path.is_symlink() and os.readlink(path) == f"{SWAP}/now/{path.name}":
                if path.exists():
                    os.replace(swap / "now" / path.name, path)
                else:
                    path.unlink()
        _sync(folder)
    shutil.rmtree(swap)


def _second_name(path: Path, other: Path) -> None:
    """A second name for a file, or a copy where the disk has none."""
    if not path.exists():
        return
    if path.is_dir():
        raise OSError(errno.EISDIR, f"{path.name} is a folder")
    try:
        os.link(path.resolve(), other)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        shutil.copy2(path, other)


def _write_manifest(folder: Path) -> None:
    files = sorted(folder.iterdir())
    text = "".join(f"{sha256(file)}  {file.name}\n" for file in files)
    for file in files:
        _sync(file)
    write_text(folder / MANIFEST, text)
    _sync(folder)


def _sync(path: Path) -> None:
    """Have the system write a file or a folder's names to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(handle)
