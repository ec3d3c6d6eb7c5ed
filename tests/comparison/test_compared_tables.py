"""Two policies side by side."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pages import gridworld_assessment
from typer.testing import CliRunner

from spibb.algorithms.spibb import PiBSpibb
from spibb.cli.app import app
from spibb.comparison import compare
from spibb.errors import InputError
from spibb.policy import Policy
from spibb.tables import log_table, write_table


def test_differences_are_total_variations_in_common_labels():
    a = Policy([[0.5, 0.5], [1.0, 0.0], [0.2, 0.8]], ["x", "y", "only-a"], ["l", "r"])
    b = Policy([[1.0, 0.0, 0.0], [0.5, 0.3, 0.2]], ["y", "x"], ["l", "r", "stay"])
    found = compare(a, b)
    assert (found.common, found.only_a, found.only_b) == (2, 1, 0)
    (difference,) = found.differences
    assert difference.state == "x"
    assert difference.variation == pytest.approx(0.2)
    assert found.mean_variation == pytest.approx(0.1)
    assert found.greedy_changed == 0
    assert found.verdict is None


def test_a_changed_likeliest_action_is_counted():
    a, b = (Policy([row], ["x"], ["l", "r"]) for row in ([0.9, 0.1], [0.2, 0.8]))
    found = compare(a, b)
    assert found.greedy_changed == 1
    assert (found.differences[0].greedy_a, found.differences[0].greedy_b) == ("l", "r")


def test_equal_policies_do_not_differ():
    policy = Policy([[0.9, 0.1]], ["x"], ["l", "r"])
    assert compare(policy, policy).differences == ()


def test_policies_of_different_problems_are_refused():
    a, b = Policy([[1.0]], ["x"], ["l"]), Policy([[1.0]], ["y"], ["l"])
    with pytest.raises(InputError, match="no state in common"):
        compare(a, b)


def test_with_a_log_the_verdict_is_that_of_a_in_the_place_of_b():
    problem = replace(gridworld_assessment().result.problem, v_max_given=False)
    result = PiBSpibb(10).improve(problem)
    found = compare(result.policy, problem.baseline, problem.log)
    assert found.verdict.grade == result.verdict.grade == "supported"
    assert found.verdict.sentence == result.verdict.sentence
    assert found.evidence.gain.mean == result.posterior().gain
    weights = [d.visits * d.variation for d in found.differences]
    assert weights == sorted(weights, reverse=True)
    back = compare(problem.baseline, result.policy, problem.log)
    assert back.verdict.grade == "not supported"


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
    assert full.output.startswith("Supported. According to the model, A gains at least")
    assert "– B made the log" in full.output
    assert "robability" not in full.output
    assert "visits" in full.output
