"""The experiment as a value: written, read, refused."""

from __future__ import annotations

import pytest

from spibb.errors import InputError
from spibb.experiments.finite import (
    GRIDS,
    HCPI_DELTAS,
    KAPPAS,
    ROBUST_DELTAS,
    default_experiment,
)
from spibb.experiments.spec import FINITE, Column, Experiment
from spibb.experiments.studies import select_experiment


@pytest.mark.parametrize("study", FINITE)
@pytest.mark.parametrize("grid", GRIDS)
def test_every_default_round_trips_through_toml(study, grid):
    experiment = default_experiment(study, grid)
    assert Experiment.from_toml(experiment.to_toml()) == experiment


@pytest.mark.parametrize(
    "key", ["basic-rl", "pi-b:n_wedge=5", "ramdp:kappa=0.003,released=true", "hcpi:estimator=is"]
)
def test_columns_round_trip_through_their_written_form(key):
    assert Column.parse(key).key == key
    assert Column.parse(key).make().name == key.split(":")[0]


def test_the_order_of_options_does_not_matter():
    assert Column.parse("ramdp:released=true,kappa=1") == Column.parse(
        "ramdp:kappa=1,released=true"
    )


def test_the_grids_are_those_of_the_paper():
    """Appendix B: ten δ_hcpi, ten δ_rob, 21 κ, nine N∧, ten sizes, nine η."""
    assert (len(HCPI_DELTAS), len(ROBUST_DELTAS), len(KAPPAS)) == (10, 10, 21)
    gridworld, random = default_experiment("gridworld"), default_experiment("random-mdps")
    assert gridworld.sizes == (10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000)
    assert random.sizes == gridworld.sizes[:8]
    assert random.etas == (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
    n_wedges = [dict(c.options)["n_wedge"] for c in gridworld.columns if c.algorithm == "pi-b"]
    assert n_wedges == [5, 7, 10, 15, 20, 30, 50, 70, 100]


def test_a_selection_keeps_the_rest():
    experiment = select_experiment("random-mdps", "main", ["basic-rl"], (10, 50), (0.9,), 3)
    assert [c.key for c in experiment.columns] == ["basic-rl"]
    assert (experiment.sizes, experiment.etas, experiment.seed) == ((10, 50), (0.9,), 3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Column.parse("pi-c"), "did you mean 'pi-b'"),
        (lambda: Column.parse("pi-b:n_wedg=5"), "did you mean 'n_wedge'"),
        (lambda: Column.parse("pi-b:5"), "has no '='"),
        (lambda: Experiment("gridworld", (10,), (Column("basic-rl"),) * 2), "listed twice"),
        (lambda: Experiment("gridworld", (0,), (Column("basic-rl"),)), "size is 0"),
        (lambda: Experiment("gridworld", (), (Column("basic-rl"),)), "at least one size"),
        (lambda: Experiment("random-mdps", (1,), (Column("basic-rl"),), (1.5,)), "eta is 1.5"),
        (lambda: select_experiment("gridword", "main"), "did you mean 'gridworld'"),
        (lambda: select_experiment("gridworld", "min"), "did you mean 'main'"),
        (lambda: select_experiment("gridworld", "main", etas=(0.1,)), "has no eta"),
        (lambda: Experiment.from_toml("study = "), "not TOML"),
        (lambda: Experiment.from_toml("size = [1]"), "did you mean 'sizes'"),
    ],
)  # fmt: skip
def test_bad_specs_are_named(make, message):
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize("value", [0.1, 5.0, 0.1234567890123, 1e-9, 1 / 3, 123456789.0])
def test_a_column_keeps_every_digit(value):
    column = Column.parse(f"ramdp:kappa={value!r}")
    spec = Experiment("gridworld", (10,), (column,))
    assert Experiment.from_toml(spec.to_toml()) == spec
    assert dict(Column.parse(column.key).options)["kappa"] == value


def test_a_gridworld_may_name_its_baseline_and_nothing_else_may():
    experiment = select_experiment("gridworld", "main", baseline="drawn-3")
    assert Experiment.from_toml(experiment.to_toml()) == experiment
    plain = select_experiment("gridworld", "main")
    assert select_experiment("gridworld", "main", baseline="authors") == plain
    assert "baseline" not in plain.to_toml()
    with pytest.raises(InputError, match="random-mdps has no named baselines"):
        select_experiment("random-mdps", "main", baseline="spibb")
    with pytest.raises(InputError, match="drawn-0"):
        select_experiment("gridworld", "main", baseline="drawn-20")


def test_columns_of_a_grid_can_be_left_out():
    key = "hcpi:delta=0.9,estimator=dr,released=true"
    whole = select_experiment("gridworld", "main")
    less = select_experiment("gridworld", "main", without=[key])
    assert [c.key for c in whole.columns if c not in less.columns] == [key]
    with pytest.raises(InputError, match="not in this grid"):
        select_experiment("gridworld", "search", without=[key])
