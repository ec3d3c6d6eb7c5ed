"""The install lines of the pages, run as printed in a clone."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from parts import lacking, needed
from typer.testing import CliRunner

import spibb
from spibb.cli.app import app

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINES = sorted(
    {
        line.strip()
        for page in PAGES
        for line in re.findall(r"pip install [^`#\n]*", page.read_text("utf-8"))
    }
)


def test_the_citation_has_the_version_of_the_package():
    said = (ROOT / "CITATION.cff").read_text("utf-8")
    assert re.findall(r"^version: (.*)$", said, re.M) == [spibb.__version__]


LOG = """episode_id,step,state,action,reward,terminated
1,0,mild,wait,0,0
1,1,severe,treat,1,1
2,0,mild,treat,0,1
"""


def closure(names: set[str]) -> set[str]:
    """Packages, and all that they ask for without extras, as far as this environment has them."""
    asked = {
        wanted.name
        for name in names
        for found in metadata.distributions(name=name)
        for wanted in map(Requirement, found.requires or [])
        if wanted.marker is None or wanted.marker.evaluate({"extra": ""})
    }
    return names if asked <= names else closure(names | asked)


def lend(packages: set[str], python: Path) -> None:
    """Link packages of this environment into another: to unpack them again takes 20 s."""
    ask = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    place = Path(subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip())
    for found in (one for package in packages for one in metadata.distributions(name=package)):
        for top in {file.parts[0] for file in found.files or []} - {"..", "__pycache__"}:
            if not (place / top).exists():
                (place / top).symlink_to(found.locate_file(top))


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """A fresh environment that has what the core asks for, and no more.

    And a function that runs a line in it, in the clone.
    """
    place = tmp_path_factory.mktemp("fresh")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place / "env"], check=True)
    python, pip = (place / "env" / "bin" / name for name in ("python", "pip"))
    lend(closure(packages_of()), python)
    pip.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m pip "$@"\n')
    pip.chmod(0o755)
    own = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    own |= {"PIP_PYTHON": str(python), "PIP_NO_COMPILE": "1"}
    own["PATH"] = f"{python.parent}{os.pathsep}{own['PATH']}"

    def run(line: str, folder: Path = ROOT) -> str:
        done = subprocess.run(line, shell=True, cwd=folder, env=own, capture_output=True, text=True,
                              check=False)  # fmt: skip
        offline = re.search(
            r"No matching distribution|NewConnectionError|ConnectTimeout", done.stderr
        )
        if done.returncode and offline:
            lacking("no package index can be reached")
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout

    (place / "log.csv").write_text(LOG, encoding="utf-8")
    return run, place


def packages_of(extra: str = "") -> set[str]:
    """What an extra asks for by name, apart from other extras; without one, the core."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    asked = project["optional-dependencies"][extra] if extra else project["dependencies"]
    return {re.match(r"[\w-]+", line)[0] for line in asked if not line.startswith("spibb")}


def write_workbook(path: Path) -> None:
    """The log as an Excel file."""
    book = needed("openpyxl").Workbook()
    for line in LOG.splitlines():
        book.active.append(line.split(","))
    book.save(path)


@pytest.mark.slow
def test_install_lines_work_as_printed(clone):
    """The core and a light extra for good; all extras are resolved at once, not downloaded.

    What their packages ask for is lent: to look all of it up in the index takes 3 s.
    """
    run, place = clone
    assert "pip install ." in LINES
    run("pip install .")
    found = run("python -c 'import importlib.util as u; print(u.find_spec(\"matplotlib\"))'")
    assert found.strip() == "None"  # only figures of studies need it
    assert run("spibb --version", place).startswith("spibb ")
    assert "Transitions" in run("spibb inspect log.csv", place)
    extras = [shlex.split(line)[2][2:-1] for line in LINES if line != "pip install ."]
    assert len(extras) >= 4
    assert sorted([f'pip install ".[{extra}]"' for extra in extras] + ["pip install ."]) == LINES
    asked = set[str]().union(*map(packages_of, extras))
    lend(closure(asked) - asked, place / "env" / "bin" / "python")
    found = run(f'pip install ".[{",".join(extras)}]" --dry-run').partition("Would install")[2]
    for extra in extras:
        assert all(f" {name}-" in found.lower() for name in packages_of(extra)), (extra, found)
    assert 'pip install ".[excel]"' in LINES
    write_workbook(place / "log.xlsx")
    run('pip install ".[excel]"')
    assert "Transitions" in run("spibb inspect log.xlsx", place)


def test_figures_without_matplotlib_say_how_to_install_it(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    done = CliRunner().invoke(app, ["figures", str(tmp_path)])
    assert done.exit_code != 0
    assert 'pip install ".[figures]"' in str(done.exception)
    assert not list(tmp_path.iterdir())


def test_the_demonstration_without_matplotlib_has_no_picture_and_all_the_rest(
    monkeypatch, tmp_path
):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    done = CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "demo"), "--episodes", "40"])
    assert done.exit_code == 0, done.output
    assert "No picture: figures need matplotlib, which is not installed" in done.output
    written = {path.name for path in (tmp_path / "demo").iterdir()}
    assert {"report.html", "log.csv"} <= written
    assert "policies.png" not in written
