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


ENCODINGS = ["cp1252", "ascii", "latin-1", "cp437"]


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_ends_as_with_utf_8(folder, commands, command, encoding):
    arguments = [f"{encoding}-out" if word == "out" else word for word in COMMANDS[command]]
    done = commands.run(command, *arguments, folder=folder, encoding=encoding)
    assert done.code == 0, done.err
    assert done.out
    assert "Traceback" not in done.err


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_process_of_its_own_ends_as_with_utf_8(folder, encoding):
    done = subprocess.run(
        [sys.executable, "-m", "spibb", "act", *COMMANDS["act"]], cwd=folder, capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": encoding}, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    assert "?" in done.stdout.decode(encoding)  # for γ, which none of them has


@pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
def test_a_refusal_is_one_line_with_its_code(folder, encoding):
    done = subprocess.run(
        [sys.executable, "-m", "spibb", "act", "policy.csv", "--state", "ε"], cwd=folder,
        capture_output=True, env={**os.environ, "PYTHONIOENCODING": encoding}, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert len(done.stderr.decode(encoding).splitlines()) == 1
