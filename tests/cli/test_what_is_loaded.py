"""A command loads only what it needs: `improve` knows neither the studies nor the paper."""

from __future__ import annotations

import json
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
UNUSED = ["numpy.f2py.crackfortran", "numpy.testing._private"]
"""Parts of modules whose execution is postponed for good."""
NEVER = ["matplotlib", "gymnasium", "jax", "ibis", "distributed", "pandas", *UNUSED, *STUDIES]
LARGE = ["scipy.sparse"]
"""For models of many states, which the log here has not."""
SOLVERS = ["numba", "scipy", "jinja2"]
NOTHING = [*NEVER, *SOLVERS, "duckdb", "pyarrow", "numpy", "rich.console", "pydantic"]
OTHERS = ["jax", "ibis", "distributed", "spibb.deep"]
"""What the studies of finite worlds have no use for."""
EXPERIMENT = "experiment gridworld --runs 1 --jobs 1 --sizes 10 --column pi-b:n_wedge=5 --out study"
IMPROVE = "improve log.csv --baseline policy.csv --out out"
COMMANDS = {
    "inspect log.csv": [*NEVER, *SOLVERS],
    "inspect log.csv --baseline policy.csv": [*NEVER, *SOLVERS],
    IMPROVE: [*NEVER, *LARGE],
    "evaluate log.csv --policy policy.csv --behaviour policy.csv": [*NEVER, *LARGE, "jinja2"],
    "compare policy.csv policy.csv": [*NEVER, *LARGE, "jinja2"],
    "monitor out log.csv --lowest-return -1 --highest-return 1": [*NEVER, *LARGE, "jinja2"],
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
LENT = {
    "numpy": "numpy", "duckdb": "duckdb", "pyarrow.compute": "pyarrow.compute",
    "scipy.special": "scipy.special", "numba": "spibb.verdict",
}  # fmt: skip
"""What takes long to load, by the module without which it cannot be loaded."""
RUN = """
import importlib, json, os, sys
from spibb.__main__ import Postponing

sys.meta_path.insert(0, Postponing)

def loaded_by(command):
    from spibb.cli.app import app
    try:
        app(command.split())
    except SystemExit as end:
        assert not end.code, end.code
    return list(sys.modules)

lent, commands = json.loads(sys.argv[1])
for name in lent:
    importlib.import_module(name)
for number, command in enumerate(commands):
    child = os.fork()
    if child == 0:
        with open(f"{os.getppid()}-{number}.json", "w") as file:
            json.dump(loaded_by(command), file)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
with_all = [json.load(open(f"{os.getpid()}-{number}.json")) for number in range(len(commands))]
sys.stderr.write("LOADED " + json.dumps(with_all))
"""


def may_be_lent(command: str) -> list[str]:
    """What a command may load is loaded before, once for all that may load the same."""
    never = COMMANDS[command]
    return [lent for name, lent in LENT.items() if not {name, name.split(".")[0]} & set(never)]


def loaded_by(commands: list[str], folder: Path) -> dict[str, set[str]]:
    """The modules that each of these commands loads, which all may load the same."""
    done = subprocess.run(
        [sys.executable, "-c", RUN, json.dumps([may_be_lent(commands[0]), commands])],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stderr.split("LOADED ")[-1])
    return {command: set(modules) for command, modules in zip(commands, found)}


@pytest.fixture(scope="module")
def modules(tmp_path_factory):
    """The modules that a command loads, in a folder with the results of the first two."""
    place = tmp_path_factory.mktemp("loaded")
    (place / "log.csv").write_text(LOG)
    (place / "policy.csv").write_text(POLICY)
    first = [IMPROVE, EXPERIMENT]
    known: dict[str, set[str]] = {}
    for lent in sorted({tuple(may_be_lent(command)) for command in COMMANDS}, reverse=True):
        alike = [command for command in COMMANDS if tuple(may_be_lent(command)) == lent]
        known |= loaded_by(sorted(alike, key=lambda command: command not in first), place)
    return known


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_does_not_load(command, modules):
    loaded = modules[command]
    assert "spibb.cli.app" in loaded
    assert sorted(loaded & set(COMMANDS[command])) == []


POSTPONED = """
import sys
from spibb.__main__ import Postponing
sys.meta_path.insert(0, Postponing)
import numpy
numpy.f2py, numpy.testing
assert not {"numpy.f2py.crackfortran", "numpy.testing._private"} & set(sys.modules)
from numpy.testing import assert_equal
assert_equal(numpy.f2py.get_include()[-3:], "src")
"""


def test_what_is_postponed_is_there_when_it_is_used():
    subprocess.run([sys.executable, "-c", POSTPONED], check=True)


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
