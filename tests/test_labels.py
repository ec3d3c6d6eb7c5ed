"""Vocabularies: labels in order, and the codes behind them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spibb.errors import InputError
from spibb.labels import Vocabulary, encode, factorize, factorize_present, translate, vocabulary

texts = st.text(max_size=4)
whole = st.integers(-(2**40), 2**40)
columns = st.one_of(
    st.lists(texts, min_size=1, max_size=30),
    st.lists(whole, min_size=1, max_size=30),
    st.lists(st.tuples(texts, whole), min_size=1, max_size=30),
    st.lists(st.tuples(whole, texts, whole), min_size=1, max_size=30),
)


@settings(deadline=None, max_examples=100)
@given(columns)
def test_codes_lead_back_to_the_labels(labels):
    found, codes = factorize(labels, "state")
    assert [found[code] for code in codes.tolist()] == labels


@settings(deadline=None, max_examples=100)
@given(columns, st.randoms(use_true_random=False))
def test_the_vocabulary_is_sorted_and_does_not_depend_on_the_order_of_the_rows(labels, random):
    shuffled = random.sample(labels, len(labels))
    assert factorize(labels, "state")[0].labels == tuple(sorted(set(labels)))
    assert factorize(shuffled, "state")[0] == factorize(labels, "state")[0]


@settings(deadline=None, max_examples=50)
@given(columns)
def test_encoding_in_a_larger_vocabulary_keeps_the_labels(labels):
    larger = Vocabulary(tuple(dict.fromkeys(reversed(labels))), ("state",))
    codes = encode(labels, larger, "states")
    assert [larger[code] for code in codes.tolist()] == labels


@pytest.mark.parametrize(
    "values",
    [
        ["b", "a", None, "b"],
        np.array(["b", "a", None, "b"], dtype=object),
        pd.Series(["b", "a", np.nan, "b"]).to_numpy(),
        pa.array(["b", "a", None, "b"]),
        pa.chunked_array([["b", "a"], [None, "b"]]),
        pa.array(["b", "a", None, "b"]).dictionary_encode(),
        pl.Series(["b", "a", None, "b"], dtype=pl.Categorical).to_arrow(),
        pl.Series(["b", "a", None, "b"], dtype=pl.Enum(["c", "b", "a"])).to_arrow(),
    ],
    ids=["list", "object", "pandas", "arrow", "chunked", "dictionary", "categorical", "enum"],
)
def test_every_kind_of_text_column_has_the_same_codes_and_knows_missing_values(values):
    found, codes, present = factorize_present(values, "state")
    assert found.labels == ("a", "b")
    assert present.tolist() == [True, True, False, True]
    assert codes.tolist() == [1, 0, 1]
    assert codes.dtype == np.int32
    with pytest.raises(InputError, match=r"state is missing in row 2 \(1 such row\): fill or"):
        factorize(values, "state")
    with pytest.raises(InputError, match="state is missing in row 2"):
        encode(values, Vocabulary(("a", "b"), ("state",)), "states")


@pytest.mark.parametrize(
    "values",
    [
        [7, 3, 7],
        np.array([7, 3, 7], dtype=np.uint8),
        np.array([7.0, 3.0, 7.0]),
        pa.array([7.0, 3.0, 7.0]),
        [np.int64(7), np.int64(3), np.int64(7)],
    ],
    ids=["list", "uint8", "floats", "arrow", "scalars"],
)
def test_whole_numbers_become_plain_ints(values):
    found, codes = factorize(values, "state")
    assert found.labels == (3, 7)
    assert {type(label) for label in found.labels} == {int}
    assert codes.tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    "values",
    [
        [("b", 1), ("a", 2), ("b", 1)],
        [["b", 1], ["a", 2], ["b", 1]],
        pd.Series([("b", 1), ("a", 2), ("b", 1)]).to_numpy(),
        [pa.chunked_array([["b", "a", "b"]]), pa.chunked_array([[1, 2, 1]])],
    ],
    ids=["tuples", "lists", "objects", "columns"],
)
def test_tuple_labels_come_from_tuples_lists_objects_and_several_columns(values):
    found, codes = factorize(values, "ward", "level")
    assert found.labels == (("a", 2), ("b", 1))
    assert found.names == ("ward", "level")
    assert codes.tolist() == [1, 0, 1]


def test_the_rows_of_a_matrix_are_tuple_labels():
    found, codes = factorize(np.array([[1, 0], [0, 5], [1, 0]]), "state")
    assert found.labels == ((0, 5), (1, 0))
    assert found.names == ("state_0", "state_1")
    assert codes.tolist() == [1, 0, 1]


def test_a_tuple_label_is_missing_as_soon_as_one_part_is():
    _, codes, present = factorize_present([None, ("a", 1), ("a", None)], "state")
    assert present.tolist() == [False, True, False]
    assert codes.tolist() == [0]


@pytest.mark.parametrize("values", [[None, None], np.array([np.nan]), pa.nulls(2), []], ids=str)
def test_a_column_without_any_label_has_none(values):
    found, codes, present = factorize_present(values, "state")
    assert (len(found), len(codes), present.any()) == (0, 0, False)


@pytest.mark.parametrize(
    "values",
    [
        np.ma.array([7, 8, 9], mask=[False, True, False]),
        np.ma.array([7.0, 8.0, 9.0], mask=[False, True, False]),
        np.ma.array(["a", "b", "c"], mask=[False, True, False]),
        np.ma.array([[1, 2], [3, 4], [5, 6]], mask=[[0, 0], [0, 1], [0, 0]]),
    ],
    ids=["whole", "floats", "text", "matrix"],
)
def test_a_masked_label_is_missing(values):
    _, codes, present = factorize_present(values, "state")
    assert present.tolist() == [True, False, True]
    assert codes.tolist() == [0, 1]


def test_states_of_many_columns_are_told_apart():
    """The product of the columns' sizes, 40 to the twelfth, is beyond 64 bits."""
    rng = np.random.default_rng(3)
    rows = rng.integers(40, size=(60, 12))
    rows[:40] = np.arange(40)[:, None]
    drawn = rows[rng.integers(60, size=2000)]
    found, codes = factorize(drawn, "state")
    assert found.labels == tuple(sorted({tuple(row) for row in drawn.tolist()}))
    assert [found[code] for code in codes.tolist()] == [tuple(row) for row in drawn.tolist()]


def test_parts_of_many_labels_each_are_told_apart():
    rng = np.random.default_rng(4)
    drawn = rng.integers(2**40, size=(3000, 4))
    found, codes = factorize(drawn, "state")
    assert [found[code] for code in codes.tolist()] == [tuple(row) for row in drawn.tolist()]


def test_categories_that_never_occur_are_not_labels():
    values = pa.array(["b", "a", "c"]).dictionary_encode().slice(0, 2)
    assert factorize(values, "state")[0].labels == ("a", "b")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([0, "a"], "state mixes types: make every label a string, or a number"),
        ([0.5, 1.0], "state holds the fraction 0.5.*bin the column or turn it into text"),
        ([1e300], "state holds 1000.* too large for a float.*turn the column into text"),
        ([(0, 1), (0,)], r"state mixes labels of 2 parts with \(0,\): give all labels the same"),
        ([(0, 1), 7], "state mixes labels of 2 parts with 7"),
        ([2**63], "state holds a whole number beyond 64 bits: turn the column into text"),
        (np.array([2**63], dtype=np.uint64), "state holds 9223372036854775808, beyond 64 bits"),
        ([2**64], "state holds a whole number beyond 64 bits: turn the column into text"),
        ([-1, 2**63], "state holds a whole number beyond 64 bits"),
        (["\ud800"], "state holds text that is not valid Unicode"),
        (np.array(["\ud800"]), "state holds text that is not valid Unicode"),
        ([("a", "\udcff")], "state holds text that is not valid Unicode"),
        ([{"a": 1}], "state holds values of type struct.*expected strings or whole numbers"),
        ([b"a"], "state holds values of type binary"),
        ([1j], "state mixes types"),
        ([np.inf], "state holds the fraction inf"),
        ([1.0, True], "state mixes types, true or false beside numbers: make every value a number"),
        ([0.0, None, False], "state mixes types, true or false beside numbers"),
        ([1, True], "state mixes types"),
        ([True, 1.0], "state mixes types"),
        (np.array([1.0, True], dtype=object), "state mixes types, true or false beside numbers"),
        ([np.float64(1), True], "state mixes types"),
        ([np.float64(1), np.True_], "state mixes types"),
        ([("a", 1.0), ("a", True)], "state mixes types, true or false beside numbers"),
    ],
)
def test_labels_that_cannot_be_labels_are_refused(values, message):
    with pytest.raises(InputError, match=message):
        factorize(values, "state")


def test_a_size_makes_the_labels_from_zero():
    made = vocabulary(3, "state")
    assert list(made.labels) == [0, 1, 2]
    assert made == Vocabulary((0, 1, 2))
    assert hash(made) == hash(Vocabulary((0, 1, 2)))
    assert made != Vocabulary((0, 1, 3))
    assert made != Vocabulary((0, 1))


def test_a_vocabulary_passes_through_unchanged():
    made = Vocabulary(("a", "b"), ("ward",))
    assert vocabulary(made, "state") is made


def test_numpy_scalars_are_the_same_labels_as_python_numbers():
    made = Vocabulary(tuple(np.arange(3)), ("state",))
    assert [type(label) for label in made.labels] == [int, int, int]
    assert made.code(np.int32(2)) == made.code(2) == 2


def test_an_unknown_label_is_named_with_some_known_ones():
    with pytest.raises(InputError, match="state 'x' is unknown: the 4 known ones begin with 'a'"):
        Vocabulary(("a", "b", "c", "d"), ("state",)).code("x")
    with pytest.raises(InputError, match=r"state 'x' is unknown: choose one of 'a', 'b'$"):
        Vocabulary(("a", "b"), ("state",)).code("x")
    with pytest.raises(InputError, match=r"state 'x' is unknown: choose 'a'$"):
        Vocabulary(("a",), ("state",)).code("x")


def test_a_repeated_label_is_named():
    with pytest.raises(InputError, match="ward 'b' is listed 2 times: list it once"):
        Vocabulary(("a", "b", "b"), ("ward",))


def test_text_and_numbers_do_not_mix_in_one_vocabulary():
    with pytest.raises(InputError, match="action mixes labels like 1, 'a'"):
        Vocabulary((1, "a"), ("action",))
    with pytest.raises(InputError, match="state mixes labels like"):
        Vocabulary((("a", 1), (2, 1)), ("state",))
    with pytest.raises(InputError, match="state mixes labels like True, 2"):
        Vocabulary((True, 2), ("state",))


def test_codes_of_another_vocabulary_are_minus_one_where_it_is_unknown():
    ours, theirs = Vocabulary(("a", "b")), Vocabulary(("b", "z", "a"))
    assert ours.codes(theirs).tolist() == [1, -1, 0]


def test_translation_names_up_to_five_unknown_labels():
    found, codes = factorize(list("abcdefgh"), "state")
    with pytest.raises(InputError, match="'b', 'c', 'd', 'e', 'f' and 2 more not among the 1 lab"):
        translate(found, codes, Vocabulary(("a",)), "states")


def test_translation_overlooks_labels_that_do_not_occur():
    found, codes = factorize(["a", "b"], "state")
    assert translate(found, codes[:1], Vocabulary(("a",)), "states").tolist() == [0]


def test_numbers_are_found_among_text_labels():
    found, codes = factorize([2, 1], "state")
    assert translate(found, codes, Vocabulary(("2", "1", "x")), "states").tolist() == [0, 1]
    assert found.in_form_of(Vocabulary(("x",))).labels == ("1", "2")
    pairs = Vocabulary(((1, 2), (3, 4)))
    assert pairs.in_form_of(Vocabulary(((0, "x"),))).labels == ((1, "2"), (3, "4"))


@pytest.mark.parametrize(
    "labels", [[1, np.nan], [0.5, 1.0], [1, np.inf], [1, None], [1j], [(1, 0.5)]]
)
def test_labels_that_name_nothing_are_refused(labels):
    with pytest.raises(
        InputError, match=r"action holds the fraction|action (None|1j) is not a label"
    ):
        vocabulary(labels, "action")


def test_whole_floats_are_whole_numbers():
    assert [type(label) for label in vocabulary([1.0, 2.0], "action").labels] == [int, int]


@pytest.mark.parametrize(
    "values",
    [
        [5, 3, 5], [-(2**63), 2**63 - 1, 0], [2**63 - 1], [-7, -7], [10**12, 3, 10**12], [],
    ],
)  # fmt: skip
def test_whole_numbers_of_any_range_have_sorted_labels(values):
    wanted = sorted(set(values))
    for column in (np.array(values, np.int64), pa.array(values, pa.int64())):
        found, codes = factorize(column, "state")
        assert list(found.labels) == wanted
        assert [wanted[code] for code in codes] == values
        assert codes.dtype == np.int32


def test_columns_in_another_order_are_the_same_labels():
    """(ward, severity) and (severity, ward) are matched by name, never by place."""
    mine = Vocabulary(((0, 0), (0, 1), (1, 0), (1, 1)), ("ward", "severity"))
    other = Vocabulary(((0, 0), (0, 1), (1, 0), (1, 1)), ("severity", "ward"))
    assert mine != other
    assert mine.codes(other).tolist() == [0, 2, 1, 3]
    assert mine.named(("severity", "ward")).labels == ((0, 0), (1, 0), (0, 1), (1, 1))
    assert mine.named(("a", "b")).labels == mine.labels
    with pytest.raises(InputError, match="not severity, hospital in another order"):
        mine.named(("severity", "hospital"))
