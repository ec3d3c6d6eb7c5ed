"""A log that cannot come from the policy that is said to have made it supports nothing."""

from __future__ import annotations

import json

import numpy as np
import pytest

from spibb.algorithms.auto import Auto
from spibb.algorithms.certified import Certified
from spibb.algorithms.problem import Problem
from spibb.algorithms.spibb import PiBSpibb
from spibb.log import Log
from spibb.policy import Policy

LABELS = ["x"], ["a0", "a1"]


def coin(n: int = 400, share: float = 0.5, prob=None) -> Log:
    """One decision per episode; a1 pays one more. `prob` is what the log records."""
    rng = np.random.default_rng(0)
    action = (rng.random(n) >= share).astype(int)
    reward = action + 0.1 * rng.standard_normal(n)
    recorded = None if prob is None else [prob[a] for a in action.tolist()]
    return Log.from_arrays(
        ["x"] * n, [f"a{a}" for a in action.tolist()], reward, terminated=[True] * n,
        action_prob=recorded,
    )  # fmt: skip


def grade(log: Log, baseline: Policy | None, algorithm) -> tuple[str, bool]:
    """The grade, and whether the criterion `baseline` is met."""
    verdict = algorithm.improve(Problem.from_log(log, baseline, discount=0.9)).verdict
    met = next(c.passed for c in verdict.criteria if c.name == "baseline")
    return str(verdict.grade), met


ALGORITHMS = [
    PiBSpibb(5),
    Auto(),
    Certified(lowest_return=-2.0, highest_return=3.0),
]


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda a: a.name)
@pytest.mark.parametrize("claimed", [0.05, 0.001, 0.8])
def test_a_baseline_that_frequencies_contradict_is_refused(algorithm, claimed):
    baseline = Policy([[claimed, 1 - claimed]], *LABELS)
    assert grade(coin(), baseline, algorithm) == ("not supported", False)
    honest = grade(coin(share=0.3), Policy([[0.3, 0.7]], *LABELS), algorithm)
    assert honest[0] in ("supported", "certified")


def test_the_sentence_and_the_certificate_name_the_pair():
    result = PiBSpibb(5).improve(
        Problem.from_log(coin(), Policy([[0.05, 0.95]], *LABELS), discount=0.9)
    )
    taken = int((coin().action == coin().actions.index["a0"]).sum())
    assert f"'a0' in {taken} of 400 decisions, expected about 20" in result.verdict.sentence
    assert "not as frequent" in result.certificate().refusal
    assert not any("None" in c.found for c in result.verdict.criteria)


def test_a_certificate_on_a_log_that_refutes_the_baseline_is_a_refusal_everywhere(tmp_path):
    """In the result, the summary and the report alike; the tests themselves were passed."""
    problem = Problem.from_log(coin(share=0.9), Policy([[0.5, 0.5]], *LABELS), discount=0.9)
    result = Certified(lowest_return=-2.0, highest_return=3.0).improve(problem)
    assert result.tested().accepted
    assert result.tested().refusal is None
    refusal = result.certificate().refusal
    assert result.certificate().best is None
    assert "but the log contradicts the current policy: its actions are not as freq" in refusal
    folder = result.save(tmp_path / "saved")
    stored = json.loads((folder / "summary.json").read_text("utf-8"))["certificate"]
    assert (stored["refusal"], stored["bounds"]) == (refusal, [])
    assert "Certified: with probability" not in (folder / "report.html").read_text("utf-8")


@pytest.mark.parametrize("algorithm", ALGORITHMS[:2], ids=lambda a: a.name)
@pytest.mark.parametrize("prob", [(0.01, 0.01), (1.0, 1.0), (0.99, 0.01)])
def test_recorded_probabilities_that_cannot_be_true_are_refused(algorithm, prob):
    assert grade(coin(prob=prob), None, algorithm) == ("not supported", False)
    assert grade(coin(prob=(0.5, 0.5)), None, algorithm)[0] == "supported"


def test_honest_baselines_are_hardly_ever_contradicted():
    rng = np.random.default_rng(1)
    probs = rng.dirichlet(np.full(4, 0.3), size=30)
    baseline = Policy(probs, [f"s{i}" for i in range(30)], list("abcd"))
    for _ in range(300):
        state = rng.integers(30, size=300)
        action = (rng.random((300, 1)) > probs[state].cumsum(axis=1)[:, :3]).sum(axis=1)
        log = Log.from_arrays(
            [f"s{i}" for i in state.tolist()], ["abcd"[a] for a in action.tolist()],
            np.zeros(300), terminated=[True] * 300,
        )  # fmt: skip
        problem = Problem.from_log(log, baseline, discount=0.9)
        assert problem.misreported is None and problem.contradictions == 0


def test_a_cut_last_row_counts_as_a_decision():
    rng, n = np.random.default_rng(0), 60
    log = Log.from_arrays(
        ["x"] * (n + 1), [*rng.integers(0, 2, n).tolist(), 2], [*rng.random(n).tolist(), 0.0],
        terminated=[True] * n + [False], truncated=[False] * n + [True],
    )  # fmt: skip
    problem = Problem.from_log(log, np.array([[0.5, 0.5, 0.0]]), discount=0.9)
    assert problem.contradictions == 1
    assert problem.decisions.sum() == n + 1
    verdict = PiBSpibb(n_wedge=1).improve(problem).verdict
    assert verdict.grade == "not supported"
    assert [c.passed for c in verdict.criteria if c.name == "baseline"] == [False]
