"""The helicopter study as a value: written, read, selected, refused; all without JAX."""

from __future__ import annotations

import subprocess
import sys

import pytest

from spibb.errors import InputError
from spibb.experiments import runner
from spibb.experiments.helicopter_grids import GRIDS
from spibb.experiments.runner import SPEC
from spibb.experiments.spec import Column, Experiment, NetworkFile, Training
from spibb.experiments.studies import select_experiment


@pytest.mark.parametrize("grid", GRIDS)
def test_every_grid_round_trips_through_toml(grid):
    experiment = select_experiment("helicopter", grid, passes=(7, 3), noises=(0.5, 1))
    assert experiment.training.passes == (3, 7)
    assert Experiment.from_toml(experiment.to_toml()) == experiment


def test_the_grids_are_those_of_the_paper():
    """Section 3.4, appendix D: three sizes, 15 networks on a data set, 2,000 passes, eight κ.

    RaMDP goes on where the paper stops, up to κ = 8.
    """
    main, ramdp = (select_experiment("helicopter", grid) for grid in ("main", "ramdp"))
    assert main.sizes == (10_000, 20_000, 30_000)
    assert (main.training.seeds, main.training.passes) == (15, (2000,))
    kappas = [column.dqn().kappa for column in ramdp.columns]
    assert kappas[:9] == [0, 0.001, 0.003, 0.006, 0.01, 0.02, 0.03, 0.05, 0.1]
    assert kappas == sorted(kappas) and kappas[-1] == 8
    assert select_experiment("helicopter", "single").training.one_log


def test_a_selection_keeps_the_rest():
    found = select_experiment(
        "helicopter", "noise", ["dqn:n_wedge=3"], (500,), seed=4, passes=(5,), seeds=2, noises=()
    )
    assert [column.key for column in found.columns] == ["dqn:n_wedge=3"]
    assert (found.sizes, found.seed, found.training.seeds) == ((500,), 4, 2)
    assert found.training.noises == (0.0, 0.5, 1.0, 1.5, 2.0)


def weights(path, content=b"weights"):
    path.write_bytes(content)
    return str(path)


def test_a_network_is_known_by_its_contents_and_not_by_its_place(tmp_path):
    here, there = weights(tmp_path / "a.npz"), weights(tmp_path / "b.npz")
    first, same = (select_experiment("helicopter", "main", baseline=x) for x in (here, there))
    assert first == same and first.fingerprint == same.fingerprint
    assert Experiment.from_toml(first.to_toml()).network.path == here
    weights(tmp_path / "b.npz", b"others")
    for other in (there, None):
        found = select_experiment("helicopter", "main", baseline=other)
        assert found != first and found.fingerprint != first.fingerprint


def test_a_folder_of_another_network_is_refused_by_file_and_hash(tmp_path):
    first, second = (
        select_experiment("helicopter", "main", baseline=weights(tmp_path / name, name.encode()))
        for name in ("a.npz", "b.npz")
    )
    (tmp_path / "rows").mkdir()
    first.write(tmp_path / "rows" / SPEC)
    runner._check_folder(first, tmp_path / "rows")
    with pytest.raises(InputError, match=r"network '.*a\.npz' with SHA-256 .*, not '.*b\.npz'"):
        runner._check_folder(second, tmp_path / "rows")


NETWORK = NetworkFile("a.npz", "00")
TYPO = 'study = "helicopter"\nsizes = [50]\ncolumns = ["dqn"]\n[training]\npass = 1'


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Column.parse("dqn:n_wegde=5"), "did you mean 'n_wedge'"),
        (lambda: Column.parse("dqn:kappa=-1"), "kappa is -1"),
        (lambda: Column.parse("dqn:variant=pi"), "variant is 'pi'"),
        (lambda: select_experiment("helicopter", "main", ["pi-b"]), "'pi-b' is not for helicopter"),
        (lambda: select_experiment("gridworld", "main", ["dqn"]), "'dqn' is not for gridworld"),
        (lambda: select_experiment("helicopter", "search"), "choose one of main, noise"),
        (lambda: select_experiment("helicopter", "main", etas=(0.1,)), "has no eta"),
        (lambda: select_experiment("gridworld", "main", passes=(5,)), "leave --passes out"),
        (lambda: select_experiment("helicopter", "main", passes=(0.5,)), "passes is 0.5"),
        (lambda: select_experiment("helicopter", "main", noises=(-1,)), "noise is -1"),
        (lambda: Training(passes=()), "at least one noise factor and one number of passes"),
        (lambda: Experiment("helicopter", (50,), (Column("dqn"),)), r"lacks \[training\]"),
        (lambda: Experiment.from_toml(TYPO), "did you mean 'passes'"),
        (
            lambda: select_experiment("helicopter", "main", baseline="no.npz"),
            "cannot read baseline 'no.npz': No such file",
        ),
        (
            lambda: Experiment("gridworld", (9,), (Column("pi-b"),), network=NETWORK),
            "gridworld has no network",
        ),
    ],
)  # fmt: skip
def test_bad_specs_are_named(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_without_the_extra_the_command_says_what_to_install(tmp_path):
    code = "import sys; sys.modules['jax'] = None; from spibb.cli.app import main; main()"
    command = ["experiment", "helicopter", "--runs", "1", "--out", str(tmp_path / "rows")]
    done = subprocess.run(
        [sys.executable, "-c", code, *command], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert 'pip install ".[deep]"' in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "rows").exists()
