"""`spibb compare` with the log that trained a policy, and with another."""

from __future__ import annotations

import re

import numpy as np
import pytest
from inside import spibb

from spibb import InputError, compare, load_policy, read_log, read_policy
from spibb.cli.terminal import with_letters

TRAINED = "This log trained A, so it adds no evidence"


def write_log(path, seed):
    """Two arms, played by a coin; the second pays more often."""
    rng = np.random.default_rng(seed)
    arm = rng.integers(2, size=300)
    paid = (rng.random(300) < 0.3 + 0.3 * arm).astype(int)
    rows = [f"{k},s,{'ab'[a]},{r}" for k, (a, r) in enumerate(zip(arm, paid))]
    path.write_text("\n".join(["episode_id,state,action,reward", *rows, ""]))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    here = tmp_path_factory.mktemp("compare")
    for seed, name in enumerate(("log.csv", "other.csv")):
        write_log(here / name, seed)
    (here / "baseline.csv").write_text("state,action,probability\ns,a,0.5\ns,b,0.5\n")
    return here


def gained(printed):
    return re.search(r"gains at least ([\d.]+)", " ".join(printed.split())).group(1)


def test_the_log_that_trained_a_policy_promises_no_more_than_improve_did(folder):
    words = "log.csv", "--bandit", "--baseline", "baseline.csv", "--algorithm", "auto"
    made = spibb("improve", *words, "--out", "out", folder=folder)
    compare = "compare", "out", "baseline.csv", "--bandit", "--log"
    same, other = (spibb(*compare, name, folder=folder) for name in ("log.csv", "other.csv"))
    assert (made.returncode, same.returncode, other.returncode) == (0, 0, 0), same.stderr
    assert gained(same.stdout) == gained(made.stdout)
    assert TRAINED in " ".join(same.stdout.split())
    assert TRAINED not in " ".join(other.stdout.split())


@pytest.mark.parametrize(
    "options", [("auto",), ("pi-b",), ("certified", "--v-max", "1"), ("auto", "--holdout", "0.4")]
)
def test_the_log_that_trained_a_policy_repeats_what_improve_said(folder, options):
    made, same, again = (
        " ".join(spibb(*words, folder=folder).stdout.split())
        for words in (
            ("improve", "log.csv", "--bandit", "--baseline", "baseline.csv", "--out", "said",
             "--force", "--algorithm", *options),
            ("compare", "said", "baseline.csv", "--log", "log.csv"),
            ("compare", "said", "baseline.csv", "--log", "log.csv", "--discount", "0.5"),
        )
    )  # fmt: skip
    verdict = load_policy(folder / "said").verdict
    first = " ".join(f"{verdict['headline']}. {verdict['sentence']}".split())
    assert made.startswith(first)
    assert same.startswith(with_letters(first))
    assert "its verdict may differ" not in same
    assert "its verdict may differ" in again


def test_a_policy_compared_with_itself_does_the_same(folder):
    words = "compare", "baseline.csv", "baseline.csv", "--bandit", "--log", "log.csv"
    found = spibb(*words, folder=folder)
    assert "both policies do the same" in " ".join(found.stdout.split())


def test_a_log_that_b_did_not_make_judges_nothing(folder):
    (folder / "never.csv").write_text("state,action,probability\ns,a,1\n")
    words = "compare", "baseline.csv", "never.csv", "--bandit", "--log", "log.csv"
    printed = " ".join(spibb(*words, folder=folder).stdout.split())
    assert printed.startswith("Not judged. B did not make this log (")
    assert "keep B" not in printed
    assert "contradict" not in printed
    assert "spibb evaluate LOG --policy A" in printed


def test_another_discount_is_judged_at_the_level_that_improve_used(folder):
    words = "log.csv", "--bandit", "--baseline", "baseline.csv", "--algorithm", "auto"
    spibb("improve", *words, "--out", "level", "--force", folder=folder)
    stored = load_policy(folder / "level").verdict["level"]
    paths = [str(folder / name) for name in ("level", "baseline.csv", "log.csv")]
    kept = compare(*paths)
    other = compare(*paths, discount=0.5)
    assert kept.trained
    assert other.trained
    assert (kept.stored, other.stored) == (load_policy(paths[0]).verdict, None)
    assert 0 < stored < 0.05
    assert other.evidence.share == kept.evidence.share == stored
    assert gained(other.verdict.sentence) == gained(kept.stored["sentence"])


def test_a_policy_in_memory_is_compared_as_its_file_is(folder):
    words = "log.csv", "--bandit", "--baseline", "baseline.csv", "--n-wedge", "5"
    spibb("improve", *words, "--out", "kept", folder=folder)
    policy, baseline = load_policy(folder / "kept"), read_policy(folder / "baseline.csv")
    log = read_log(folder / "other.csv", bandit=True)
    found = compare(str(folder / "kept"), str(folder / "baseline.csv"), str(folder / "other.csv"))
    same = compare(policy, baseline, log)
    assert not found.trained
    assert found.verdict == same.verdict
    assert (
        found.differences == same.differences == compare(policy.policy, baseline, log).differences
    )
    assert found.assumptions[0].what == "Rows"
    assert (found.discount_from, compare(policy, baseline).discount) == (None, None)


def test_another_reading_of_the_log_is_another_log(folder):
    """Costs in place of rewards: what improve said of rewards is no answer."""
    rows = (folder / "log.csv").read_text().splitlines()
    costs = [f"{row},{-3 * int(row[-1])}" for row in rows[1:]]
    (folder / "both.csv").write_text("\n".join([f"{rows[0]},cost", *costs, ""]))
    words = "both.csv", "--bandit", "--baseline", "baseline.csv", "--algorithm", "auto"
    spibb("improve", *words, "--out", "read", folder=folder)
    same = spibb("compare", "read", "baseline.csv", "--log", "both.csv", folder=folder)
    other = spibb(
        "compare", "read", "baseline.csv", "--log", "both.csv", "--reward", "cost", folder=folder
    )
    assert same.stdout.startswith("Supported")
    assert other.stdout.startswith("Not supported")
    dropped = spibb(
        "compare", "read", "baseline.csv", "--log", "both.csv", "--missing", "drop", folder=folder
    )
    assert "its verdict may differ" in " ".join(dropped.stdout.split())


def test_compare_takes_policies_and_their_files_only():
    with pytest.raises(InputError, match="a is an int"):
        compare(3, "baseline.csv")
