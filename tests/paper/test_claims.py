"""Claims: each can hold, fail, or lack runs or columns; and the files they are written to."""

from __future__ import annotations

import csv
import math
from dataclasses import replace
from pathlib import Path

import pytest
from synthetic import around, as_the_paper_says, everything, make_results

from spibb.experiments.spec import FINITE, STUDY_NAMES, Column
from spibb.paper.claim import ABSENT, CLAIMS, FAILS, HOLDS, NOT_ENOUGH, above, between
from spibb.paper.claims import claims, markdown, write_claims
from spibb.paper.evidence import (
    Bounded,
    View,
    average,
    difference,
    distance,
    independent_average,
    largest,
    negative,
    share_below,
    smallest,
)
from spibb.paper.holds import gather, terminal, web
from spibb.stats import Interval

EXACT = {"grid-baseline", "grid-optimum"}
"""Claims about known values, which no number of runs changes."""


def negated(value_of):
    return lambda column, size, eta, name: -value_of(column, size, eta, name)


def reversed_sizes(value_of, sizes):
    return lambda column, size, eta, name: value_of(column, sizes[-1] * 10 // size, eta, name)


def constant(value):
    return lambda column, size, eta, name: value


def improving(column, size, eta, name):
    """All rise with |D| and N∧; RaMDP is ahead; HCPI falls with δ and depends on its estimator."""
    options = dict(column.options)
    base = {"ramdp": 0.8, "pi-leq-b": 0.5, "hcpi": 0.5}.get(column.algorithm, 0.2)
    shift = 0.2 if options.get("estimator") == "is" else 0.0
    return base + shift + size / 1e5 + options.get("n_wedge", 0) / 200 - options.get("delta", 0) / 3


def far_worlds(study):
    """Results in which the paper's sentences are not true, in several ways."""
    experiment, true = everything(study), as_the_paper_says(study)
    functions = [negated(true), reversed_sizes(true, experiment.sizes), improving]
    functions += [constant(value) for value in (0.0, 1.0, -2.0)]
    yield from (make_results(experiment, function) for function in functions)
    yield make_results(experiment, true, baseline=0.3, optimal=0.7)


def verdicts_of(results):
    return {verdict.id: verdict for verdict in claims(results)}


@pytest.fixture(scope="module", params=FINITE)
def study(request):
    return request.param


def test_there_are_enough_claims_with_distinct_names():
    names = [claim.id for claim in CLAIMS]
    assert len(names) == len(set(names)) >= 25
    assert {claim.study for claim in CLAIMS} == set(STUDY_NAMES)


def test_every_claim_holds_where_the_paper_is_right(study):
    found = verdicts_of(make_results(everything(study), as_the_paper_says(study)))
    assert {name: v.verdict for name, v in found.items() if v.verdict != HOLDS} == {}


def test_every_claim_can_fail(study):
    failed = {
        name
        for results in far_worlds(study)
        for name, verdict in verdicts_of(results).items()
        if verdict.verdict == FAILS
    }
    assert {claim.id for claim in CLAIMS if claim.study == study} - failed == set()


def test_wide_intervals_decide_nothing(study):
    results = make_results(everything(study), as_the_paper_says(study), half=5.0)
    found = verdicts_of(results)
    assert {n for n, v in found.items() if v.verdict != NOT_ENOUGH} == EXACT & set(found)
    assert "across the limit" in next(v.note for n, v in found.items() if n not in EXACT)


def test_a_tail_of_few_runs_decides_nothing(study):
    found = verdicts_of(make_results(everything(study), as_the_paper_says(study), runs=999))
    tails = {n: v for n, v in found.items() if "1 %-CVaR" in v.statistic}
    assert {v.verdict for v in tails.values()} == {NOT_ENOUGH}
    assert all("runs in the tail: 9," in v.note for v in tails.values())
    assert {v.verdict for n, v in found.items() if v.statistic.startswith("mean")} <= {HOLDS}


def test_absent_columns_are_named(study):
    experiment = replace(everything(study), columns=(Column.parse("pi-b:n_wedge=3"),))
    found = verdicts_of(make_results(experiment, constant(0.0)))
    assert {v.verdict for n, v in found.items() if n not in EXACT} == {ABSENT}
    assert all(v.interval is None and v.note for n, v in found.items() if n not in EXACT)


def test_absent_sizes_are_named():
    experiment = replace(everything("gridworld"), sizes=(200, 500))
    found = verdicts_of(make_results(experiment, as_the_paper_says("gridworld")))
    assert found["grid-b-unsafe-low-correct"].note == "no sizes from 0 to 10"
    assert found["grid-basic-poor"].verdict == ABSENT
    assert found["grid-hcpi-far-correct"].verdict == HOLDS


def test_absent_etas_are_named():
    experiment = replace(everything("random-mdps"), etas=(0.5,))
    found = verdicts_of(make_results(experiment, as_the_paper_says("random-mdps")))
    assert found["mdps-good-leq-b-safe"].verdict == ABSENT
    assert "η = 0.9" in found["mdps-good-leq-b-safe"].note


def test_the_two_versions_of_ramdp_are_judged_apart():
    true = as_the_paper_says("gridworld")

    def only_released(column, size, eta, name):
        correct = column.algorithm == "ramdp" and not dict(column.options).get("released")
        return true(Column("basic-rl") if correct else column, size, eta, name)

    found = verdicts_of(make_results(everything("gridworld"), only_released))
    for name in ("grid-ramdp-spot", "grid-ramdp-high"):
        assert found[f"{name}-released"].verdict == HOLDS
        assert found[f"{name}-correct"].verdict == FAILS


def test_statistics_state_their_limit(study):
    found = claims(make_results(everything(study), constant(0.0)))
    assert len(found) > 5
    for verdict in found:
        assert "; holds if " in verdict.statistic


def test_files_are_written_whole(tmp_path):
    results = make_results(everything("gridworld"), as_the_paper_says("gridworld"))
    verdicts = write_claims(results, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["claims.csv", "claims.md"]
    with (tmp_path / "claims.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["id"] for row in rows] == [verdict.id for verdict in verdicts]
    assert float(rows[0]["low"]) <= float(rows[0]["value"]) <= float(rows[0]["high"])
    text = (tmp_path / "claims.md").read_text(encoding="utf-8")
    table = [line for line in text.splitlines() if line.startswith("| ")][1:]
    assert len(table) == len(verdicts)
    assert all(line.replace("\\|", "").count("|") == 8 for line in table)
    assert "spibb claims" in text and "100,000 runs" in text


def test_the_page_names_the_command(tmp_path):
    experiment = replace(everything("random-mdps"), sizes=(10, 20), etas=(0.1,), seed=4)
    results = make_results(experiment, constant(0.0), runs=7)
    text = markdown(results, claims(results), tmp_path)
    assert "spibb experiment random-mdps --runs 7" in text
    assert "--sizes 10,20 --etas 0.1 --seed 4" in text


def test_regions_exclude_their_limits():
    assert above(0).judge(Interval(0, 0, 0)) == FAILS
    assert above(0).judge(Interval(1, 0, 2)) == NOT_ENOUGH
    assert between(0, 1).judge(Interval(0.5, 0.1, 0.9)) == HOLDS
    assert between(0, 1).judge(Interval(2, 1, 3)) == FAILS


def test_differences_add_margins_as_squares():
    found = difference(Interval(5, 2, 9), Interval(1, 0.5, 5))
    assert (found.value, found.low, found.high) == (4, -1, 4 + (16.25**0.5))


def test_extremes_widen_with_the_number_of_values():
    one, many = smallest([around(1, 0.1)]), smallest([around(1, 0.1)] * 20)
    assert one.low == pytest.approx(0.9)
    assert many.low < 0.85
    assert largest([around(1, 0.1), around(3, 0.1)]).value == 3


def test_averages_keep_the_mean_margin():
    found = average([Interval(0, -1, 1), Interval(2, 1, 5)])
    assert (found.value, found.low, found.high) == (1, 0, 3)


def test_errors_of_independent_cells_add_as_squares():
    found = independent_average([Interval(0, -3, 1), Interval(2, -2, 5)])
    assert found.value == 1
    assert found.low == pytest.approx(1 - 5 / 2)
    assert found.high == pytest.approx(1 + math.hypot(1, 3) / 2)
    one = independent_average([Interval(0, -1, 1)])
    assert (one.low, one.high) == (-1, 1)


def test_distances_reach_zero_where_the_order_is_open():
    assert distance(around(1, 0.2), around(1.1, 0.2)).low == 0
    assert distance(around(1, 0.1), around(3, 0)).low == pytest.approx(1.9)


def test_shares_count_sure_and_possible_cells():
    cells = [around(-1, 0.1), around(-0.01, 0.5), around(0.01, 0.5), around(1, 0.1)]
    assert share_below(cells, 0) == Interval(0.5, 0.25, 0.75)


def test_intervals_stay_within_what_is_possible():
    share = Bounded(0.9, 0.8, 0.99, 0, 1)
    assert largest([share] * 20).high == 1
    assert distance(share, Bounded(0.1, 0, 1, 0, 1)).high <= 1
    assert smallest([share, negative(share)]).low >= -1
    assert difference(share, share).high <= 1
    assert average([share, share]).high <= 1


def test_no_claim_about_a_performance_reaches_beyond_the_optimum(study):
    results = make_results(everything(study), as_the_paper_says(study), half=5.0)
    for ruling in claims(results):
        words = ruling.statistic
        if words.startswith(("lowest", "highest")) and "ρ" not in words and "minus" not in words:
            assert ruling.interval.high <= max(1, ruling.interval.value), ruling.id


def parts_of(experiment):
    """The experiment with a single size, column or η, for each."""
    yield from (replace(experiment, sizes=(n,)) for n in experiment.sizes)
    yield from (replace(experiment, columns=(column,)) for column in experiment.columns)
    yield from (replace(experiment, etas=(eta,)) for eta in experiment.etas)


def test_any_part_of_a_study_gets_a_clear_answer(study):
    """Claims that need what is missing say so; none raises."""
    for experiment in parts_of(everything(study)):
        page = gather([(Path("part"), make_results(experiment, as_the_paper_says(study)))])
        for ruling in page.rulings:
            assert (ruling.interval is None) == (ruling.verdict == ABSENT)
            assert ruling.verdict != ABSENT or ruling.note
        assert terminal(page) and web(page, Path())


def test_a_verdict_on_some_of_the_papers_sizes_says_so():
    experiment = replace(everything("gridworld"), sizes=(10, 50))
    results = make_results(experiment, as_the_paper_says("gridworld"))
    found = verdicts_of(results)
    part, whole = found["grid-leq-b-above-correct"], found["grid-b-unsafe-low-correct"]
    assert part.basis == "100,000 runs, |D| = 10 and 50: only 2 of the paper's 10 sizes"
    assert whole.basis == "100,000 runs, |D| = 10"
    text = terminal(gather([(Path("part"), results)]))
    assert "gridworld: 100,000 runs, 2 of the paper's 10 sizes" in text
    assert "only 2 of the paper's 10 sizes" in text.replace("\n    ", " ")
    assert "2 of the paper's 10 sizes" in markdown(results, claims(results), Path("part"))


def test_values_are_told_apart_from_their_limits():
    (claim,) = (c for c in CLAIMS if c.id == "grid-basic-far")
    results = make_results(everything("gridworld"), constant(0.8996))
    assert claim.decide(results).value.startswith("0.8996 [")


def test_too_short_tails_say_how_many_runs_are_needed():
    results = make_results(everything("gridworld"), as_the_paper_says("gridworld"), runs=20)
    text = terminal(gather([(Path("few"), results)])).replace("\n    ", " ")
    assert "at least 10 needed (1,000 runs)" in text


def test_a_view_remembers_its_shortest_tail():
    view = View(make_results(everything("gridworld"), constant(0.0), runs=5000))
    view.at("basic-rl", "mean", 10)
    assert view.tails == []
    view.at("basic-rl", "cvar1", 10)
    assert view.tails == [50]
