"""A command loads only what it needs: `improve` knows neither the studies nor the paper."""

from __future__ import annotations

import subprocess
import sys

import pytest

LOG = """episode_id,step,state,action,reward,terminated
1,0,mild,wait,0,false
1,1,severe,treat,1,true
2,0,mild,treat,0,false
2,1,severe,wait,-1,true
"""
POLICY = (
    "state,action,probability\nmild,treat,0.5\nmild,wait,0.5\nsevere,treat,0.5\nsevere,wait,0.5\n"
)
HEAVY = ["matplotlib", "gymnasium", "jax", "ibis", "distributed", "jinja2", "duckdb", "numba"]
STUDIES = ["spibb.paper", "spibb.experiments", "spibb.envs", "spibb.deep"]
COMMANDS = {
    "inspect log.csv": ["numba", "matplotlib", "gymnasium", "jinja2", "jax", *STUDIES],
    "improve log.csv --baseline policy.csv --out out": ["matplotlib", "gymnasium", "jax", *STUDIES],
    "evaluate log.csv --policy policy.csv --behaviour policy.csv": [
        "matplotlib", "gymnasium", "jinja2", "jax", *STUDIES,
    ],
    "compare policy.csv policy.csv": ["matplotlib", "gymnasium", "jinja2", "jax", *STUDIES],
    "act policy.csv --state mild": ["matplotlib", "gymnasium", "jinja2", "jax", *STUDIES],
    "--help": [*HEAVY, "numpy", "rich.console", *STUDIES],
    "--version": [*HEAVY, "numpy", "rich.console", *STUDIES],
}  # fmt: skip
RUN = """
import sys
from spibb.cli.app import app
try:
    app(sys.argv[1:])
except SystemExit as end:
    assert not end.code, end.code
finally:
    sys.stderr.write("LOADED " + " ".join(sys.modules))
"""


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_does_not_load(command, tmp_path):
    (tmp_path / "log.csv").write_text(LOG)
    (tmp_path / "policy.csv").write_text(POLICY)
    done = subprocess.run(
        [sys.executable, "-c", RUN, *command.split()],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    loaded = set(done.stderr.split("LOADED ")[-1].split())
    assert "spibb.cli.app" in loaded
    assert not loaded & set(COMMANDS[command])
