"""The command line, in process, against the Python interface."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys

import numpy as np
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

import spibb
from spibb.cli.app import app, main
from spibb.evaluate import monte_carlo_value, returns
from spibb.ingest import read_table
from spibb.splits import split_episodes
from spibb.tables import log_table, write_table
from spibb.words import number

STATES = ("ward-1", "ward-2", "[/x]")
ACTIONS = ("treat", "wait")
BASELINE = np.array([[0.6, 0.4], [0.3, 0.7], [0.5, 0.5]])
COLUMNS = ["state", "action", "probability", "baseline_probability", "count", "bootstrapped"]
FILES = [
    "manifest.sha256",
    "policy.csv",
    "policy.json",
    "policy.parquet",
    "report.html",
    "returns.parquet",
    "summary.json",
]


def make_log():
    """Wards in which waiting pays in the first two states; the third is rarely seen."""
    rng = np.random.default_rng(5)
    states, actions, rewards, ends = [], [], [], []
    for _ in range(60):
        for step in range(4):
            s = int(rng.choice(3, p=[0.5, 0.45, 0.05]))
            a = int(rng.random() < BASELINE[s, 1])
            states.append(STATES[s])
            actions.append(ACTIONS[a])
            rewards.append(round(float(rng.normal(a, 0.5)), 3))
            ends.append(step == 3)
    return spibb.Log.from_arrays(
        states, actions, rewards, terminated=ends, state_labels=STATES, action_labels=ACTIONS
    )


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """A log and its baseline, each as .csv and .parquet."""
    folder = tmp_path_factory.mktemp("inputs")
    for ending in ("csv", "parquet"):
        write_table(log_table(make_log()), folder / f"log.{ending}")
        spibb.Policy(BASELINE, STATES, ACTIONS).save(folder / f"baseline.{ending}")
    return folder


@pytest.fixture
def run(monkeypatch, capsys):
    """Call the command line in process: exit code, output, errors."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["spibb", *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def improve_arguments(inputs, out, ending="csv"):
    return ("improve", inputs / f"log.{ending}", "--baseline", inputs / f"baseline.{ending}",
            "--out", out)  # fmt: skip


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """What `spibb demo` prints and writes."""
    out = tmp_path_factory.mktemp("demo") / "out"
    result = CliRunner().invoke(app, ["demo", "--out", str(out), "--episodes", "100"])
    assert result.exit_code == 0, result.output
    return out, result.output


def test_demo_writes_its_files(demo):
    out, _ = demo
    assert sorted(path.name for path in out.iterdir()) == [
        "baseline.csv",
        "deployed.csv",
        "log.csv",
        "manifest.sha256",
        "policies.png",
        "report.html",
    ]
    assert (out / "policies.png").read_bytes().startswith(b"\x89PNG")
    log = spibb.read_log(out / "log.csv")
    assert log.n_episodes == 100
    assert spibb.read_policy(out / "baseline.csv", log).n_actions == 4


def test_demo_prints_the_values_the_certificate_and_what_to_do_next(demo):
    out, printed = demo
    for words in ("true value", "mean return", "value in", "pairs", "baseline", "pi-b", "pi-leq-b",
                  "With posterior probability at least 0.95", "(beta, credible",
                  "No certificate: Theorem 2",
                  f"spibb improve {out / 'log.csv'} --baseline {out / 'baseline.csv'}",
                  str(out / "policies.png")):  # fmt: skip
        assert words in " ".join(printed.split())


def test_demo_shows_safe_policies_that_are_truly_better(demo):
    out, printed = demo
    cells = [line.split("│") for line in printed.splitlines() if line.startswith("│")]
    true_value = {row[1].strip(): float(row[2]) for row in cells}
    assert true_value["pi-b"] > true_value["baseline"]
    assert true_value["pi-leq-b"] > true_value["baseline"]
    observed = {row[1].strip(): row[3].strip() for row in cells}
    earned = monte_carlo_value(spibb.read_log(out / "log.csv"), 0.95).value
    assert observed == {"baseline": f"{earned:.4f}", "pi-b": "", "pi-leq-b": ""}


def test_demo_is_repeated_by_its_seed(run, tmp_path):
    printed = [
        run("demo", "--out", tmp_path / "out", "--episodes", "20", "--seed", "4")[1]
        for _ in range(2)
    ]
    assert printed[0] == printed[1]
    assert printed[0] != run("demo", "--out", tmp_path / "out", "--episodes", "20")[1]


def test_the_command_that_demo_prints_gives_its_numbers(run, demo):
    """Value, baseline value, verdict and certificate, digit by digit."""
    out, printed = demo
    (command,) = [line for line in printed.splitlines() if line.strip().startswith("spibb improve")]
    code, again, errors = run(*shlex.split(command)[1:])
    assert (code, errors) == (0, "")
    assert sorted(path.name for path in (out / "improved").iterdir()) == FILES
    summary = json.loads((out / "improved" / "summary.json").read_text(encoding="utf-8"))
    rows = {
        cells[1].strip(): [cell.strip() for cell in cells[2:-1]]
        for cells in (line.split("│") for line in printed.splitlines() if line.startswith("│"))
    }
    assert rows["baseline"][2] == f"{summary['values']['current']['mean']:.4f}"
    assert rows["pi-b"][2:] == [
        f"{summary['values']['new']['mean']:.4f}", summary["verdict"]["grade"],
        f"{summary['bootstrapped_pairs_share']:.0%}",
    ]  # fmt: skip
    words = " ".join(printed.split()).partition("pi-b: ")[2].partition(" pi-leq-b:")[0]
    assert "loses at most" in words
    assert words in " ".join(again.split())


def test_terminal_summary_and_report_show_the_same_values(run, tmp_path):
    """Basic RL takes unseen pairs for −V_max in its own model, and the log is a cost."""
    log, baseline, out = tmp_path / "log.csv", tmp_path / "baseline.csv", tmp_path / "out"
    rows = ["episode_id,step,state,action,reward,terminated"]
    rows += [f"{i},0,s{i % 3},{'ab'[i % 2]},-{1 + i % 2},1" for i in range(30)]
    log.write_text("\n".join(rows) + "\n", encoding="utf-8")
    shares = {"a": 0.5, "b": 0.25, "c": 0.25}
    actions = [f"s{i},{action},{share}" for i in range(3) for action, share in shares.items()]
    baseline.write_text("\n".join(["state,action,probability", *actions]) + "\n", encoding="utf-8")
    code, printed, _ = run("improve", log, "--baseline", baseline, "--out", out, "--algorithm",
                           "basic-rl")  # fmt: skip
    assert code == 0
    summary = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    assert summary["baseline_value_in_model"] == pytest.approx(-1.0, abs=1e-9)  # c is worth 0
    page = (out / "report.html").read_text(encoding="utf-8")
    values, terminal = summary["values"], " ".join(printed.split())
    for name, title in (("current", "Current policy"), ("new", "New policy")):
        told = number(values[name]["mean"])
        assert f"{title.lower()}, model {told} " in terminal
        assert re.search(rf"{title}, model</dt><dd[^>]*>{re.escape(told)}<", page)
    assert values["earned"]["mean"] == pytest.approx(-1.5)
    assert "mean return in the log −1.500 ± 0.182" in terminal
    assert "Mean return in the log</dt><dd>−1.500<" in page


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_improve_writes_what_python_computes(run, inputs, tmp_path, ending):
    out = tmp_path / "new" / "out"
    code, _, errors = run(*improve_arguments(inputs, out, ending), "--n-wedge", 20)
    assert (code, errors) == (0, "")
    assert sorted(path.name for path in out.iterdir()) == FILES

    log = spibb.read_log(inputs / f"log.{ending}")
    baseline = spibb.read_policy(inputs / f"baseline.{ending}", log)
    result = spibb.improve(log, baseline, discount=0.95, n_wedge=20)
    assert 0 < result.bootstrapped.sum() < result.bootstrapped.size
    wanted = {
        "state": np.repeat(sorted(STATES), 2).tolist(),
        "action": sorted(ACTIONS) * 3,
        "probability": result.policy.probs.reshape(-1).tolist(),
        "baseline_probability": baseline.probs.reshape(-1).tolist(),
        "count": result.problem.counts.pairs.reshape(-1).tolist(),
        "bootstrapped": result.bootstrapped.reshape(-1).tolist(),
    }
    stored = pyarrow.parquet.read_table(out / "policy.parquet").to_pydict()
    assert list(stored) == COLUMNS
    assert stored == wanted
    text = read_table(out / "policy.csv").to_pydict()
    assert list(text) == COLUMNS
    text["bootstrapped"] = [flag == "true" for flag in text["bootstrapped"]]
    assert text == wanted


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_the_policy_written_is_read_back(run, inputs, tmp_path, ending):
    run(*improve_arguments(inputs, tmp_path / "out"), "--n-wedge", 20)
    log = spibb.read_log(inputs / "log.csv")
    result = spibb.improve(log, spibb.read_policy(inputs / "baseline.csv", log), n_wedge=20)
    for policy in (
        spibb.read_policy(tmp_path / "out" / f"policy.{ending}"),
        spibb.read_policy(tmp_path / "out" / f"policy.{ending}", log),
    ):
        np.testing.assert_array_equal(policy.probs, result.policy.probs)
        assert policy.states == result.policy.states


def no_constant(name):
    raise AssertionError(f"{name} is not JSON")


def summary_of(folder):
    text = (folder / "summary.json").read_text(encoding="utf-8")
    return json.loads(text, parse_constant=no_constant)


def test_the_summary_agrees_with_python(run, inputs, tmp_path):
    run(*improve_arguments(inputs, tmp_path / "out"), "--n-wedge", 20, "--discount", 0.9,
        "--delta", 0.1, "--v-max", 30)  # fmt: skip
    log = spibb.read_log(inputs / "log.csv")
    baseline = spibb.read_policy(inputs / "baseline.csv", log)
    result = spibb.improve(log, baseline, discount=0.9, v_max=30, n_wedge=20)
    summary = summary_of(tmp_path / "out")
    assert summary["algorithm"] == "pi-b"
    assert summary["options"]["n_wedge"] == 20
    assert summary["discount"] == 0.9
    assert summary["v_max"] == 30
    assert (summary["states"], summary["actions"]) == (3, 2)
    assert summary["transitions"] == 240
    assert summary["episodes"] == 60
    assert summary["value_in_model"] == result.value
    assert summary["baseline_value_in_model"] == result.baseline_value
    assert summary["bootstrapped_pairs_share"] == result.bootstrapped.mean()
    assert summary["converged"] is True
    certificate = result.certificate(0.1)
    assert summary["certificate"]["delta"] == 0.1
    assert {bound["name"]: bound["zeta"] for bound in summary["certificate"]["bounds"]} == {
        bound.name: bound.zeta for bound in certificate.bounds
    }
    assert summary["certificate"]["assumptions"] == list(certificate.assumptions)
    verdict = spibb.judge(result, delta=0.1)
    assert summary["verdict"]["grade"] == verdict.grade
    assert summary["verdict"]["sentence"] == verdict.sentence
    assert summary["verdict"]["delta"] == 0.1
    belief = result.posterior()
    assert summary["values"]["gain"]["mean"] == belief.gain
    assert (summary["values"]["gain"]["low"], summary["values"]["gain"]["high"]) == belief.interval


def test_improve_prints_what_changed_by_label(run, inputs, tmp_path):
    code, printed, _ = run(*improve_arguments(inputs, tmp_path / "out"), "--n-wedge", 1)
    assert code == 0
    assert "240 transitions, 3 states, 2 actions" in printed
    for words in ("ward-1", "ward-2", "[/x]", "wait", "treat", "3 of 3 states change"):
        assert words in printed
    files = "policy.csv, policy.json, policy.parquet, returns.parquet, summary.json"
    assert f"Written: {tmp_path / 'out'}/{files}" in printed


def test_a_policy_that_is_only_an_estimate_of_the_baseline_is_called_so(run, inputs, tmp_path):
    words = improve_arguments(inputs, tmp_path / "out")
    place = words.index("--baseline")
    words = [*words[:place], *words[place + 2 :], "--n-wedge", "inf"]
    code, printed, _ = run(*words)
    assert code == 0
    said = "No state changes: the policy written is the baseline, as estimated from this log."
    assert said in " ".join(printed.split())
    assert summary_of(tmp_path / "out")["unchanged"] == said
    assert said in (tmp_path / "out" / "report.html").read_text("utf-8")


def test_improve_says_when_nothing_changes(run, inputs, tmp_path):
    code, printed, _ = run(*improve_arguments(inputs, tmp_path / "out"), "--n-wedge", "inf")
    assert code == 0
    said = "No state changes: the policy written is the baseline."
    assert said in printed
    assert summary_of(tmp_path / "out")["unchanged"] == said
    assert said in (tmp_path / "out" / "report.html").read_text("utf-8")
    policy = spibb.read_policy(tmp_path / "out" / "policy.csv")
    wanted = spibb.Policy(BASELINE, STATES, ACTIONS).aligned(policy.states, policy.actions)
    np.testing.assert_array_equal(policy.probs, wanted.probs)
    assert summary_of(tmp_path / "out")["options"]["n_wedge"] == "inf"


@pytest.mark.parametrize(
    ("algorithm", "options"),
    [
        ("pi-leq-b", {"n_wedge": 20}),
        ("basic-rl", {"unseen": "optimistic"}),
        ("model-free", {"n_wedge": 20, "max_sweeps": 5000}),
        ("auto", {"n_wedges": (5, 20), "kinds": ("cautious", "pi-b")}),
    ],
)
def test_every_algorithm_takes_its_options_by_name(run, inputs, tmp_path, algorithm, options):
    given = [
        word
        for k, v in options.items()
        for word in ("--option", f"{k.replace('_', '-')}={str(v).replace(chr(39), '')}")
    ]
    code, printed, errors = run(
        *improve_arguments(inputs, tmp_path / "out"), "--algorithm", algorithm, *given
    )
    assert (code, errors) == (0, "")
    log = spibb.read_log(inputs / "log.csv")
    baseline = spibb.read_policy(inputs / "baseline.csv", log)
    result = spibb.improve(log, baseline, algorithm=algorithm, **options)
    back = spibb.read_policy(tmp_path / "out" / "policy.parquet")
    np.testing.assert_array_equal(back.probs, result.policy.probs)
    certificate = summary_of(tmp_path / "out")["certificate"]
    assert certificate["refusal"] == result.certificate().refusal
    assert ("No certificate" in printed) == (certificate["refusal"] is not None)


def test_certified_writes_and_prints_its_tests(run, demo, tmp_path):
    folder = demo[0]
    code, printed, _ = run(
        "improve", str(folder / "log.csv"), "--baseline", str(folder / "baseline.csv"), "--out",
        str(tmp_path / "out"), "--algorithm", "certified", "--delta", "0.4", "--option",
        "lowest_reward=0", "--option", "highest_return=1",
    )  # fmt: skip
    assert code == 0
    stored = summary_of(tmp_path / "out")
    certificate = stored["certificate"]
    assert stored["options"]["delta"] == certificate["delta"] == 0.4
    assert certificate["episodes"] == {"choosing": 30, "judging": 70}
    accepted = [test for test in certificate["tests"] if test["accepted"]]
    assert accepted
    assert stored["states_changed"] == len(accepted)
    assert "Certified: with probability at least 0.6" in re.sub(r"\s+", " ", printed)


def test_certified_says_what_to_declare(run, demo, tmp_path):
    code, _, said = run(
        "improve", str(demo[0] / "log.csv"), "--out", str(tmp_path / "out"), "--algorithm",
        "certified",
    )  # fmt: skip
    assert code == 2
    assert "give lowest_reward" in said
    assert not (tmp_path / "out").exists()


def test_held_out_episodes_train_nothing_and_are_the_same_for_a_seed(run, demo, tmp_path):
    def held_out(out, seed):
        code, printed, errors = run(
            "improve", demo[0] / "log.csv", "--baseline", demo[0] / "baseline.csv", "--out",
            tmp_path / out, "--holdout", "0.3", "--seed", seed, "--v-max", "1",
        )  # fmt: skip
        assert (code, errors) == (0, "")
        assert "30 episodes were held out of training" in re.sub(r"\s+", " ", printed)
        return summary_of(tmp_path / out)

    first, again, other = (held_out(out, seed) for out, seed in (("a", 0), ("b", 0), ("c", 1)))
    assert first["episodes"] == 70
    assert first["held_out"] == again["held_out"] != other["held_out"]
    log = spibb.read_log(demo[0] / "log.csv")
    kept, held = split_episodes(log, 0.3, 0)
    assert first["transitions"] == len(kept)
    assert first["held_out"]["episodes"] == held.n_episodes == 30
    assert first["held_out"]["earned"] == pytest.approx(returns(held, 0.95).mean())
    assert "30 episodes were held out" in (tmp_path / "a" / "report.html").read_text()
    assert summary_of(tmp_path / "a")["off_policy"]["episodes"] == 70


def test_a_share_to_hold_out_is_checked(run, demo, tmp_path):
    code, _, said = run("improve", demo[0] / "log.csv", "--out", tmp_path / "x", "--holdout", "1.5")
    assert code == 2
    assert "holdout is 1.5, expected a number in [0, 1)" in said
    assert not (tmp_path / "x").exists()


def test_a_single_episode_tests_nothing(run, demo, tmp_path):
    out = tmp_path / "x"
    code, _, said = run("improve", demo[0] / "log.csv", "--out", out, "--holdout", "0.0001")
    assert code == 2
    assert "holdout 0.0001 holds out 1 of 100 episodes, expected at least 2" in said
    assert not out.exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--n-wedge", "10", "--option", "n_wedge=5"], "--n-wedge 10 and --option n_wedge=5"),
        (["--n-wedge", "10", "--option", "n-wedge=5"], "--n-wedge 10 and --option n-wedge=5"),
        (["--option", "n_wedge=5", "--option", "n_wedge=6"],
         "--option n_wedge=5 and --option n_wedge=6"),
    ],
)  # fmt: skip
def test_an_option_given_twice_is_refused(run, demo, tmp_path, options, message):
    code, _, said = run("improve", demo[0] / "log.csv", "--out", tmp_path / "x", *options)
    assert (code, f"{message} give one option twice" in said) == (2, True)


def test_evaluate_prints_the_difference_with_its_bounds(run, demo):
    code, printed, _ = run(
        "evaluate", demo[0] / "log.csv", "--policy", demo[0] / "baseline.csv", "--behaviour",
        demo[0] / "baseline.csv", "--highest-return", "1",
    )  # fmt: skip
    assert code == 0
    assert "Difference from the policy that made the log, which earned 0." in printed
    assert "betting" in printed


def test_the_same_seed_writes_the_same_files(run, inputs, tmp_path):
    """Up to the date and the folder that the command names."""
    for name in ("one", "two"):
        run(*improve_arguments(inputs, tmp_path / name), "--seed", 3)
    for name in ("policy.csv", "policy.parquet"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    for name in ("policy.json", "report.html", "summary.json"):
        one, two = (
            re.sub(
                r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", "", (tmp_path / folder / name).read_text("utf-8")
            )
            for folder in ("one", "two")
        )
        assert one.replace(str(tmp_path / "one"), str(tmp_path / "two")) == two


def test_force_overwrites_and_leaves_other_files(run, inputs, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "policy.csv").write_text("old")
    code, _, _ = run(*improve_arguments(inputs, tmp_path), "--force")
    assert code == 0
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert (tmp_path / "policy.csv").read_text().startswith('"state"')
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["notes.txt", *FILES])


def test_an_empty_folder_needs_no_force(run, inputs, tmp_path):
    assert run(*improve_arguments(inputs, tmp_path))[0] == 0


def test_a_log_that_contradicts_its_baseline_gets_no_certificate(run, inputs, tmp_path):
    spibb.Policy([[1, 0], [0.5, 0.5], [0.5, 0.5]], STATES, ACTIONS).save(tmp_path / "b.csv")
    code, printed, _ = run(
        "improve", inputs / "log.csv", "--baseline", tmp_path / "b.csv", "--out", tmp_path / "out"
    )
    assert code == 0
    assert "No certificate: the log contradicts the baseline" in " ".join(printed.split())


def test_a_log_without_one_known_successor_is_refused(run, tmp_path):
    (tmp_path / "log.csv").write_text(
        "episode_id,step,state,action,reward,terminated\n0,0,s,a,1,0\n1,0,s,a,2,0\n"
    )
    (tmp_path / "b.csv").write_text("state,action,probability\ns,a,1\n")
    code, _, errors = run(
        "improve", tmp_path / "log.csv", "--baseline", tmp_path / "b.csv", "--out", tmp_path / "out"
    )
    assert code == 2
    assert "no row of the log has a known successor or an end" in errors
    assert not (tmp_path / "out" / "summary.json").exists()


def test_version_is_that_of_the_package(run):
    code, printed, _ = run("--version")
    assert code == 0
    assert printed.strip() == f"spibb {spibb.__version__}"


def test_the_package_runs_as_a_module():
    command = [sys.executable, "-m", "spibb", "--version"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed.strip() == f"spibb {spibb.__version__}"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--help"], ["without making it worse", "demo", "improve", "--version"]),
        (["-h"], ["Usage: spibb", "improve"]),
        (["demo", "--help"], ["gridworld", "--out", "--episodes", "--n-wedge", "--seed"]),
        (
            ["improve", "--help"],
            ["log", "--baseline", "--out", "--algorithm", "--n-wedge", "--option", "--discount",
             "--delta", "--v-max", "--seed", "--force", "episode_id", "policy.csv"],
        ),
    ],
)  # fmt: skip
def test_help_names_every_option(arguments, words):
    result = CliRunner().invoke(app, arguments, prog_name="spibb", env={"COLUMNS": "120"})
    assert result.exit_code == 0
    for word in words:
        assert word in result.output


@pytest.mark.parametrize("command", [c.callback.__name__ for c in app.registered_commands])
def test_every_command_has_help(command):
    result = CliRunner().invoke(app, [command, "--help"])
    assert result.exit_code == 0
    assert "--help" in result.output
    assert "Usage: " in result.output


def test_without_arguments_it_shows_its_help(run):
    code, printed, errors = run()
    assert code in (0, 2)
    assert "Usage: " in printed + errors


def test_it_runs_as_a_program(tmp_path):
    program = "from spibb.cli.app import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, "improve", "none.csv", "--baseline", "b.csv", "--out", "o"],
        capture_output=True, text=True, cwd=tmp_path, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stdout == ""
    message = "spibb: cannot read 'none.csv': there is no such file; check the name\n"
    assert done.stderr == message
    assert list(tmp_path.iterdir()) == []


def test_the_help_lists_every_registered_algorithm():
    """By a list of names, because the registry would cost the help a second."""
    from spibb.algorithms import REGISTRY
    from spibb.names import ALGORITHMS

    assert sorted(ALGORITHMS) == sorted(REGISTRY)
    shown = CliRunner().invoke(app, ["improve", "--help"], env={"COLUMNS": "500"}).output
    assert f"{', '.join(ALGORITHMS)}; dqn for numeric columns" in " ".join(shown.split())


def test_policies_are_judged_with_the_discount_they_were_made_with(run, demo, tmp_path):
    log, baseline = demo[0] / "log.csv", demo[0] / "baseline.csv"
    for name, discount in (("near", 0.5), ("far", 0.9)):
        run(
            "improve", log, "--baseline", baseline, "--out", tmp_path / name, "--discount", discount
        )
    judge = "evaluate", log, "--behaviour", baseline, "--policy"

    def printed(*words):
        code, out, err = run(*words)
        assert code == 0, err
        return out

    def earned(*words):
        return re.search(r"which earned ([\d.e-]+)", " ".join(printed(*words).split())).group(1)

    near = tmp_path / "near"
    assert earned(*judge, near) == earned(*judge, baseline, "--discount", 0.5)
    assert earned(*judge, near / "policy.csv") == earned(*judge, near)
    assert earned(*judge, near, "--discount", 0.9) == earned(*judge, baseline, "--discount", 0.9)
    assert f"Discount 0.5, as stored with {near}" in printed(*judge, near)
    assert "Discount 0.95, the default" in printed(*judge, baseline)
    assert "Discount 0.5, as stored with" in printed("compare", near, baseline, "--log", log)
    both = "compare", near, tmp_path / "far"
    assert "Discount 0.7, as given" in printed(*both, "--log", log, "--discount", 0.7)
    assert "Discount" not in printed(*both)
    code, _, err = run(*both, "--log", log)
    assert code == 2
    assert re.search(r"discounts 0.5 \(.*near\) and 0.9 \(.*far\): give --discount", err)


def test_long_labels_keep_rows_of_the_terminal_short():
    from rich.console import Console

    from spibb.cli.terminal import print_improvement
    from spibb.report.assessment import assess
    from spibb.report.origin import Origin

    states = [f"ward {i} {'with a very long name ' * 6}end-{i}" for i in range(2)]
    log = spibb.Log.from_arrays(
        states * 30, (["treat" * 12] * 2 + ["wait" * 12] * 2) * 15, [0, 1, 0, 0] * 15,
        terminated=[False, True] * 30,
    )  # fmt: skip
    result = spibb.improve(log, n_wedge=1)
    with (console := Console(width=80)).capture() as printed:
        print_improvement(console, assess(result, Origin.of("x", 0)))
    table = printed.get().split("visits × gain:")[1]
    assert "ward 1" in table
    assert "end-1" in table  # what tells labels apart is often their end
    assert len(table[table.index("ward 1") :].splitlines()) <= 4  # the last is the table's edge
