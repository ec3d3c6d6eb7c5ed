"""A researcher's algorithm from a file of the current folder, as docs/adding.md shows it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from spibb.algorithms import make
from spibb.algorithms.basic_rl import BasicRL
from spibb.algorithms.problem import Problem
from spibb.errors import InputError
from spibb.experiments import compiled
from spibb.experiments.compiled import CompiledTrainer
from spibb.experiments.finite import gridworld
from spibb.experiments.results import load_results
from spibb.experiments.runner import plan, read_spec
from spibb.experiments.spec import Column, Experiment
from spibb.experiments.studies import select_experiment
from spibb.paper import style
from spibb.paper.provenance import experiment_commands
from spibb.simulate import Sampler

OWN = "cautious.Cautious:epsilon=0.1"
PAGE = Path(__file__).parents[2] / "docs" / "adding.md"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the class of the documentation in cautious.py."""
    example, kernel = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.S)
    parts = example.split("\nlog = ")[0], kernel.split("\nproblem = ")[0]
    (tmp_path / "cautious.py").write_text("\n".join(parts), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "cautious", raising=False)
    return tmp_path


def test_it_runs_beside_the_papers_columns_in_worker_processes(folder, commands):
    done = commands.run(
        "experiment", "gridworld", "--runs", "4", "--out", "rows", "--sizes", "10", "--jobs", "2",
        "--column", "basic-rl", "--also", OWN, "--baseline", "spibb",
    )  # fmt: skip
    assert done.code == 0, done.err
    (folder / "cautious.py").unlink()
    results = load_results(folder / "rows")  # needs no class
    mine, reckless = (results.cell(key, 10).statistics["mean"] for key in (OWN, "basic-rl"))
    assert mine.value > reckless.value
    assert style.label(Column.parse(OWN)) == "Cautious, epsilon = 0.1"


def test_its_kernel_joins_the_compiled_call(folder, monkeypatch):
    """Beside one of the built-in kernels: the call with all of them takes long to compile."""
    monkeypatch.setattr(compiled, "kinds", lambda: (BasicRL,))
    kind = type(make("cautious.CompiledCautious"))
    world = gridworld(uniform=False, name="authors")
    sampler = Sampler(world.mdp, world.behaviour)
    codes, lengths = sampler.draw(30, rng=np.random.default_rng(0))
    group = [kind(0.1), BasicRL(), kind(0.4)]
    plan = CompiledTrainer(group, sampler, world.baseline, 1.0)
    assert plan.members == [0, 1, 2]
    problem = Problem.from_counts(sampler.to_counts(codes, lengths), world.baseline, v_max=1.0)
    alone = [algorithm.improve(problem).policy.probs for algorithm in group]
    np.testing.assert_allclose(plan.policies(codes, lengths), alone, atol=1e-9)
    np.testing.assert_allclose(kind.policies(group[::2], problem), alone[::2], atol=1e-9)


def test_it_improves_a_log(folder, commands):
    assert commands.run("demo", "--episodes", "20").code == 0
    done = commands.run(
        "improve", "spibb-demo/log.csv", "--baseline", "spibb-demo/baseline.csv", "--out", "better",
        "--algorithm", "cautious.Cautious", "--option", "epsilon=0.3",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert "nothing is proven about it" in done.out


def test_the_command_of_a_study_with_more_columns_adds_them(tmp_path):
    for grid in ("main", "search"):
        spec = select_experiment("gridworld", grid, also=["pi-b:n_wedge=3", OWN])
        assert spec == Experiment.from_toml(spec.to_toml())
        results = type("Some", (), {"experiment": spec, "runs": 7})
        words = experiment_commands(results, Path("rows"))[0].split()
        chosen = [word for word in words if word.startswith("--")]
        assert chosen == ["--runs", "--out", *["--grid"] * (grid == "search"), "--also", "--also"]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("nowhere.Cautious", "No module named 'nowhere'"),
        ("cautious.Reckless", "no attribute 'Reckless'"),
        (".Cautious", "cannot be imported"),
        ("cautious.Box", "is not an algorithm: derive it"),
    ],
)
def test_what_cannot_be_used_is_refused_before_anything_is_written(folder, name, reason):
    with pytest.raises(InputError, match=reason):
        make(name)
    with pytest.raises(InputError, match=reason):
        plan(select_experiment("gridworld", "main", [name]), folder / "rows", 3)
    assert not (folder / "rows").exists()


def test_its_options_are_checked(folder):
    with pytest.raises(InputError, match=r"no option 'epsilo' \(did you mean 'epsilon'"):
        make("cautious.Cautious", epsilo=1)
    with pytest.raises(InputError, match=r"epsilon is 2, expected a number in \[0, 1\]"):
        make("cautious.Cautious", epsilon=2)


def test_a_stored_spec_is_read_without_the_class(tmp_path):
    spec = select_experiment("gridworld", "main", ["nowhere.Absent:x=1"])
    spec.write(tmp_path / "experiment.toml")
    assert read_spec(tmp_path) == spec
