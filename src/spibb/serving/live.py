"""A policy file that is replaced while it is in use."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spibb.checks import takes
from spibb.files import possible
from spibb.ingest.loaded import Loaded
from spibb.ingest.policy_files import SIDECAR, VECTORS
from spibb.showing import Shown
from spibb.stored_policies import load_any

Signature = tuple[tuple[int, int, int], ...]
"""Inode, size and time of change of each file that a policy is in."""


class LivePolicy(Shown):
    """The newest valid policy at a path; `refresh` loads another if there is one.

    A file that is damaged, half-written or missing changes nothing: the policy before it stays in
    use, and `problem` says why. A reference to `current` stays one whole policy. States are labels
    or vectors, and a policy of one kind may replace one of the other.

    Parameters:
        path: a policy file, ``.npz`` for one on vectors, or the folder that `spibb improve` wrote.

    >>> _ = baseline.save("policy.csv")
    >>> live = spibb.LivePolicy("policy.csv")
    >>> live.refresh(), live.current.best("mild")
    (False, 'treat')
    """

    @takes(path=(str, Path))
    def __init__(self, path: str | Path) -> None:
        self.path = possible(path)
        self.problem: str | None = None
        self._lock = threading.Lock()
        self._seen = self._signature()
        self.current: Loaded = _ready(self.path)

    def _facts(self) -> Mapping[str, Any]:
        """Where it is, what is in use, and what is wrong with the file."""
        return {"path": str(self.path), "current": self.current, "problem": self.problem}

    def refresh(self) -> bool:
        """Load the policy again if its file is another; whether it was."""
        with self._lock:
            found = self._signature()
            if found == self._seen:
                self.problem = None
                return False
            try:
                self.current = _ready(self.path)
            except Exception as error:  # what damaged bytes lead to must not stop who decides
                self.problem = str(error) or type(error).__name__
                return False
            self._seen, self.problem = found, None
            return True

    def _signature(self) -> Signature:
        folder = self.path.is_dir()
        names = ("policy.parquet", SIDECAR, VECTORS) if folder else ("",)
        found = []
        for name in names:
            try:
                facts = (self.path / name if name else self.path).stat()
            except OSError:
                continue
            found.append((facts.st_ino, facts.st_size, facts.st_mtime_ns))
        return tuple(found)


def _ready(path: Path) -> Loaded:
    """A policy that was loaded and has prepared what its first answer needs."""
    loaded = load_any(path)
    loaded.act_many([loaded.example])
    _ = loaded.sha256
    return loaded
