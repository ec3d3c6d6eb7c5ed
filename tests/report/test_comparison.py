"""Two policies side by side."""

from __future__ import annotations

import numpy as np
import pytest
from pages import gridworld_assessment
from typer.testing import CliRunner

from spibb.assurance.posterior import posterior_improvement
from spibb.cli.app import app
from spibb.errors import InputError
from spibb.evaluate import exact_value
from spibb.policy import Policy
from spibb.report.comparison import compare
from spibb.tables import log_table, write_table


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_differences_are_total_variations_in_common_labels():
    a = Policy([[0.5, 0.5], [1.0, 0.0], [0.2, 0.8]], ["x", "y", "only-a"], ["l", "r"])
    b = Policy([[1.0, 0.0, 0.0], [0.5, 0.3, 0.2]], ["y", "x"], ["l", "r", "stay"])
    found = compare(a, b, rng=rng())
    assert (found.common, found.only_a, found.only_b) == (2, 1, 0)
    (difference,) = found.differences
    assert difference.state == "x"
    assert difference.variation == pytest.approx(0.2)
    assert found.mean_variation == pytest.approx(0.1)
    assert found.greedy_changed == 0
    assert found.values is None


def test_a_changed_likeliest_action_is_counted():
    a, b = (Policy([row], ["x"], ["l", "r"]) for row in ([0.9, 0.1], [0.2, 0.8]))
    found = compare(a, b, rng=rng())
    assert found.greedy_changed == 1
    assert (found.differences[0].greedy_a, found.differences[0].greedy_b) == ("l", "r")


def test_equal_policies_do_not_differ():
    policy = Policy([[0.9, 0.1]], ["x"], ["l", "r"])
    assert compare(policy, policy, rng=rng()).differences == ()


def test_policies_of_different_problems_are_refused():
    a, b = Policy([[1.0]], ["x"], ["l"]), Policy([[1.0]], ["y"], ["l"])
    with pytest.raises(InputError, match="no state in common"):
        compare(a, b, rng=rng())


def test_with_a_log_the_values_are_those_of_the_posterior():
    result = gridworld_assessment().result
    problem = result.problem
    found = compare(result.policy, problem.baseline, problem.log, rng=rng())
    belief = posterior_improvement(problem.counts, result.policy, problem.baseline, 0.95, rng=rng())
    assert found.values.probability == belief.probability
    assert found.values.gain == belief.gain
    assert found.values.value_a == pytest.approx(result.value)
    assert found.values.value_b == pytest.approx(exact_value(problem.model, problem.baseline))
    weights = [d.visits * d.variation for d in found.differences]
    assert weights == sorted(weights, reverse=True)


def test_the_command_prints_a_table(tmp_path):
    result = gridworld_assessment().result
    result.policy.save(tmp_path / "a.csv")
    result.problem.baseline.save(tmp_path / "b.parquet")
    write_table(log_table(result.problem.log), tmp_path / "log.csv")
    words = ["compare", str(tmp_path / "a.csv"), str(tmp_path / "b.parquet")]
    plain = CliRunner().invoke(app, words)
    assert plain.exit_code == 0, plain.output
    assert "of 25 common states differ" in plain.output
    assert "visits" not in plain.output
    full = CliRunner().invoke(app, [*words, "--log", str(tmp_path / "log.csv")])
    assert full.exit_code == 0, full.output
    assert "Probability, given the log" in full.output
    assert "visits" in full.output
