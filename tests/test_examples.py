"""The examples run, small."""

from __future__ import annotations

import re
import runpy
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from parts import needed

import spibb
from spibb.algorithms import REGISTRY
from spibb.evaluate import monte_carlo_value
from spibb.verdict import evidence

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.mark.parametrize(
    ("script", "mark", "times"), [("cartpole.py", "mean return", 4), ("helicopter.py", "copied", 5)]
)
def test_deep_examples(script, mark, times, monkeypatch, capsys):
    needed("jax")
    arguments = [script, "--transitions", "400", "--passes", "2", "--episodes", "3"]
    monkeypatch.setattr(sys, "argv", arguments)
    runpy.run_path(str(EXAMPLES / script), run_name="__main__")
    assert capsys.readouterr().out.count(mark) == times


@pytest.mark.parametrize(
    ("script", "mark"),
    [("frozen_lake.py", "improved  crosses the lake"), ("open_bandit.py", "young left")],
)
def test_short_examples(script, mark, capsys):
    runpy.run_path(str(EXAMPLES / script), run_name="__main__")
    assert mark in capsys.readouterr().out


@dataclass(frozen=True)
class Brief(spibb.Auto):
    """Judges by as few models as other tests do: the world has 713 states."""

    draws: int = 100


@pytest.mark.slow
def test_the_sepsis_example_goes_from_log_to_report(tmp_path, monkeypatch, capsys):
    needed("icu_sepsis")
    monkeypatch.setitem(REGISTRY, "auto", Brief)
    monkeypatch.setattr(spibb, "Auto", Brief)
    monkeypatch.setattr(evidence, "DRAWS", 100)
    sizes = "--patients 20 --logs 1 --graded 20 --graded-logs 1 --report 20"
    monkeypatch.setattr(sys, "argv", ["sepsis.py", *sizes.split(), "--out", str(tmp_path)])
    runpy.run_path(str(EXAMPLES / "sepsis.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert "true value of the clinicians' policy 0.7222" in printed
    assert (
        len(re.findall(r"^ +20 +0 +[a-z-]+ +(not )?(certified|supported) +[+-]", printed, re.M))
        == 4
    )
    assert (tmp_path / "improved" / "report.html").exists()


def test_simulated_patients_earn_what_the_sepsis_model_says():
    """Death and survival are two ends of one pair, and each pays its own reward."""
    needed("icu_sepsis")
    mdp, clinicians = runpy.run_path(str(EXAMPLES / "sepsis.py"), run_name="sepsis")["icu_sepsis"]()
    log = spibb.Sampler(mdp, clinicians, 500).log(20_000, rng=np.random.default_rng(0))
    found, value = monte_carlo_value(log, mdp.discount), spibb.exact_value(mdp, clinicians)
    assert value == pytest.approx(0.7222, abs=1e-4)
    assert abs(found.value - value) < 4 * found.standard_error
    assert set(log.reward[log.terminated]) == {0.0, 1.0}
    assert log.reward.sum() / log.n_episodes == pytest.approx(0.78, abs=0.015)
