"""`spibb.run`: all of `spibb improve` in one call, each part of it once."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import spibb
import spibb.tables
from spibb import Certified, InputError, Log, PiBSpibb, Policy, behaviour, counts
from spibb.cli.app import app
from spibb.envs.baselines import gridworld_baseline
from spibb.envs.gridworld import gridworld_mdp
from spibb.ingest import baselines as forms
from spibb.running.shown_call import shown_call
from spibb.simulate import simulate
from spibb.sql import located, typed

FILES = {"policy.csv", "policy.parquet", "policy.json", "summary.json", "report.html",
         "manifest.sha256", "returns.parquet"}  # fmt: skip
BASELINE = gridworld_baseline()


@pytest.fixture(scope="module")
def log():
    return simulate(gridworld_mdp(), BASELINE, 60, rng=np.random.default_rng(3))


@pytest.fixture(scope="module")
def folder(log, tmp_path_factory):
    """The log and its baseline as files."""
    path = tmp_path_factory.mktemp("files")
    spibb.tables.write_table(spibb.tables.log_table(log), path / "log.csv")
    BASELINE.save(path / "baseline.csv")
    return path


def count_calls(monkeypatch, owner, name, *places):
    """Count the calls of a function, wherever it was imported to."""
    called = []
    real = getattr(owner, name)

    def counted(*args, **kwargs):
        called.append(args)
        return real(*args, **kwargs)

    for place in (owner, *places):
        monkeypatch.setattr(place, name, counted)
    return called


@pytest.mark.parametrize("given", ["file", "estimate", "policy", "wider"])
@pytest.mark.parametrize("kind", ["file", "frame", "log"])
def test_each_part_runs_once(given, kind, log, folder, monkeypatch):
    sources = {"file": folder / "log.csv", "log": log,
               "frame": pd.read_csv(folder / "log.csv")}  # fmt: skip
    wider = Policy.uniform(range(30), BASELINE.actions.labels)
    baselines = {"file": folder / "baseline.csv", "estimate": None, "policy": BASELINE,
                 "wider": wider}  # fmt: skip
    resolved = count_calls(monkeypatch, located, "resolve")
    read = count_calls(monkeypatch, typed.TypedTable, "fields")
    aligned = count_calls(monkeypatch, forms, "align")
    made = count_calls(monkeypatch, forms, "given_baseline")
    guessed = count_calls(monkeypatch, behaviour, "estimate_baseline", forms)
    counted = count_calls(monkeypatch, counts, "densify")
    spibb.run(sources[kind], baseline=baselines[given], n_wedge=5)
    assert len(resolved) == 1
    assert len(read) == (kind != "log")
    whole = [keys for keys, _ in counted if len(keys) == len(log)]
    assert len(whole) == 1  # the verdict counts the choosing half too, as `certified` would
    assert (len(aligned), len(made), len(guessed)) == (
        (0, 0, 1) if given == "estimate" else (1, 1, 0)
    )


def test_sources_of_all_kinds_give_the_same_result(log, folder):
    sources = [folder / "log.csv", str(folder / "*g.csv"), pd.read_csv(folder / "log.csv"), log]
    done = [spibb.run(source, baseline=BASELINE, n_wedge=5, v_max=1) for source in sources]
    for other in done[1:]:
        np.testing.assert_array_equal(other.policy.probs, done[0].policy.probs)
        assert other.findings == done[0].findings
        assert other.assessment.posterior.probability == done[0].assessment.posterior.probability
    assert [r.folder for r in done] == [None] * 4


def test_the_call_is_the_command(folder, tmp_path):
    """All files of the command line, and the same numbers in them."""
    words = ["improve", folder / "log.csv", "--baseline", folder / "baseline.csv", "--n-wedge", "5",
             "--v-max", "1", "--holdout", "0.3", "--seed", "2", "--delta", "0.1",
             "--out", tmp_path / "command"]  # fmt: skip
    assert CliRunner().invoke(app, [str(word) for word in words]).exit_code == 0
    done = spibb.run(folder / "log.csv", tmp_path / "call", baseline=folder / "baseline.csv",
                     n_wedge=5, v_max=1, holdout=0.3, seed=2, delta=0.1)  # fmt: skip
    assert done.folder == tmp_path / "call"
    stored = []
    for name in ("command", "call"):
        assert {path.name for path in (tmp_path / name).iterdir()} == FILES
        stored.append(json.loads((tmp_path / name / "summary.json").read_text("utf-8")))
    origins = [one.pop("origin") for one in stored]
    assert stored[0] == stored[1]
    assert origins[0]["sources"] == origins[1]["sources"]
    assert origins[1]["command"].startswith(f"spibb.run('{folder}/log.csv', '{tmp_path}/call', ")
    assert pq.read_table(tmp_path / "command" / "policy.parquet") == pq.read_table(
        tmp_path / "call" / "policy.parquet"
    )
    assert done.improvement.value == stored[0]["value_in_model"]


def test_the_columns_of_the_log_name_those_of_the_policy(tmp_path):
    """A baseline made in Python knows no column names, and policy.json must fit policy.csv."""
    frame = pd.DataFrame({
        "episode_id": np.repeat(range(40), 2), "step": [0, 1] * 40,
        "age": [30, 70, 31, 20] * 20, "drug": ["a", "b", "b", "b"] * 20,
        "reward": [0, 1, 1, 0] * 20, "terminated": [False, True] * 40,
    })  # fmt: skip
    labels = spibb.read_log(frame, columns={"state": "age", "action": "drug"}, bins={"age": [50]})
    baseline = Policy([[0.5, 0.5]] * 2, labels.states.labels, ["a", "b"])
    spibb.run(frame, tmp_path / "out", baseline=baseline, n_wedge=3,
              columns={"state": "age", "action": "drug"}, bins={"age": [50]})  # fmt: skip
    loaded = spibb.load_policy(tmp_path / "out")
    assert loaded.policy.states.names == ("age",)
    assert set(loaded.row({"age": 23})) == {"a", "b"}


def test_a_folder_that_is_not_empty_is_refused_before_any_work(log, tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match=r"is not empty: .* --force \(force=True in Python\)"):
        spibb.run(log, tmp_path, baseline=3)
    spibb.run(log, tmp_path, baseline=BASELINE, force=True)
    assert {path.name for path in tmp_path.iterdir()} == FILES | {"mine.txt"}


def test_one_failure_probability(log):
    certified = {"lowest_return": -1, "highest_return": 1}
    done = spibb.run(log, algorithm="certified", delta=0.4, **certified)
    assert done.assessment.certificate.delta == done.improvement.algorithm.delta == 0.4
    done = spibb.run(log, algorithm=Certified(delta=0.3, **certified))
    assert done.assessment.certificate.delta == 0.3
    with pytest.raises(InputError, match=r"delta is 0\.1, and 0\.3 as an option of certified"):
        spibb.run(log, algorithm=Certified(delta=0.3, **certified), delta=0.1)
    assert spibb.run(log).assessment.certificate.delta == 0.05


@pytest.mark.parametrize(
    "chosen", [{"algorithm": "auto"}, {"algorithm": "pi-b", "n_wedge": "auto"},
               {"algorithm": spibb.PiLeqBSpibb("auto")}]
)  # fmt: skip
def test_an_n_wedge_that_the_log_chooses_is_chosen_at_the_level_asked_for(log, chosen):
    done = spibb.run(log, delta=0.2, **chosen)
    assert done.improvement.algorithm.delta == 0.2
    assert done.assessment.verdict.delta == 0.2


def test_the_command_line_takes_one_failure_probability(folder, tmp_path):
    words = ["improve", str(folder / "log.csv"), "--out", str(tmp_path / "out"), "--algorithm",
             "certified", "--delta", "0.1", "--option", "delta=0.2"]  # fmt: skip
    found = CliRunner().invoke(app, words)
    assert isinstance(found.exception, InputError)
    assert str(found.exception) == (
        "--delta 0.1 and --option delta=0.2 give one option twice: keep one of them"
    )
    assert not (tmp_path / "out").exists()


def test_what_is_in_memory_is_named_by_its_type(log):
    origin = spibb.run(log, baseline=BASELINE, algorithm=PiBSpibb(5)).assessment.origin
    assert origin.command == (
        "spibb.run(<Log>, None, baseline=<Policy>, algorithm=PiBSpibb(n_wedge=5, unseen='zero', "
        "method='auto'), discount=0.95, seed=0)"
    )
    assert origin.sources == ()


def test_a_long_call_is_shown_in_full():
    """What is cut, or has its spaces joined, makes nothing again."""
    path = "/a  long/" + 100 * "x" + ".csv"
    columns = {name: f"the  {name}" for name in "abcdefg"}
    named = {"columns": columns, "algorithm": spibb.Auto(zeta=0.1), "n_wedges": tuple(range(9)),
             "kinds": ("pi-b",), "bins": {"age": [0.1 + 0.2]}}  # fmt: skip
    run = SimpleNamespace(run=lambda *given, **named: (given, named))
    known = {"spibb": run, "Auto": spibb.Auto}
    assert eval(shown_call([path, "b.csv"], Path(path), **named), known) == (
        ([path, "b.csv"], path), named
    )  # fmt: skip
    assert shown_call(baseline=[[0.5, 0.5]]) == "spibb.run(baseline=<list>)"


def test_a_log_has_its_columns(log):
    with pytest.raises(InputError, match="columns and bins are for tables"):
        spibb.run(log, columns={"state": "ward"})


def test_a_log_in_memory_is_inspected_as_its_table_is(log):
    table = spibb.tables.log_table(log)
    read = Log.from_frame(table)  # names no state that it does not visit
    assert spibb.inspect_log(read) == spibb.inspect_log(spibb.open_log(table))
    assert spibb.inspect_log(log).states == 25


def test_a_run_shows_its_verdict_and_an_improvement_the_one_it_has(log):
    done = spibb.run(log, baseline=BASELINE, n_wedge=5)
    assert done.verdict is done.assessment.verdict
    assert f"verdict={done.verdict.grade}" in repr(done)
    fresh = PiBSpibb(5).improve(spibb.Problem.from_log(log, BASELINE))
    assert "verdict" not in repr(fresh)
    assert f"verdict={fresh.verdict.grade}" in repr(fresh)


def test_an_estimated_baseline_is_no_file_and_the_call_is_whole(folder):
    found = spibb.run(str(folder / "log.csv"), baseline="estimate:1", spreadsheet_safe=True)
    origin = found.assessment.origin
    assert [source.role for source in origin.sources] == ["log"]
    assert "spreadsheet_safe=True" in origin.command


@pytest.mark.parametrize("holdout", ["", False, 1.0])
def test_a_share_held_out_is_a_number(log, holdout):
    with pytest.raises(InputError, match="holdout is"):
        spibb.run(log, holdout=holdout)


def test_stages_are_told_in_order(log, tmp_path):
    told = []
    spibb.run(log, tmp_path / "out", progress=lambda stage, share: told.append((stage, share)))
    stages = list(dict.fromkeys(stage for stage, _ in told))
    assert stages == ["reading", "improving", "judging the new policy", "writing"]
    assert all(0 <= share <= 1 for _, share in told)


def test_every_way_to_give_a_baseline_gives_the_same(log, folder):
    """`improve`, `Problem.from_log` and `run` take the same forms."""
    saved = spibb.run(log, folder / "kept", baseline=BASELINE, n_wedge=1e9)
    given = [BASELINE, folder / "baseline.csv", str(folder / "baseline.csv"), saved,
             spibb.load_policy(folder / "kept"), saved.improvement]  # fmt: skip
    wanted = spibb.improve(log, BASELINE, n_wedge=5)
    world, truth = gridworld_mdp(), spibb.exact_value(gridworld_mdp(), BASELINE)
    for form in given:
        found = spibb.improve(log, form, n_wedge=5)
        again = spibb.run(log, baseline=form, n_wedge=5)
        for policy in (found.policy, again.policy):
            rows = policy.aligned(BASELINE.states, BASELINE.actions).probs
            np.testing.assert_allclose(rows, wanted.policy.probs, atol=1e-12)
        assert found.problem.baseline_source == "given"
        if not isinstance(form, str | Path):
            assert spibb.exact_value(world, form) == pytest.approx(truth, abs=1e-12)
    smooth = spibb.improve(log, "estimate:0.5").problem
    assert smooth.baseline_source == "estimated"
    np.testing.assert_array_equal(
        smooth.baseline.probs, spibb.estimate_baseline(log, smoothing=0.5).probs
    )


def test_the_folder_of_a_result_is_checked_by_its_name(log):
    result = spibb.improve(log, BASELINE, discount=0.9, algorithm="pi-b", n_wedge=5)
    with pytest.raises(InputError, match="folder is an int, expected a str or a Path"):
        result.save(3)
    with pytest.raises(InputError, match="folder is None, expected a str or a Path"):
        result.save(None)
