"""Policies meet MDPs, counts and logs by label: order never matters, and gaps are refused by name.

`CALLS` has one entry for every public function that takes a policy together with one of them; a
new one that is missing here fails the first test.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spibb
from spibb.algorithms.problem import Problem
from spibb.assurance.posterior import posterior_improvement
from spibb.behaviour import in_common
from spibb.comparison import Comparison, compare
from spibb.counts import Counts
from spibb.envs.baselines import gridworld_baseline, performance
from spibb.envs.gridworld import gridworld_mdp
from spibb.envs.softening import softened_baselines
from spibb.errors import InputError
from spibb.evaluate import exact_value
from spibb.experiments.compiled import CompiledTrainer
from spibb.kernels import sampling
from spibb.labels import Vocabulary
from spibb.log import Log
from spibb.mdp import MDP
from spibb.ope import Candidates, contributions, off_policy_estimates
from spibb.paper.arrows import arrow_picture
from spibb.policy import Policy
from spibb.simulate import Sampler, simulate

STATES, ACTIONS = ("ash", "bay", "cod", "dew"), ("go", "rest", "wait")
OTHER = Policy([[0.2, 0.3, 0.5]] * 4, STATES, ACTIONS)


def world() -> MDP:
    """Four labelled states, three labelled actions, random rows and rewards."""
    rng = np.random.default_rng(0)
    pair = np.repeat(np.arange(12), 4)
    return MDP.from_outcomes(
        pair // 3, pair % 3, rng.dirichlet(np.ones(4), size=12).ravel(),
        np.tile([0, 1, 2, 3], 12), rng.normal(size=48), np.tile([0, 0, 0, 1], 12),
        initial=np.full(4, 0.25), n_actions=3, discount=0.9, states=STATES, actions=ACTIONS,
    )  # fmt: skip


MDP_ = world()
LOG = simulate(MDP_, Policy.uniform(STATES, ACTIONS), 300, rng=np.random.default_rng(1))
COUNTS = Counts.from_log(LOG)
PROBLEM = Problem.from_log(LOG, Policy.uniform(STATES, ACTIONS), discount=0.9)


def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def rows_of(result: Any) -> list[dict]:
    """An improvement by label: what the policy plays and its values, state by state."""
    states = sorted(result.policy.states.labels)
    return [result.policy.row(s) | {"v": result.v[result.policy.states.code(s)]} for s in states]


def told(report: Any) -> list[float]:
    return [row.estimate.value for row in report.rows]


def compared(found: Comparison) -> tuple[Any, ...]:
    """What two policies differ in, and what the log says of one in the place of the other."""
    differences = {d.state: (d.variation, d.greedy_a, d.greedy_b) for d in found.differences}
    return (
        found.common, found.mean_variation, differences, str(found.verdict.grade),
        found.evidence.lower, found.evidence.posterior.gain,
    )  # fmt: skip


def nearly(policy: Policy) -> Policy:
    """A policy between the uniform one and this one: such as may have made the log."""
    played = policy.probs > 0
    uniform = played / played.sum(axis=1, keepdims=True)
    return Policy(0.95 * uniform + 0.05 * policy.probs, policy.states, policy.actions)


def plan(policy: Policy) -> np.ndarray:
    """The compiled call, on one data set of the uniform policy."""
    sampler = Sampler(MDP_, Policy.uniform(STATES, ACTIONS))
    algorithms = [spibb.PiBSpibb(n_wedge=3)]
    return CompiledTrainer(algorithms, sampler, policy, 10.0).performances(
        *sampler.draw(50, rng=rng())
    )


def foretold(found: spibb.inspection.Inspection) -> np.ndarray:
    """What a forecast is, and whether the baseline can have made the log."""
    ahead = found.forecast
    return np.array([ahead.now, ahead.then, ahead.more_episodes or 0, found.unlike is None])


CALLS: dict[str, Callable[[Policy], Any]] = {
    "exact_value": lambda p: exact_value(MDP_, p),
    "Sampler": lambda p: Sampler(MDP_, p).log(20, rng=rng()).reward,
    "simulate": lambda p: simulate(MDP_, p, 20, rng=rng()).state,
    "posterior_improvement": lambda p: (
        posterior_improvement(COUNTS, p, OTHER, 0.9, rng=rng(), draws=20).values
    ),
    "posterior_improvement of a baseline": lambda p: (
        posterior_improvement(COUNTS, OTHER, p, 0.9, rng=rng(), draws=20).values
    ),
    "off_policy_estimates": lambda p: told(
        off_policy_estimates(LOG, p, OTHER, 0.9, rng=rng(), bounds=("student-t",))
    ),
    "off_policy_estimates of a behaviour": lambda p: told(
        off_policy_estimates(LOG, OTHER, p, 0.9, rng=rng(), bounds=("student-t",))
    ),
    "off_policy_estimates with a model": lambda p: told(
        off_policy_estimates(LOG, p, OTHER, 0.9, rng=rng(), bounds=("student-t",), model=MDP_)
    ),
    "compare": lambda p: compared(compare(p, OTHER, LOG, discount=0.9)),
    "compare with": lambda p: compared(compare(OTHER, p, LOG, discount=0.9)),
    "improve": lambda p: rows_of(spibb.improve(LOG, p, discount=0.9, n_wedge=5)),
    "run": lambda p: rows_of(spibb.run(LOG, baseline=p, discount=0.9, n_wedge=5).improvement),
    "Problem": lambda p: rows_of(
        spibb.PiBSpibb(n_wedge=5).improve(Problem.from_log(LOG, p, discount=0.9))
    ),
    "Problem from counts": lambda p: rows_of(
        spibb.PiLeqBSpibb(n_wedge=5).improve(Problem.from_counts(COUNTS, p, discount=0.9))
    ),
    "inspect_log": lambda p: foretold(spibb.inspect_log(LOG, baseline=p)),
    "HCPI": lambda p: rows_of(spibb.HCPI(behaviour=nearly(p)).improve(PROBLEM)),
    "CompiledTrainer": plan,
}
NO_COMPANION = {"Policy", "collect", "Improvement", "read_policy", "load_policy", "monitor",
                "LoadedPolicy"}  # fmt: skip
"""Names that make a policy, ask it by label, take a folder, or are made by algorithms (tested
below)."""


def test_every_public_name_that_takes_a_policy_is_tested_here():
    taken = {"policy", "policies", "baseline", "behaviour"}
    found = set()
    for name in spibb.__all__:
        thing = getattr(spibb, name)
        makers = [thing] if not inspect.isclass(thing) else [
            thing.__init__, *(m for k, m in inspect.getmembers(thing, inspect.ismethod)
                              if k.startswith("from_"))
        ]  # fmt: skip
        for maker in filter(callable, makers):
            if taken & set(inspect.signature(maker).parameters):
                found.add(name)
    assert found - NO_COMPANION <= {name.split()[0] for name in CALLS}
    assert {"exact_value", "Sampler", "Problem", "off_policy_estimates"} <= found


ORDERS = {
    "order": st.permutations(range(4)),
    "columns": st.permutations(range(3)),
    "seed": st.integers(0, 2**32 - 1),
}


@pytest.mark.parametrize("name", [name for name in CALLS if name != "run"])
@settings(max_examples=30)  # any order but the first shows what is taken by position
@given(**ORDERS)
def test_the_order_of_rows_and_columns_changes_no_answer(name, order, columns, seed):
    assert_same_in_any_order(name, order, columns, seed)


@settings(max_examples=20)
@given(**ORDERS)
def test_the_order_of_rows_and_columns_changes_no_run(order, columns, seed):
    """A run improves as `improve` does, which has more examples, and assesses, which is slow."""
    assert_same_in_any_order("run", order, columns, seed)


def assert_same_in_any_order(name: str, order: list[int], columns: list[int], seed: int) -> None:
    probs = np.random.default_rng(seed).dirichlet(np.ones(3), size=4)
    straight = Policy(probs, STATES, ACTIONS)
    shuffled = Policy(
        probs[np.ix_(order, columns)], [STATES[i] for i in order], [ACTIONS[i] for i in columns]
    )
    assert_same(CALLS[name](shuffled), CALLS[name](straight))


def assert_same(one: Any, two: Any) -> None:
    if isinstance(one, dict):
        keys = one.keys() | two.keys()
        assert_same([one.get(key, 0.0) for key in keys], [two.get(key, 0.0) for key in keys])
    elif isinstance(one, list | tuple):
        assert len(one) == len(two)
        for a, b in zip(one, two, strict=True):
            assert_same(a, b)
    elif isinstance(one, str) or one is None:
        assert one == two
    else:
        np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", CALLS)
def test_a_policy_with_fewer_rows_is_refused_by_name(name):
    short = Policy.uniform(STATES[:-1], ACTIONS)
    with pytest.raises(InputError, match="has no row for state 'dew'"):
        CALLS[name](short)


@pytest.mark.parametrize("name", CALLS)
def test_a_policy_of_other_states_is_refused_by_name(name):
    with pytest.raises(InputError, match=r"no row for state 'ash'|no state in common"):
        CALLS[name](Policy.uniform(4, ACTIONS))


LOG_ONLY = {name for name in CALLS if name.split()[0] in (
    "posterior_improvement", "off_policy_estimates", "compare", "improve", "run",
    "Problem", "inspect_log",
)} - {"off_policy_estimates with a model"}  # fmt: skip
"""A log may simply not show an action; an MDP, and a problem that was built, know them all."""


@pytest.mark.parametrize("name", sorted(set(CALLS) - LOG_ONLY))
def test_an_unknown_action_that_is_played_is_refused_by_name(name):
    odd = Policy.uniform(STATES, (*ACTIONS, "jump"))
    with pytest.raises(InputError, match="plays action 'jump' in state 'ash', which is not among"):
        CALLS[name](odd)


@pytest.mark.parametrize("name", sorted(LOG_ONLY))
def test_an_action_that_the_log_never_shows_may_be_played(name):
    probs = np.tile([0.4, 0.3, 0.2, 0.1], (4, 1))
    one, two = (
        CALLS[name](Policy(probs[:, order], STATES, [(*ACTIONS, "jump")[i] for i in order]))
        for order in ([0, 1, 2, 3], [3, 1, 0, 2])
    )
    assert_same(one, two)


@pytest.mark.parametrize("name", CALLS)
def test_an_unknown_action_that_is_never_played_changes_nothing(name):
    padded = Policy(np.tile([0.0, 0.5, 0.2, 0.3], (4, 1)), STATES, ("jump", *ACTIONS))
    assert_same(CALLS[name](padded), CALLS[name](Policy([[0.5, 0.2, 0.3]] * 4, STATES, ACTIONS)))


def test_a_policy_of_another_world_is_an_error_and_no_crash():
    with pytest.raises(InputError, match=r"policy has no row for state 5, 6, 7.* \(20 of 25"):
        simulate(gridworld_mdp(), Policy.uniform(5, 4), 10, rng=rng())
    with pytest.raises(InputError, match="plays action 0 in state 0"):
        simulate(gridworld_mdp(), Policy.uniform(25, 4), 10, rng=rng())


def test_the_gridworld_baseline_in_another_order_is_worth_the_same():
    """By position it is worth 0.080 instead of 0.402."""
    baseline, order = gridworld_baseline(), np.random.default_rng(0).permutation(25)
    shuffled = Policy(baseline.probs[order], order.tolist(), baseline.actions)
    assert exact_value(gridworld_mdp(), shuffled) == pytest.approx(0.402250, abs=1e-6)


def test_a_picture_of_another_world_is_refused(tmp_path):
    with pytest.raises(InputError, match="mine has no row for state"):
        arrow_picture({"mine": Policy.uniform(5, 4)}, {}, tmp_path / "arrows.png")


# ---- arrays, which have no labels: shapes are checked ------------------------------------------


def test_arrays_of_another_shape_are_refused():
    with pytest.raises(InputError, match=r"the policy has shape \(3, 3\), expected \(4, 3\)"):
        performance(MDP_, np.full((3, 3), 1 / 3))
    with pytest.raises(InputError, match=r"optimal_q has shape \(2, 3\), expected \(4, 3\)"):
        softened_baselines(MDP_, [0.5], rng(), optimal_q=np.zeros((2, 3)))
    with pytest.raises(InputError, match=r"the policies are \(3, 3\) and the log's labels \(4, 3"):
        contributions(
            LOG, Candidates.of(np.full((3, 3), 1 / 3)), np.ones(len(LOG)), 0.9, names=("is",)
        )
    with pytest.raises(InputError, match="columns differ in length"):
        contributions(LOG, Candidates.of(OTHER.probs), np.ones(3), 0.9, names=("is",))
    with pytest.raises(InputError, match=r"baseline has shape \(3, 3\), expected \(4, 3\)"):
        Problem.from_log(LOG, np.full((3, 3), 1 / 3))


def test_problems_and_results_with_labels_of_their_own_are_refused():
    other = Policy.uniform(4, 3)
    with pytest.raises(InputError, match="counts and baseline have different labels: build it"):
        dataclasses.replace(PROBLEM, baseline=other)
    result = spibb.PiBSpibb(n_wedge=5).improve(PROBLEM)
    with pytest.raises(InputError, match="'pi-b' returned a policy whose labels are not those"):
        dataclasses.replace(result, policy=other)


@pytest.mark.parametrize(
    ("row", "wrong"),
    [
        ([-0.96, 1.96, 0], r", action 'go': probability is -0.96, expected a number in \[0, 1\]"),
        ([np.nan, 1, 0], ", action 'go': probability is nan"),
        ([0.5, 0.4, 0], " sums to 0.9, expected 1"),
    ],
)
def test_a_result_whose_rows_are_no_distributions_is_refused(row, wrong):
    result = spibb.PiBSpibb(n_wedge=5).improve(PROBLEM)
    probs = result.policy.probs.copy()
    probs[1] = row
    policy = Policy.trusted(probs, PROBLEM.states, PROBLEM.actions)
    named = f"algorithm 'pi-b' returned a policy whose row '{PROBLEM.states[1]}'{wrong}"
    with pytest.raises(InputError, match=named):
        dataclasses.replace(result, policy=policy)


def test_a_log_and_policies_get_the_labels_that_they_need():
    jumping = Policy.uniform(STATES, ("jump", "go"))
    log, (one, two) = in_common(LOG, {"A": jumping, "B": OTHER})
    assert tuple(log.actions.labels) == (*ACTIONS, "jump")
    assert one.row("bay") == {"go": 0.5, "rest": 0, "wait": 0, "jump": 0.5}
    assert two.row("bay") == {"go": 0.2, "rest": 0.3, "wait": 0.5, "jump": 0}


# ---- dataframes --------------------------------------------------------------------------------

PROBS = np.array([[0.1, 0.2, 0.7], [0.5, 0.5, 0.0], [0.3, 0.3, 0.4], [0.0, 1.0, 0.0]])
ORDER, COLUMNS = [2, 0, 3, 1], [1, 2, 0]
WIDE = pd.DataFrame(
    PROBS[np.ix_(ORDER, COLUMNS)], [STATES[i] for i in ORDER], [ACTIONS[i] for i in COLUMNS]
)
LONG = (
    WIDE.rename_axis("state").reset_index()
    .melt("state", var_name="action", value_name="probability").sample(frac=1, random_state=0)
)  # fmt: skip
FRAMES = {
    "wide pandas": WIDE,
    "wide pandas with a column of states": WIDE.rename_axis("state").reset_index(),
    "long pandas": LONG,
    "long pandas with prob": LONG.rename(columns={"probability": "prob"}),
    "long pandas without zeros": LONG[LONG.probability > 0],
    "wide polars": pl.from_pandas(WIDE.rename_axis("state").reset_index()),
    "long polars": pl.from_pandas(LONG),
    "lazy polars": pl.from_pandas(LONG).lazy(),
    "arrow": pl.from_pandas(LONG).to_arrow(),
}


@pytest.mark.parametrize("name", FRAMES)
@pytest.mark.parametrize("data", [LOG, COUNTS], ids=["log", "counts"])
def test_a_dataframe_is_read_by_its_labels(name, data):
    make = Problem.from_log if isinstance(data, Log) else Problem.from_counts
    problem = make(data, FRAMES[name], discount=0.9)
    for s, row in zip(STATES, PROBS, strict=True):
        assert problem.baseline.row(s) == pytest.approx(dict(zip(ACTIONS, row, strict=True)))


def test_a_dataframe_with_numbers_as_labels_is_read_by_them():
    numbers = Log.from_arrays([0, 1, 2], [0, 1, 1], [0.0, 1.0, 0.0], terminated=[1, 1, 1])
    wide = pd.DataFrame([[0.3, 0.7], [1.0, 0.0], [0.5, 0.5]], [2, 0, 1], [1, 0])
    expected = [[0.0, 1.0], [0.5, 0.5], [0.7, 0.3]]
    frames = wide, pl.from_pandas(wide.rename_axis("state").reset_index().rename(columns=str))
    for frame in frames:
        np.testing.assert_allclose(Problem.from_log(numbers, frame).baseline.probs, expected)


def test_a_dataframe_of_states_in_two_columns_is_read_by_both():
    log = Log.from_arrays(
        [("a", 1), ("a", 2)], ["x", "y"], [0.0, 1.0], terminated=[1, 1],
        state_labels=Vocabulary([("a", 1), ("a", 2)], ("ward", "bed")),
    )  # fmt: skip
    wide = pd.DataFrame(
        [[0.25, 0.75], [0.5, 0.5]], pd.MultiIndex.from_tuples([("a", 2), ("a", 1)]), ["y", "x"]
    )
    columns = pl.DataFrame({"ward": ["a", "a"], "bed": [2, 1], "y": [0.25, 0.5], "x": [0.75, 0.5]})
    for frame in (wide, columns):
        assert Problem.from_log(log, frame).baseline.row(("a", 2)) == {"x": 0.75, "y": 0.25}


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (
            pl.DataFrame({"go": [1.0] * 4}),
            "does not say which state a row belongs to: give the col",
        ),
        (pl.DataFrame({"state": STATES}), "has no column for any action: give the columns"),
        (WIDE.iloc[:3], "baseline table has no row for state 'bay'"),
        (WIDE.reset_index(drop=True), "baseline table has no row for state"),
        (WIDE * 0.5, "baseline table row 'ash' sums to 0.5, expected 1"),
        (WIDE.assign(go=np.nan), "baseline table row 'ash', action 'go': probability is nan"),
        (WIDE.assign(go="much"), "holds something other than numbers: give the columns"),
        (pd.concat([WIDE, WIDE]), "lists state .* more than once: keep one"),
        (LONG.rename(columns={"probability": "share"}), "baseline table has no column 'prob"),
    ],
)
def test_a_dataframe_that_cannot_be_read_is_refused(frame, message):
    with pytest.raises(InputError, match=message):
        Problem.from_log(LOG, frame)


@pytest.mark.parametrize("frame", [WIDE, pl.from_pandas(LONG)], ids=["pandas", "polars"])
def test_a_policy_made_of_a_dataframe_would_lose_its_labels(frame):
    with pytest.raises(InputError, match="is a table, whose labels would be lost: give the table"):
        Policy(frame)


def test_outcomes_beyond_the_alias_tables_are_not_drawn():
    """Every code that occurs is a slot of the tables, whatever the policy leaves out."""
    sampler = Sampler(MDP_, Policy([[0, 0, 1.0]] * 4, STATES, ACTIONS))
    codes, _ = sampler.draw(500, rng=rng())
    visits = sampling.histogram(codes, len(sampler.action))
    assert (sampler.action[visits > 0] == 2).all()


def test_columns_in_another_order_change_no_answer():
    """A policy over (ward, bed), a log over (bed, ward): the same numbers name other states."""
    states = Vocabulary([(0, 0), (0, 1), (1, 0), (1, 1)], ("ward", "bed"))
    swapped = Vocabulary([(0, 0), (0, 1), (1, 0), (1, 1)], ("bed", "ward"))
    drawn = rng()
    at, done = drawn.integers(4, size=400), drawn.integers(2, size=400)
    ward = np.array([label[1] for label in swapped.labels])[at]
    log = Log.from_arrays(
        [swapped.labels[s] for s in at], done, (done == ward) * 1.0, terminated=[True] * 400,
        state_labels=swapped,
    )  # fmt: skip
    by_ward = Policy([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]], states, [0, 1])
    uniform = Policy.uniform(states, log.actions)
    report = spibb.off_policy_estimates(
        log, by_ward, uniform, 0.9, rng=rng(), bounds=("student-t",)
    )
    assert report["wis"].estimate.value == pytest.approx(1.0)
    problem = Problem.from_log(log, by_ward, discount=0.9)
    assert problem.baseline.row((0, 1)) == {0: 0.0, 1: 1.0}  # bed 0 of ward 1
    assert by_ward.aligned(swapped, log.actions).row((0, 1)) == {0: 0.0, 1: 1.0}
    same = Policy([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]], swapped, [0, 1])
    assert not compare(by_ward, same).differences
