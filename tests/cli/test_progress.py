"""What is shown while the command line works."""

from __future__ import annotations

import io
import time

import pytest
from rich.console import Console

from spibb.cli.progress import SOLVER, STEP_SUMS, ProgressLine, is_compiled, progress


def shown(**options):
    """What a terminal sees of some work that is half done."""
    console = Console(file=io.StringIO(), force_terminal=True, width=200)
    with progress(console, "working", "of it", **options) as tell:
        tell(0.5)
        time.sleep(0.3)
    return console.file.getvalue()


def test_the_line_says_what_and_how_far():
    assert "working (50% of it)" in shown()


def test_seconds_are_shown_once_there_are_some():
    assert ProgressLine("working").__rich__() == "working"
    assert ProgressLine("working", begun=time.monotonic() - 7.2).__rich__() == "working, 7 s"


@pytest.mark.parametrize("stored", [True, False])
def test_compiling_is_announced_only_if_it_must_be_done(tmp_path, monkeypatch, stored):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    if stored:
        (tmp_path / "kernels_1").mkdir()
        (tmp_path / "kernels_1" / "dense.policy_iteration-33.py311.nbi").touch()
    assert ("compiling once, about 8 s" in shown(compiles=SOLVER)) == (not stored)


@pytest.mark.parametrize("kernel", [SOLVER, STEP_SUMS])
def test_the_kernels_asked_for_are_those_that_the_work_compiles(kernel):
    from spibb.kernels import dense, ope

    module, name = kernel[0].split(".")
    assert callable(getattr({"dense": dense, "ope": ope}[module], name))


def test_a_kernel_that_ran_is_compiled(monkeypatch):
    import numpy as np

    from spibb import Policy, Problem
    from spibb.algorithms import BasicRL
    from spibb.log import Log

    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    log = Log.from_arrays(["x", "x"], ["a", "b"], np.array([0.0, 1.0]), terminated=[True, True])
    BasicRL().improve(Problem.from_log(log, Policy.uniform(log.states, log.actions), discount=0.9))
    assert is_compiled(SOLVER[0])
