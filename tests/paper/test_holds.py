"""The page “Does the paper hold?” from the stored tables, and ten claims computed by hand."""

from __future__ import annotations

import csv
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
from synthetic import make_results

from spibb.errors import InputError
from spibb.experiments.spec import FINITE, Column, Experiment
from spibb.paper import holds
from spibb.paper.claim import ABSENT, CLAIMS, FAILS, HOLDS
from spibb.paper.claims import claims
from spibb.paper.readings import failing, unsaid
from spibb.paper.reasons import CAUSES, UNEXPLAINED
from spibb.paper.stored import joined, read_results

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results"
STUDIES = tuple(
    str(folder) for folder in sorted(t.parent.relative_to(RESULTS) for t in RESULTS.rglob("*.csv"))
    if folder.parts[0].startswith((*FINITE, "helicopter")) and not folder.name.endswith("-ours")
    and folder.parts[0] != "gridworld-baselines"
)  # fmt: skip
"""The folders of the page, in the order of `spibb claims`; all but the helicopter's are finite."""
SIZES = (10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000)
N_WEDGES = (5, 7, 10, 15, 20, 30, 50, 70, 100)


@pytest.fixture(scope="module")
def page():
    return holds.gather([(RESULTS / name, read_results(RESULTS / name)) for name in STUDIES])


@pytest.fixture(scope="module")
def table():
    """Values of the gridworld's table by (column, size, statistic), read without our code."""
    with (RESULTS / "gridworld" / "table.csv").open(encoding="utf-8") as file:
        return {
            (row["column"], int(row["size"]), row["statistic"]): float(row["value"])
            for row in csv.DictReader(file)
        }


def mean_over(table, column, statistic="mean", sizes=SIZES):
    return sum(table[column, size, statistic] for size in sizes) / len(sizes)


BASIC, ROBUST = "basic-rl", "robust-mdp:delta=0.1,safety_test=false"
HCPI, RAMDP = "hcpi:delta=0.9,estimator=dr", "ramdp:kappa=0.003"


def tail(t, column, sizes=SIZES):
    return [t[column, size, "cvar1"] for size in sizes]


BY_HAND = {
    "grid-leq-b-safe-correct": lambda t: min(
        x for n in N_WEDGES for x in tail(t, f"pi-leq-b:n_wedge={n}")
    ),
    "grid-b-unsafe-low-correct": lambda t: min(
        t[f"pi-b:n_wedge={n}", 10, "cvar1"] for n in (5, 7, 10)
    ),
    "grid-leq-b-above-correct": lambda t: min(tail(t, "pi-leq-b:n_wedge=5")),
    "grid-20-safe-correct": lambda t: min(
        tail(t, "pi-b:n_wedge=20") + tail(t, "pi-leq-b:n_wedge=20")
    ),
    "grid-basic-improves": lambda t: min(t[BASIC, size, "mean"] for size in SIZES),
    "grid-basic-far": lambda t: max(t[BASIC, size, "mean"] for size in SIZES),
    "grid-basic-poor": lambda t: min(tail(t, BASIC, (1000, 2000, 5000, 10000))),
    "grid-robust-off-correct": lambda t: max(tail(t, ROBUST)),
    "grid-hcpi-near-safe-correct": lambda t: min(tail(t, HCPI)),
    "grid-robust-worse-mean-correct": lambda t: max(
        t[ROBUST, size, "mean"] - t[BASIC, size, "mean"] for size in SIZES
    ),
    "grid-ramdp-spot-correct": lambda t: mean_over(t, RAMDP) - mean_over(t, BASIC),
    "grid-b-behind-correct": lambda t: (
        mean_over(t, "pi-leq-b:n_wedge=5", "cvar1") - mean_over(t, "pi-b:n_wedge=5", "cvar1")
    ),
}  # fmt: skip


@pytest.mark.parametrize("id", BY_HAND)
def test_claims_recomputed_from_the_table_by_hand(page, table, id):
    (ruling,) = [ruling for ruling in page.rulings if ruling.id == id]
    assert ruling.interval.value == pytest.approx(BY_HAND[id](table), abs=1e-12)


ISSUE = {  # Basic RL; Π_b with N∧ = 5, 20; Π_≤b with N∧ = 5, 20
    10: (-0.76, -0.25, 0.00, 0.11, -0.04),
    20: (-0.56, 0.34, -0.05, 0.79, -0.04),
    50: (-0.39, 0.78, 0.31, 0.89, 0.76),
    100: (-0.54, 0.87, 0.67, 0.91, 0.89),
}


def test_an_earlier_table_of_20_000_logs_is_confirmed_by_100_000(table):
    columns = [BASIC, *(f"{a}:n_wedge={n}" for a in ("pi-b", "pi-leq-b") for n in (5, 20))]
    for size, row in ISSUE.items():
        for column, expected in zip(columns, row, strict=True):
            assert table[column, size, "cvar1"] == pytest.approx(expected, abs=0.05)


def test_the_readme_opens_with_these_results(table):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    columns = (BASIC, "pi-b:n_wedge=5", "pi-leq-b:n_wedge=5")
    rows = re.findall(r"^\| ([\d,]+) \| (\S+) \| (\S+) \| (\S+) \|$", text, re.M)
    assert len(rows) == 4
    for size, *cells in rows:
        shown = [float(cell.replace("−", "-")) for cell in cells]
        wanted = [table[key, int(size.replace(",", "")), "cvar1"] for key in columns]
        assert shown == pytest.approx(wanted, abs=0.00501)
    drawn = RESULTS / "gridworld" / "figures" / "fig1e_benchmark_CVaR_maze_N=5.png"
    assert (ROOT / "docs" / "images" / "safety.png").read_bytes() == drawn.read_bytes()


def test_every_claim_about_the_papers_studies_quotes_its_sentence():
    lacking = [c.id for c in CLAIMS if c.study != "assurance" and not c.quote]
    assert lacking == ["heli-ramdp-beyond"]


def test_a_claim_about_networks_is_decided_by_the_folder_that_can(page):
    """Folders of other noise factors, passes and baselines stand beside each other."""
    names = {id: str(place.relative_to(RESULTS)) for id, place in page.places.items()}
    assert names["heli-converged"] == "helicopter/passes"
    assert names["heli-ramdp-far"] == "helicopter/ramdp"
    assert names["heli-single-stable"] == "helicopter/single"
    assert names["heli-noise-harder"] == "helicopter/noise"
    assert names["heli-dqn-mean"] == "helicopter/sizes"
    of = {ruling.id: ruling for ruling in page.rulings}
    assert of["heli-noise-harder"].verdict == FAILS
    ours = claims(read_results(RESULTS / "helicopter" / "noise"))
    (same,) = [ruling for ruling in ours if ruling.id == "heli-noise-harder"]
    assert of["heli-noise-harder"] == same
    assert page.figure(same).parent.parent.name == "noise"
    quiet = claims(read_results(RESULTS / "helicopter" / "quiet"))
    assert [r.verdict for r in quiet if r.id == "heli-noise-harder"] == [HOLDS]
    assert all(of[id].verdict != ABSENT for id in names)


def test_an_interval_is_printed_so_that_its_limits_differ(page):
    assert all(
        ruling.value.split("[")[1].split(", ")[0] != ruling.value.split(", ")[1].rstrip("]")
        for ruling in page.rulings
        if "[" in ruling.value and round(ruling.interval.low, 4) < round(ruling.interval.high, 4)
    )


def test_every_failing_claim_has_a_cause_and_says_by_how_much_it_fails(page):
    found = failing(page.rulings)
    assert UNEXPLAINED not in found
    assert list(found) == [kind for kind in CAUSES if kind in found]
    fails = [r for r in page.rulings if r.verdict == FAILS]
    assert sum(map(len, found.values())) == len(fails) > 0
    assert all(r.margin > 0 for r in fails)
    assert all(r.margin < 0 for r in page.rulings if r.verdict == HOLDS)


def test_what_holds_as_released_only_is_explained_by_its_number(page):
    (entry,) = [e for e in failing(page.rulings)["paper's code"] if "ramdp-spot" in e[0].id]
    assert entry[1].why.startswith("as released it holds: 0.1")


def tails(study, eta=""):
    """1 %-CVaR by column and size, read without our code."""
    with (RESULTS / study / "table.csv").open(encoding="utf-8") as file:
        return {
            (row["column"], int(row["size"])): float(row["value"])
            for row in csv.DictReader(file)
            if row["statistic"] == "cvar1" and row.get("eta", "") in ("", eta)
        }


def test_what_the_paper_does_not_say_is_what_the_tables_say(page):
    good = tails("random-mdps", "0.9")
    for size in (200, 500, 1000, 2000):
        best = max(good[f"{a}:n_wedge=10", size] for a in ("pi-b", "pi-leq-b"))
        assert (good[ROBUST, size] > best) == (size >= 500)
    uniform = tails("gridworld-random")
    for algorithm in ("pi-b", "pi-leq-b"):
        some = {
            (n, size): uniform[f"{algorithm}:n_wedge={n}", size] for n in N_WEDGES for size in SIZES
        }
        assert -0.25 < min(x for (n, _), x in some.items() if 15 <= n <= 30) < -0.1
        assert min(x for (n, size), x in some.items() if n >= 15 and size > 20) > -0.001
        assert min(x for (n, _), x in some.items() if n >= 50) > -0.001
    of = {r.id: r.verdict for r in claims(read_results(RESULTS / "helicopter" / "ramdp"))}
    assert of["heli-ramdp-below"] == of["heli-ramdp-beyond"] == HOLDS
    overtakes, loses, networks = unsaid(page.rulings)
    assert "from 500 trajectories on" in overtakes
    assert "N∧ = 15, 20 and 30 on 10 and 20 trajectories, by up to 0.2" in loses
    assert "RaMDP-DQN" in networks


def reason(page, id):
    """What the page says of a failing claim: kind and text."""
    (found,) = [
        (kind, why.why) for kind, entries in failing(page.rulings).items()
        for ruling, why in entries if ruling.id == id
    ]  # fmt: skip
    return found


def low(t, algorithm, released=False):
    """The cells (size, N∧) of an N∧ map below −0.01, read without our code."""
    return sorted(
        (size, n) for n in N_WEDGES for size in SIZES
        if t[f"{algorithm}:n_wedge={n + released}", size] < -0.01
    )  # fmt: skip


def told(text):
    """The same cells as a reason lists them."""
    listed = text.split(": ")[-1].split(" trajectories")[0]
    return sorted(
        (int(part.split(" on ")[1].replace(",", "")), int(n))
        for part in re.findall(r"N∧ = [\d, and]+ on [\d,]*\d", listed)
        for n in re.findall(r"\d+", part.split(" on ")[0])
    )


def test_reasons_list_every_cell_that_is_unsafe(page):
    """Against the tables, read by hand: a reason that names some cells names all."""
    text, released = tails("gridworld"), tails("gridworld-released")
    for version, table, plus in (("correct", text, False), ("released", released, True)):
        kind, why = reason(page, f"grid-leq-b-safe-{version}")
        assert (kind, told(why)) == ("contradicted", low(table, "pi-leq-b", plus))
    kind, why = reason(page, "grid-b-safe-correct")
    kept = [(size, n) for size, n in low(text, "pi-b") if n > 10 or size > 10]
    assert (kind, told(why)) == ("threshold", kept)


def test_reasons_say_at_how_many_sizes_an_algorithm_is_behind(page):
    bad = tails("random-mdps", "0.1")
    sizes = [size for column, size in bad if column == BASIC]
    for id, column in (("mdps-bad-basic-tail", BASIC), ("mdps-bad-ramdp-tail-correct", RAMDP)):
        kind, why = reason(page, id)
        behind = [n for n in sizes if bad[column, n] < bad["pi-leq-b:n_wedge=10", n]]
        assert kind == "contradicted"
        assert f"behind Π_≤b (N∧ = 10) at {len(behind)} of {len(sizes)} sizes" in why
        for size in {*sizes} - {*behind}:
            assert f"{size:,}" in why.split("ahead of it on ")[1]


def test_causes_follow_the_rule(page):
    """A threshold is a limit of ours with the value within 0.1 of it; no sentence is a guess."""
    for kind, entries in failing(page.rulings).items():
        for ruling, why in entries:
            limit = {ruling.region.lower, ruling.region.upper} - {-math.inf, math.inf}
            if kind == "threshold":
                assert ruling.margin <= 0.1 and not limit & {0.0}
            if kind == "contradicted":
                assert ruling.margin > 0.1 or 0.0 in limit, ruling.id
            assert why.why, ruling.id
    assert reason(page, "mdps-bad-easy")[0] == "reading"
    assert reason(page, "grid-hcpi-far-correct")[0] == "threshold"


def test_texts_about_other_studies_are_not_printed():
    one = holds.gather([(RESULTS / "gridworld", read_results(RESULTS / "gridworld"))])
    text = holds.markdown(one, RESULTS)
    assert "What the paper does not say" not in text
    assert "RaMDP-DQN" not in text and "random MDPs" not in holds.terminal(one)


def test_the_released_boundary_is_run_on_the_same_logs():
    """Basic RL stands in both folders, and agrees in every digit."""
    text, released = tails("gridworld"), tails("gridworld-released")
    assert all(text[BASIC, size] == released[BASIC, size] for size in SIZES)
    assert text["pi-leq-b:n_wedge=5", 10] > 0 > released["pi-leq-b:n_wedge=6", 10]


def test_the_terminal_version_begins_with_the_summary_and_fits_80_columns(page):
    lines = holds.terminal(page).splitlines()
    assert lines[0].split()[:2] == [
        str(len({r.quote for r in page.rulings} - {""})),
        "sentences,",
    ]
    assert f"{len(page.rulings)} tests of them: " in lines[0] and " hold, " in lines[0]
    assert "  gridworld: 100,000 runs, 10 of the paper's 10 sizes" in lines
    assert max(map(len, lines)) <= 80
    assert lines.index("HOLDS") > next(i for i, line in enumerate(lines) if "FAILS" in line)


def test_claims_that_the_folders_do_not_decide_are_named_and_no_more(page):
    (part,) = (r for r in page.rulings if r.id == "grid-leq-b-above-correct")
    absent = [replace(part, id=id, interval=None, verdict=ABSENT) for id in ("a-b", "c-d")]
    text = holds.terminal(replace(page, rulings=[part, *absent]))
    assert text.endswith(f"{ABSENT.upper()}\n  a-b, c-d")


def test_the_page_shows_every_claim_and_figures_that_exist(page):
    text, web = holds.markdown(page, RESULTS), holds.web(page, RESULTS)
    for ruling in page.rulings:
        assert ruling.id in text and f'id="{ruling.id}"' in web
    links = [part.split(")")[0] for part in text.split("](")[1:]]
    assert len(links) > 20
    assert all((RESULTS / link).is_file() for link in links)


def test_the_stored_page_is_what_the_stored_tables_say(monkeypatch):
    monkeypatch.chdir(RESULTS)
    single, family = (
        [(path, read_results(path)) for path in paths]
        for paths in (map(Path, STUDIES), sorted(Path("gridworld-baselines").iterdir()))
    )
    assert len(family) == 22
    written = holds.markdown(holds.gather(single, family), Path())
    assert Path("paper.md").read_text(encoding="utf-8") == written


def test_the_list_of_runs_is_what_the_tables_hold():
    text = (RESULTS / "README.md").read_text(encoding="utf-8")
    listed = dict(re.findall(r"^\| \[.*\]\(([\w-]+)/claims\.md\) \| ([\d,]+) \|", text, re.M))
    held = {
        path.parent.name: f"{read_results(path.parent).runs:,}"
        for path in RESULTS.glob("*/table.csv")
    }
    assert listed == held


def test_folders_may_have_a_part_of_the_sizes_and_etas_but_no_others():
    whole = read_results(RESULTS / "random-mdps")
    part = make_results(
        Experiment("random-mdps", (10, 20), (Column.parse("auto"),), (0.1, 0.9)),
        lambda *_: 0.5, runs=10,
    )  # fmt: skip
    both = joined([part, whole])
    assert both.experiment.sizes == whole.experiment.sizes
    assert both.cell("auto", 20, 0.9).runs == 10
    assert both.cell("auto", 50, 0.9) is None
    assert both.cell("basic-rl", 50, 0.9).runs == whole.runs
    for change in ({"sizes": (10, 11)}, {"etas": (0.11,)}, {"seed": 1}):
        other = replace(part, experiment=replace(part.experiment, **change))
        with pytest.raises(InputError, match="differ in more than their columns"):
            joined([whole, other])


def test_folders_of_different_baselines_are_not_mixed():
    names = ("gridworld-baselines/spibb", "gridworld")
    ours, authors = (read_results(RESULTS / name) for name in names)
    with pytest.raises(InputError, match="one baseline"):
        joined([ours, authors])


def test_results_from_the_table_decide_as_the_stored_verdicts():
    text = (RESULTS / "gridworld" / "claims.md").read_text(encoding="utf-8")
    found = claims(read_results(RESULTS / "gridworld"))
    assert len(found) > 5
    for ruling in found:
        (line,) = [x for x in text.splitlines() if x.startswith(f"| {ruling.id} |")]
        assert f"**{ruling.verdict}**" in line
