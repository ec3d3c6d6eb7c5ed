"""Outputs that cannot show every sign: commands print what they can, and end as they should."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

COMMANDS = {
    "improve": ["log.csv", "--bandit", "--out", "out", "--discount", "0.9"],
    "inspect": ["log.csv", "--bandit"],
    "evaluate": ["log.csv", "--policy", "policy.csv", "--bandit", "--behaviour", "estimate"],
    "act": ["policy.csv", "--state", "γ"],
    "--help": [],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A log and a policy whose labels few encodings have."""
    place = tmp_path_factory.mktemp("encodings")
    rows = [f"{'γδ'[i % 2]},{'左右'[i // 2 % 2]},{i % 3}" for i in range(60)]
    (place / "log.csv").write_text("\n".join(["state,action,reward", *rows]), encoding="utf-8")
    probs = [f"{state},{action},0.5" for state in "γδ" for action in "左右"]
    (place / "policy.csv").write_text(
        "\n".join(["state,action,probability", *probs]), encoding="utf-8"
    )
    return place


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "latin-1", "cp437"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_ends_as_with_utf_8(folder, command, encoding):
    arguments = [f"{encoding}-out" if word == "out" else word for word in COMMANDS[command]]
    done = subprocess.run(
        [sys.executable, "-m", "spibb", command, *arguments], cwd=folder, capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": encoding}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode(encoding)
    assert done.stdout.decode(encoding)
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
def test_a_refusal_is_one_line_with_its_code(folder, encoding):
    done = subprocess.run(
        [sys.executable, "-m", "spibb", "act", "policy.csv", "--state", "ε"], cwd=folder,
        capture_output=True, env={**os.environ, "PYTHONIOENCODING": encoding}, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert len(done.stderr.decode(encoding).splitlines()) == 1
