"""The report as text: what it says, what it escapes, how large it gets."""

from __future__ import annotations

import re

import numpy as np
import pytest
from pages import FINDING, NASTY, ORIGIN, gridworld_assessment, one_step_problem

from spibb.algorithms.auto import Auto
from spibb.algorithms.basic_rl import BasicRL
from spibb.algorithms.certified import Certified
from spibb.algorithms.problem import Problem
from spibb.algorithms.spibb import PiBSpibb, PiLeqBSpibb
from spibb.evaluate import returns
from spibb.ingest.assumptions import Finding
from spibb.log import Log
from spibb.policy import Policy
from spibb.report.assessment import assess
from spibb.report.changes import policy_table
from spibb.report.page import MAX_STATES, render, state_rows
from spibb.words import at_least, clipped, number, percent, signed

ORDER = ["values", "criteria", "certificate", "changes", "evidence", "sweep", "quality", "ope",
         "origin"]  # fmt: skip


@pytest.fixture(scope="module")
def assessment():
    return gridworld_assessment()


@pytest.fixture(scope="module")
def page(assessment):
    return render(assessment)


def text_of(page: str) -> str:
    """What a reader sees, in one line."""
    body = re.sub(r"<(script|style)>.*?</\1>", " ", page, flags=re.S)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", body)).replace("&nbsp;", " ")


def test_sections_come_in_the_order_of_a_decision(page):
    places = [page.index(f'id="{name}-title"') for name in ORDER]
    assert places == sorted(places)
    assert page.index("<strong>Supported</strong>") < places[0]


@pytest.mark.parametrize("algorithm", [Auto(), PiBSpibb(5)], ids=lambda a: a.name)
def test_the_sweep_says_whether_the_verdict_shares_delta(algorithm):
    found = gridworld_assessment(algorithm)
    shared = "delta shared because" in found.verdict.sentence
    assert shared == (algorithm.name == "auto")
    said = text_of(render(found))
    assert ("the verdict's does not" in said or "the verdict&#39;s does not" in said) != shared
    assert ("chosen among other candidates, which share δ in the same way" in said) == shared


def test_nothing_is_loaded(page):
    assert not re.search(r"(src|href)=\"(?!#|data:)", page)
    assert "url(" not in page
    assert "default-src 'none'" in page


def test_every_table_has_a_caption_and_every_chart_a_description(page):
    assert page.count("<table") == page.count("<caption>")
    charts = re.findall(r"<svg[^>]*>", page)
    assert len(charts) > 4
    for chart in charts:
        assert 'aria-hidden="true"' in chart or re.search(r'role="img" aria-label="[^"]{20}', chart)


def test_the_verdict_and_the_values_agree_with_the_posterior(assessment, page):
    said, posterior = assessment.verdict, assessment.posterior
    assert said.grade == "supported"
    assert said.lower_bound == assessment.chosen.lower
    assert at_least(said.lower_bound) in said.sentence
    new, old = posterior.values.mean(axis=0).tolist()
    text = text_of(page)
    for value in (number(new), number(old), signed(posterior.gain)):
        assert value in text
    assert new - old == pytest.approx(posterior.gain)


def test_what_the_log_earned_stands_beside_the_values_of_the_model(assessment, page):
    problem = assessment.result.problem
    earned = returns(problem.log, problem.discount)
    text = text_of(page)
    assert f"Mean return in the log {number(earned.mean())} ±" in text
    assert f"± {number(1.96 * earned.std(ddof=1) / len(earned) ** 0.5)} (95 %)" in text


def test_no_probability_of_improvement_is_told(page):
    text = text_of(page)
    assert "robability of no loss" not in text
    assert "robability of improvement" not in text
    assert "P(no loss)" not in text


def test_the_sweep_is_drawn_and_its_choice_marked(assessment, page):
    assert page.count('aria-current="true"') == 1
    assert page.count('class="ring"') == 1
    assert "Off-policy: weighted per-decision" in page
    assert len(assessment.sweep) == 20


def test_findings_and_origin_are_shown(page):
    text = text_of(page)
    for words in (FINDING.what, FINDING.value, FINDING.remedy, ORIGIN.command, "python 3"):
        assert words in text


def test_a_doubtful_policy_is_not_recommended():
    assessment = gridworld_assessment(PiBSpibb(1), n_episodes=4)
    assert assessment.verdict.grade == "not supported"
    text = text_of(render(assessment))
    assert "Not supported: keep the current policy 4 episodes are too few" in text
    assert "Vacuous. The tightest bound on the loss," in text
    assert " ." not in text.split("The mean return in the log is")[1].split("The other values")[0]
    assert "the baseline collected the log" in text


def test_keeping_the_baseline_is_said():
    log = Log.from_arrays(["s"] * 4, ["a", "b"] * 2, [0.0] * 4, terminated=[True] * 4)
    problem = Problem.from_log(log, Policy([[0.5, 0.5]], ["s"], ["a", "b"]))
    assessment = assess(Auto().improve(problem), ORIGIN)
    text = text_of(render(assessment))
    assert "Not supported: keep the current policy" in text
    assert "no candidate differs from the baseline" in text
    assert "Nothing: the policy written is the current one." in text


def test_html_in_labels_is_escaped():
    log = Log.from_arrays(
        [NASTY] * 40, [f"{NASTY}{k % 2}" for k in range(40)], [float(k % 2) for k in range(40)],
        terminated=[True] * 40,
    )  # fmt: skip
    baseline = Policy([[0.5, 0.5]], [NASTY], [f"{NASTY}0", f"{NASTY}1"])
    problem = Problem.from_log(log, baseline, discount=0.5)
    result = PiBSpibb(5).improve(problem)
    page = render(assess(result, ORIGIN, findings=[Finding(NASTY, NASTY, NASTY)]))
    assert "&lt;script&gt;alert" in page
    assert "<script>alert" not in page
    assert page.count("<script>") == 2


@pytest.mark.parametrize("algorithm", [BasicRL(), PiLeqBSpibb(5)], ids=lambda a: a.name)
def test_other_algorithms_have_a_report_too(algorithm):
    text = text_of(render(gridworld_assessment(algorithm)))
    assert "What changes" in text
    assert "None." in text


def test_counts_without_a_log_give_a_report_without_estimates(assessment):
    problem = assessment.result.problem
    bare = Problem.from_counts(problem.counts, problem.baseline, discount=0.95)
    text = text_of(render(assess(PiBSpibb(10).improve(bare), ORIGIN)))
    assert "only counts of the log were kept" in text


def test_ten_thousand_states_and_long_labels_stay_small():
    problem = one_step_problem(10_000, 12, 400_000, "state {:05d} " + "x" * 200)
    assessment = assess(PiBSpibb(3).improve(problem), ORIGIN)
    page = render(assessment)
    assert len(state_rows(assessment)) == MAX_STATES
    assert len(page.encode()) < 2_000_000
    text = text_of(page)
    assert f"The {MAX_STATES} with the most impact are listed" in text
    assert "4 less likely actions are left out here" in text
    assert "other thresholds are tried only on request" in text


def test_rows_show_the_policies(assessment):
    row = state_rows(assessment)[0]
    problem, s = assessment.result.problem, row.change.code
    for action in row.actions:
        a = problem.actions.code(action.action)
        assert action.new == assessment.result.policy.probs[s, a]
        assert action.baseline == problem.baseline.probs[s, a]
        assert action.count == problem.counts.pairs[s, a]
        copied = assessment.result.bootstrapped[s, a]
        assert action.why.startswith(("copied", "lowered") if copied else "trusted")
    impacts = [row.change.impact for row in state_rows(assessment)]
    assert impacts == sorted(impacts, reverse=True)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.5321, "0.532"), (-0.5, "−0.500"), (12.3456, "12.35"), (123456.7, "123,457"), (20.0, "20"),
     (0.00123, "0.00123"), (1e-7, "1.0e−07"), (np.inf, "∞"), (np.nan, "–"), (0.0, "0")],
)  # fmt: skip
def test_numbers(value, text):
    assert number(value) == text


def test_probabilities_that_add_up_to_one_are_written_as_one():
    """0.7 + 0.2 + 0.1 is 0.9999999999999999 where one action gets the mass of all."""
    log = Log.from_arrays(["x"] * 30, ["a", "b", "c"] * 10, [0.0, 0.0, 1.0] * 10,
                          terminated=[True] * 30)  # fmt: skip
    baseline = Policy([[0.7, 0.2, 0.1]], ["x"], ["a", "b", "c"])
    result = PiBSpibb(n_wedge=1).improve(Problem.from_log(log, baseline, discount=0.0))
    assert policy_table(result).column("probability").to_pylist() == [0.0, 0.0, 1.0]


def test_shares_and_labels():
    assert percent(0.99999) == "more than 99.9\N{NO-BREAK SPACE}%"
    assert percent(1) == "100\N{NO-BREAK SPACE}%"
    assert percent(0.00001) == "less than 0.1\N{NO-BREAK SPACE}%"
    assert percent(0.123) == "12.3\N{NO-BREAK SPACE}%"
    assert clipped(("ward", 3)) == "ward · 3"
    assert clipped("state-" + "x" * 100 + "-17", 20) == "state-xxxxxxx…xxx-17"
    assert clipped(("Nord, links", "(-inf, 40)"), 20) == "Nord, …ks · (-inf…0)"
    assert clipped(("a", "b" * 100), 20) == "a · " + "b" * 10 + "…" + "b" * 5
    assert clipped(tuple("abcdefghij"), 20) == "a · b · c · d… i · j"
    assert clipped("x" * 60) == "x" * 60
    assert len(clipped("x" * 100)) == 60


def test_a_certificate_of_tested_changes_shows_every_test():
    from spibb.algorithms.certified import Certified

    assessment = gridworld_assessment(Certified(lowest_reward=0.0), n_episodes=400)
    page = render(assessment)
    text, tests = text_of(page), assessment.certificate.tests
    assert str(assessment.certificate) in text
    assert any(test.accepted for test in tests)
    assert page.count("<table") == page.count("<caption>")
    section = page[page.index('id="tests-title"') : page.index('id="changes-title"')]
    assert section.count("<tr>") == len(tests) + 1
    for assumption in assessment.certificate.assumptions:
        assert assumption in text


def test_the_labels_of_tested_changes_are_escaped():
    from spibb.algorithms.certified import Certified

    problem = one_step_problem(3, 3, 600, NASTY + "{}")
    result = Certified(lowest_reward=-2, highest_reward=3).improve(problem)
    assert any(test.accepted for test in result.tests)
    page = render(assess(result, ORIGIN))
    assert 'id="tests-title"' in page
    assert NASTY not in page


def test_where_no_number_of_visits_decides_no_pair_is_called_trusted():
    """Then states that do not change are copied, however often they were seen."""
    rng, n = np.random.default_rng(0), 900
    state, action = rng.integers(3, size=n), rng.integers(2, size=n)
    action = np.where(state < 2, action, 0)
    reward = (rng.random(n) < 0.2 + 0.6 * action) * 1.0
    log = Log.from_arrays(state=state, action=action, reward=reward, terminated=[True] * n)
    problem = Problem.from_log(log, np.array([[0.5, 0.5], [0.5, 0.5], [1, 0]]), discount=0.0)
    assessed = assess(Certified(lowest_reward=0, highest_reward=1).improve(problem), ORIGIN)
    assert np.isnan(assessed.n_wedge)
    said = {action.why for row in state_rows(assessed) for action in row.actions}
    assert said == {"raised", "lowered"}
    text = re.sub(r"\s+", " ", re.sub("<[^>]*>", "", render(assessed)))
    assert "too little evidence" not in text
    assert "of the pairs are kept as they are, most of them in states that do not change" in text
    assert "2 of 3 states change; in the others the current policy stays as it is." in text
