"""Figures and claims of the helicopter study, from made-up cells; no network is needed."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from synthetic import around

from spibb.experiments.helicopter_grids import GRIDS, PAPER_KAPPAS, mass_column, measures
from spibb.experiments.results import STATISTICS, Cell, Results, results_table
from spibb.experiments.runner import SPEC
from spibb.experiments.spec import Column, Dqn
from spibb.experiments.studies import STUDIES, select_experiment
from spibb.paper import figures as figures_module
from spibb.paper.claim import ABSENT, CLAIMS, FAILS, HOLDS, NOT_ENOUGH
from spibb.paper.claims import claims, write_claims
from spibb.paper.figures import write_figures
from spibb.paper.networks import BLUES, GREENS
from spibb.paper.paper_figures import paper_figures
from spibb.paper.provenance import experiment_commands
from spibb.paper.stored import NUMBERS, joined, read_results
from spibb.paper.style import STYLES
from spibb.tables import write_table

CLAIMS = {claim.id for claim in CLAIMS if claim.study == "helicopter"}
DECIDED_BY = {
    "main": {"heli-dqn-mean", "heli-dqn-tail", "heli-spibb-mean", "heli-spibb-tail"},
    "noise": {name for name in CLAIMS if name.startswith("heli-noise")},
    "ramdp": {name for name in CLAIMS if name.startswith("heli-ramdp")},
    "single": {name for name in CLAIMS if name.startswith("heli-single")},
    "passes": {"heli-converged"},
}
DRAWN_BY = {
    "main": {"4a", "4b", "4s"},
    "noise": {"4a", "4b", "4c", "4s", "12b"},
    "ramdp": {"4a", "12b"},
    "single": {"4a", "4s", "12a"},
    "passes": {"4a", "4b", "4s", "12s"},
}


def as_the_paper_says(key, size, noise, passes, statistic, one_log):
    """A made-up world in which every sentence of the paper is true."""
    tail = statistic != "mean"
    if key == "entropy":
        return 1.3
    if key.startswith("bootstrapped"):
        return 0.4
    baseline = 3.0 - 0.8 * noise
    if key == "baseline":
        return baseline - 0.1 * tail
    dqn = Column.parse(key).dqn()
    if dqn.n_wedge:
        return baseline + 0.5 + 0.4 * min(noise, 1) - 0.15 * tail * (dqn.n_wedge >= 4)
    if dqn.kappa > max(PAPER_KAPPAS):
        return baseline + 0.3
    plain = (1.7 if one_log else -0.5) + 5 * dqn.kappa
    return -1.0 if tail else min(plain, baseline - 1.5)


def upside_down(*where):
    return 1.0 - as_the_paper_says(*where)


def drifting(key, size, noise, passes, statistic, one_log):
    """More passes change everything, seeds do not matter, noise makes it easier, κ = 0 is best."""
    kappa = Column.parse(key).dqn().kappa if key.startswith("dqn") else 0.0
    return passes / 1000 + noise * (1 + key.startswith("dqn:")) - kappa


def spread(key, size, noise, passes, statistic, one_log):
    return 5.0 if statistic == "mean" else 0.0


def made_up(grid, value_of, half=1e-3, runs=20, **changes) -> Results:
    experiment = select_experiment("helicopter", grid, **changes)
    training = experiment.training
    keys = measures(experiment) + [column.key for column in experiment.columns]
    cells = tuple(
        Cell(
            key, None, size, runs * training.seeds,
            {
                name: around(value_of(key, size, noise, passes, name, training.one_log), half)
                for name in STATISTICS
            },
            noise, passes,
        )
        for key in keys
        for noise in training.noises
        for size in experiment.sizes
        for passes in training.passes
    )  # fmt: skip
    return Results(experiment, runs, 2.2, float("nan"), cells)


def verdicts(results):
    return {verdict.id: verdict for verdict in claims(results)}


def test_every_claim_belongs_to_a_grid():
    assert set().union(*DECIDED_BY.values()) == CLAIMS
    assert set(DECIDED_BY) == set(GRIDS) == set(STUDIES["helicopter"].grids)


@pytest.mark.parametrize("grid", GRIDS)
def test_claims_hold_where_the_paper_is_right(grid):
    found = verdicts(made_up(grid, as_the_paper_says))
    assert {name: found[name].verdict for name in DECIDED_BY[grid] if found[name].verdict != HOLDS} == {}  # noqa: E501 # fmt: skip


@pytest.mark.parametrize("grid", GRIDS)
def test_claims_can_fail(grid):
    failed = {
        name
        for world in (upside_down, drifting, spread)
        for name, verdict in verdicts(made_up(grid, world)).items()
        if verdict.verdict == FAILS
    }
    assert failed >= DECIDED_BY[grid]


def test_claims_about_many_data_sets_are_not_decided_on_one():
    found = verdicts(made_up("single", as_the_paper_says))
    assert all(found[name].verdict == ABSENT for name in DECIDED_BY["main"])


def test_few_data_sets_or_short_tails_decide_nothing():
    found = verdicts(made_up("main", as_the_paper_says, runs=9))
    assert all(found[name].verdict == NOT_ENOUGH for name in DECIDED_BY["main"])
    assert "data sets: 9, at least 10 needed" in found["heli-dqn-mean"].note
    short = verdicts(made_up("main", as_the_paper_says, seeds=2))
    assert short["heli-spibb-mean"].verdict == HOLDS
    assert "runs in the tail: 4" in short["heli-spibb-tail"].note


def test_claims_about_the_papers_kappas_are_not_decided_by_larger_ones():
    found = verdicts(made_up("ramdp", as_the_paper_says))
    assert found["heli-ramdp-below"].interval.value == pytest.approx(-2.2)
    assert found["heli-ramdp-beyond"].interval.value == pytest.approx(0.3)
    for few, absent in (("0.01", "beyond"), ("0.5", "below")):
        columns = ["dqn", f"dqn:kappa={few}", f"dqn:kappa={float(few) * 2}"]
        some = verdicts(made_up("ramdp", as_the_paper_says, columns=columns))
        assert some[f"heli-ramdp-{absent}"].verdict == ABSENT


def test_a_folder_of_fewer_data_sets_that_is_joined_decides_nothing_of_its_columns():
    columns = ["dqn:kappa=0.5", "dqn:kappa=2"]
    few = made_up("ramdp", as_the_paper_says, runs=9, columns=columns)
    papers = ["dqn", *(f"dqn:kappa={kappa}" for kappa in PAPER_KAPPAS)]
    found = verdicts(joined([few, made_up("ramdp", as_the_paper_says, columns=papers)]))
    assert found["heli-ramdp-below"].verdict == HOLDS
    assert found["heli-ramdp-beyond"].verdict == NOT_ENOUGH
    assert "data sets: 9, at least 10 needed" in found["heli-ramdp-beyond"].note


@pytest.mark.parametrize("grid", DECIDED_BY)
def test_a_single_size_column_or_noise_factor_gets_a_clear_answer(grid):
    """Claims that need what is missing say so; figures that can be drawn are described."""
    whole = select_experiment("helicopter", grid)
    parts = [{"columns": [column.key]} for column in whole.columns]
    parts += [{"sizes": [size]} for size in whole.sizes]
    parts += [{"noises": [noise]} for noise in whole.training.noises]
    parts += [{"passes": [n]} for n in whole.training.passes]
    for part in parts:
        results = made_up(grid, as_the_paper_says, **part)
        assert all(r.verdict != ABSENT or r.note for r in claims(results))
        for figure in paper_figures("helicopter"):
            if not figure.plot.missing(results.experiment):
                said = figure.plot.describe(results)
                assert re.search(r"\d.*\.$", said)
                assert "nan" not in said


def test_claims_on_tails_name_the_sizes_that_decided_them():
    found = verdicts(made_up("main", as_the_paper_says, sizes=[10000], seeds=15))
    basis = "20 data sets × 15, |D| = 10,000: only 1 of the paper's 3 sizes"
    assert found["heli-dqn-tail"].basis == basis


def test_claims_speak_of_the_last_passes():
    results = made_up("main", drifting, passes=(200, 2000), seeds=2)
    mean = verdicts(results)["heli-dqn-tail"].interval.value
    assert mean == pytest.approx(2.0 + 1.0)


@pytest.mark.parametrize("grid", GRIDS)
def test_each_grid_gives_its_figures(grid):
    experiment = select_experiment("helicopter", grid)
    found = {f.number for f in paper_figures("helicopter") if not f.plot.missing(experiment)}
    assert found == DRAWN_BY[grid]


@pytest.mark.parametrize("grid", ["main", "noise", "ramdp", "single", "passes"])
def test_figures_are_drawn_and_described(tmp_path, monkeypatch, grid):
    results = made_up(grid, as_the_paper_says, half=0.05)
    titles = []
    amount = "300 networks on one data set" if grid == "single" else "20 data sets × 15 networks"

    def unsaved(drawing, stem, **how):
        titles.append(drawing.get_suptitle().replace("\n", " "))
        return [stem]

    monkeypatch.setattr(figures_module, "save", unsaved)
    page = write_figures(results, tmp_path)[-1].read_text(encoding="utf-8")
    assert "mean undiscounted return" in page
    assert ("each on a data set of its own" in page) == (grid != "single")
    assert titles and all((amount in title) != ("4a" in title) for title in titles)
    assert "Normalised" not in page and "nan" not in page


def test_a_title_names_a_baseline_from_a_file(tmp_path, monkeypatch):
    (tmp_path / "quiet.npz").write_bytes(b"weights")
    titles = []
    monkeypatch.setattr(
        figures_module,
        "save",
        lambda drawing, stem, **how: titles.append(drawing.get_suptitle()) or [stem],
    )
    columns = ["dqn:n_wedge=5", "dqn:n_wedge=10"]
    results = made_up(
        "noise", as_the_paper_says, columns=columns, baseline=str(tmp_path / "quiet.npz")
    )
    write_figures(results, tmp_path)
    assert any("4c" in title for title in titles)
    results_of = [title for title in titles if "4a" not in title]
    assert all("/quiet.npz," in title.replace("\n", " ") for title in results_of)


def test_curves_show_the_baseline_with_its_own_error():
    figure = next(f for f in paper_figures("helicopter") if f.number == "4b")
    lines = figure.plot.lines(made_up("main", as_the_paper_says))
    assert [line.legend for line in lines[:3]] == [
        "baseline: mean", "baseline: 10 %-CVaR", "10k transitions: mean",
    ]  # fmt: skip
    assert lines[0].y[0].value - lines[1].y[0].value == pytest.approx(0.1)
    assert len(lines) == 2 + 2 * 3
    assert len(lines[2].x) == 7


@pytest.mark.parametrize(("grid", "number"), [("main", "4b"), ("ramdp", "12b"), ("noise", "4c")])
def test_a_network_has_the_colour_of_its_algorithm_in_the_finite_studies(grid, number):
    """SPIBB-DQN in shades of blue, RaMDP-DQN of green, DQN black as Basic RL, the baseline grey."""
    results = made_up(grid, as_the_paper_says)
    figure = next(f for f in paper_figures("helicopter") if f.number == number)
    lines = figure.plot.lines(results)
    for line in lines:
        family = BLUES if grid == "main" or "SPIBB" in line.label else GREENS
        if line.label == "DQN":
            family = (STYLES["basic-rl"].colour,)
        assert line.label == "baseline" or line.style.colour in family
    assert STYLES["pi-b"].colour in BLUES and STYLES["ramdp"].colour in GREENS
    looks = [(line.style, line.statistic) for line in lines]
    assert len(looks) == len(set(looks))


def test_the_papers_range_of_kappas_is_marked_where_larger_ones_are_shown():
    figure = next(f for f in paper_figures("helicopter") if f.number == "12b")
    whole = made_up("ramdp", as_the_paper_says)
    assert figure.plot.axis(whole).in_paper == 1 + len(PAPER_KAPPAS)
    assert "from 0 (DQN) to 8. The paper ends at 0.1." in figure.plot.describe(whole)
    words = [text.get_text() for text in figure.plot.draw(whole, "").axes[0].texts]
    assert words == ["range of the paper"]
    noise = made_up("noise", as_the_paper_says)
    assert figure.plot.axis(noise).in_paper is None


def test_a_table_counts_data_sets_as_the_rows_do(tmp_path):
    results = made_up("main", as_the_paper_says, seeds=2)
    results.experiment.write(tmp_path / SPEC)
    write_table(results_table(results), tmp_path / NUMBERS)
    found = read_results(tmp_path)
    assert found.runs == results.runs == 20
    assert verdicts(found) == verdicts(results)


def test_the_mass_is_drawn_per_threshold():
    results = made_up("main", as_the_paper_says)
    figure = next(f for f in paper_figures("helicopter") if f.label == "bootstrapped-mass")
    assert [point.value for point in figure.plot.lines(results)[0].y] == [0.4] * 6
    assert results.cell(mass_column(5), 10_000, noise=1.0, passes=2000) is not None


def test_claims_are_written_with_their_units(tmp_path):
    results = made_up("main", as_the_paper_says, passes=(200,))
    write_claims(results, tmp_path)
    text = (tmp_path / "claims.md").read_text(encoding="utf-8")
    assert "mean undiscounted returns of 300 networks, 15 on each of 20 data sets" in text
    assert "after 200 passes" in text and "normalised" not in text


def test_the_command_is_written_as_typed(tmp_path):
    def command(grid, **changes):
        results = made_up(grid, as_the_paper_says, **changes)
        return experiment_commands(results, Path("rows"))[0]

    start = "spibb experiment helicopter --runs 20 --out rows"
    assert command("main") == start
    assert command("noise", seeds=2) == f"{start} --grid noise --seeds 2"
    assert command("passes", passes=(5, 50)) == f"{start} --grid passes --passes 5,50"
    assert command("main", sizes=(10_000,), noises=(0.5,)) == (
        f"{start} --sizes 10000 --noises 0.5"
    )
    network = tmp_path / "quiet.npz"
    network.write_bytes(b"weights")
    assert command("noise", baseline=str(network)) == f"{start} --grid noise --baseline {network}"
    assert command("single", columns=["dqn"]) == f"{start} --grid single --column dqn"


def test_networks_have_names_without_symbols_of_another_kind():
    from spibb.paper.networks import by_option, name

    assert name(Dqn()) == "DQN"
    assert name(Dqn(kappa=0.01)) == "RaMDP-DQN, κ = 0.01"
    assert name(Dqn(n_wedge=5, variant="pi-leq-b")) == "Π_≤b-SPIBB-DQN, N_∧ = 5"
    experiment = select_experiment("helicopter", "noise")
    assert by_option(experiment, "n_wedge") == {
        0.0: "dqn", 5.0: "dqn:n_wedge=5", 10.0: "dqn:n_wedge=10",
    }  # fmt: skip
    both = replace(experiment, columns=(Column.parse("dqn:n_wedge=5,kappa=1"),))
    assert by_option(both, "kappa") == {}
