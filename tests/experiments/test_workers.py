"""Local workers that die are replaced, and their runs done again."""

from __future__ import annotations

import os
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

from spibb.algorithms.base import Algorithm
from spibb.algorithms.improvement import Improvement
from spibb.algorithms.problem import Problem
from spibb.errors import InputError
from spibb.experiments import workers
from spibb.experiments.parts import Chunk, part_files
from spibb.experiments.runner import SPEC, Plan, execute, plan
from spibb.experiments.spec import Column, Experiment

STUDY = Experiment("gridworld", (10, 5000), (Column.parse("basic-rl"),))


@dataclass(frozen=True)
class Dies(Algorithm):
    """Ends its process, as the system does when memory runs out."""

    name: ClassVar[str] = "dies"

    def improve(self, problem: Problem) -> Improvement:
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("still alive")


def loky_workers() -> list[int]:
    """The processes in which joblib runs tasks."""
    words = ["ps", "-ww", "-o", "pid=,args=", "--ppid", str(os.getpid())]
    lines = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    return [int(line.split()[0]) for line in lines if "LokyProcess" in line]


def names(folder: Path) -> list[str]:
    """The names of the parts, which have the hashes of the rows."""
    return [path.name for path in part_files(folder)]


@pytest.mark.slow
def test_a_study_whose_worker_is_killed_finishes_with_the_same_parts(tmp_path, monkeypatch):
    list(execute(plan(STUDY, tmp_path / "alone", 240, jobs=2)))
    begun = []
    arriving = workers._arriving
    monkeypatch.setattr(
        workers, "_arriving", lambda *given: begun.append(len(given[1])) or arriving(*given)
    )
    steps = execute(plan(STUDY, tmp_path / "rows", 240, jobs=2), jobs=2)
    next(steps)
    os.kill(loky_workers()[0], signal.SIGKILL)
    list(steps)
    assert len(begun) == 2
    assert begun[0] == 8 > begun[1] > 0  # what had arrived is not done again
    assert names(tmp_path / "rows") == names(tmp_path / "alone")
    assert len(names(tmp_path / "rows")) == 8


def test_workers_that_always_die_are_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(workers, "ATTEMPTS", 2)
    deadly = Experiment("gridworld", (10,), (Column("test_workers.Dies"),))
    folder = tmp_path / "rows"
    folder.mkdir()
    deadly.write(folder / SPEC)
    todo = Plan(deadly, folder, 4, 0, (Chunk(0, 2), Chunk(2, 4)), (), 1.0)
    message = r"workers died 2 times in a row .* fewer --jobs; all finished parts are kept"
    with pytest.raises(InputError, match=message):
        list(execute(todo, jobs=2))
    assert names(folder) == []
