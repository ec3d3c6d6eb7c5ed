"""The examples run, small."""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.mark.parametrize(
    ("script", "mark", "times"), [("cartpole.py", "mean return", 4), ("helicopter.py", "copied", 5)]
)
def test_deep_examples(script, mark, times, monkeypatch, capsys):
    if not os.environ.get("CI"):
        pytest.importorskip("jax")
    arguments = [script, "--transitions", "400", "--passes", "2", "--episodes", "3"]
    monkeypatch.setattr(sys, "argv", arguments)
    runpy.run_path(str(EXAMPLES / script), run_name="__main__")
    assert capsys.readouterr().out.count(mark) == times
