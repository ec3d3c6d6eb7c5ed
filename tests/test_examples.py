"""The examples run, small."""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


def test_cartpole(monkeypatch, capsys):
    if not os.environ.get("CI"):
        pytest.importorskip("jax")
    arguments = ["cartpole.py", "--transitions", "400", "--passes", "2", "--episodes", "3"]
    monkeypatch.setattr(sys, "argv", arguments)
    runpy.run_path(str(EXAMPLES / "cartpole.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert printed.count("mean return") == 4
