"""`spibb monitor` at the command line: exit codes, the order of time, JSON."""

from __future__ import annotations

import datetime
import json

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import spibb
from spibb.cli.app import app
from spibb.monitoring.watch import chronological

HEADER = "episode_id,step,started,state,action,reward,terminated"


def write_log(path, rewards, names=None, started=None):
    """Episodes of one step, in which the policy plays a coin."""
    names = range(len(rewards)) if names is None else names
    started = range(len(rewards)) if started is None else started
    actions = np.random.default_rng(3).choice(["go", "stay"], len(rewards))
    rows = [
        f"{name},0,{start},a,{action},{reward},1"
        for name, start, action, reward in zip(names, started, actions, rewards)
    ]
    path.write_text("\n".join([HEADER, *rows, ""]))


def coins(p, n, seed):
    return (np.random.default_rng(seed).random(n) < p).astype(int)


def call(*words):
    done = CliRunner().invoke(app, [str(word) for word in words])
    return done.exit_code, done.output


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a policy that was improved from a log of mean return 0.6."""
    here = tmp_path_factory.mktemp("deployed")
    write_log(here / "log.csv", coins(0.6, 300, 0))
    (here / "baseline.csv").write_text("state,action,probability\na,go,0.5\na,stay,0.5\n")
    code, printed = call(
        "improve", here / "log.csv", "--baseline", here / "baseline.csv", "--out",
        here / "improved", "--n-wedge", "inf", "--v-max", "1",
    )  # fmt: skip
    assert code == 0, printed
    return here


def test_an_alarm_has_exit_code_1_and_comes_first(folder):
    write_log(folder / "worse.csv", coins(0.2, 200, 1))
    code, printed = call("monitor", folder / "improved", folder / "worse.csv", "--lowest-return", 0)
    assert code == 1
    assert printed.startswith("Worse: roll back.")
    assert "Difference: between −0." in printed and "-0." not in printed


def test_no_worse_and_undecided_have_exit_code_0(folder):
    write_log(folder / "better.csv", coins(0.95, 200, 1))
    code, printed = call("monitor", folder / "improved", folder / "better.csv")
    assert (code, printed.startswith("No worse.")) == (0, True)
    write_log(folder / "same.csv", coins(0.6, 50, 1))
    code, printed = call("monitor", folder / "improved", folder / "same.csv")
    assert (code, printed.startswith("Undecided after 50 episodes")) == (0, True)
    assert "more episodes would show a drop of" in printed


def test_json_has_the_same_verdict(folder):
    write_log(folder / "worse.csv", coins(0.2, 200, 1))
    code, printed = call("monitor", folder / "improved", folder / "worse.csv", "--json")
    found = json.loads(printed)
    assert (code, found["verdict"], found["alarm"]) == (1, "worse", True)
    assert found["new"]["episodes"] == 200
    assert found["limits"] == [-1, 1]  # declared by --v-max


def test_a_growing_log_keeps_its_verdict_and_its_episode(folder):
    rewards = coins(0.2, 300, 2)
    since = set()
    for n in (150, 200, 300):
        write_log(folder / "growing.csv", rewards[:n])
        code, printed = call("monitor", folder / "improved", folder / "growing.csv", "--json")
        since.add(json.loads(printed)["since"])
        assert code == 1
    assert len(since) == 1


def test_episodes_are_put_in_the_order_of_time(folder):
    """Names in any order, times as numbers or dates: the verdict is that of the right order."""
    rewards, rng = coins(0.2, 200, 1), np.random.default_rng(4)
    write_log(folder / "right.csv", rewards)
    names = [f"e{i}" for i in rng.permutation(200)]
    days = np.datetime64("2026-01-01") + np.arange(200)
    found = {}
    for name, started in (("number", np.arange(200) * 7), ("day", days)):
        write_log(folder / f"{name}.csv", rewards, names, started)
        found[name] = call("monitor", folder / "improved", folder / f"{name}.csv", "--json",
                           "--order", "started")[1]  # fmt: skip
    right = json.loads(call("monitor", folder / "improved", folder / "right.csv", "--json")[1])
    assert right["order"] == "by episode_id"
    for text in found.values():
        assert json.loads(text)["since"] == right["since"]
        assert json.loads(text)["order"] == "by the first started of each"
    write_log(folder / "wrong.csv", rewards, names)
    wrong = json.loads(call("monitor", folder / "improved", folder / "wrong.csv", "--json")[1])
    assert wrong["since"] != right["since"]


def test_numbers_within_names_order_the_episodes_and_other_text_is_named(folder):
    """p10 comes after p9; names of no form are text, and the output asks for --order."""
    rewards = coins(0.2, 200, 1)
    write_log(folder / "right.csv", rewards)
    write_log(folder / "named.csv", rewards, [f"p-{i}" for i in range(200)])
    write_log(folder / "text.csv", rewards, [f"{chr(97 + 7 * i % 26)}{i}" for i in range(200)])
    right, named, text = (
        json.loads(call("monitor", folder / "improved", folder / f"{name}.csv", "--json")[1])
        for name in ("right", "named", "text")
    )
    assert named["since"] == right["since"]
    assert named["order"] == "by episode_id, by the numbers in it"
    assert "which is text ('a" in text["order"] and "give --order" in text["order"]


DAYS = [datetime.date(2025, 12, 1) + datetime.timedelta(i) for i in range(200)]


@pytest.mark.parametrize(("names", "sure"), [
    ([str(i) for i in range(200)], True),
    ([str(i - 100) for i in range(200)], True),
    ([str(10**20 + i) for i in range(200)], True),
    ([f"p{i}" for i in range(200)], True),
    ([f"{i}.5" for i in range(200)], True),
    ([day.isoformat() for day in DAYS], True),
    ([f"run {day:%Y%m%d}-{i:04}" for i, day in enumerate(DAYS)], True),
    ([f"{day:%d.%m.%Y}" for day in DAYS], False),
    ([f"{day:%m/%d/%Y}" for day in DAYS], False),
    ([f"{day:%Y}-{day.day}-{day.month}" for day in DAYS], False),
    ([f"site{i % 3}-{i}" for i in range(200)], False),
])  # fmt: skip
def test_text_names_order_episodes_only_where_their_order_is_sure(names, sure):
    """The rows are shuffled; what is not sure is said, and --order asked for."""
    shuffled = np.random.default_rng(0).permutation(200)
    table = pa.table({
        "episode_id": [names[i] for i in shuffled], "step": np.zeros(200, int),
        "state": ["x"] * 200, "action": ["a"] * 200, "reward": shuffled.astype(float),
    })  # fmt: skip
    log, how = chronological(spibb.open_log(table), None)
    assert ("may not be the order of time: give --order" in how) != sure
    assert (log.reward.tolist() == list(range(200))) == sure


def test_steps_that_are_times_order_the_episodes(folder):
    rewards = coins(0.2, 100, 1)
    write_log(folder / "right.csv", rewards)
    days = np.datetime64("2026-01-01") + np.arange(100)
    write_log(folder / "timed.csv", rewards, [f"e{99 - i}" for i in range(100)], days)
    right = json.loads(call("monitor", folder / "improved", folder / "right.csv", "--json")[1])
    timed = json.loads(call("monitor", folder / "improved", folder / "timed.csv", "--json",
                            "--step", "started")[1])  # fmt: skip
    assert timed["order"] == "by the first started of each"
    assert timed["since"] == right["since"]


def test_another_policys_actions_give_a_warning(folder):
    write_log(folder / "other.csv", coins(0.6, 100, 1))
    text = (folder / "other.csv").read_text().replace(",stay,", ",go,")
    (folder / "other.csv").write_text(text)
    code, printed = call("monitor", folder / "improved", folder / "other.csv")
    assert code == 0
    assert "Careful: the log's decisions are not as frequent as the policy's" in printed


def test_a_log_of_other_states_is_refused_in_one_line(folder):
    rows = "\n".join(f"{i},0,{i},elsewhere,go,1,1" for i in range(20))
    (folder / "other.csv").write_text(f"{HEADER}\n{rows}\n")
    done = CliRunner().invoke(
        app, ["monitor", *map(str, (folder / "improved", folder / "other.csv"))]
    )
    assert "20 of 20 decisions" in str(done.exception)


def test_no_interval_is_printed_where_its_ends_contradict_each_other(folder):
    write_log(folder / "drift.csv", np.r_[np.ones(2000, int), np.zeros(2000, int)])
    code, printed = call("monitor", folder / "improved", folder / "drift.csv", "--lowest-return", 0)
    assert code == 1, printed  # good at first, bad later: an alarm
    assert "After its first" in printed
    assert "Difference" not in printed and "returns changed over time" in printed


def test_an_episode_beyond_the_limits_is_called_by_its_name(folder):
    rewards = coins(0.6, 20, 5)
    rewards[3] = 9
    names = [f"p{20 - k}" for k in range(20)]
    write_log(folder / "beyond.csv", rewards, names=names)
    words = "monitor", folder / "improved", folder / "beyond.csv"
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert f"episode {names[3]} returns 9" in str(done.exception)
