"""A command loads only what it needs: `improve` knows neither the studies nor the paper."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from spibb.cli.app import app

LOG = """episode_id,step,state,action,reward,terminated
1,0,mild,wait,0,false
1,1,severe,treat,1,true
2,0,mild,treat,0,false
2,1,severe,wait,-1,true
"""
POLICY = (
    "state,action,probability\nmild,treat,0.5\nmild,wait,0.5\nsevere,treat,0.5\nsevere,wait,0.5\n"
)
STUDIES = ["spibb.paper", "spibb.experiments", "spibb.envs", "spibb.deep"]
NEVER = ["matplotlib", "gymnasium", "jax", "ibis", "distributed", "pandas", *STUDIES]
SOLVERS = ["numba", "scipy", "jinja2"]
NOTHING = [*NEVER, *SOLVERS, "duckdb", "pyarrow", "numpy", "rich.console", "pydantic"]
OTHERS = ["jax", "ibis", "distributed", "spibb.deep"]
"""What the studies of finite worlds have no use for."""
EXPERIMENT = "experiment gridworld --runs 1 --jobs 1 --sizes 10 --column pi-b:n_wedge=5 --out study"
IMPROVE = "improve log.csv --baseline policy.csv --out out"
COMMANDS = {
    "inspect log.csv": [*NEVER, *SOLVERS],
    IMPROVE: NEVER,
    "evaluate log.csv --policy policy.csv --behaviour policy.csv": [*NEVER, "jinja2"],
    "compare policy.csv policy.csv": [*NEVER, "jinja2"],
    "monitor out log.csv --lowest-return -1 --highest-return 1": [*NEVER, "jinja2"],
    "act policy.csv --state mild": [*NEVER, *SOLVERS],
    "act out --state mild": [*NEVER, *SOLVERS, "duckdb", "pyarrow.compute", "numpy.ma"],
    "export out --out out.spibb": ["matplotlib", "gymnasium", "jax", "ibis", *STUDIES],
    "split log.csv --out parts --share 0.5": ["matplotlib", "gymnasium", "jax", "ibis", *STUDIES],
    EXPERIMENT: [*OTHERS, "matplotlib", "jinja2", "spibb.paper"],
    "claims study": [*OTHERS, "matplotlib"],
    "figures study": OTHERS,
    "demo --out demo --episodes 20": OTHERS,
    "--help": NOTHING,
    "--version": NOTHING,
}
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


def loaded_by(command: str, folder: Path) -> set[str]:
    """The modules that a command loads."""
    done = subprocess.run(
        [sys.executable, "-c", RUN, *command.split()],
        cwd=folder, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return set(done.stderr.split("LOADED ")[-1].split())


@pytest.fixture(scope="module")
def modules(tmp_path_factory):
    """The modules that a command loads, in a folder with the results of the first two."""
    place = tmp_path_factory.mktemp("loaded")
    (place / "log.csv").write_text(LOG)
    (place / "policy.csv").write_text(POLICY)
    known = {command: loaded_by(command, place) for command in (IMPROVE, EXPERIMENT)}
    return lambda command: known.get(command) or loaded_by(command, place)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_does_not_load(command, modules):
    loaded = modules(command)
    assert "spibb.cli.app" in loaded
    assert sorted(loaded & set(COMMANDS[command])) == []


def test_every_command_is_looked_at():
    looked_at = {command.split()[0] for command in COMMANDS}
    commands = {command.callback.__name__ for command in app.registered_commands}
    assert commands - looked_at == set()


def test_numpy_computes_in_one_thread_unless_told_otherwise():
    code = "import os, sys, spibb.cli.app as c\nsys.argv = ['spibb', '--version']\ntry: c.main()\n"
    code += "except SystemExit: print(os.environ['OPENBLAS_NUM_THREADS'])"
    for given, found in (({}, "1"), ({"OPENBLAS_NUM_THREADS": "3"}, "3")):
        env = {k: v for k, v in os.environ.items() if k != "OPENBLAS_NUM_THREADS"} | given
        done = subprocess.run(
            [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
        )
        assert done.stdout.split()[-1] == found
