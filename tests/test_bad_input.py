"""Bad input at the command line: one line that names the thing and the remedy, and nothing written.

The table is the catalogue: a command, what is wrong with its files, and parts of the message. Every
row must end with exit code 2 and one line, without a traceback, and leave the folder as it was.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shlex
import shutil
import sqlite3
import subprocess
import sys
import zipfile

import numpy as np
import pyarrow as pa
import pytest

from spibb.cli.app import main
from spibb.tables import write_table

LOG = """episode_id,step,state,action,reward,terminated
0,0,a,go,0,0
0,1,b,stay,1,1
1,0,a,stay,0.5,0
1,1,b,go,0,1
"""
BASELINE = "state,action,probability\na,go,0.5\na,stay,0.5\nb,go,0.25\nb,stay,0.75\n"
FOLDER = object()
"""Stands for a folder where a file is expected."""
IMPROVE = "improve log.csv --baseline baseline.csv --out out"
EVALUATE = "evaluate log.csv --policy improved --behaviour baseline.csv"
COMPARE = "compare improved baseline.csv"
MONITOR = "monitor improved log.csv --lowest-return 0 --highest-return 2"
STUDY = "experiment gridworld --runs 2 --out new --column pi-b --jobs 1"
FLY = "experiment helicopter --runs 1 --out new"
CSV = "with one line of names, separated by commas (or name the --separator)"
PARQUET = "check that it is a complete Parquet file"
JSONL = "with one JSON object per line"
CASES = []


def case(command, *parts, **files):
    """A row of the table; `files` are contents by name, with ``__`` for / and ``_`` for a point."""
    named = {name.replace("__", "/").replace("_", "."): text for name, text in files.items()}
    CASES.append(pytest.param(command, named, parts, id=f"{len(CASES)}-{command[:60]}"))


def zipped(files):
    """An archive of texts."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return content.getvalue()


def bad_log(old, new, *parts):
    case(IMPROVE, *parts, log_csv=LOG.replace(old, new))


def bad_baseline(old, new, *parts):
    case(IMPROVE, "baseline.csv", *parts, baseline_csv=BASELINE.replace(old, new))


def patched(**entries):
    """A JSON file with some entries replaced."""
    return lambda text: json.dumps(json.loads(text) | entries)


BANDIT = "--bandit --state user --action item --reward click --action-prob p"
CLICKS = "user,item,click,p\nnew,a,0,0.5\nold,b,1,0.5\nnew,b,0,0.5\n"
MESSY = LOG.replace("0,1,b,", "0,1,,") + "1,1,b,go,0,1\n"


def bandit(old, new, *parts, options="", command="improve clicks.csv --out out"):
    case(f"{command} {BANDIT} {options}", *parts, clicks_csv=CLICKS.replace(old, new))


# Bandits, missing values and copies

bandit("user,", "visitor,", "the log has no column 'user'", "its columns are 'visitor'")
bandit("new,a,0,0.5", "new,a,0,1.5", "action_prob (column 'p') in row 0 is 1.5", "in (0, 1]")
bandit("new,a,0,0.5", "new,a,0,0", "action_prob (column 'p') in row 0 is 0", "must have been")
bandit("new,a,0,0.5", "new,a,0,50", "row 0 is 50", "if these are per cent, divide by 100")
bandit("new,a,0,0.5", "new,a,0,50%", "row 0 is '50%'", "write 70% as 0.7, without the sign")
bandit("new,a,0,0.5", "new,a,,0.5", "'click' is missing in row 0", "--missing drop")
bandit("new,a,0,0.5", ",a,0,0.5", "'user' is missing in row 0", "--missing as-level or --missing")
bandit("new,a,0,0.5", "(missing),a,0,0.5", "'user' has the value '(missing)'", "or rename it")
bandit("new,a,0,0.5", "new,(missing),0,0.5", "has the value '(missing)'", "--missing as-level")
bandit("new,a,0,0.5", "new,a,soon,0.5", "reward (column 'click') in row 0 is 'soon'", "a number")
bandit("", "", "episode_id is mapped to 'user'", "leave the column out", options="--episode user")
bandit("", "", "step is mapped to 'p'", "leave the column out", options="--step p")
bandit("", "", "terminated is mapped to 'click'", options="--terminated click")
bandit("", "", "two equal rows are two decisions", options="--duplicates drop")
bandit("", "", "missing is 'fill': choose one of error, as-level, drop", options="--missing fill")
bandit("", "", "the log has no column 'usr' (did you mean 'user'?)", options="--unit usr")
bandit("", "", "column 'item' is mapped twice, to action and unit", options="--unit item")
bandit("", "", "'user,' has an empty column name", options="--unit user,")
bandit("new,a,0,0.5", ",a,0,0.5", "'user' is missing in row 0", "--missing drop",
       options="--unit user --missing as-level")  # fmt: skip
bandit("new,a,0,0.5", "new,a,soon,0.5", "reward (column 'click') in row 0 is 'soon'", "a number",
       options="--unit user")  # fmt: skip
case("inspect log.csv --unit state", "unit is mapped to 'state'", "the episode is the unit",
     "add --bandit")  # fmt: skip
case("split log.csv --unit state --out out", "unit is mapped to 'state'", "add --bandit")
case("split log.csv --bandit --unit stat --out out", "the log has no column 'stat'",
     "did you mean 'state'", "--unit")  # fmt: skip
case("split clicks.csv --bandit --unit user --out out", "only one unit (user)", "at least 2",
     clicks_csv=CLICKS.replace("old", "new"))  # fmt: skip
case("split clicks.csv --bandit --unit user --out out", "user", "missing",
     clicks_csv=CLICKS.replace("old", ""))  # fmt: skip
case(f"{IMPROVE} --mapping map.toml", "unit is 3, expected", map_toml="[columns]\nunit = 3")
case(f"improve clicks.csv --out out {BANDIT} --baseline recorded",
     "action_prob of state 'new' sums to 1.8", "add to the state what it depends on",
     clicks_csv=(CLICKS + CLICKS.split("\n", 1)[1]).replace("0.5", "0.9"))  # fmt: skip
bandit(",p\n", ",q\n", "the log has no column 'p'", "its columns are 'user'")
bandit("", "", "step is mapped to 'p'", options="--step p", command="inspect clicks.csv")
for command in ("evaluate clicks.csv --policy improved", "compare improved improved --log log.csv",
                "monitor improved clicks.csv --lowest-return 0 --highest-return 1"):  # fmt: skip
    bandit("", "", "the policy was made from episodes", "leave --bandit out", command=command)
case("improve log.csv --out out --missing", "'--missing' requires an argument")
case(f"{IMPROVE} --missing nothing", "missing is 'nothing': choose one of error, as-level, drop")
case(f"{IMPROVE} --duplicates first", "duplicates is 'first': choose one of error, drop")
case(f"{IMPROVE} --missing as-level", "'reward' is missing in row 1", "episode '0'",
     "--missing drop", log_csv=LOG.replace("0,1,b,stay,1,1", "0,1,b,stay,,1"))  # fmt: skip
case(f"{IMPROVE} --duplicates drop", "row 2 repeats step 1 of its episode with other values",
     "episode '0'", log_csv=LOG.replace("1,0,a", "0,1,b,go,1,1\n1,0,a"))  # fmt: skip
case(f"{IMPROVE} --missing drop", "every episode has a missing value", "fill them",
     log_csv=LOG.replace(",b,", ",,"))  # fmt: skip
case("improve log.csv --out out --baseline recorded", "it has no action_prob", "give the policy")
case(
    "improve log.csv --out out --baseline recordet",
    "baseline is 'recordet', and there is no such file (did you mean 'recorded'?)",
)
case("inspect log.csv", "'state' is missing in row 1 (1 such row), episode '0'",
     "try: spibb inspect log.csv --missing as-level --duplicates drop", log_csv=MESSY)  # fmt: skip
case("inspect clicks.csv --state user --action item --reward click", "or add --bandit",
     "try: spibb inspect clicks.csv --state user --action item --reward click --bandit",
     clicks_csv=CLICKS)  # fmt: skip
case(f"{IMPROVE} --mapping map.toml", "map.toml", "missing is 'x', expected one of error",
     map_toml="missing = 'x'")  # fmt: skip
case(f"{IMPROVE} --mapping map.toml", "bandit is 1, expected true or false", map_toml="bandit = 1")

# The command line

case("improv", "No such command 'improv'", "improve", "spibb --help")
case("--wrong", "No such option: --wrong")
case("improve", "Missing argument", "spibb improve --help")
case("improve log.csv", "Missing option '--out'")
case("improve log.csv --out", "'--out' requires an argument")
case("improve log.csv extra --out o", "unexpected extra argument", "extra")
case("improve log.csv --out o --discoun 3", "--discoun", "--discount")
case("improve log.csv --out o --force=3", "--force")
for option in ("--discount", "--delta", "--v-max"):
    case(f"improve log.csv --out o {option} high", f"Invalid value for '{option}'", "number")
for option in ("--seed x", "--seed -1", "--seed 1.5"):
    value = option.split()[1]
    case(f"improve log.csv --out o {option}", "Invalid value for '--seed'", f", not '{value}' (see")
case("improve log.csv --out o --seed=-1", "Invalid value for '--seed'", ", not '-1' (see")
for text in ("act improved", "act improved --state", "act", "evaluate log.csv", "inspect"):
    case(text, "spibb")
case("evaluate log.csv --policy improved --delta x", "Invalid value for '--delta'")
case("compare improved", "Missing argument 'B'")
case("inspect log.csv log.csv", "unexpected extra argument")
case("experiment", "Missing argument")
case("experiment gridworld --runs 2", "Missing option '--out'")
case("experiment gridworld --out o", "gridworld has no default number", "give --runs")
case("experiment assurance --out o --families taxi,atari", "family is 'atari'")
case("experiment gridworld --runs x --out o", "Invalid value for '--runs'")
case("experiment helicopter --runs 2 --out o --seeds 0", "Invalid value for '--seeds'")
case("experiment helicopter --runs 2 --out o --episodes 0", "Invalid value for '--episodes'")
case("figures", "Missing argument")
case("claims study study", "'study' is given twice")
case("demo --seed -1", "Invalid value for '--seed'")
case("demo --episodes 0", "Invalid value for '--episodes'")
case("demo --episodes 10000000000", "Invalid value for '--episodes'")
case("demo --n-wedge x", "Invalid value for '--n-wedge'")
case("demo --n-wedge nan", "n_wedge is nan, expected a number in [0, inf]")
case("demo --out log.csv", "'log.csv' is a file, name a folder")

# Numbers and names

for value in ("1", "1.5", "-0.1", "nan", "inf"):
    message = f"discount is {float(value)}, expected a number in [0, 1)"
    for command in (IMPROVE, EVALUATE, f"{COMPARE} --log log.csv"):
        case(f"{command} --discount {value}", message)
for value in ("0", "1", "-0.5", "2", "nan"):
    for command in (IMPROVE, EVALUATE):
        case(
            f"{command} --delta {value}", f"delta is {float(value)}, expected a number in (0, 0.5]"
        )
for command in (IMPROVE, EVALUATE, MONITOR):
    case(f"{command} --delta 0.95", "expected a number in (0, 0.5]", "level of 0.95 give 0.05")
for value in ("0", "-1", "inf", "nan"):
    case(f"{IMPROVE} --v-max {value}", f"v_max is {float(value)}, expected a number in (0, inf)")
for value in ("nan", "inf", "-inf"):
    case(f"{EVALUATE} --lowest-return {value}", f"lowest_return is {value}, expected a number")
for value in ("-1", "-inf", "nan"):
    for name in ("pi-b", "pi-leq-b", "model-free"):
        message = f"n_wedge is {value}, expected a number in [0, inf]"
        case(f"{IMPROVE} --algorithm {name} --n-wedge={value}", message)
case(f"{IMPROVE} --n-wedge=many", "n_wedge is 'many', expected a number, or 'auto'")
case(f"{IMPROVE} --n-wedge=", "n_wedge is '', expected a number, or 'auto'")
case(f"{IMPROVE} --n-wedge=true", "n_wedge is True, expected a number")
for wrong, right in (("pib", "pi-b"), ("Pi-B", "pi-b"), ("basicrl", "basic-rl")):
    message = f"algorithm is {wrong!r} (did you mean {right!r}?): choose one of "
    case(f"{IMPROVE} --algorithm {wrong}", message)
case(f"{IMPROVE} --algorithm zzz", "algorithm is 'zzz': choose one of pi-b")
case(f"{IMPROVE} --algorithm ''", "algorithm is '': choose one of pi-b")
for name in ("nosuch.Class", "os.", ".", "..x", "'a b.c'"):
    case(f"{IMPROVE} --algorithm {name}", "cannot be imported", "write module.Class")
for name in ("os.path", "json.JSONDecoder"):
    case(f"{IMPROVE} --algorithm {name}", f"{name!r} is not an algorithm")
for name in ("basic-rl", "hcpi", "ramdp", "robust-mdp", "arbrm", "model-free", "auto", "pi-leq-b"):
    case(f"{IMPROVE} --algorithm {name} --option wrong=1", f"{name} has no option 'wrong'")
for name, option, message in (
    ("pi-b", "n_wedge", "--option 'n_wedge' has no '=': write name=value"),
    ("pi-b", "n_wege=3", "pi-b has no option 'n_wege' (did you mean 'n_wedge'?)"),
    ("pi-b", "=3", "pi-b has no option ''"),
    ("pi-b", "name=x", "pi-b has no option 'name'"),
    ("pi-b", "unseen=zeros", "unseen is 'zeros' (did you mean 'zero'?): choose one of"),
    ("pi-b", "unseen=3", "unseen is 3: choose one of zero"),
    ("pi-b", "method=x", "method is 'x': choose one of"),
    ("basic-rl", "n_wedge=5", "basic-rl has no option 'n_wedge': its options are unseen, method"),
    ("hcpi", "train_share=2", "train_share is 2, expected a number in (0, 1)"),
    ("hcpi", "updates=0", "updates is 0, expected a whole number of at least 1"),
    ("hcpi", "estimator=x", "estimator is 'x': choose one of is, wis"),
    ("hcpi", "bound=1", "bound is 1: choose one of bernstein"),
    ("hcpi", "step_size=0", "step_size is 0, expected a number in (0, 1]"),
    ("hcpi", "seed=-1", "seed is -1, expected a whole number of at least 0"),
    ("hcpi", "trainer=basic-rl", "trainer is a str, expected an Algorithm"),
    ("hcpi", "behaviour=x", "behaviour is 'x': choose one of"),
    ("hcpi", "lowest_return=x", "lowest_return is 'x', expected a number"),
    ("hcpi", "baseline_value=x", "baseline_value is 'x', expected a number"),
    ("ramdp", "kappa=-1", "kappa is -1, expected a number in [0, inf)"),
    ("ramdp", "safety_test=3", "safety_test is 3, expected true or false"),
    ("ramdp", "r_max=-1", "r_max is -1, expected a number"),
    ("robust-mdp", "safety_test=maybe", "safety_test is 'maybe', expected true or false"),
    ("robust-mdp", "delta=2", "delta is 2, expected a number in (0, 1]"),
    ("robust-mdp", "method=3", "method is 3: choose one of"),
    ("arbrm", "delta=x", "delta is 'x', expected a number"),
    ("model-free", "tolerance=0", "tolerance is 0, expected a number in (0, inf)"),
    ("model-free", "max_sweeps=inf", "max_sweeps is inf, expected a whole number of at least 1"),
    ("model-free", "max_sweeps=nan", "max_sweeps is nan, expected a whole number of at least 1"),
    ("model-free", "n_wedge=auto", "n_wedge is 'auto', expected a number"),
    ("auto", "draws=0", "draws is 0, expected a whole number"),
    ("auto", "zeta=-1", "zeta is -1, expected a number"),
    ("auto", "seed=x", "seed is 'x', expected a whole number"),
    ("auto", "n_wedges=5", "n_wedges is 5, expected one or more: write (5, 10, 20)"),
    ("auto", "kinds=pi-b", "kinds is 'pi-b', expected one or more"),
):
    case(f"{IMPROVE} --algorithm {name} --option {option}", message)

# Columns and bins

for option in ("state", "action", "reward", "episode", "step", "next-state", "terminated",
               "truncated", "action-prob"):  # fmt: skip
    case(f"{IMPROVE} --{option} nosuch", "the log has no column 'nosuch'", "its columns are")
case(f"{IMPROVE} --state ward", "no column 'ward' (did you mean 'reward'?)")
case(f"{IMPROVE} --state state,", "'state,' has an empty column name: write ward,severity")
case(f"{IMPROVE} --state ''", "'' has an empty column name")
case(f"{IMPROVE} --state state,state", "column 'state' is mapped twice")
case(f"{IMPROVE} --reward state", "column 'state' is mapped twice, to state and reward")
for text in ("age", "state:x", "state::", "state:1e3"):
    case(f"{IMPROVE} --bin {text}", f"--bin {text!r} is not understood: write age:10")
case(f"{IMPROVE} --bin age:10", "bins are given for 'age', which is not a column of the state")
case(f"{IMPROVE} --bin state:1", "bins of 'state' are 1, expected a number of quantiles")
case(f"{IMPROVE} --bin state:5,3", "bin edges [5.0, 3.0] are not increasing finite numbers")
case(f"{IMPROVE} --bin state:nan,", "bin edges [nan] are not increasing")

# Files of a log

for name in ("missing.csv", "missing.parquet", "log.csv/x.csv"):
    case(f"improve {name} --out out", f"cannot read {name!r}: there is no such file; check the")
case("improve nosuch/*.csv --out out", "no file matches 'nosuch/*.csv'")
case("improve empty --out out", "the folder 'empty' holds no file whose name ends in", empty=FOLDER)
case("improve x.json --out out", "the log has no column 'episode_id'", x_json="{}")
case("improve x.txt --out out", "cannot read 'x.txt': the name must end in .csv", x_txt="{}")
case("improve x.txt --out out", "rename delimited text to .csv", x_txt="a\tb\n")
case("improve plain --out out", "the name must end in .csv", plain="x")
case("improve x.csv --out out", "it has one only, '# made today'",
     "remove lines above them", x_csv="# made today\n" + LOG)  # fmt: skip
case("improve . --out out", "mixes file formats")
# Other files, other text, addresses
ZIP = zipped({"log.csv": LOG, "more.csv": LOG})
BOOK = "improve x.xlsx --out out"
case(
    "improve x.zip --out out",
    "'x.zip' holds 2 files ('log.csv', 'more.csv')",
    "x.zip#log.csv",
    x_zip=ZIP,
)
case("improve x.zip --table no.csv --out out", "'x.zip' holds no file 'no.csv'", x_zip=ZIP)
case("improve x.zip --out out", "'x.zip' holds no file", x_zip=zipped({}))
case("improve x.zip --out out", "which is not a table", x_zip=zipped({"evil.exe": "x"}))
case("improve x.zip --out out", "which is not a table", x_zip=zipped({"inner.zip": "x"}))
case("improve x.zip --out out", "cannot read 'x.zip'", "a complete .zip file", x_zip="PK")
case(BOOK, "cannot read 'x.xlsx'", "check that it is an Excel workbook", x_xlsx="PK")
case(BOOK, "cannot read 'x.xlsx'", x_xlsx=zipped({"a.xml": "<"}))
case("improve x.feather --out out", "cannot read 'x.feather'", "Feather", x_feather="ARROW1")
case("improve x.h5 --out out", "cannot read 'x.h5'", "check that it is an HDF5 file", x_h5="HDF")
case("improve x.csv.gz --out out", "cannot read 'x.csv.gz'", **{"x_csv_gz": LOG})
case("improve x.csv.bz2 --out out", "cannot read 'x.csv.bz2'", **{"x_csv_bz2": LOG})
case("improve x.json --out out", "cannot read 'x.json'", "an array of objects", x_json="[{")
case("improve x.db --out out", "cannot read 'x.db'", x_db="SQLite format 3\0 and no more")
case("improve x.duckdb --table t --out out", "cannot read 'x.duckdb#t'", x_duckdb="no database")
case("improve log.csv --encoding klingon --out out", "encoding 'klingon' is not known")
case("improve log.csv --encoding utf-16 --out out", "cannot read 'log.csv' as utf-16")
case("improve log.csv --decimal ; --out out", "decimal is ';': choose one of ., ,")
case("improve log.csv --decimal , --separator , --out out", "both ','")
case("improve log.csv --decimal , --out out", "reward in row 2", "is 0.5, expected a number")
case("improve log.csv --separator ab --out out", "separator is 'ab', expected one character")
case("improve log.csv --separator ; --out out", "cannot read 'log.csv'", "separator")
case("improve log.csv --table t --out out", "'log.csv' is one table, not a database")
case("improve log.csv --query 'SELECT 1' --out out", "'log.csv' is one table, not a database")
case("improve log.csv --table t --query 'SELECT 1' --out out", "table and query are both given")
case(f"{IMPROVE} --baseline-table b", "--baseline and --baseline-table are both given")
case("improve log.csv --baseline-table b --out out", "'log.csv' is one table, not a database")
case("compare baseline.csv baseline.csv --table t", "--table and --query apply to the log")
case("improve oracle://a:hidden@h/d --out out", "oracle://***@h/d", "an address begins with")
case("improve http://127.0.0.1:1/log.csv --out out", "cannot read", "check the address")
case("improve http://127.0.0.1:1/log --out out", "the name before any ? must end like")
case(
    "improve minari:no/such-v0 --out out", "the Minari dataset 'no/such-v0' is not on this machine"
)
case(
    "improve postgresql://a:$NO_SUCH_NAME@h/d --table t --out out", "NO_SUCH_NAME, which is not set"
)
case("improve sqlite:///missing.db --table t --out out", "cannot read 'missing.db'", "no such file")
NOISE = {
    "noise": bytes(range(256)) * 8, "zeros": bytes(1000), "other text": "é".encode("latin-1") * 99,
    "UTF-16": LOG.encode("utf-16"), "picture": b"\x89PNG\r\n\x1a\n" + bytes(100),
    "archive": b"PK\x03\x04" + bytes(50), "web page": b"<html><body>404</body></html>",
}  # fmt: skip
for content in NOISE.values():
    case("improve log.parquet --out out", "cannot read 'log.parquet' (", PARQUET,
         log_parquet=content)  # fmt: skip
    case(IMPROVE, "log", log_csv=content)
    case(IMPROVE, "baseline.csv", baseline_csv=content)
for name in ("csv", "parquet", "jsonl"):
    case(f"improve log.{name} --out out", f"cannot read 'log.{name}': the file is empty",
         **{f"log_{name}": ""})  # fmt: skip
case(IMPROVE, "cannot read 'baseline.csv': the file is empty; check what", baseline_csv="")
case("improve log.csv --out out", "the log is empty", log_csv=LOG.splitlines()[0] + "\n")
for line in ("0,1,b", "0,1,b,go,1,1,1,1", '0,1,"b,go,1,1'):
    case("improve log.csv --out out", "its lines have different numbers of cells", CSV,
         log_csv="\n".join([*LOG.splitlines()[:2], line]))  # fmt: skip
for text in ('{"a":1}\n{"a":\n', "x\n", "{"):
    case("improve log.jsonl --out out", "cannot read 'log.jsonl'", JSONL, log_jsonl=text)
case("inspect log.jsonl", "reward is of mixed types or nested in column 'reward', expected numbers",
     log_jsonl="".join(
         f'{{"episode_id": 1, "step": {t}, "state": "a", "action": "x", "reward": {reward}}}\n'
         for t, reward in enumerate(("0.5", '"abc"'))
     ))  # fmt: skip
case("improve log.jsonl --out out", "the log has no column 'episode_id'", log_jsonl="[1]\n")
for name in LOG.splitlines()[0].split(","):
    bad_log(name, f"{name}x", f"the log has no column {name!r} (did you mean '{name}x'?)")
ROW = "0,1,b,stay,1,1"
for new, *parts in (
    ("0,1,b,stay,,1", "reward", "missing in row 1"),
    ("0,1,b,stay,much,1", "reward in row 1 is 'much'"),
    ("0,1,b,stay,nan,1", "reward", "nan"), ("0,1,b,stay,inf,1", "reward", "inf"),
    ("0,1,,stay,1,1", "state", "missing in row 1"), ("0,1,b,,1,1", "action", "missing in row 1"),
    (",1,b,stay,1,1", "episode_id", "missing in row 1"), ("0,,b,stay,1,1", "step", "missing"),
    ("0,1,b,stay,1,", "terminated", "missing in row 1"), ("0,1,b,stay,1,2", "terminated", "0/1"),
    ("0,1,b,stay,1,maybe", "terminated"), ("0,0,b,stay,1,1", "repeats step 0"),
    ("0,first,b,stay,1,1", "step in row 1 is 'first'"),
):  # fmt: skip
    bad_log(ROW, new, *parts)
bad_log("1,1,b,go", "1.0,1,b,go", "episode_id in row 3 is 1.0, expected the number without .0",
        "they would be two episodes; write all of them alike (1 such row)")  # fmt: skip
bad_log("0,0,a,go,0,0", "0,0,a,go,0,1", "row 0 is terminated or truncated, but its episode goes on")
bad_log(",b,", ",0.5,", "state")
bad_log(",a,", ",c,", "baseline.csv' has no row for state 'c' (1 of the log's 2 states): add")

# The baseline

for old, new, *parts in (
    ("b,go,0.25", "b,go,-0.25", "row 'b', action 'go': probability is -0.25", "fix that entry"),
    ("b,stay,0.75", "b,stay,1.75", "probability is 1.75, expected a number in [0, 1]"),
    (
        "b,stay,0.75",
        "b,stay,75",
        "probability is 75, expected a number in [0, 1]: fix that entry; "
        "if these are per cent, divide by 100",
    ),
    ("b,stay,0.75", "b,stay,nan", "action 'stay': probability is nan"),
    ("b,stay,0.75", "b,stay,inf", "probability is inf"),
    ("b,stay,0.75", "b,stay,", "action 'stay': probability is nan"),
    ("b,stay,0.75", "b,stay,0.73", "row 'b' sums to 0.98, expected 1: renormalise it or check"),
    ("b,stay,0.75", "b,stay,1", "row 'b' sums to 1.25"),
    ("b,stay,0.75", "b,go,0.75", "lists state 'b', action 'go' more than once: keep one"),
    ("b,stay,0.75", ",stay,0.75", "column 'state' has 1 empty entries"),
    ("b,stay,0.75", "b,,0.75", "column 'action' has 1 empty entries"),
    ("b,stay,0.75", "b,stay,lots", "column 'probability' holds something other than numbers"),
    ("b,go,0.25\nb,stay,0.75\n", "", "has no row for state 'b' (1 of the log's 2 states)"),
    ("state", "stat", "stat"),
    ("action", "deed", "no column 'action'"),
    ("probability", "probabilities", "(did you mean 'probabilities'?)", "rename one"),
    ("0.25", "0,25", "cannot read"),
):
    bad_baseline(old, new, *parts)
case(IMPROVE, "is empty: it needs one row per pair played",
     baseline_csv="state,action,probability\n")  # fmt: skip
case(IMPROVE, "column 'state' is not of the type that the log has (int): write the labels as",
     log_csv=LOG.replace(",a,", ",1,").replace(",b,", ",2,"))  # fmt: skip
for text in ("", "x", "-1", "nan", "inf"):
    case(f"improve log.csv --out out --baseline estimate:{text}", "estimate:0.5")
case("improve log.csv --out out --baseline missing.csv", "'missing.csv': there is no such file")
case("improve log.csv --out out --baseline study", "policy.parquet': there is no such file")
case("improve log.csv --out out --baseline log.csv", "'log.csv' has no column 'probability'")
case("improve log.csv --out out --baseline improved/report.html", "the name must end in .csv")

# Where the result goes

case(IMPROVE, "output folder 'out' is not empty: name another, or overwrite with --force",
     out__old_txt="precious")  # fmt: skip
for command in (IMPROVE, f"{IMPROVE} --force"):
    case(command, "output 'out': 'out' is a file, name a folder", out="precious")
case("improve log.csv --out log.csv/deep", "log.csv' is a file, name a folder")
case(f"improve log.csv --out {'x' * 300}", "File name too long")

# Mapping files

for text, *parts in (
    ("[columns", "is not TOML"), ("columns = 3", "columns is 3, expected a table: fix it"),
    ("[colums]", "unknown entry 'colums' (did you mean 'columns'?)"),
    ("[columns]\nstate = 3", "columns.state is 3, expected text or a list"),
    ("[columns]\nstate = []", "columns.state is [], expected text or a list that is not empty"),
    ("[columns]\nstate = [1]", "columns.state[0] is 1, expected text"),
    ("[columns]\nstaet = 'x'", "unknown entry 'staet' (did you mean 'state'?)"),
    ("[bins]\nage = 'x'", "bins.age is 'x', expected a whole number or a list"),
    ("[bins]\nage = true", "bins.age is True, expected"), ("[bins]\nage = []", "bins.age is []"),
    ("[bins]\nage = [1, nan]", "bins.age[1] is nan, expected a finite number"),
    ("[bins.age]\nx = 1", "bins.age is {'x': 1}"), ("x = 2020-01-01", "unknown entry 'x'"),
    ("a = " + "[" * 5000, "is not TOML"), (b"\xff\xfe[columns]", "not text in UTF-8"),
):  # fmt: skip
    case(f"{IMPROVE} --mapping m.toml", "mapping 'm.toml'", *parts, m_toml=text)
case(f"{IMPROVE} --mapping m.toml", "bins are given for 'nosuch'", m_toml="[bins]\nnosuch = 3")
case(f"{IMPROVE} --mapping missing.toml", "cannot read mapping 'missing.toml': there is no such")
case("inspect log.csv --mapping m.toml", "it is a folder, name a file", m_toml=FOLDER)

# Evaluate, inspect, act, compare

case("evaluate log.csv --policy improved", "action_prob")
case("evaluate log.csv --policy missing.csv", "there is no such file")
case("evaluate missing.csv --policy improved", "'missing.csv': there is no such file")
case("evaluate log.csv --policy log.csv", "'log.csv' has no column 'probability'")
case("evaluate log.csv --policy improved --behaviour missing.csv", "there is no such file")
case(EVALUATE, "no row for state 'z'", log_csv=LOG.replace(",a,", ",z,"))
case("inspect missing.csv", "there is no such file")
case("inspect log.csv --state x", "the log has no column 'x'")
case("inspect baseline.csv", "the log has no column 'episode_id'")
case("act improved --state c", "state 'c' is not in the policy, which knows 2 states such as")
case("act improved --state ward=3", "state 'ward=3' is not in the policy")
case("act improved --state ''", "'state' is missing: give a value")
case("act improved --state a --state b", "--state 'a' is not understood: write column=value")
case("act missing --state a", "cannot read 'missing'")
case("act missing.csv --state a", "cannot read 'missing.csv': there is no such file")
case("act empty --state a", "cannot read", empty=FOLDER)
case("act improved/report.html --state a", "must end in .csv, ")
case("act improved --state a", "policy.parquet", improved__policy_parquet="x")
case("act improved --state a", "policy.parquet", improved__policy_parquet=None)
case("act improved/policy.csv --state a", "policy.csv", improved__policy_csv=BASELINE)
case("compare improved missing.csv", "there is no such file")
case("compare improved log.csv", "'log.csv' has no column 'probability'")
case(f"{COMPARE} --log missing.csv", "there is no such file")
case(f"{COMPARE} --log baseline.csv", "the log has no column 'episode_id'")
case(f"{COMPARE} --log log.csv", "no row for state 'z'", log_csv=LOG.replace(",a,", ",z,"))

# policy.json

for content in ("", "{", "[" * 100_000):
    case("act p.csv --state a", "policy.json' is not JSON", p_csv=BASELINE, policy_json=content)
for content, message in (
    ("[]", "is [], expected a table"), ("3", "is 3, expected a table"), ("null", "is None"),
    ("{}", "has no 'format', expected 1"), ('{"format": 1}', "has no 'state'"),
    ('{"format": 1e999}', "format is inf"), ('{"format": true}', "format is True, expected 1"),
    (b"\xff\xfe", "not text in UTF-8"),
):  # fmt: skip
    case("act p.csv --state a", "policy.json'", message, p_csv=BASELINE, policy_json=content)
for entries, *message in (
    ({"format": 99}, "format is 99, expected 1: write the policy again"),
    ({"format": "1"}, "format is '1', expected 1"), ({"state": []}, "state is []"),
    ({"state": "x"}, "state is 'x', expected a list"), ({"state": [3]}, "state[0] is 3"),
    ({"action": []}, "action is []"), ({"bins": [1]}, "bins is [1], expected a table"),
    ({"bins": {"a": []}}, "bins.a is []"), ({"bins": {"a": ["x"]}}, "bins.a[0] is 'x'"),
    ({"files": 3}, "files is 3, expected a table"), ({"origin": 3}, "origin is 3"),
    ({"state": ["\ud800"]}, "state[0] is '\\ud800', expected text"),
    ({"reading": 3}, "reading is 3, expected a table"),
    ({"reading": {"missing": "maybe"}}, "reading.missing is 'maybe'"),
    ({"reading": {"columns": {"reward": []}}}, "reading.columns.reward is []"),
    ({"reading": {"colour": 1}}, "reading", "colour"),
):  # fmt: skip
    copy = {"copy__policy_json": lambda text, new=entries: patched(**new)(text)}
    case("act copy/policy.csv --state a", "policy.json'", *message, **copy)

# Decisions for many cases, and a policy as one file

ACT = "act improved --cases cases.csv --out new.csv"
GOOD_CASES = {"cases_csv": "state,id\na,1\nb,2\n"}
case("act improved", "neither --state nor --cases is given")
case("act improved --state a --decimal ,", "--decimal is for --cases, which is not given")
case(f"{ACT} --decimal ;", "decimal is ';'", **GOOD_CASES)
case("act improved --cases log.csv", "--cases lacks --out: write --cases FILE --out FILE")
case("act improved --state a --cases log.csv --out new.csv", "--state and --cases ask for")
for option in ("--out new.csv", "--seed 3", "--deterministic", "--unseen empty", "--force",
               "--encoding latin-1", "--separator ;"):  # fmt: skip
    case(f"act improved --state a {option}", "is for --cases, which is not given: leave it out")
case(f"{ACT} --seed x", "Invalid value for '--seed'", **GOOD_CASES)
case(f"{ACT} --seed -1", "Invalid value for '--seed'", **GOOD_CASES)
case(f"{ACT} --unseen skip", "unseen is 'skip': choose one of error, empty", **GOOD_CASES)
case(ACT, "cannot read 'cases.csv': there is no such file")
case(ACT, "cannot read 'cases.csv': the file is empty", cases_csv="")
case(ACT, "the cases have no column 'state' (did you mean 'stat'?)", cases_csv="stat\na\n")
case(ACT, "2 cases are in states that are not in the policy: row 1 ('z'), row 2 (None); the log",
     cases_csv="state,id\na,1\nz,2\n,3\n")  # fmt: skip
case(ACT, "has the column 'state' more than once", cases_csv="state,state\na,b\n")
case(f"{ACT} --encoding klingon", "klingon", **GOOD_CASES)
case(f"{ACT} --separator ab", "separator is 'ab', expected one character", **GOOD_CASES)
case("split log.csv", "the log has the column 'state' more than once",
     log_csv=LOG.replace("reward", "state"))  # fmt: skip
case(ACT, "has a column 'decision' already: rename or drop it", cases_csv="state,Decision\na,1\n")
case(ACT.replace("new.csv", "log.csv"), "'log.csv' already exists: name another", **GOOD_CASES)
case(ACT.replace("new.csv", "new.txt"), "the name must end in .csv or .parquet", **GOOD_CASES)
case(ACT.replace("new.csv", "improved"), "the name must end in .csv or .parquet", **GOOD_CASES)
case(ACT.replace("new.csv", "no/new.csv"), "there is no folder 'no'; create it first", **GOOD_CASES)
case(f"{ACT} --force", "cannot write 'new.csv': it is a folder", new_csv=FOLDER, **GOOD_CASES)
for content in NOISE.values():
    case("act p.spibb --state a", "p.spibb", p_spibb=content)
for content, message in (
    ("", "is not JSON"), ("{}", "has no 'spibb_policy', expected 1: export the policy again"),
    ('{"spibb_policy": 2}', "spibb_policy is 2, expected 1"), ('{"spibb_policy": 1}', "has no"),
):  # fmt: skip
    case("act p.spibb --state a", "p.spibb'", message, p_spibb=content)
case("act missing.spibb --state a", "'missing.spibb': there is no such file")
case("compare improved missing.spibb", "'missing.spibb': there is no such file")

# Two files of one log

for text, *parts in (
    ("split", "Missing argument"), ("split missing.csv", "'missing.csv': there is no such file"),
    ("split log.csv --share x", "Invalid value for '--share'"),
    ("split log.csv --seed -1", "Invalid value for '--seed'"),
    ("split log.csv --out log.csv", "'log.csv' is a file, name a folder"),
    ("split log.csv --out improved", "output folder 'improved' is not empty: name another"),
    ("split log.csv --episode nosuch", "the log has no column 'nosuch': its columns are"),
    ("split log.csv --episode step,state", "expected one column: name one"),
    ("split baseline.csv", "the log has no column 'episode_id'", "with --episode"),
    ("split log.parquet", "the log has only one episode, and a split needs at least 2"),
):  # fmt: skip
    case(text, *parts)
for value in ("0", "1", "-0.5", "nan"):
    case(f"split log.csv --share {value}", f"share is {float(value)}, expected a number in (0, 1)")
case("split log.csv", "episode_id is missing in row 1", log_csv=LOG.replace("0,1,b", ",1,b"))
case("evaluate log.csv --policy improved --behaviour estimate:x", "write estimate:0.5")
case("evaluate log.csv --policy improved --behaviour estimate:-1",
     "smoothing is -1, expected a number in [0, inf): write estimate:0.5")  # fmt: skip
case("evaluate log.csv --policy improved --behaviour estimate:x", "has no number after the colon")
case("evaluate log.csv --policy improved", "no column 'action_prob'", "--behaviour FILE",
     "--behaviour estimate", "--action-prob")  # fmt: skip

# Policies for use elsewhere

for text, *parts in (
    ("export improved", "Missing option '--out'"),
    ("export improved --as pdf --out x", "kind (--as) is 'pdf': choose one of file, sql, rules"),
    (
        "export improved --out x.txt",
        "cannot write 'x.txt': the name must end in .spibb; write x.spibb",
    ),
    ("export missing --out x.spibb", "cannot read 'missing'"),
    ("export improved --as sql --out log.csv", "'log.csv' already exists: name another"),
    ("export improved --as sql --out improved", "it is a folder, name a file"),
    ("export improved --as rules --out no/x.txt", "there is no folder 'no'; create it first"),
    ("export improved --as sql --out x --dialect oracle", "dialect is 'oracle': choose one of"),
    ("export improved --as tree --out x", "a state is one name here (state), and a tree asks"),
    ("export improved --as tree --out x --depth 0", "depth is 0, expected a whole number"),
    ("export improved --as tree --out x --depth x", "Invalid value for '--depth'"),
    ("export improved --as rules --out x --depth 3", "depth is for tree, and not for rules"),
    ("export improved --as rules --out x --dialect duckdb", "dialect is for sql, and not for"),
    ("export improved --as sql --out x --table ''", "table is empty: give a name, or leave it"),
    ("export improved --as sql --out x --uniform ''", "uniform is empty: give a name"),
    ("export improved --as tree --out x --table t", "table is for sql, and not for tree"),
    ("export improved --as tree --out x --deterministic", "deterministic is for sql and rules"),
    ("export improved --out x.spibb --uniform u", "uniform is for sql, and not for file"),
):  # fmt: skip
    case(text, *parts)

# Studies

for text, *parts in (
    ("experiment grid --runs 2 --out new", "study is 'grid' (did you mean 'gridworld'?)"),
    ("experiment foo --runs 2 --out new", "assurance, gridworld-baselines, paper"),
    ("experiment gridworld --runs 0 --out new", "runs is 0, expected a whole number"),
    (f"{STUDY} --jobs 0", "jobs is 0, expected a whole number"),
    (f"{STUDY} --grid x", "grid is 'x': choose one of main"),
    (f"{STUDY} --column x", "algorithm is 'x': choose one of"),
    (f"{STUDY} --column pi-b:x=1", "pi-b has no option 'x'"),
    (f"{STUDY} --column pi-b:n_wedge", "'n_wedge' has no '=': write option=value"),
    (f"{STUDY} --column pi-b:n_wedge=-1", "n_wedge is -1"),
    (f"{STUDY} --column pi-b", "column 'pi-b' is listed twice: list it once"),
    (f"{STUDY} --also x", "algorithm is 'x'"),
    (f"{STUDY} --sizes x", "'x' is not a list of numbers: write 10,50,200"),
    (f"{STUDY} --sizes ,", "',' is not a list of numbers"),
    (f"{STUDY} --sizes 0", "size is 0.0, expected a whole number"),
    (f"{STUDY} --sizes 1.5", "size is 1.5"), (f"{STUDY} --sizes=-1", "size is -1.0"),
    (f"{STUDY} --sizes nan", "size is nan"), (f"{STUDY} --sizes inf", "size is inf"),
    (f"{STUDY} --etas 0.5", "gridworld has no eta"),
    (f"{STUDY} --noises 1", "trains no networks: leave --noises out"),
    (f"{STUDY} --passes 3", "leave --passes out"), (f"{STUDY} --seeds 3", "leave --seeds out"),
    ("experiment random-mdps --runs 1 --out new --etas 2", "eta is 2.0, expected a number"),
    ("experiment random-mdps --runs 1 --out new --etas nan", "eta is nan"),
    (f"{FLY} --passes 0", "passes is 0"),
    (f"{FLY} --noises=-1", "noise is -1.0"),
    (f"{FLY} --column pi-b", "'pi-b' is not for helicopter"),
    (f"{FLY} --baseline no.npz", "cannot read baseline 'no.npz': No such file"),
    (f"{FLY} --baseline .", "cannot read baseline '.': Is a directory"),
    (f"{FLY} --baseline log.csv", "baseline 'log.csv' cannot be read"),
    ("experiment random-mdps --runs 1 --out new --baseline x", "has no named baselines"),
    ("experiment gridworld --runs 2 --out log.csv", "log.csv"),
    ("experiment gridworld --runs 2 --out improved", "improved"),
    ("experiment gridworld --runs 2 --out study --column pi-b --sizes 20", "another experiment"),
):  # fmt: skip
    case(text, *parts)
for command in ("figures", "claims"):
    case(f"{command} missing", "'missing' holds no experiment: there is no experiment.toml")
    case(f"{command} log.csv", "'log.csv' holds no experiment")
    case(f"{command} improved", "'improved' holds no experiment")
WORLD, PI_B = 'study = "gridworld"\n', 'columns = ["pi-b"]\n'
GOOD = f"{WORLD}{PI_B}sizes = [10]\n"
FLIGHT = 'study = "helicopter"\ncolumns = ["dqn"]\nsizes = [10]\n'
for text, *parts in (
    ("", "has no 'study', expected one of gridworld"), ("x", "is not TOML"),
    ("study = 3", "study is 3, expected one of"), ('study = "x"', "study is 'x'"),
    (WORLD, "has no 'sizes'"), (f"{WORLD}{PI_B}sizes = []", "sizes is []"),
    (f"{WORLD}{PI_B}sizes = 3", "sizes is 3, expected a list"),
    (f"{WORLD}{PI_B}sizes = [0]", "sizes[0] is 0, expected a whole number of at least 1"),
    (f"{WORLD}{PI_B}sizes = [1.5]", "sizes[0] is 1.5"),
    (f"{WORLD}{PI_B}sizes = ['x']", "sizes[0] is 'x'"),
    (f"{WORLD}sizes = [1]\ncolumns = 'pi-b'", "columns is 'pi-b', expected a list"),
    (f"{WORLD}sizes = [1]\ncolumns = [3]", "columns[0] is 3, expected text"),
    (f"{WORLD}sizes = [1]\ncolumns = ['x']", "algorithm is 'x'"),
    (f"{GOOD}seed = 'x'", "seed is 'x', expected a whole number of at least 0"),
    (f"{GOOD}seed = -1", "seed is -1"), (f"{GOOD}max_steps = 0", "max_steps is 0"),
    (f"{GOOD}max_steps = true", "max_steps is True, expected a whole number"),
    (f"{GOOD}etas = 3", "etas is 3, expected a list"), (f"{GOOD}etas = [2]", "etas[0] is 2"),
    (f"{GOOD}run = 3", "unknown entry 'run'"), (f"{GOOD}training = 3", "training is 3"),
    (f"{GOOD}[training]", "has [training]"), (FLIGHT, "lacks [training]"),
    (f"{FLIGHT}[training]\nseeds = 0", "training.seeds is 0"),
    (f"{FLIGHT}[training]\nnoises = ['x']", "training.noises[0] is 'x'"),
    (f"{FLIGHT}[training]\none_log = 3", "training.one_log is 3, expected true or false"),
    ("a = " + "[" * 5000, "is not TOML"), (b"\xff\xfe", "not text in UTF-8"),
):  # fmt: skip
    case("claims study", "experiment.toml'", *parts, study__experiment_toml=text)
for content, *parts in (
    ("", "is not JSON"), ("{", "is not JSON"), ("[]", "is [], expected a table"),
    ("{}", "has no 'parts'"), ('{"spibb_version": "0.1.0"}', "spibb_version"),
    (b"\xff", "not text in UTF-8"), (patched(runs="x"), "runs is 'x'"),
    (patched(runs=0), "runs is 0"), (patched(baseline=None), "baseline is None"),
    (patched(parts=3), "parts is 3, expected a table"), (patched(cells=3), "cells is 3"),
    (patched(cells=[3]), "cells[0] is 3"), (patched(cells=[[]]), "cells[0] is []"),
    (patched(cells=[["pi-b", "x", 2, {}]]), "cells[0][1] is 'x'"),
    (patched(cells=[["pi-b", {"size": 10}, 2, {"mean": [1, 2]}]]), "is [1, 2]"),
):  # fmt: skip
    case("claims study", "summary.json'", *parts, study__summary_json=content)

# Names, places and remedies

for value in ("7", "nan", "1", "-0.1"):
    case(f"improve clicks.csv {BANDIT} --out out --discount={value}", "discount is",
         "expected a number in [0, 1)", clicks_csv=CLICKS)  # fmt: skip
case("improve log.csv --out out --algorithm foo", "algorithm is 'foo'", "dqn for numeric columns",
     "module.Class")  # fmt: skip
case("improve log.csv --out out --bin step:65,40 --state state,step", "bins of 'step'",
     "[65.0, 40.0]", "write them in order")  # fmt: skip
case("inspect log.csv", "'log.csv': the log is empty", log_csv=LOG.splitlines()[0] + "\n")
case("inspect log.csv", "'log.csv': the log has several columns 'state'",
     log_csv=LOG.replace("\n", ",z\n").replace(",z", ",state", 1))  # fmt: skip
case("inspect x.json", "it has one only, 'a'", x_json='{"a": [1, 2]}')
case("inspect x.csv", "'x.csv' (its lines have different numbers of cells: line 2002 has 3, and",
     x_csv="\n".join([LOG.splitlines()[0], *["0,0,a,go,0,0"] * 2000, "0,1,b", ""]))  # fmt: skip
case("inspect minari:", "'minari:' names no dataset: write its id")
case("export baseline.csv --out x.spibb", "has no column 'action'", "columns in Python",
     baseline_csv=BASELINE.replace("action", "act"))  # fmt: skip
case("inspect 's3://bucket/log?signature=s3cret'", "cannot read 's3://bucket/log?***': the name")

# After deployment

case("monitor improved", "Missing argument 'LOG'")
case("monitor improved log.csv --delta x", "Invalid value for '--delta'")
for value in ("0", "1", "nan"):
    case(f"{MONITOR} --delta {value}", f"delta is {float(value)}, expected a number in (0, 0.5]")
case(f"{MONITOR} --margin=-1", "margin is -1.0, expected a number in [0, inf)")
case(f"{MONITOR} --drop 0", "drop is 0.0, expected a number in (0, inf)")
case(
    "monitor improved log.csv",
    "lowest_return is not known: give --lowest-return",
    "were 0.5 to 0.95",
)
case("monitor improved log.csv --lowest-return 0", "highest_return is not known")
case("monitor improved log.csv --lowest-return 0 --highest-return 0.9",
     "the log: episode 0 returns 0.95, beyond the highest_return 0.9 (1 such")  # fmt: skip
case("monitor improved log.csv --lowest-return 2 --highest-return 1", "highest_return is 1.0")
case("monitor improved log.csv --lowest-return nan --highest-return 1", "lowest_return is nan")
case(f"{MONITOR} --order stp", "the log has no column 'stp' (did you mean 'step'?)")
case(f"{MONITOR} --order state", "column 'state' orders the episodes, but 4 of its values")
case(f"{MONITOR} --discount 0.5", "No such option: --discount")
case("monitor baseline.csv log.csv", "'baseline.csv' is a file, expected the folder that spibb")
case("monitor nothere log.csv", "'nothere' is not there, expected the folder that spibb improve")
case("monitor study log.csv", "study")
case(MONITOR, "takes action 'jump' in state 'b', which the policy never takes (1 of 4 decisions",
     log_csv=LOG.replace("1,1,b,go", "1,1,b,jump"))  # fmt: skip
case(MONITOR, "returns.parquet' was changed", improved__returns_parquet=b"x")
case(MONITOR, "returns.parquet' is missing", improved__returns_parquet=None)
case("monitor copy log.csv", "has no returns.parquet", copy__returns_parquet=None)
case("monitor copy log.csv", "cannot read", copy__returns_parquet=b"x")
for content, *parts in (
    ("{", "is not JSON"), ("{}", "has no 'discount'"), (patched(discount=1), "discount is 1"),
    (patched(return_limits=[1]), "return_limits is [1]"),
    (patched(return_limits=[1, "x"]), "return_limits[1] is 'x'"),
):  # fmt: skip
    case("monitor copy log.csv", "summary.json'", *parts, copy__summary_json=content)

# Hostile names

case("act improved --state '\udcff'", "is not in the policy")
case("improve log.csv --out out --state '\udcff'", "has no column '\\udcff'")
case(f"inspect {'x' * 5000}", "File name too long")


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with a log, a baseline, an improvement and a study, all good."""
    folder = tmp_path_factory.mktemp("good")
    (folder / "log.csv").write_text(LOG)
    (folder / "baseline.csv").write_text(BASELINE)
    columns = {"state": ["a", "b"], "action": ["go", "stay"], "reward": [0.0, 1.0]}
    more = {"episode_id": [0, 0], "step": [0, 1], "terminated": [False, True]}
    write_table(pa.table(columns | more), folder / "log.parquet")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert run("improve log.csv --baseline baseline.csv --out improved", patch) == 0
        assert run(f"{STUDY.replace('new', 'study')} --sizes 10", patch) == 0
        assert run("claims study", patch) == 0
    shutil.copytree(folder / "improved", folder / "copy")
    (folder / "copy" / "manifest.sha256").unlink()  # else every change is told by its hash
    return folder


def run(command, patch):
    """The exit code of a command, in this process."""
    words = shlex.split(command) if isinstance(command, str) else command
    patch.setattr(sys, "argv", ["spibb", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code or 0


def snapshot(folder):
    """What every file holds; locks of ours are no content."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and not path.name.startswith(".spibb-")
    } | {str(path.relative_to(folder)): "folder" for path in folder.rglob("*") if path.is_dir()}


def spoil(folder, files):
    """Put the bad files in place."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        if content is None:
            path.unlink()
        elif content is FOLDER:
            path.mkdir()
        elif callable(content):
            path.write_text(content(path.read_text()))
        else:
            path.write_bytes(content if isinstance(content, bytes) else content.encode())


def check_refusal(code, out, err, parts):
    assert code == 2, err
    assert out == ""
    assert "Traceback" not in err
    assert err.startswith("spibb: ") and err.count("\n") == 1 and err.endswith("\n")
    assert len(err) < 600
    for part in parts:
        assert part in err


@pytest.mark.parametrize(("command", "files", "parts"), CASES)
def test_bad_input_is_one_line(home, tmp_path, monkeypatch, capsys, command, files, parts):
    folder = tmp_path / "here"
    shutil.copytree(home, folder)
    spoil(folder, files)
    monkeypatch.chdir(folder)
    before = snapshot(folder)
    code = run(command, monkeypatch)
    captured = capsys.readouterr()
    check_refusal(code, captured.out, captured.err, parts)
    assert snapshot(folder) == before, "nothing is written"


def test_the_catalogue_is_long():
    assert len(CASES) >= 150


@pytest.mark.parametrize(
    ("command", "parts"),
    [
        ("improve missing.csv --out out", ["there is no such file"]),
        ("improve log.csv --out out --discount 2", ["discount is 2.0"]),
        ("improve log.csv --out out --discount high", ["Invalid value for '--discount'"]),
        ("claims improved", ["holds no experiment"]),
    ],
)
def test_a_real_process_says_the_same(home, tmp_path, command, parts):
    folder = tmp_path / "here"
    shutil.copytree(home, folder)
    before = snapshot(folder)
    words = [sys.executable, "-m", "spibb", *command.split()]
    plain = {**os.environ, "PYTHONIOENCODING": "ascii"}
    ended = subprocess.run(words, cwd=folder, capture_output=True, text=True, env=plain)
    check_refusal(ended.returncode, ended.stdout, ended.stderr, parts)
    assert snapshot(folder) == before


COMMAS = LOG.replace(",", ";").replace(".", ",")
BANDIT = "state,action,reward\na,go,1\na,stay,0\n"
TWICE = LOG + "1,1,b,go,0,1\n"
UNPAID = LOG.replace("0,1,b,stay,1,1", "0,1,b,stay,,1")
PROPOSALS = [
    ("inspect log.csv", MESSY, "inspect log.csv --missing as-level --duplicates drop"),
    ("inspect log.csv", TWICE, "inspect log.csv --duplicates drop"),
    ("inspect log.csv", TWICE + "1,1,b,go,9,1\n", None),
    ("inspect log.csv", "patient,visit,ward,drug,gain,left\n0,0,a,x,1,0\n", None),
    ("inspect log.csv --missing as-level", UNPAID, "inspect log.csv --missing drop"),
    ("inspect --missing=as-level log.csv", UNPAID, "inspect log.csv --missing drop"),
    ("inspect log.csv --missing drop", LOG.replace(",b,", ",,"), None),
    ("inspect log.csv", COMMAS, "inspect log.csv --decimal ,"),
    ("inspect log.csv --decimal .", COMMAS, "inspect log.csv --decimal ,"),
    ("inspect log.csv", COMMAS.replace("b;", "süd;").encode("latin-1"),
     "inspect log.csv --encoding latin-1 --decimal ,"),
    ("inspect log.csv", LOG.replace("b,", "5 €,").encode("cp1252"),
     "inspect log.csv --encoding cp1252"),
    ("inspect log.csv", LOG.encode("utf-16"), "inspect log.csv --encoding utf-16"),
    ("inspect log.csv", LOG.replace(",", "^"), "inspect log.csv --separator '^'"),
    ("inspect log.csv", BANDIT.replace("a,", "süd,").encode("latin-1"),
     "inspect log.csv --bandit --encoding latin-1"),
    ("inspect log.csv", LOG.replace("b,stay,1,", '"b","stay","1,5",'), None),
]  # fmt: skip


@pytest.mark.parametrize(("command", "log", "proposal"), PROPOSALS)
def test_a_command_that_is_proposed_works(tmp_path, monkeypatch, capsys, command, log, proposal):
    (tmp_path / "log.csv").write_bytes(log if isinstance(log, bytes) else log.encode())
    monkeypatch.chdir(tmp_path)
    assert run(command, monkeypatch) == 2
    _, found, proposed = capsys.readouterr().err.strip().partition("; try: spibb ")
    assert (proposed if found else None) == proposal
    if found:
        assert run(proposed, monkeypatch) == 0


def test_of_a_command_that_names_somebody_only_the_options_are_proposed(
    tmp_path, monkeypatch, capsys
):
    """The masked command could not be copied."""
    (tmp_path / "x@y").mkdir()
    (tmp_path / "x@y" / "clinic.db").touch()
    monkeypatch.chdir(tmp_path)
    with sqlite3.connect("x@y/clinic.db") as made:
        made.execute("CREATE TABLE t (episode_id, step, state, action, reward, terminated)")
        made.execute("INSERT INTO t VALUES (0, 0, 'a', 'go', 1, 1), (1, 0, NULL, 'go', 1, 1)")
    made.close()
    assert run("inspect sqlite:///x@y/clinic.db --table t", monkeypatch) == 2
    assert capsys.readouterr().err.endswith("; try to add: --missing as-level\n")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read and write everything")
@pytest.mark.parametrize("name", ["log.csv", "baseline.csv"])
def test_a_file_that_may_not_be_read_is_named(home, tmp_path, monkeypatch, capsys, name):
    shutil.copytree(home, tmp_path / "here")
    (tmp_path / "here" / name).chmod(0)
    monkeypatch.chdir(tmp_path / "here")
    code = run(IMPROVE, monkeypatch)
    captured = capsys.readouterr()
    check_refusal(code, captured.out, captured.err, ["permission denied", name])


def test_no_more_than_five_states_without_a_row_are_named(tmp_path, monkeypatch, capsys):
    rows = [f"{i},0,s{i},go,0,1" for i in range(8)]
    (tmp_path / "log.csv").write_text("\n".join([LOG.splitlines()[0], *rows, ""]))
    (tmp_path / "baseline.csv").write_text("state,action,probability\ns0,go,1\n")
    monkeypatch.chdir(tmp_path)
    assert run(IMPROVE, monkeypatch) == 2
    message = capsys.readouterr().err
    assert "has no row for state 's1', 's2', 's3', 's4', 's5' and 2 more (7 of the" in message
    assert "s6" not in message


@pytest.mark.parametrize("kept", [0.1, 0.5, 0.99])
def test_a_truncated_parquet_file_is_named(home, tmp_path, monkeypatch, capsys, kept):
    content = (home / "log.parquet").read_bytes()
    (tmp_path / "log.parquet").write_bytes(content[: int(kept * len(content))])
    monkeypatch.chdir(tmp_path)
    code = run("improve log.parquet --out out", monkeypatch)
    captured = capsys.readouterr()
    check_refusal(code, captured.out, captured.err, ["cannot read 'log.parquet' (", PARQUET])


def test_a_short_line_late_in_a_csv_file_is_named_with_its_number(tmp_path, monkeypatch, capsys):
    lines = [LOG.splitlines()[0], *["0,0,a,go,0,0"] * 30_000, "0,1,b", "0,2,a,go,0,0", ""]
    (tmp_path / "log.csv").write_text("\n".join(lines))
    monkeypatch.chdir(tmp_path)
    assert run("improve log.csv --out out", monkeypatch) == 2
    assert "Line: 30002): check that it is complete" in capsys.readouterr().err


def test_random_bytes_in_any_file_are_refused(home, tmp_path, monkeypatch, capsys):
    rng = np.random.default_rng(0)
    names = ("log.csv", "log.parquet", "baseline.csv", "improved/policy.json", "study/summary.json")
    parquet = "improve log.parquet --out out"
    commands = (IMPROVE, parquet, IMPROVE, "act improved --state a", "claims study")
    for name, command in zip(names, commands):
        folder = tmp_path / name.replace("/", "-")
        shutil.copytree(home, folder)
        (folder / name).write_bytes(rng.bytes(3000))
        monkeypatch.chdir(folder)
        code = run(command, monkeypatch)
        captured = capsys.readouterr()
        check_refusal(code, captured.out, captured.err, [])
