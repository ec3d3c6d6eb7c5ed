"""Decisions for many cases: as one case at a time, whatever the frame, the pieces and the order."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spibb import Bins, Policy, Vocabulary
from spibb.decisions import draw, uniforms
from spibb.errors import InputError
from spibb.ingest.loaded import LoadedPolicy

WARDS = ["north", "o'brien", 'say "no"', "Zürich\n", ""]
AGES = Bins((18, 40.5, 65))
STATES = [(w, a, n) for w in WARDS for a in AGES.labels for n in (-1, 0, 2**62)]


def policy(states=STATES, names=("ward", "age", "n"), actions=("go", "stay", "wait"), seed=0):
    rng = np.random.default_rng(seed)
    kept = rng.permutation(len(states))[: max(1, len(states) - 7)]
    known = Vocabulary([states[i] for i in kept], names)
    probs = rng.dirichlet(np.full(len(actions), 0.5), len(known))
    return LoadedPolicy(Policy(probs, known, list(actions)), {"age": AGES}, {})


def one_by_one(loaded, rows):
    """The oracle: the most probable action of each case, or None."""
    found = []
    for row in rows:
        try:
            found.append(loaded.best(row))
        except InputError:
            found.append(None)
    return found


CASES = st.fixed_dictionaries({
    "ward": st.sampled_from([*WARDS, "south", None]),
    "age": st.one_of(st.floats(-5, 90), st.sampled_from([18.0, 40.5, math.nan, None])),
    "n": st.sampled_from([-1, 0, 1, 2**62]),
})  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.lists(CASES, min_size=1, max_size=30))
def test_many_cases_are_decided_as_each_by_itself(rows):
    loaded = policy()
    table = pa.table({name: [row[name] for row in rows] for name in ("ward", "age", "n")})
    found = loaded.act_many(table, deterministic=True, unseen="empty")
    assert found.labels == one_by_one(loaded, rows)


KINDS = {
    "pandas": lambda t: t.to_pandas(),
    "objects": lambda t: t.to_pandas().astype(object),
    "categories": lambda t: t.to_pandas().astype({"ward": "category"}),
    "polars": pl.from_arrow,
    "lazy": lambda t: pl.from_arrow(t).lazy(),
    "arrow": lambda t: t,
    "chunks": lambda t: pa.concat_tables([t[:3], t[3:]]),
    "mapping": lambda t: {name: t.column(name).to_pylist() for name in t.column_names},
    "list of cases": lambda t: t.to_pylist(),
    "arrays": lambda t: {name: t.column(name).to_numpy() for name in t.column_names},
    "text": lambda t: pa.table({n: t.column(n).cast("string") for n in t.column_names}),
    "other order": lambda t: t.select(["n", "age", "ward"]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_any_frame_gives_the_same_decisions(kind):
    loaded = policy()
    labels = loaded.policy.states.labels
    middle = {label: (0, 20, 50, 70)[i] for i, label in enumerate(AGES.labels)}
    table = pa.table({
        "ward": [w for w, _, _ in labels], "age": [float(middle[a]) for _, a, _ in labels],
        "n": [n for _, _, n in labels],
    })  # fmt: skip
    expected = loaded.act_many(list(labels), seed=3)
    found = loaded.act_many(KINDS[kind](table), seed=3)
    assert found.labels == expected.labels
    np.testing.assert_array_equal(found.probability, expected.probability)


@pytest.mark.parametrize("labels", [["a", "b"], [3, 7], [True, False], range(5)])
def test_labels_of_any_type_are_found_and_true_is_not_one(labels):
    made = Policy(np.eye(len(labels)), list(labels), [f"act {i}" for i in range(len(labels))])
    assert made.act_many(list(labels)).labels == list(made.actions.labels)
    others = [True, "3", "a"] if labels != [True, False] else [1, 0]
    for other in others:
        if other in labels and isinstance(other, bool) == isinstance(labels[0], bool):
            continue
        if str(other) in map(str, labels) and not isinstance(other, bool):
            continue  # text that names a number is that number
        with pytest.raises(InputError, match="a case is in a state that is not in the policy"):
            made.act_many([other])


BIG = 2**53
NEIGHBOURS = {
    "pandas": pd.DataFrame({"state": [BIG + 1, None]}),
    "array": {"state": np.array([BIG + 1.0])},
    "single precision": {"state": np.array([BIG + 1.0], dtype=np.float32)},
    "arrow": pa.table({"state": pa.array([0.0, float(BIG)])}),
    "objects": [float(BIG + 1)],
    "text": {"state": [f"{BIG + 1}.0"]},
    "negative": {"state": [-float(BIG)]},
}


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("kind", NEIGHBOURS)
def test_a_float_that_several_whole_numbers_round_to_is_no_label(kind, text):
    """As in logs; pandas makes such floats of a column of whole numbers with one missing."""
    labels = [str(n) if text else n for n in (BIG, BIG + 1, -BIG)]
    made = Policy(np.eye(3), labels, ["wait", "treat", "other"])
    if text and kind == "text":
        assert made.act_many(NEIGHBOURS[kind], unseen="empty").labels == [None]
        return
    with pytest.raises(InputError, match=r"state holds -?900719925474099[0-9], too large for a"):
        made.act_many(NEIGHBOURS[kind], unseen="empty", deterministic=True)


def test_large_whole_numbers_are_told_apart_where_the_column_does():
    made = Policy(np.eye(2), [BIG, BIG + 1], ["wait", "treat"])
    numbers = {"state": pa.array([BIG + 1, None, BIG])}
    decimals = {"state": [Decimal(BIG + 1), None, Decimal(BIG)]}
    text = {"state": [str(BIG + 1), None, f"{BIG}"]}
    for cases in (numbers, decimals, text):
        assert made.act_many(cases, unseen="empty").labels == ["treat", None, "wait"]
    for one in (made.row, made.states.code, LoadedPolicy(made, {}, {}).row):
        with pytest.raises(InputError, match="too large for a float"):
            one(float(BIG + 1))
    pairs = Policy(np.eye(2), [("x", BIG), ("x", BIG + 1)], ["wait", "treat"])
    with pytest.raises(InputError, match="too large for a float"):
        pairs.row(("x", np.float64(BIG + 1)))


@pytest.mark.parametrize("labels", [[7, 8], ["7", "8"]])
def test_whole_decimals_and_floats_name_whole_numbers(labels):
    made = Policy(np.eye(2), labels, ["wait", "treat"])
    for values in ([Decimal("7.00"), Decimal("8"), Decimal("7.5")], [7.0, 8.0, 7.5]):
        assert made.act_many(values, unseen="empty").labels == ["wait", "treat", None]


@pytest.mark.parametrize("cut", [1, 7, 100])
def test_draws_do_not_depend_on_the_pieces(cut):
    loaded = policy()
    cases = list(loaded.policy.states.labels) * 20
    whole = loaded.act_many(cases, seed=5)
    pieces = [
        loaded.act_many(cases[i : i + cut], seed=5, first_row=i).codes
        for i in range(0, len(cases), cut)
    ]
    np.testing.assert_array_equal(np.concatenate(pieces), whole.codes)
    assert (loaded.act_many(cases, seed=6).codes != whole.codes).any()


def test_draws_have_the_frequencies_of_the_policy():
    probs = np.array([[0.2, 0.0, 0.5, 0.3], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]])
    made = Policy(probs, ["x", "y", "z"], list("abcd"))
    n = 60_000
    codes = made.act_many(["x", "y", "z"] * n, seed=1).codes.reshape(n, 3)
    found = np.array([np.bincount(codes[:, k], minlength=4) for k in range(3)]) / n
    error = np.sqrt(probs * (1 - probs) / n)
    assert (np.abs(found - probs) <= 5 * error).all()


@given(st.integers(1, 40), st.integers(0, 1000))
def test_a_draw_is_the_first_action_whose_sum_exceeds_the_number(n_actions, seed):
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.full(n_actions, 0.3), 5) * (rng.random((5, n_actions)) < 0.7)
    probs[:, -1] += probs.sum(axis=1) == 0
    probs /= probs.sum(axis=1, keepdims=True)
    rows, u = rng.integers(0, 5, 200), rng.random(200)
    sums = np.cumsum(probs, axis=1) / probs.sum(axis=1, keepdims=True)
    expected = [int(np.argmax(sums[row] > x)) for row, x in zip(rows, u)]
    found = draw(probs, rows, u)
    agree = np.array(expected) == found
    near = np.abs(sums[rows, np.minimum(found, expected)] - u) < 1e-12
    assert (agree | near).all()
    assert (probs[rows, found] > 0).all()


def test_numbers_of_rows_are_uniform_and_belong_to_seed_and_row():
    u = uniforms(0, 0, 100_000)
    assert (u >= 0).all() and (u < 1).all()
    np.testing.assert_array_equal(u[70:90], uniforms(0, 70, 20))
    bins = np.bincount((u * 50).astype(int), minlength=50)
    assert ((bins - 2000) ** 2 / 2000).sum() < 100  # χ² with 49 degrees of freedom
    assert abs(np.corrcoef(u[:-1], u[1:])[0, 1]) < 0.02
    assert abs(np.corrcoef(u, uniforms(1, 0, 100_000))[0, 1]) < 0.02


def test_unseen_states_are_listed_with_their_rows():
    made = Policy([[0.5, 0.5]], ["x"], ["a", "b"])
    cases = ["x", "y", "x", None, "q", "q", "q", "q"]
    with pytest.raises(InputError, match=r"6 cases .* row 1 \('y'\), row 3 \(None\), row 4 \('q'"):
        made.act_many(cases)
    with pytest.raises(InputError, match=r"row 11 \('y'\).* and 1 more"):
        made.act_many(cases, first_row=10)
    found = made.act_many(cases, unseen="empty")
    assert [label is None for label in found.labels] == [False, True, False, *[True] * 5]
    assert np.isnan(found.probability[1]) and found.probability[0] == 0.5
    assert found.columns["action"].null_count == 6


@pytest.mark.parametrize(
    ("cases", "options", "message"),
    [
        ({"ward": ["north"], "age": [1]}, {}, "no column 'n'"),
        ({"wards": ["north"], "age": [1], "n": [1]}, {}, r"'ward' \(did you mean 'wards'\?\)"),
        ({"ward": ["a"], "age": ["old"], "n": [1]}, {}, "age is 'old', expected .* in row 0"),
        (
            {"ward": list("abcd"), "age": ["1", "old", "new", "old"], "n": [1] * 4},
            {},
            r"age is 'old', expected .* in row 1 of the cases \(3 such rows\)",
        ),
        ({"ward": ["a", "b"], "age": [1], "n": [1]}, {}, "differ in length"),
        ({"ward": ["a", 3], "age": [1, 2], "n": [1, 2]}, {}, "'ward' of the cases mixes types"),
        (
            {"ward": ["a", "b"], "age": [1, 2], "n": [1.0, True]},
            {},
            "'n' of the cases mixes types, true or false beside numbers",
        ),
        (
            pd.DataFrame({"ward": ["a", "b"], "age": [1, 2], "n": [1.0, True]}, dtype=object),
            {},
            "n mixes types, true or false beside numbers",
        ),
        ([("a", "b", 1.0), ("a", "b", False)], {}, "'n' of the cases mixes types, true or false"),
        ([{"ward": "north", "age": 3, "n": 0}, {"ward": "x"}], {}, "case 1 has no 'age'"),
        ([{"ward": "north", "age": 3, "n": 0}, "x"], {}, "case 1 has no 'ward'"),
        (["north"], {}, "each case has 1 part, but a state has the columns ward, age, n"),
        ([STATES[0]], {"unseen": "skip"}, "unseen is 'skip'"),
        ([STATES[0]], {"seed": -1}, "seed is -1"),
        ([STATES[0]], {"deterministic": 3}, "deterministic is 3"),
        ([STATES[0]], {"first_row": -1}, "first_row is -1"),
        ([STATES[0]], {"first_row": 1.5}, "first_row is 1.5, expected a whole number"),
        ([STATES[0]], {"first_row": True}, "first_row is True, expected a whole number"),
    ],
)
def test_bad_cases_are_refused(cases, options, message):
    with pytest.raises(InputError, match=message):
        policy().act_many(cases, **options)


def test_no_cases_give_no_decisions():
    found = policy().act_many(pd.DataFrame({"ward": [], "age": [], "n": []}))
    assert len(found) == 0 and found.labels == []


def test_states_of_many_columns_whose_product_is_beyond_64_bits():
    rng = np.random.default_rng(0)
    columns = rng.integers(0, 1000, (400, 12))
    states = list({tuple(row) for row in columns.tolist()})
    made = Policy(np.eye(len(states)), states, [f"a{i}" for i in range(len(states))])
    frame = {name: [s[i] for s in states] for i, name in enumerate(made.states.names)}
    assert made.act_many(frame).labels == list(made.actions.labels)
    frame[made.states.names[5]][3] += 5000
    assert made.act_many(frame, unseen="empty").labels[3] is None


def test_a_missing_value_is_not_the_label_none():
    made = LoadedPolicy(Policy([[1.0], [1.0]], ["None", "nan"], ["a"]), {}, {})
    for missing in (None, math.nan):
        with pytest.raises(InputError, match="'state' is missing"):
            made.row({"state": missing})
    assert made.act_many({"state": [None, "None", "nan"]}, unseen="empty").labels == [
        None, "a", "a",
    ]  # fmt: skip


@pytest.mark.parametrize("kind", [pa.timestamp("us"), pa.timestamp("s", "UTC"), pa.date32()])
def test_a_time_that_python_has_none_for_is_a_state_that_no_policy_knows(kind):
    loaded = LoadedPolicy(Policy(np.eye(2), ["A", "2020-01-01"], ["x", "y"]), {}, {})
    largest = pa.array([2**31 - 1 if kind == pa.date32() else 2**63 - 1])
    cases = pa.table(
        {"state": largest.cast("int32" if kind == pa.date32() else "int64").cast(kind)}
    )
    assert loaded.act_many(cases, unseen="empty").labels == [None]
    with pytest.raises(InputError, match=r"not in the policy: row 0 \('(timestamp|date)"):
        loaded.act_many(cases)


ODD = [
    ([1, 2], ["1", "1.0", "1e0", "+1", 1, 1.0, np.int64(2), "2", "3", "one"]),
    (["1", "02"], [1, 1.0, "1", "02", 2, "2", "1.0"]),
    ([True, False], ["true", "False", True, np.False_, 1, 0, "1"]),
    ([1, 0], [True, False, "true", 1]),
    ([(1, "a"), (2, "b")], [("1", "a"), [1, "a"], (1, "a"), (1.0, "a"), (True, "a"), (1, "b")]),
    (AGES.labels, [17, "17", 18.0, "[18, 40.5)", "1e9"]),
]


@pytest.mark.parametrize(("labels", "cases"), ODD)
def test_a_loaded_policy_reads_one_case_as_many(labels, cases):
    names = ("age",) if labels is AGES.labels else ("ward", "n")[: 1 + isinstance(labels[0], tuple)]
    rows = Policy(np.eye(len(labels)), Vocabulary(labels, names))
    loaded = LoadedPolicy(rows, {"age": AGES} if names == ("age",) else {}, {})
    many = [loaded.act_many([case], deterministic=True, unseen="empty").labels[0] for case in cases]
    assert one_by_one(loaded, cases) == many
    assert None in many or names == ("age",)
    assert len(set(many) - {None}) >= 1


@pytest.mark.parametrize(("labels", "known", "unknown"), [
    ([1, 2], [1, 1.0, np.int64(1), np.float32(1), Decimal(1)], ["1", "1.0", True, 1 + 0j]),
    (["1", "2"], ["1", np.str_("1")], [1, 1.0]),
    ([True, False], [True, np.True_], ["true", "True", 1, 1.0, np.complex64(1)]),
    ([(1, "a"), (2, "b")], [(1, "a"), (1.0, "a")],
     [("1", "a"), [1, "a"], (True, "a"), (1 + 0j, "a")]),
])  # fmt: skip
def test_a_row_takes_labels_as_the_policy_has_them(labels, known, unknown):
    policy = Policy(np.eye(2), labels, ["go", "stay"])
    for label in known:
        assert policy.row(label) == {"go": 1.0, "stay": 0.0}
    for label in unknown:
        with pytest.raises(InputError, match="is unknown"):
            policy.row(label)
        with pytest.raises(InputError, match="is unknown"):
            policy.sample(label, rng=np.random.default_rng(0))


def test_complex_numbers_are_no_labels():
    loaded = LoadedPolicy(Policy(np.eye(2), [1, 2]), {}, {})
    for case in (1 + 0j, {"state": 1 + 0j}):
        with pytest.raises(InputError, match="not in the policy"):
            loaded.row(case)
        with pytest.raises(InputError, match="mixes types"):
            loaded.act_many([case])
