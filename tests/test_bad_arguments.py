"""Bad arguments of public functions: an InputError that names the argument and what it takes."""

from __future__ import annotations

import re
import warnings
from datetime import UTC, datetime
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import spibb
from spibb import (
    ARBRM,
    HCPI,
    MDP,
    Auto,
    BasicRL,
    Bins,
    Counts,
    LoadedPolicy,
    Log,
    ModelFreeSpibb,
    PiBSpibb,
    Policy,
    Problem,
    RaMDP,
    RobustMDP,
    Sampler,
    Vocabulary,
)
from spibb.assurance.posterior import Posterior
from spibb.checks import as_float, column, flag, instance, number, positive, seed, several, shown
from spibb.envs import Garnet, Gridworld
from spibb.errors import InputError
from spibb.outcomes import Outcomes
from spibb.simulate import simulate
from spibb.solve import free_box

RNG = np.random.default_rng(0)
LOG = Log.from_arrays(
    list("abab"), ["go", "stay", "stay", "go"], [0, 1, 0.5, 0],
    terminated=[False, True, False, True],
)  # fmt: skip
B = Policy.uniform(["a", "b"], ["go", "stay"])
COUNTS = Counts.from_log(LOG)
TIMES = [datetime(2024, 1, 1), datetime(2024, 1, 1, tzinfo=UTC)]
PROBLEM = Problem.from_log(LOG, B)
WORLD = spibb.estimate_mdp(COUNTS, 0.9)
FRAME = pd.DataFrame({"state": ["a"], "action": ["go"]})


def outcomes(**changes):
    """An MDP of one pair, with some columns replaced."""
    given = {
        "state": [0], "action": [0], "prob": [1.0], "next_state": [0], "reward": [1.0],
        "terminated": [True], "initial": [1.0], "n_actions": 1, "discount": 0.9,
    }  # fmt: skip
    return MDP.from_outcomes(**(given | changes))


def judged(**changes):
    """A posterior probability, with some arguments replaced."""
    given = {"log": COUNTS, "policy": B, "baseline": B, "discount": 0.9, "rng": RNG}
    return spibb.posterior_improvement(**(given | changes))


def estimated(**changes):
    """Off-policy estimates, with some arguments replaced."""
    given = {"log": LOG, "policy": B, "behaviour": B, "rng": RNG}
    return spibb.off_policy_estimates(**(given | changes))


TABLE = {"episode_id": [1], "step": [0], "state": [1], "action": [0], "reward": [1.0]}
TABLE = pd.DataFrame(TABLE)
SAMPLER = Sampler(WORLD, B)
READERS = {
    "read_log": lambda **given: spibb.read_log(TABLE, **given),
    "count_log": lambda **given: spibb.count_log(TABLE, **given),
    "from_frame": lambda **given: Log.from_frame(TABLE, **given),
    "read_vectors": lambda **given: spibb.read_vectors(TABLE, **given),
    "run": lambda **given: spibb.run(TABLE, **given),
    "load_policy": lambda **given: spibb.load_policy("missing.csv", **given),
}


def read(**given):
    """All that reads tables, which says the same of a bad argument."""
    said = set()
    for name, reader in READERS.items():
        if "bins" in given and name not in ("read_log", "count_log", "run"):
            continue
        with pytest.raises(InputError) as raised:
            reader(**given)
        said.add(str(raised.value))
    assert len(said) == 1, said
    raise InputError(said.pop())


def exported(**changes):
    """A policy as SQL, with some arguments replaced."""
    loaded = LoadedPolicy(B, {}, {})
    return spibb.export_policy(**({"loaded": loaded, "kind": "sql", "out": "x.sql"} | changes))


def collected(**changes):
    """A log of the gridworld, with some arguments replaced."""
    given = {"env": Gridworld(), "policy": Policy.uniform(25, range(4)), "n_episodes": 1,
             "rng": RNG}  # fmt: skip
    return spibb.collect(**(given | changes))


def paired(**changes):
    """A posterior of two policies in five models, with some arguments replaced."""
    return Posterior.of(**({"rho": np.zeros((5, 2))} | changes))


class Rule:
    """Not a baseline: a function would be."""


LONG, NUL, BROKEN = "a" * 10_000, "a\x00", "\ud800"
LATIN = "caf\udce9"
"""A name that is bytes of Latin-1 on the disk."""
NO_NAME = "names no file: leave out its NUL or broken characters"
TOO_LONG = "…' names no file: File name too long; shorten it"
POINT = np.array(1)
LOGS = "spibb.read_log, Log.from_frame and Log.from_arrays make one"
GENERATORS = "np.random.default_rng(0) makes one"
CASES = [
    # improve, problems and algorithms
    (lambda: spibb.improve(FRAME, B), f"log is a DataFrame, expected a Log: {LOGS}"),
    (lambda: spibb.improve("log.csv", B), "log is a str, expected a Log"),
    (lambda: spibb.improve(None, B), "log is None, expected a Log"),
    (lambda: spibb.improve(LOG, 3), "baseline"),
    (lambda: spibb.improve(LOG, "x.csv"), "x.csv"),
    (lambda: spibb.improve(LOG, "estimate:x"), "baseline estimate:x has no number"),
    (lambda: spibb.exact_value(WORLD, 3), "policy is an int, expected a Policy: spibb.read_policy"),
    (lambda: spibb.improve(LOG, {}), "baseline"),
    (lambda: spibb.improve(LOG, [[0.5, 0.5]]), "baseline has shape (1, 2), expected (2, 2)"),
    (lambda: spibb.improve(LOG, [[0.5, 0.6]] * 2), "baseline row 'a' sums to 1.1"),
    (lambda: spibb.improve(LOG, [[np.nan, 1]] * 2), "baseline row 'a', action 'go': probability"),
    (
        lambda: spibb.improve(LOG, B, algorithm=3),
        "algorithm is an int, expected a name, a class or",
    ),
    (
        lambda: spibb.improve(LOG, 3),
        "baseline is an int, expected a Policy, rows [states, actions]",
    ),
    (lambda: spibb.improve(LOG, B, algorithm=None), "algorithm is None, expected a name, a class"),
    (lambda: spibb.improve(LOG, B, algorithm=dict), "algorithm is the class dict, expected"),
    (lambda: spibb.improve(LOG, B, algorithm=PiBSpibb, n=3), "PiBSpibb has no option 'n'"),
    (lambda: spibb.improve(LOG, B, algorithm=PiBSpibb(), n_wedge=3), "PiBSpibb(n_wedge=…)"),
    (lambda: spibb.improve(LOG, B, discount="x"), "discount is 'x', expected a number in [0, 1)"),
    (lambda: spibb.improve(LOG, B, discount=None), "discount is None, expected a number"),
    (lambda: spibb.improve(LOG, B, discount=[0.9]), "discount is [0.9], expected a number"),
    (lambda: spibb.improve(LOG, B, n_wedge=None), "n_wedge is None, expected a number"),
    (lambda: spibb.improve(LOG, B, n_wedge="5"), "n_wedge is '5', expected a number, or 'auto'"),
    (lambda: spibb.improve(LOG, B, n_wedge=[1]), "n_wedge is [1], expected a number"),
    (lambda: spibb.improve(LOG, B, n_wedge=1j), "n_wedge is 1j, expected a number"),
    (lambda: spibb.improve(LOG, B, v_max="x"), "v_max is 'x', expected a number in (0, inf)"),
    (lambda: spibb.improve(LOG, B, v_max=10**400), "v_max is 1000"),
    (lambda: Vocabulary(3), "labels is 3, expected a list of labels or a range: write Vocabulary("),
    (lambda: Vocabulary("ab"), "labels is 'ab', expected a list of labels or a range"),
    (lambda: spibb.solve.optimise(3, 4), "mdp is an int, expected an MDP: spibb.estimate_mdp"),
    (lambda: spibb.solve.optimise(WORLD, 4), "box is an int, expected a Box: spibb.solve.free_box"),
    (lambda: spibb.solve.evaluate(3, 4), "mdp is an int, expected an MDP"),
    (lambda: spibb.forecast.forecast(3), f"log is an int, expected a Log: {LOGS}"),
    *(
        (
            lambda name=name, value=value: spibb.forecast.forecast(LOG, **{name: value}),
            f"{name} is {shown(value)}, expected a number in (-inf, inf)",
        )
        for name in ("lowest_return", "highest_return")
        for value in (np.nan, -np.inf, True, "1", [1], np.zeros(2), 10**400)
    ),
    # numbers that NumPy does not take, and limits of whole ones
    *(
        (
            lambda call=call, name=name: call(**{name: Fraction(1, 3)}),
            f"{name} is Fraction(1, 3), expected a float: write 0.3333333333333333",
        )
        for call, name in [
            (lambda **given: spibb.improve(LOG, B, **given), "discount"),
            (lambda **given: spibb.improve(LOG, B, **given), "v_max"),
            (lambda **given: spibb.improve(LOG, B).certificate(**given), "delta"),
            (judged, "level"),
        ]
    ),
    (lambda: PiBSpibb(n_wedge=10**400), "expected a float: write inf"),
    (lambda: judged(draws=1e308), "draws is 1e+308, expected a whole number below 9.2e18"),
    (lambda: outcomes(n_actions=1e308), "n_actions is 1e+308, expected a whole number below"),
    (lambda: outcomes(next_state=None), "next_state is None, expected one code per outcome"),
    (
        lambda: spibb.splits.split_episodes(LOG, 0.5, seed=-0.0),
        "seed is -0.0, expected a whole number of at least 0",
    ),
    (lambda: spibb.Certified(seed=0.5), "seed is 0.5, expected a whole number"),
    *(
        (
            lambda call=call, value=value: call(tolerance=value),
            f"tolerance is {shown(value)}, expected a number in (0, inf)",
        )
        for call in (
            lambda **given: spibb.solve.optimise(WORLD, free_box(PROBLEM.available), **given),
            lambda **given: spibb.solve.evaluate(WORLD, B.probs, **given),
        )
        for value in (None, 0, np.nan, "x", np.zeros(2))
    ),
    (lambda: paired(rho=None), "rho is None, expected an array of numbers"),
    (lambda: paired(rho=np.zeros(5)), "rho has shape (5,), expected (draws, 2)"),
    (lambda: paired(rho=np.zeros((0, 2))), "rho has shape (0, 2), expected (draws, 2)"),
    (lambda: paired(rho=[[0, np.nan]]), "rho in row 0 is nan, expected a finite number"),
    (lambda: paired(zeta=None), "zeta is None, expected a number in (-inf, inf)"),
    (lambda: paired(level=1.5), "level is 1.5, expected a number in (0, 1)"),
    # arrays where something else belongs
    (lambda: Vocabulary(POINT), "labels is array(1), expected a list of labels or a range"),
    (lambda: Bins(POINT), "bin edges is array(1), expected one or more"),
    (lambda: Policy([[1.0]], states=POINT), "array(1), expected one or more"),
    (lambda: B.row(np.zeros((3, 3))), "state array([[0., 0., 0.], [0., 0., 0.]"),
    (
        lambda: spibb.judge(Auto(draws=20).improve(PROBLEM), delta=np.zeros(2)),
        "delta is array([0., 0.]), expected a number in (0, 0.5]",
    ),
    (lambda: estimated(truncated=np.zeros(2)), "truncated is array([0., 0.]): choose one of"),
    (lambda: exported(dialect=np.zeros(2), force=True), "dialect is array([0., 0.]): choose"),
    (lambda: spibb.load_policy("x", columns=np.zeros(2)), "columns is array([0., 0.]), expected"),
    (lambda: spibb.read_log(TABLE, columns=np.zeros(2)), "columns is array([0., 0.]), expected"),
    (lambda: spibb.read_log(TABLE, bins=np.zeros(2)), "bins is array([0., 0.]), expected"),
    (lambda: spibb.read_log(LOG, bins=np.zeros(2)), "columns and bins are for tables"),
    (lambda: spibb.improve(LOG, Rule), "baseline is the class Rule, expected a Policy"),
    # names that no file can have
    *(
        (lambda call=call, name=name: call(name), message)
        for call in (
            lambda name: spibb.read_policy(name),
            lambda name: spibb.load_policy(name),
            lambda name: spibb.read_log(f"{name}/log.csv"),
            lambda name: spibb.run(LOG, name),
            lambda name: spibb.monitor(name, LOG),
            lambda name: exported(out=name),
            lambda name: spibb.LivePolicy(name),
            lambda name: LOG.save(f"{name}.csv"),
        )
        for name, message in (
            (LONG, TOO_LONG),
            (NUL, NO_NAME),
            (BROKEN, NO_NAME),
            (LATIN, NO_NAME),
        )
    ),
    (lambda: spibb.improve(LOG, LONG), "baseline is 'aaa"),
    (lambda: exported(table=BROKEN, force=True), "'\\ud800' cannot be written as UTF-8"),
    (lambda: spibb.run(3), "source is an int, expected a path, a dataframe, a Log"),
    (lambda: spibb.run(None), "source is None, expected a path, a dataframe, a Log"),
    (
        lambda: spibb.run(LOG, 3),
        "out is an int, expected a str or a Path: give the name of a folder",
    ),
    (lambda: spibb.run(LOG, baseline=3), "baseline"),
    (lambda: spibb.run(LOG, algorithm=3), "algorithm is an int, expected a name"),
    (lambda: spibb.run(LOG, n=3), "pi-b has no option 'n'"),
    (lambda: spibb.run(LOG, discount=2), "discount is 2, expected a number in [0, 1)"),
    (lambda: spibb.run(LOG, delta="x"), "delta is 'x', expected a number in (0, 0.5]"),
    (lambda: spibb.run(LOG, holdout="x"), "holdout is 'x', expected a number in [0, 1)"),
    (lambda: spibb.run(LOG, seed=-1), "seed is -1, expected a whole number of at least 0"),
    (lambda: spibb.run(LOG, "out", force=1), "force is 1, expected true or false"),
    (lambda: spibb.run(LOG, columns=3), "columns and bins are for tables"),
    (lambda: spibb.improve(LOG, B).save(3), "folder is an int, expected a str or a Path"),
    (lambda: spibb.improve(LOG, B).report(3), "path is an int, expected a str or a Path"),
    (lambda: LOG.save(3), "path is an int, expected a str or a Path"),
    (lambda: spibb.inspect_log(3), "log is an int, expected a Log or a LogTable"),
    (lambda: PiBSpibb().improve(LOG), "problem is a Log, expected a Problem: Problem.from_log("),
    (lambda: HCPI().improve(None), "problem is None, expected a Problem"),
    (lambda: spibb.improve(LOG, B).certificate(delta=[1]), "delta is [1], expected a number in"),
    (lambda: spibb.improve(LOG, B).certificate(delta=None), "delta is None, expected a number"),
    (lambda: Problem.from_log(COUNTS, B), "log is a Counts, expected a Log"),
    (lambda: Problem.from_counts(LOG, B), "counts is a Log, expected a Counts"),
    (lambda: Problem.from_log(LOG, smoothing="x"), "smoothing is 'x', expected a number"),
    (lambda: Problem.from_log(LOG, smoothing=[0, 1]), "smoothing is [0, 1], expected a number"),
    (lambda: Problem.from_log(LOG, smoothing=np.ones(2)), "smoothing is"),
    (lambda: Problem.from_counts(COUNTS, smoothing=np.ones(2)), "smoothing is"),
    (lambda: Problem(3, B, 0.9, 1.0), "counts is an int, expected a Counts: spibb.count_log"),
    (lambda: Problem(COUNTS, None, 0.9, 1.0), "baseline is None, expected a Policy"),
    (lambda: Problem(COUNTS, B, 0.9, 1.0, log=FRAME), "log is a DataFrame, expected a Log"),
    (lambda: Problem(COUNTS, B, 0.9, 1.0, np.ones(2)), "v_max_given is"),
    (lambda: Problem(COUNTS, B, "x", 1.0), "discount is 'x', expected a number in [0, 1)"),
    (lambda: Problem(COUNTS, B, 0.9, None), "v_max is None, expected a number in [0, inf)"),
    (lambda: spibb.estimate_mdp(COUNTS, 0.9, v_max=None), "v_max is None, expected a number"),
    (lambda: spibb.inspect_log(LOG, counts=3), "counts is an int, expected a Counts"),
    (lambda: spibb.inspect_log(LOG, rows=3), "rows is an int, expected a Log"),
    (lambda: spibb.judge(spibb.improve(LOG, B), seed=-1), "seed is -1, expected a whole number"),
    (lambda: spibb.judge(spibb.improve(LOG, B), seed="a"), "seed is 'a', expected a whole number"),
    (lambda: spibb.judge(spibb.improve(LOG, B), seed=1.5), "seed is 1.5, expected a whole number"),
    (lambda: spibb.improve(LOG, B).posterior(seed=-1), "seed is -1, expected a whole number"),
    (lambda: spibb.Certified().improve_at(0.05, PROBLEM), "deltas is 0.05, expected one or more"),
    (lambda: spibb.Certified().improve_at((0.05,), None), "problem is None, expected a Problem"),
    (lambda: Log.from_arrays([0], [0], [0], n_states=10**12), "expected at most 2,147,483,647"),
    (lambda: Log.from_arrays(TIMES, [0, 1], [0, 1]), "state mixes times with and without a time"),
    (
        lambda: Log.from_frame(
            pd.DataFrame(
                {
                    "state": pd.Series(TIMES, dtype=object),
                    "action": 0,
                    "reward": 0,
                    "episode_id": [0, 1],
                    "step": 0,
                    "terminated": True,
                }
            )
        ),
        "state mixes times with and without a time zone: give all of them a zone, or none",
    ),
    (lambda: Auto().improve(PROBLEM).rows_of(3), "candidate is an int, expected a Candidate"),
    (
        lambda: Auto().improve(PROBLEM).rows_of(Auto(n_wedges=(3,)).sweep(PROBLEM)[1]),
        "candidate is pi-leq-b with n_wedge = 3, which is not in the sweep",
    ),
    (lambda: Auto(n_wedges=5), "n_wedges is 5, expected one or more: write (5, 10, 20)"),
    (lambda: Auto(n_wedges=[]), "n_wedges is [], expected one or more"),
    (lambda: Auto(kinds="pi-b"), "kinds is 'pi-b', expected one or more"),
    (lambda: Auto(kinds=[3]), "kinds is 3: choose one of cautious, pi-b"),
    (lambda: Auto(seed=0.5), "seed is 0.5, expected a whole number of at least 0"),
    (lambda: HCPI(trainer=3), "trainer is an int, expected an Algorithm: give one, such as"),
    (lambda: RaMDP(kappa=FRAME), "kappa is "),
    (lambda: RaMDP(safety_test="yes"), "safety_test is 'yes', expected true or false"),
    (lambda: RobustMDP(known_rewards=1), "known_rewards is 1, expected true or false"),
    (lambda: ARBRM(r_max="x"), "r_max is 'x', expected a number"),
    (lambda: ModelFreeSpibb(max_sweeps=None), "max_sweeps is None, expected a whole number"),
    # evaluation and simulation
    (lambda: spibb.exact_value(B, B), "mdp is a Policy, expected an MDP"),
    (lambda: spibb.exact_value(WORLD, [[1, 0]] * 2), "policy is a list, expected a Policy"),
    (lambda: judged(log=B), "log is a Policy, expected a Log or a Counts: spibb.count_log"),
    (lambda: judged(policy=None), "policy is None, expected a Policy"),
    (lambda: judged(discount=1), "discount is 1"),
    (lambda: judged(rng=0), f"rng is an int, expected a Generator: {GENERATORS}"),
    (lambda: judged(draws=0), "draws is 0, expected a whole number"),
    (lambda: judged(draws=None), "draws is None"),
    (lambda: judged(zeta=np.nan), "zeta is nan, expected a number"),
    (lambda: judged(zeta="x"), "zeta is 'x', expected a number"),
    (lambda: judged(level=95), "level is 95, expected a number in (0, 1)"),
    (lambda: simulate(B, B, 3, rng=RNG), "mdp is a Policy, expected an MDP"),
    (lambda: simulate(WORLD, B, None, rng=RNG), "n_episodes is None"),
    (lambda: simulate(WORLD, B, np.inf, rng=RNG), "n_episodes is inf"),
    (lambda: simulate(WORLD, B, 3, rng=np.random), "rng is a module, expected a Generator"),
    (lambda: simulate(WORLD, B, 3, rng=RNG, max_steps=0), "max_steps is 0"),
    (lambda: Sampler(WORLD, 3), "policy is an int, expected a Policy"),
    (lambda: Sampler(WORLD, B).log(3, rng=None), "rng is None, expected a Generator"),
    (lambda: Sampler(WORLD, B).counts("x", rng=RNG), "n_episodes is 'x'"),
    (lambda: estimated(log=FRAME), "log is a DataFrame, expected a Log"),
    (lambda: estimated(policy="x"), "policy is a str, expected a Policy"),
    (lambda: estimated(behaviour=3), "behaviour is an int, expected a Policy"),
    (lambda: estimated(model=B), "model is a Policy, expected an MDP"),
    (lambda: estimated(rng=3), "rng is an int, expected a Generator"),
    (lambda: estimated(delta=None), "delta is None"),
    (lambda: estimated(lowest_return="x"), "lowest_return is 'x', expected a number"),
    (lambda: estimated(bounds="bca"), "bounds is 'bca', expected one or more"),
    (lambda: estimated(bounds=["x"]), "bound is 'x': choose one of"),
    (lambda: estimated(truncated=3), "truncated is 3: choose one of"),
    (lambda: spibb.estimate_mdp(LOG, 0.9), "counts is a Log, expected a Counts"),
    (lambda: spibb.estimate_mdp(COUNTS, 0.9, unseen=0), "unseen is 0: choose one of zero"),
    (lambda: spibb.estimate_baseline(FRAME), "log is a DataFrame, expected a Counts or a Log"),
    (lambda: spibb.estimate_baseline(LOG, smoothing=-1), "smoothing is -1"),
    (lambda: Counts.from_log(FRAME), "log is a DataFrame, expected a Log"),
    (lambda: outcomes(discount=1), "discount is 1"),
    (lambda: outcomes(n_actions=None), "n_actions is None, expected a whole number"),
    (lambda: outcomes(initial="x"), "initial is 'x', expected an array of numbers"),
    (lambda: outcomes(initial=3), "initial has shape (), expected one value per row"),
    (lambda: outcomes(prob=["x"]), "prob is ['x'], expected an array of numbers"),
    (lambda: outcomes(prob=[2.0]), "prob of outcome 0 is 2"),
    (lambda: outcomes(reward=[np.nan]), "reward in row 0 is nan"),
    (lambda: outcomes(state=3), "state is 3, expected one value per transition"),
    (lambda: outcomes(state=[5]), "state of outcome 0 is 5"),
    (lambda: outcomes(reward=[1, 2]), "columns differ in length"),
    # policies and labels
    (lambda: Policy("x"), "policy is 'x', expected an array of numbers"),
    (lambda: Policy([[1], [0.5, 0.5]]), "policy has rows of different lengths"),
    (lambda: Policy([0.5, 0.5]), "policy has shape (2,), expected [states, actions]"),
    (lambda: Policy([[0.5, 0.5]], ["a", "b"]), "policy has shape (1, 2), expected (2, 2)"),
    (lambda: Policy([[1.0]], "a"), "states is 'a', expected one or more: write ['a', 'b']"),
    (lambda: Policy([[1.0]], ["a"], {"go": 1}), "actions is {'go': 1}, expected one or more"),
    (lambda: Policy([[1.0]], [{}]), "state {} is not a label: labels are text, whole numbers, or"),
    (lambda: Policy([[1.0]], [["a"]]), "state ['a'] is not a label"),
    (lambda: Policy([[1.0]] * 2, ["a", "a"]), "state 'a' is listed 2 times: list it once"),
    (lambda: Policy([[1.0]] * 2, ["a", 1]), "state mixes labels like"),
    (lambda: Policy.uniform(-3, 2), "number of states is -3, expected a whole number"),
    (lambda: Policy.uniform(2, 0), "number of actions is 0, expected a whole number"),
    (lambda: Policy.uniform([], 2), "states is [], expected one or more"),
    (lambda: B.row("c"), "state 'c' is unknown: choose one of 'a', 'b'"),
    (lambda: B.row(["a"]), "state ['a'] is unknown"),
    (lambda: B.sample("a", rng=3), "rng is an int, expected a Generator"),
    (lambda: B.sample({}, rng=RNG), "state {} is unknown"),
    (lambda: B.aligned(["a"], B.actions), "states is a list, expected a Vocabulary"),
    (lambda: B.save(None), "path is None, expected a str or a Path: give the name of a file"),
    (lambda: B.save("policy.xlsx"), "cannot write 'policy.xlsx': the name must end in .csv or"),
    (lambda: Vocabulary([[1]]), "label [1] is not a label"),
    (lambda: Bins(3), "edges is 3, expected one or more: write (18, 40, 65)"),
    (lambda: Bins(()), "edges is (), expected one or more"),
    (lambda: Bins(("x",)), "bin edges [nan] are not increasing finite numbers"),
    # files
    (lambda: spibb.read_policy(3), "path is an int, expected a str, a Source or a Path"),
    (lambda: spibb.read_policy("missing.csv", FRAME), "log is a DataFrame, expected a Counts or a"),
    (lambda: spibb.read_policy("missing.csv"), "cannot read 'missing.csv': there is no such file"),
    (lambda: spibb.load_policy(None), "path is None, expected a str, a Source or a Path"),
    (lambda: spibb.inspect_log("log.csv"), "log is a str, expected a Log or a LogTable: spibb"),
    # mappings, functions, names and numbers of other kinds
    (lambda: read(columns=3), 'columns is 3, expected a mapping: write {"state": ["ward", "age"]}'),
    (lambda: read(columns="state"), "columns is 'state', expected a mapping"),
    (lambda: read(columns=[("state", "x")]), "columns is [('state', 'x')], expected a mapping"),
    (lambda: read(columns={3: "x"}), "columns maps 3, which is not a column of a log"),
    (lambda: read(columns={"state": 3}), "columns maps 'state' to 3, expected the name of a col"),
    (lambda: read(columns={"state": None}), "columns maps 'state' to None, expected the name"),
    (lambda: read(columns={"state": []}), "columns maps 'state' to [], expected the name of a"),
    (lambda: read(columns={"state": [3]}), "columns maps 'state' to [3], expected the name of"),
    (lambda: read(bins=3), 'bins is 3, expected a mapping: write {"age": 10, "dose": [0.5, 1]}'),
    (lambda: read(bins=["state"]), "bins is ['state'], expected a mapping"),
    (lambda: read(bins={"state": None}), "bins of 'state' are None, expected a number of quantil"),
    (lambda: read(bins={"state": 1.5}), "bins of 'state' are 1.5, expected a number of quantil"),
    (lambda: spibb.count_log(TABLE, progress=3), "progress is 3, expected a function: write pro"),
    (lambda: spibb.open_log(LOG, progress=3), "progress is 3, expected a function"),
    (lambda: spibb.read_vectors(TABLE, progress=3), "progress is 3, expected a function"),
    (lambda: spibb.run(LOG, progress=3), "progress is 3, expected a function: write progress=lam"),
    (lambda: spibb.run(LOG, announce=3), "announce is 3, expected a function: write announce=pr"),
    (lambda: spibb.run(LOG, command=3), "command is an int, expected a str: give a text"),
    (lambda: Log.from_arrays([0], [0], [1], episode_id=3), "episode_id is 3, expected one value"),
    (
        lambda: Log.from_arrays([0], [0], [1], episode_id=np.array(3)),
        "episode_id is array(3), expected one value per row",
    ),
    (lambda: Log.from_arrays("ab", [0, 1], [1, 2]), "state is 'ab', expected one value per row"),
    (lambda: Log.from_arrays([0, 1], b"ab", [1, 2]), "action is b'ab', expected one value per row"),
    (lambda: LOG.with_labels(3, 4), "states is an int, expected a Vocabulary"),
    (lambda: LOG.with_labels(LOG.states, 4), "actions is an int, expected a Vocabulary"),
    (lambda: COUNTS.with_labels(["a", "b"], B.actions), "states is a list, expected a Vocabulary"),
    (lambda: LOG.episodes("a"), "which holds <U1, expected whole numbers"),
    (lambda: LOG.episodes(3), "which has shape (), expected one code per row"),
    (lambda: LOG.episodes([0, 99]), "numbers of episodes hold 99, expected codes from 0 to 1"),
    (lambda: B.named(3, 4), "states is 3, expected one or more: write ('state',)"),
    (lambda: B.named(("x",), "y"), "actions is 'y', expected one or more"),
    (lambda: B.save("x.csv", spreadsheet_safe="yes"), "spreadsheet_safe is 'yes', expected true"),
    (lambda: Vocabulary(["a"], 3), "names is 3, expected one or more: write ('state',)"),
    (lambda: Vocabulary(["a"], "state"), "names is 'state', expected one or more"),
    (lambda: Vocabulary(["a"], (3,)), "names is (3,), expected names of columns"),
    (lambda: Vocabulary([object()]), "is not a label: labels are text, whole numbers, or tuples"),
    (lambda: spibb.export_policy(3, "file", "x"), "loaded is an int, expected a LoadedPolicy: sp"),
    (lambda: exported(out=3), "out is an int, expected a str or a Path: give the name of a file"),
    (lambda: exported(table=3), "table is an int, expected a str: give a text"),
    (lambda: exported(uniform=3), "uniform is an int, expected a str"),
    (lambda: exported(deterministic="yes"), "deterministic is 'yes', expected true or false"),
    (lambda: exported(force="yes"), "force is 'yes', expected true or false"),
    (lambda: collected(encode=3), "encode is 3, expected a function: write encode=lambda observ"),
    (lambda: collected(max_steps="a"), "max_steps is 'a', expected a whole number of at least 1"),
    (lambda: spibb.solve.evaluate(WORLD, B), "probs is a Policy, expected an ndarray: the probs"),
    (lambda: spibb.forecast.forecast(LOG, "a"), "discount is 'a', expected a number in [0, 1)"),
    (lambda: spibb.forecast.forecast(LOG, 0.9, 3), "delta is 3, expected a number in (0, 0.5]"),
    (lambda: PiBSpibb.policies(3, PROBLEM), "algorithms is 3, expected configurations of PiBSpibb"),
    (lambda: PiBSpibb.policies([BasicRL()], PROBLEM), "expected configurations of PiBSpibb: write"),
    (lambda: PiBSpibb.policies([PiBSpibb()], 3), "problem is an int, expected a Problem"),
    (lambda: Garnet("a"), "seed is 'a', expected a whole number of at least 0"),
    (lambda: SAMPLER.to_log("a", "b"), "codes holds <U1, expected whole numbers"),
    (lambda: SAMPLER.to_log([0], [0.5]), "lengths holds float64, expected whole numbers"),
    (lambda: SAMPLER.to_log([0], [3]), "lengths add up to 3, expected 1, as many as there are"),
    (lambda: SAMPLER.to_counts([99], [1]), "outcome codes hold 99, expected codes from 0 to"),
    (lambda: SAMPLER.record("a", "b"), "codes holds <U1, expected whole numbers"),
    (lambda: Log.from_frame("log.csv"), "frame is 'log.csv', expected a dataframe: spibb.read_log"),
    (lambda: Log.from_frame(3), "frame is an int, expected a dataframe, a DuckDB relation or an"),
    (lambda: Log.from_arrays([0], [0], [1], state_labels="ab"), "state_labels is 'ab', expected"),
    (lambda: Log.from_arrays([0], [0], [1], n_states="x"), "n_states is 'x', expected a whole"),
    (lambda: Log.from_arrays([0], [0], [1], n_actions=0), "n_actions is 0, expected a whole"),
    (lambda: spibb.read_log(TABLE, state_labels="ab"), "state_labels is 'ab', expected one or"),
    (lambda: spibb.read_log(TABLE, action_labels=[]), "action_labels is [], expected one or more"),
    (
        lambda: HCPI(behaviour=3),
        "behaviour is 3, expected a Policy, or one of baseline, action-prob",
    ),
    (lambda: HCPI(trainer=BasicRL), "trainer is the class BasicRL, expected an Algorithm: give"),
    # the checks themselves
    (lambda: number("rate", "0.5", 0, 1), "rate is '0.5', expected a number in [0, 1]"),
    (lambda: number("rate", True, 0, 1), "rate is True, expected a number"),
    (lambda: positive("runs", 1.5), "runs is 1.5, expected a whole number of at least 1"),
    (lambda: positive("runs", True), "runs is True"),
    (lambda: positive("runs", None), "runs is None"),
    (lambda: positive("runs", np.nan), "runs is nan"),
    (lambda: positive("runs", np.inf), "runs is inf"),
    (lambda: positive("runs", [1]), "runs is [1]"),
    (lambda: flag("safe", 1), "safe is 1, expected true or false"),
    (lambda: seed(-1), "seed is -1"),
    (lambda: instance("rng", 3, np.random.Generator), "rng is an int, expected a Generator"),
    (lambda: several("names", "abc", "['a']"), "names is 'abc', expected one or more"),
    (lambda: column("prob", [[1]]), "prob has shape (1, 1)"),
    # cases, functions and objects of other libraries
    (lambda: B.act_many(5), "cases is 5, expected a table or a mapping with the columns state"),
    (lambda: B.act_many(None), "cases is None, expected a table"),
    (lambda: B.act_many("a"), "cases is 'a', expected a table"),
    (lambda: B.act_many(np.array("a")), "state"),
    (lambda: B.act_many({"state": [["a"]]}), "column 'state' of the cases holds ['a'], expected"),
    (lambda: B.act_many({"state": 5}), "state is 5, expected one value per row"),
    (lambda: Log.from_arrays(5, [0], [1]), "state is 5, expected one value per row"),
    (lambda: Log.from_arrays(["a"], None, [1]), "action is None, expected one value per row"),
    (lambda: Log.from_arrays(np.array(5), [0], [1]), "state is array(5), expected one value per"),
    (lambda: Problem.from_log(LOG, lambda s: None), "baseline gives None in state 'a', expected"),
    (lambda: Problem.from_log(LOG, lambda s: 0.5), "baseline gives 0.5 in state 'a', expected"),
    (lambda: spibb.collect("FrozenLake-v1", B, 3, rng=RNG), "env is 'FrozenLake-v1', expected an"),
    (lambda: spibb.collect(None, B, 3, rng=RNG), "env is None, expected an object with 'step'"),
    (lambda: spibb.collect(None, None, 3, rng=RNG), "policy is None, expected a Policy"),
    (
        lambda: spibb.collect(None, B, 3, rng=0),
        f"rng is an int, expected a Generator: {GENERATORS}",
    ),
    (lambda: spibb.from_minari("lake"), "dataset is 'lake', expected an object with 'iterate_epi"),
    (lambda: spibb.from_d3rlpy(None), "dataset is None, expected an object with 'episodes'"),
]


@pytest.mark.parametrize(("call", "part"), CASES, ids=[part[:50] for _, part in CASES])
def test_a_bad_argument_is_named(call, part):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InputError) as raised:
            call()
    message = str(raised.value)
    assert part in message
    assert "\n" not in message and len(message) < 400


def test_a_missing_argument_is_pythons_own_error():
    with pytest.raises(TypeError, match=r"Policy.sample\(\) missing .* argument: 'rng'") as raised:
        B.sample("a")
    assert raised.value.__context__ is None
    with pytest.raises(TypeError, match=r"Log.save\(\) got an unexpected keyword argument 'x'"):
        LOG.save("log.csv", x=3)


def test_the_error_is_a_value_error():
    assert issubclass(InputError, ValueError)
    assert spibb.InputError is InputError


def test_an_algorithm_may_be_a_name_a_class_or_configured():
    policies = [
        spibb.improve(LOG, B, algorithm="pi-b", n_wedge=2),
        spibb.improve(LOG, B, algorithm=PiBSpibb, n_wedge=2),
        spibb.improve(LOG, B, algorithm=PiBSpibb(n_wedge=2)),
    ]
    for result in policies[1:]:
        np.testing.assert_array_equal(result.policy.probs, policies[0].policy.probs)


@pytest.mark.parametrize("value", [3, 3.0, np.int8(3), np.float32(3), np.array(3)])
def test_numbers_of_any_kind_are_numbers(value):
    assert positive("runs", value) == number("rate", value, 0, 5) == as_float(value) == 3


@pytest.mark.parametrize("kind", [float, np.int8, np.uint64, np.float32, np.array])
def test_whole_numbers_of_any_kind_compute(kind):
    n = kind(100)
    rng = np.random.default_rng
    drawn = simulate(WORLD, B, n, rng=rng(0), max_steps=n)
    np.testing.assert_array_equal(
        drawn.state, simulate(WORLD, B, 100, rng=rng(0), max_steps=100).state
    )
    results = [HCPI(updates=n).improve(PROBLEM), Auto(draws=n).improve(PROBLEM)]
    for result, same in zip(results, (HCPI(updates=100), Auto(draws=100))):
        np.testing.assert_array_equal(result.policy.probs, same.improve(PROBLEM).policy.probs)
        assert result.algorithm == same
    assert len(results[1].posterior(draws=n).gains) == 100


def test_long_values_are_cut():
    assert len(shown("x" * 1000)) == 80
    assert len(shown(dict.fromkeys(range(1000), "x" * 1000))) <= 80
    assert "\n" not in shown(np.zeros((5, 5)))


MASKED = np.ma.array([1.0], mask=[True])
COLUMNS_THAT_ARE_NOT = [
    ("reward", MASKED, "reward is missing in row 0"),
    ("prob", MASKED, "prob is missing in row 0"),
    ("initial", MASKED, "initial is missing in row 0"),
    ("state", np.ma.array([0], mask=[True]), "state is missing in row 0"),
    ("action", np.ma.array([0], mask=[True]), "action is missing in row 0"),
    ("reward", np.array(["2020-01-01"], "datetime64[D]"), "reward is "),
    ("reward", np.array([1 + 2j]), "reward is "),
    ("reward", np.array([np.datetime64("2020-01-01")], dtype=object), "reward is "),
    ("reward", ["1"], "reward is ['1'], expected an array of numbers"),
    ("reward", [None], "reward is [None], expected an array of numbers"),
    ("state", np.array([[0]]), "state has shape (1, 1), expected one code per row"),
    ("action", np.array([[0]]), "action has shape (1, 1), expected one code per row"),
]


@pytest.mark.parametrize(("name", "values", "message"), COLUMNS_THAT_ARE_NOT)
def test_outcomes_take_numbers_only(name, values, message):
    with pytest.raises(InputError) as caught:
        outcomes(**{name: values})
    assert str(caught.value).startswith(message)


def test_a_masked_successor_is_missing_unless_the_process_ends():
    hidden = np.ma.array([0], mask=[True])
    assert outcomes(next_state=hidden).exits.tolist() == [[1.0]]
    two = {"state": [0, 0], "action": [0, 0], "prob": [0.5, 0.5], "reward": [0.0, 0.0]}
    hidden = np.ma.array([0, 0], mask=[True, True])
    with pytest.raises(InputError, match="next_state is missing in row 1"):
        outcomes(**two, next_state=hidden, terminated=[True, False])


@pytest.mark.parametrize("kind", [np.uint8, np.uint32, np.uint64, np.int8])
def test_successors_of_any_whole_type_may_end(kind):
    two = {"state": [0, 0], "action": [0, 0], "prob": [0.5, 0.5], "reward": [0.0, 0.0]}
    mdp = outcomes(**two, next_state=np.array([0, 0], kind), terminated=[True, False])
    assert (mdp.exits.tolist(), mdp.probs.tolist()) == ([[0.5]], [0.5])
    with pytest.raises(InputError, match="next_state of outcome 1 is 7, expected"):
        outcomes(**two, next_state=np.array([0, 7], kind), terminated=[True, False])


@pytest.mark.parametrize(
    "rows", [np.ma.array([[0.5, 0.5]] * 2, mask=[[0, 0], [0, 1]]), np.array([[1 + 1j, 0]] * 2)]
)
def test_policies_take_numbers_only(rows):
    with pytest.raises(InputError, match=r"policy is (missing in row 1|.*an array of numbers)"):
        Policy(rows)
    with pytest.raises(InputError, match=r"baseline is (missing in row 1|.*an array of numbers)"):
        spibb.improve(LOG, rows)


def built(**changes):
    """An MDP of two states and one action, made from its arrays, with some of them replaced."""
    given = {
        "indptr": np.arange(3), "successors": np.array([1, 0]), "probs": np.array([0.5, 1.0]),
        "rewards": np.ones((2, 1)), "initial": np.array([0.5, 0.5]), "discount": 0.9,
        "states": Vocabulary([0, 1]), "actions": Vocabulary([0]),
    }  # fmt: skip
    return MDP(**(given | changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"probs": np.array([0.5, 2.0])}, "prob of outcome 1 is 2, expected a number in [0, 1]"),
        ({"probs": np.array([-1.0, 1.0])}, "prob of outcome 0 is -1"),
        ({"probs": np.array([0.5, np.nan])}, "prob of outcome 1 is nan"),
        ({"probs": np.array([0.5j, 1.0])}, "probs of the MDP is "),
        ({"probs": np.ma.array([0.5, 1.0], mask=[0, 1])}, "probs of the MDP is missing in row 1"),
        ({"indptr": np.array([0, 2, 2]), "probs": np.array([0.6, 0.6])}, "outcomes of state 0"),
        ({"rewards": np.array([[1.0], [np.nan]])}, "rewards of the MDP hold nan in state 1"),
        ({"rewards": np.array([[-np.inf], [1.0]])}, "rewards of the MDP hold -inf in state 0"),
        ({"successors": np.array([1.0, 0.0])}, "successors of the MDP holds float64"),
    ],
)
def test_an_mdp_of_arrays_is_checked(changes, message):
    assert built().shape == (2, 1)
    with pytest.raises(InputError) as caught:
        built(**changes)
    assert str(caught.value).startswith(message)


def test_an_initial_distribution_that_is_almost_one_is_divided_by_its_sum():
    mdp = built(initial=np.array([0.5, 0.5 + 9e-7]))
    assert mdp.initial.sum() == pytest.approx(1, abs=1e-15)
    assert not mdp.initial.flags.writeable


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"indptr": np.array([0, 1])}, "indptr of the counts has 2 entries, expected 5"),
        ({"indptr": np.array([0, 3, 1, 4, 4])}, "indptr of the counts must rise from 0 to 4"),
        ({"indptr": np.array([0, 1, 2, 3, 9])}, "indptr of the counts must rise from 0 to 4"),
        ({"successors": np.array([0, 1, 7, 0])}, "successors of the counts hold 7"),
        ({"successors": np.array([0, 1, -2, 0])}, "successors of the counts hold -2"),
        ({"n": np.array([1, 1])}, "columns differ in length (successors 4, n 2"),
        ({"n": np.array([1, 1, 0, 1])}, "counts must be positive"),
        ({"reward_sq": np.ones((4, 1))}, "reward_sq of the counts has 2 dimensions"),
        ({"starts": np.array([1])}, "starts of the counts has shape"),
        ({"reward_sum": np.array([1.0, np.inf, 0.0, 0.0])}, "rewards add up to infinity"),
    ],
)
def test_counts_are_checked_when_they_are_made(changes, message):
    given = {
        "indptr": np.arange(5), "successors": np.array([0, 1, -1, 0]), "n": np.array([1, 1, 1, 1]),
        "reward_sum": np.zeros(4), "reward_sq": np.zeros(4), "starts": np.array([1, 0]),
        "reward_range": (0.0, 0.0), "states": Vocabulary([0, 1]), "actions": Vocabulary([0, 1]),
    }  # fmt: skip
    spibb.Counts(**given)
    with pytest.raises(InputError, match=re.escape(message)):
        spibb.Counts(**(given | changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"shape": (3, 1)}, "indptr of the outcomes has 3 entries, expected 4"),
        ({"successors": np.array([5, -1])}, "successors of the outcomes hold 5"),
        ({"rewards": np.array([np.nan, 0.0])}, "rewards of the outcomes in row 0 is nan"),
        ({"probs": np.array([1.0])}, "columns differ in length (successors 2, probs 1"),
    ],
)
def test_outcomes_are_checked_when_they_are_made(changes, message):
    given = {
        "indptr": np.arange(3), "successors": np.array([1, -1]), "probs": np.ones(2),
        "rewards": np.zeros(2), "shape": (2, 1),
    }  # fmt: skip
    Outcomes(**given)
    with pytest.raises(InputError, match=re.escape(message)):
        Outcomes(**(given | changes))


def test_a_candidate_of_an_equal_sweep_has_the_same_rows():
    result = Auto().improve(PROBLEM)
    for one, other in zip(result.sweep, Auto().sweep(PROBLEM)):
        np.testing.assert_array_equal(result.rows_of(one), result.rows_of(other))


def test_a_huge_smoothing_gives_equal_chances():
    found = Problem.from_log(LOG, smoothing=10**30).baseline.probs
    np.testing.assert_allclose(found, 0.5)
