"""A log without any usable row is refused, and nothing is written."""

from __future__ import annotations


def test_a_log_whose_successors_are_all_unknown_is_refused_in_one_line(tmp_path, commands):
    rows = [f"{e},0,s,{e % 2},1,false" for e in range(30)]
    text = "\n".join(["episode,step,state,action,reward,terminated", *rows, ""])
    (tmp_path / "log.csv").write_text(text)
    found = commands.run("improve", "log.csv", "--out", "new", folder=tmp_path)
    assert found.code == 2
    assert found.err.count("\n") == 1
    assert "no row of the log has a known successor" in found.err
    assert not (tmp_path / "new" / "policy.csv").exists()
