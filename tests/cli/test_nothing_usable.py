"""A log without any usable row is refused, and nothing is written."""

from __future__ import annotations

import subprocess
import sys


def test_a_log_whose_successors_are_all_unknown_is_refused_in_one_line(tmp_path):
    rows = [f"{e},0,s,{e % 2},1,false" for e in range(30)]
    text = "\n".join(["episode,step,state,action,reward,terminated", *rows, ""])
    (tmp_path / "log.csv").write_text(text)
    command = [sys.executable, "-m", "spibb", "improve", "log.csv", "--out", "new"]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert found.returncode == 2
    assert "no row of the log has a known successor" in " ".join(found.stderr.split())
    assert not (tmp_path / "new" / "policy.csv").exists()
