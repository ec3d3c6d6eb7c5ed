"""Held-out work without traps: bins, column names, behaviours, contradictions."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from spibb import Bins, load_policy
from spibb.cli.app import app
from spibb.errors import InputError
from spibb.ingest.mapping import ColumnMap

MAPPING = """[columns]
state = ["ward", "age"]
action = "drug"
reward = "gain"
episode_id = "patient"
step = "visit"
terminated = "left"
[bins]
age = 4
"""


def frame(n, seed, oldest=90):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({
        "patient": np.arange(n) // 4, "visit": np.arange(n) % 4,
        "ward": np.array(["A", "B"])[rng.integers(2, size=n)],
        "age": rng.integers(0, oldest, n), "drug": np.array(["x", "y"])[rng.integers(2, size=n)],
        "gain": rng.random(n).round(3), "left": np.arange(n) % 4 == 3,
    })  # fmt: skip


def run(command, code=0):
    done = CliRunner().invoke(app, command.split())
    assert done.exit_code == code, (done.output, done.exception)
    return done


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    frame(800, 0).to_csv(folder / "train.csv", index=False)
    frame(400, 1, oldest=60).to_csv(folder / "test.csv", index=False)
    (folder / "m.toml").write_text(MAPPING)
    run(f"improve {folder}/train.csv --mapping {folder}/m.toml --out {folder}/improved --n-wedge 3")
    return folder


@pytest.fixture
def home(made, tmp_path, monkeypatch):
    """Two logs, a mapping, and a policy of one of them."""
    monkeypatch.chdir(tmp_path)
    return shutil.copytree(made, tmp_path, dirs_exist_ok=True)


EVALUATE = "evaluate test.csv --policy improved --behaviour estimate --seed 1"


def test_a_policys_bins_win_over_quantiles_of_another_log(home):
    """The quantiles of the test log are others: its states would not be those of the policy."""
    edges = load_policy("improved").bins["age"].edges
    assert run(f"{EVALUATE} --mapping m.toml").output == run(f"{EVALUATE} {OPTIONS}").output
    other = run("improve test.csv --mapping m.toml --out other --n-wedge 3")
    assert other and load_policy("other").bins["age"].edges != edges


OPTIONS = "--reward gain --episode patient --step visit --terminated left"


def test_a_mapping_names_the_columns_of_a_log_that_calls_them_otherwise(home):
    renamed = pd.read_csv("test.csv").rename(columns={"age": "Alter", "ward": "Station"})
    renamed.to_csv("renamed.csv", index=False)
    command = EVALUATE.replace("test.csv", "renamed.csv")
    found = run(f"{command} {OPTIONS} --state Station,Alter").output
    assert found == run(f"{EVALUATE} {OPTIONS}").output


def test_monitor_and_compare_read_the_log_as_the_policy_was(home):
    compare = "compare improved improved --log test.csv"
    assert run(f"{compare} --mapping m.toml").output == run(f"{compare} {OPTIONS}").output
    run("improve train.csv --mapping m.toml --out kept --n-wedge inf")
    monitor = "monitor kept test.csv --lowest-return 0 --highest-return 4"
    assert run(f"{monitor} --mapping m.toml").output == run(f"{monitor} {OPTIONS}").output


def map_of(**columns):
    return ColumnMap(columns, {"age": 3, "other": 5})


OWN = ColumnMap({"state": ("ward", "age"), "action": ("drug",)}, {"age": Bins((40,))})
EVERYTHING = ["ward", "age", "drug", "Alter", "Station"]


def test_what_wins_over_what():
    for given in (map_of(), map_of(state="ward"), map_of(state=("Station", "Alter"))):
        found = given.under(OWN, EVERYTHING)
        assert found.columns["state"] == ("ward", "age")
        assert found.bins == OWN.bins
    found = map_of(state=("Station", "Alter"), reward="r").under(OWN, EVERYTHING[2:])
    assert found.columns == {"state": ("Station", "Alter"), "action": ("drug",), "reward": "r"}
    assert found.bins == {"Alter": Bins((40,))}


def asking(columns=None, bins=None, **said):
    """What options ask for, over a mapping file."""
    return map_of().updated(columns or {}, bins or {}, **said)


def test_options_win_over_a_policy():
    found = asking({"state": ("Station", "Alter")}).under(OWN, EVERYTHING)
    assert found.columns["state"] == ("Station", "Alter")
    assert found.bins == {"Alter": Bins((40,))}
    same = asking({"state": ("age", "ward")}, {"age": [40]}).under(OWN, EVERYTHING)
    assert (same.columns["state"], same.bins) == (("ward", "age"), OWN.bins)
    assert asking(bins={"age": 4}).under(OWN, EVERYTHING).bins == OWN.bins


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (asking({"state": "ward"}), "--state names 1 columns, and the policy was made of 2"),
        (asking({"action": ("drug", "dose")}), "--action names 2 columns"),
        (asking(bins={"age": [30]}), "--bin cuts 'age' at other edges than the policy"),
        (asking(bins={"ward": 3}), "--bin cuts 'ward', which the policy does not"),
        (asking(bandit=True), "made from episodes, and the log is to be read as single decisions"),
    ],
)
def test_what_contradicts_a_policy_is_refused(given, message):
    own = ColumnMap(OWN.columns, OWN.bins, {"bandit": False})
    with pytest.raises(InputError, match=message):
        given.under(own, EVERYTHING)


def test_two_policies_agree_unless_both_say_otherwise():
    strict, drop, level = (
        ColumnMap({"state": "ward"}, {}, {"missing": word})
        for word in ("error", "drop", "as-level")
    )
    assert strict.agreeing(drop).said == drop.agreeing(strict).said == {"missing": "drop"}
    with pytest.raises(InputError, match="missing is drop for A and as-level for B"):
        drop.agreeing(level)
    with pytest.raises(InputError, match=r"age is 40\.0 for A and 50.0 for B"):
        ColumnMap({}, {"age": Bins((40,))}).agreeing(ColumnMap({}, {"age": Bins((50,))}))


def test_a_log_of_the_same_kind_needs_no_options(home):
    """Columns, bins and handling are stored with the policy, in its folder and in its one file."""
    rows = pd.read_csv("test.csv")
    rows.loc[5, "ward"] = None
    pd.concat([rows, rows[-4:]]).to_csv("messy.csv", index=False)
    clean = "--missing drop --duplicates drop"
    run(f"improve train.csv --mapping m.toml {clean} --out strict --n-wedge inf --v-max 20")
    run("export strict --out strict.spibb")
    for policy in ("strict", "strict.spibb"):
        short = f"evaluate messy.csv --policy {policy} --behaviour estimate"
        assert run(short).output == run(f"{short} --mapping m.toml {clean}").output
        assert "Left out as copies: 4 of 404 rows" in run(short).output
        refused = run(f"{short} --duplicates error", code=1)
        assert "occurs twice" in str(refused.exception) or "step" in str(refused.exception)
    compare = "compare strict strict --log messy.csv"
    assert run(compare).output == run(f"{compare} --mapping m.toml {clean}").output
    monitor = "monitor strict messy.csv"
    assert run(monitor).output == run(f"{monitor} --mapping m.toml {clean}").output
    assert "Left out for missing values" in run(monitor).output


def test_single_decisions_stay_single_decisions(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame(800, 0)[["ward", "drug", "gain"]].to_csv("single.csv", index=False)
    names = "--state ward --action drug --reward gain"
    run(f"improve single.csv --bandit {names} --out one --n-wedge inf --v-max 1")
    assert "Rows: each is an episode of one step" in run("monitor one single.csv").output
    frame(800, 0).to_csv("train.csv", index=False)
    run(f"improve train.csv {OPTIONS} --state ward --action drug --out many --n-wedge inf")
    refused = run("evaluate single.csv --bandit --policy many --behaviour estimate", code=1)
    assert "made from episodes" in str(refused.exception)
    both = run("compare one many --log single.csv --discount 0", code=1)
    assert "were read differently: bandit is True for A and False for B" in str(both.exception)


@pytest.mark.parametrize("names", ["ward,drug,probability", "state,action,probability"])
def test_a_mapping_applies_to_policy_behaviour_and_baseline_files_alike(names, home):
    state, action, _ = names.split(",")
    rows = [(w, d, p) for w in "AB" for d, p in (("x", 0.5), ("y", 0.5))]
    pd.DataFrame(rows, columns=[state, action, "probability"]).to_csv("plain.csv", index=False)
    (home / "w.toml").write_text(MAPPING.replace('["ward", "age"]', '"ward"').split("[bins]")[0])
    run("improve train.csv --mapping w.toml --baseline plain.csv --out a --n-wedge 3")
    run("evaluate test.csv --mapping w.toml --policy plain.csv --behaviour plain.csv")
    run("evaluate test.csv --mapping w.toml --policy a --behaviour plain.csv")
    run("compare a plain.csv --mapping w.toml --log test.csv")
    run("compare plain.csv a --mapping w.toml")


def test_a_plain_table_beside_a_result_folder_may_have_its_columns(home):
    """The folder knows that ward and age are the state and drug is the action."""
    table = pd.read_csv("improved/policy.csv")[["ward", "age", "drug", "probability"]]
    table.to_csv("plain.csv", index=False)
    for pair in ("improved plain.csv", "plain.csv improved"):
        assert run(f"compare {pair}").output.startswith("0 of ")
    table.rename(columns={"drug": "dose"}).to_csv("other.csv", index=False)
    refused = str(run("compare improved other.csv", code=1).exception)
    assert "has no column 'drug'" in refused and "--state and --action of" in refused


def test_single_steps_have_no_discount(home):
    log = pd.read_csv("train.csv")
    log[["ward", "drug", "gain"]].to_csv("single.csv", index=False)
    columns = "--state ward --action drug --reward gain --bandit"
    run(f"improve single.csv {columns} --out single --n-wedge 3")
    evaluated = run("evaluate single.csv --policy single --behaviour estimate").output
    compared = run("compare single single --log single.csv").output
    for printed in (evaluated, compared):
        assert "No discount: every episode is a single step" in printed
        assert "Discount 0" not in printed


def test_the_behaviour_may_be_estimated_from_the_log(home):
    plain = run(f"{EVALUATE} {OPTIONS}").output
    smooth = run(f"{EVALUATE.replace('estimate', 'estimate:5')} {OPTIONS}").output
    assert "wpdis" in plain and plain != smooth
    for output in (plain, smooth):
        assert "The behaviour was estimated from this log" in " ".join(output.split())


def test_held_out_episodes_that_contradict_the_baseline_are_a_result(tmp_path, monkeypatch):
    """The current policy never treats the mild, but one held-out episode does."""
    monkeypatch.chdir(tmp_path)
    rows = ["episode_id,step,state,action,reward,terminated"]
    rng = np.random.default_rng(0)
    for e in range(100):
        second = rng.choice(["treat", "wait"])
        rows += [f"{e},0,mild,wait,0,false", f"{e},1,severe,{second},{rng.random():.2f},true"]
    rows += ["100,0,mild,treat,0,false", "100,1,severe,wait,1,true"]
    (tmp_path / "log.csv").write_text("\n".join(rows) + "\n")
    (tmp_path / "baseline.csv").write_text(
        "state,action,probability\nmild,wait,1\nsevere,treat,0.5\nsevere,wait,0.5\n"
    )
    graded = {}
    for seed in range(6):
        command = "improve log.csv --baseline baseline.csv --holdout 0.3"
        done = run(f"{command} --seed {seed} --out out{seed}")
        stored = json.loads((tmp_path / f"out{seed}" / "summary.json").read_text())
        graded[seed] = stored["held_out_refusal"]
        assert stored["verdict"]["grade"] == "not supported"
        if stored["held_out_refusal"]:
            assert "gives probability 0 to action 'treat' in state 'mild'" in graded[seed]
            assert stored["held_out"] is None
            assert not stored["verdict"]["criteria"]["baseline"]["passed"]
            page = (tmp_path / f"out{seed}" / "report.html").read_text()
            assert "The held-out episodes cannot test the policy" in page
            assert "The held-out episodes cannot test" in " ".join(done.output.split())
    assert any(graded.values()) and not all(graded.values())


def test_evaluate_refuses_a_behaviour_that_cannot_have_made_the_log(home):
    rows = "ward,drug,probability\nA,x,1\nB,x,1\n"
    (home / "never.csv").write_text(rows)
    done = run(
        "evaluate test.csv --policy never.csv --behaviour never.csv --state ward --action drug "
        + OPTIONS,
        code=1,
    )
    assert isinstance(done.exception, InputError)
    assert "gives probability 0 to action 'y'" in str(done.exception)


def test_a_policy_that_knows_missing_values_reads_them_so(home):
    for name in ("train.csv", "test.csv"):
        rows = pd.read_csv(name)
        rows.loc[::9, "age"] = np.nan
        rows.to_csv(name, index=False)
    run("improve train.csv --mapping m.toml --missing as-level --out level --n-wedge 3")
    evaluate = EVALUATE.replace("improved", "level")
    found = run(f"{evaluate} {OPTIONS}").output
    assert found == run(f"{evaluate} --mapping m.toml --missing as-level").output
