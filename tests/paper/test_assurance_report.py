"""Claims and figures of the assurance benchmark, on made-up results."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from spibb.envs.small import BASELINES
from spibb.errors import InputError
from spibb.experiments.assurance import (
    EDGES,
    OLD_RULE,
    PROTOTYPE,
    default_experiment,
    differences,
    shares,
)
from spibb.experiments.results import STATISTICS, Cell, Results
from spibb.paper.assured import cells_above, cells_of, pooled
from spibb.paper.assured_tables import tables
from spibb.paper.claim import ABSENT, FAILS, HOLDS, NOT_ENOUGH
from spibb.paper.claims import claims
from spibb.paper.figures import write_figures
from spibb.paper.provenance import experiment_commands
from spibb.paper.stored import joined
from spibb.stats import Interval, share_interval

EXPERIMENT = default_experiment("assurance")
PAIRS = differences(EXPERIMENT)
KEPT = {"worse:auto": 0.01, "supported:auto": 0.9, "misled:auto": 0.0, "covered:auto": 0.99}


def made_up(runs=1000, **odd):
    """Results in which all promises are kept, but for `odd`: share by (column, family, size)."""
    cells = []
    for family in EXPERIMENT.families:
        for quality in BASELINES:
            for size in EXPERIMENT.sizes:
                here = {"family": family, "quality": quality, "size": size, "eta": None}
                gains = {c.key: 0.6 if c.key == PROTOTYPE else 0.7 for c in EXPERIMENT.columns}
                gains |= {name: gains[a] - gains[b] for name, (a, b) in PAIRS.items()}
                for key, gain in gains.items():
                    found = dict.fromkeys(STATISTICS, Interval(gain, gain - 0.01, gain + 0.01))
                    cells.append(Cell(key, runs=runs, statistics=found, **here))
                for name in shares(EXPERIMENT):
                    share = odd.get(f"{name} {family} {size}", _share(name))
                    found = {"mean": _interval(round(share * runs), runs)}
                    cells.append(Cell(name, runs=runs, statistics=found, **here))
    return Results(EXPERIMENT, runs, 0.0, math.nan, tuple(cells))


_interval = cache(share_interval)


@cache
def _share(name):
    if name.startswith(("said", "true")):
        edge = float(name.partition("@")[2])
        return (edge + EDGES[EDGES.index(edge) + 1]) / 2
    if OLD_RULE in name:
        return 0.1
    if PROTOTYPE in name:
        return 0.04
    return KEPT.get(name, 0.0)


def ruling(results, name):
    return next(found for found in claims(results) if found.id == name)


def outcomes(results):
    return {found.id: found.verdict for found in claims(results)}


def test_all_claims_hold_where_all_promises_are_kept():
    assert set(outcomes(made_up()).values()) == {HOLDS}


@pytest.mark.parametrize(
    ("name", "odd"),
    [
        ("certified-0.05", "worse:certified pit-chain 1000"),
        ("certified-0.2", "worse:certified:delta=0.2 pit-chain 10"),
        ("auto-0.05", "worse:auto near-null 300"),
        ("verdict-false", "misled:auto near-null 300"),
    ],
)
def test_one_cell_above_delta_breaks_a_promise(name, odd):
    found = ruling(made_up(**{odd: 0.4}), name)
    assert outcomes(made_up(**{odd: 0.4}))[name] == FAILS
    assert (found.interval.value, found.interval.low) == (3, 3)  # three baselines


def test_auto_promises_nothing_below_thirty_episodes():
    assert outcomes(made_up(**{"worse:auto near-null 10": 0.4}))["auto-0.05"] == HOLDS


def test_auto_is_measured_by_its_prototype_on_the_same_logs():
    odd = {f"worse:{PROTOTYPE} {name} 100": 0.0 for name in EXPERIMENT.families}
    assert outcomes(made_up(**odd))["auto-safer-than-prototype"] == HOLDS
    odd = {f"worse:{PROTOTYPE} {f} {n}": 0.0 for f in EXPERIMENT.families for n in EXPERIMENT.sizes}
    assert outcomes(made_up(**odd))["auto-safer-than-prototype"] == FAILS
    results = made_up()
    alone = tuple(column for column in EXPERIMENT.columns if column.key != PROTOTYPE)
    cells = tuple(cell for cell in results.cells if PROTOTYPE not in cell.column)
    without = replace(results, experiment=replace(EXPERIMENT, columns=alone), cells=cells)
    assert outcomes(without)["auto-gain"] == ABSENT


def test_sizes_that_were_repeated_differently_often_are_joined():
    few, many = (
        _with_sizes(made_up(runs), sizes) for runs, sizes in ((200, (5000,)), (900, (30,)))
    )
    both = joined([few, many])
    assert both.experiment.sizes == (30, 5000)
    assert [c.runs for c in cells_of(both, "auto", family="null")] == 3 * [900, 200]
    commands = experiment_commands(both, Path("runs/a"))
    assert [c.split()[3:7] for c in commands] == [
        ["--runs", "900", "--out", "runs/a/900"], ["--runs", "200", "--out", "runs/a/200"]
    ]  # fmt: skip
    assert [c.split("--sizes ")[1].split()[0] for c in commands] == ["30", "5000"]
    with pytest.raises(InputError, match="one seed"):
        joined([few, replace(many, experiment=replace(many.experiment, seed=1))])


def test_a_column_of_fewer_runs_has_its_own_command_and_is_compared_where_it_is():
    often_worse = {f"worse:auto {family} 5000": 0.9 for family in EXPERIMENT.families}
    many = _with_columns(made_up(900, **often_worse), lambda key: key != OLD_RULE)
    few = _with_columns(_with_sizes(made_up(100), (30,)), lambda key: key == OLD_RULE)
    both = joined([few, many])
    first, second = experiment_commands(both, Path("runs/a"))
    assert "--runs 900 --out runs/a/900" in first and f"--without {OLD_RULE}" in first
    assert "--runs 100 --out runs/a/100" in second and f"--column {OLD_RULE}" in second
    assert "--sizes 30" in second
    assert outcomes(both)["auto-safer-than-before"] == HOLDS  # its 5,000 episodes do not count


def _with_columns(results, kept):
    columns = tuple(column for column in EXPERIMENT.columns if kept(column.key))
    cells = tuple(c for c in results.cells if kept(OLD_RULE if OLD_RULE in c.column else "auto"))
    return replace(results, experiment=replace(results.experiment, columns=columns), cells=cells)


def _with_sizes(results, sizes):
    cells = tuple(cell for cell in results.cells if cell.size in sizes)
    return replace(results, experiment=replace(EXPERIMENT, sizes=sizes), cells=cells)


def test_the_columns_have_names_that_a_reader_understands():
    text = "\n".join(tables(made_up()))
    assert "rule of version 0.0" in text
    assert "prototype of auto" in text
    assert "OldRule" not in text


def test_few_logs_decide_nothing():
    assert outcomes(made_up(runs=20))["auto-0.05"] == NOT_ENOUGH


def test_claims_about_families_that_are_absent_are_not_decided():
    results = made_up()
    few = replace(results, experiment=replace(EXPERIMENT, families=("near-null",)))
    assert outcomes(few)["auto-confirmed"] == ABSENT
    assert outcomes(few)["auto-0.05"] == HOLDS


def test_a_single_size_column_or_family_gets_a_clear_answer():
    whole = made_up()
    parts = [{"sizes": (n,)} for n in EXPERIMENT.sizes]
    parts += [{"families": (name,)} for name in EXPERIMENT.families[:3]]
    parts += [{"columns": (column,)} for column in EXPERIMENT.columns]
    for part in parts:
        experiment = replace(EXPERIMENT, **part)
        kept = {column.key for column in experiment.columns} | {*shares(experiment)}
        cells = tuple(
            c for c in whole.cells
            if c.size in experiment.sizes and c.family in experiment.families and c.column in kept
        )  # fmt: skip
        results = Results(experiment, whole.runs, 0.0, math.nan, cells)
        assert all(found.verdict != ABSENT or found.note for found in claims(results))


def test_shares_stay_between_0_and_1():
    found = ruling(made_up(runs=20), "auto-probability").interval
    assert 0 <= found.low <= found.high <= 1


def test_cells_are_counted_as_seen_for_sure_and_at_most():
    results = made_up(runs=40, **{"worse:auto null 30": 0.075, "worse:auto null 100": 0.5})
    found = cells_above(results, "worse:auto", 0.05, least=30, margin=0.02)
    cells = len(EXPERIMENT.families) * len(BASELINES) * (len(EXPERIMENT.sizes) - 1)
    assert found == Interval(6.0, 3.0, float(cells))  # 0 of 40 has an upper limit of 8.8 %


def test_shares_of_cells_are_pooled_by_their_logs():
    cells = [
        Cell("worse:auto", None, 30, n, {"mean": share_interval(k, n)})
        for k, n in ((1, 10), (5, 30))
    ]
    found, wanted = pooled(iter(cells)), share_interval(6, 40)
    assert (found.value, found.low, found.high) == (wanted.value, wanted.low, wanted.high)
    assert pooled(iter(())) is None


def test_tables_have_every_family_and_name_the_cells_above_delta():
    lines = tables(made_up(runs=40, **{"worse:auto null 30": 0.1}))
    row = next(line for line in lines if line.startswith("| null *"))
    assert row.split(" | ")[1:3] == ["0.0 %, 0.70", "10.0 %, 0.70"]
    assert sum(line.startswith("| bernoulli-bandit *") for line in lines) == 3
    named = [line for line in lines if line.startswith("- **auto**")]
    assert len(named) == 1 and "null, good baseline, 30 episodes: 4 of 40" in named[0]
    assert any(line == "- **certified**: none." for line in lines)


@pytest.mark.slow
def test_figures_are_drawn_and_described(tmp_path):
    paths = write_figures(made_up(), tmp_path)
    names = {path.name for path in paths if path.suffix == ".png"}
    assert names == {
        "figA1_worse.png", "figA2_gain.png", "figA3_reliability.png", "figA4_coverage.png",
    }  # fmt: skip
    page = (tmp_path / "figures" / "index.html").read_text()
    assert "auto: at most 1.0%" in page
    assert "said 0.97, true 0.97" in page
