"""`spibb compare` with the log that trained a policy, and with another."""

from __future__ import annotations

import re

import numpy as np
import pytest
from inside import spibb

from spibb import load_policy
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
