"""Policy: rows of probabilities with labels, on disk and in use."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spibb import Log, Policy, Vocabulary, read_policy
from spibb.errors import InputError
from spibb.evaluate import exact_value
from spibb.mdp import MDP
from spibb.tables import write_table

ENDINGS = ["csv", "parquet"]
LABELS = {
    "text": (["ward-3", "a, b", 'say "x"', "Ω\n2"], ["up", "don't"]),
    "ints": ([-3, 0, 5, 12], [0, 1]),
    "tuples": ([("a", 1), ("a", 2), ("b", -1), ("b", 7)], ["go", "stay"]),
    "tuple actions": (["p", "q", "r", "s"], [("drug", 1), ("drug", 2)]),
}


@st.composite
def rows(draw, n_states=4, n_actions=2):
    """Probabilities of all sizes, the smallest included, whose rows sum to one."""
    first = draw(st.lists(st.floats(0, 1), min_size=n_states, max_size=n_states))
    return np.array([[p, 1 - p] for p in first])


def log_with(states, actions):
    """A log that holds just these labels."""
    n = len(states)
    return Log.from_arrays(
        states, [actions[0]] * n, np.zeros(n), state_labels=states, action_labels=actions
    )


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("kind", ["text", "ints", "tuples"])
@settings(deadline=None, max_examples=10)
@given(probs=rows())
def test_a_saved_policy_is_read_back_exactly(tmp_path_factory, ending, kind, probs):
    path = tmp_path_factory.mktemp("policy") / f"policy.{ending}"
    states, actions = LABELS[kind]
    Policy(probs, states, actions).save(path)
    back = read_policy(path)
    for state, row in zip(states, probs, strict=True):
        assert back.row(state) == dict(zip(actions, row.tolist()))


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("kind", LABELS)
def test_a_log_gives_a_policy_its_labels(tmp_path, ending, kind):
    states, actions = LABELS[kind]
    policy = Policy([[0.25, 0.75], [1, 0], [0, 1], [0.5, 0.5]], states, actions)
    policy.save(tmp_path / f"policy.{ending}")
    back = read_policy(tmp_path / f"policy.{ending}", log_with(states, actions))
    assert sorted(back.states.labels) == sorted(states)
    np.testing.assert_array_equal(back.aligned(policy.states, policy.actions).probs, policy.probs)


@pytest.mark.parametrize("labels", [["1", "2"], ["true", "false"], ["007", "7"], ["1.50", "x"]])
@pytest.mark.parametrize("ending", ENDINGS)
def test_text_that_looks_like_something_else_stays_text_beside_a_log(tmp_path, ending, labels):
    Policy([[0.5, 0.5], [1, 0]], labels, labels).save(tmp_path / f"policy.{ending}")
    back = read_policy(tmp_path / f"policy.{ending}", log_with(labels, labels))
    assert back.row(labels[0]) == {labels[0]: 0.5, labels[1]: 0.5}
    assert back.row(labels[1]) == {labels[0]: 1.0, labels[1]: 0.0}


@pytest.mark.parametrize("labels", [["yes", "no"], ["t", "f"], ["12:00", "13:30"], ["007", "008"]])
def test_a_csv_file_does_not_change_labels(tmp_path, labels):
    Policy([[0.5, 0.5], [1, 0]], labels, labels).save(tmp_path / "policy.csv")
    assert read_policy(tmp_path / "policy.csv").row(labels[0]) == dict.fromkeys(labels, 0.5)


@pytest.mark.parametrize("ending", ENDINGS)
def test_boolean_labels_are_read_back_beside_a_log(tmp_path, ending):
    Policy([[0.25, 0.75]], ["s"], [False, True]).save(tmp_path / f"policy.{ending}")
    back = read_policy(tmp_path / f"policy.{ending}", log_with(["s"], [False, True]))
    assert back.row("s") == {False: 0.25, True: 0.75}


def test_rows_of_probability_zero_may_be_left_out(tmp_path):
    path = tmp_path / "policy.csv"
    path.write_text("state,action,probability\na,go,1\nb,go,0.25\nb,stay,0.75\n")
    policy = read_policy(path)
    assert policy.row("a") == {"go": 1.0, "stay": 0.0}
    assert policy.row("b") == {"go": 0.25, "stay": 0.75}


def test_rows_and_columns_of_a_policy_file_come_in_any_order(tmp_path):
    path = tmp_path / "policy.csv"
    path.write_text("probability,action,note,state\n0.75,stay,x,b\n1,go,y,a\n0.25,go,z,b\n")
    policy = read_policy(path)
    assert policy.row("a") == {"go": 1.0, "stay": 0.0}
    assert policy.row("b") == {"go": 0.25, "stay": 0.75}


def test_a_policy_file_may_know_states_and_actions_that_the_log_never_has(tmp_path):
    path = tmp_path / "policy.csv"
    path.write_text("state,action,probability\na,go,1\nz,wait,1\n")
    policy = read_policy(path, log_with(["a"], ["go"]))
    assert policy.states.labels == ("a", "z")
    assert policy.actions.labels == ("go", "wait")


def test_the_columns_of_a_policy_file_are_named_as_those_of_the_log(tmp_path):
    states = Vocabulary((("a", 1), ("b", 2)), ("ward", "level"))
    policy = Policy([[1.0], [1.0]], states, Vocabulary(("x",), ("drug",)))
    policy.save(tmp_path / "policy.csv")
    header = (tmp_path / "policy.csv").read_text().splitlines()[0]
    assert header == '"ward","level","drug","probability"'
    log = Log.from_arrays(
        [("a", 1)], ["x"], [0.0], state_labels=states, action_labels=policy.actions
    )
    assert read_policy(tmp_path / "policy.csv", log).row(("b", 2)) == {"x": 1.0}


def test_samples_follow_the_row():
    row = np.array([0.5, 0.0, 0.3, 0.15, 0.05])
    policy = Policy([row, np.eye(5)[4]], ["s", "t"], list("abcde"))
    rng = np.random.default_rng(7)
    n = 20_000
    drawn = [policy.sample("s", rng=rng) for _ in range(n)]
    seen = np.array([drawn.count(label) for label in "abcde"])
    assert seen[1] == 0
    played = row > 0
    chi_square = ((seen - n * row)[played] ** 2 / (n * row[played])).sum()
    assert chi_square < 16.27  # three degrees of freedom, one in a thousand
    assert {policy.sample("t", rng=rng) for _ in range(50)} == {"e"}


def test_sampling_is_repeated_by_the_seed():
    policy = Policy.uniform(["s"], 4)
    first, second = np.random.default_rng(3), np.random.default_rng(3)
    assert [policy.sample("s", rng=first) for _ in range(20)] == [
        policy.sample("s", rng=second) for _ in range(20)
    ]


def test_sampling_in_an_unknown_state_names_it():
    with pytest.raises(InputError, match="state 'x' is unknown"):
        Policy.uniform(["s"], 4).sample("x", rng=np.random.default_rng(0))


def test_uniform_plays_every_action_equally_often():
    policy = Policy.uniform(["s", "t"], ["a", "b", "c", "d"])
    assert policy.probs.tolist() == [[0.25] * 4] * 2
    assert (policy.n_states, policy.n_actions) == (2, 4)
    assert repr(policy) == "Policy(states=2, actions=4, labels='a', 'b', 'c', 'd')"


def test_aligning_permutes_rows_and_columns():
    policy = Policy([[0.1, 0.9], [0.3, 0.7]], ["s", "t"], ["a", "b"])
    states, actions = Vocabulary(("t", "s")), Vocabulary(("b", "new", "a"))
    aligned = policy.aligned(states, actions)
    assert aligned.probs.tolist() == [[0.7, 0.0, 0.3], [0.9, 0.0, 0.1]]
    assert aligned.states is states
    assert aligned.actions is actions


def test_aligning_to_the_same_labels_is_the_policy_itself():
    policy = Policy([[0.1, 0.9]], ["s"], ["a", "b"])
    assert policy.aligned(Vocabulary(("s",)), Vocabulary(("a", "b"))) is policy


def test_aligning_may_drop_states_and_actions_never_played():
    policy = Policy([[1.0, 0.0], [0.5, 0.5]], ["s", "t"], ["a", "b"])
    assert policy.aligned(Vocabulary(("s",)), Vocabulary(("a",))).probs.tolist() == [[1.0]]
    with pytest.raises(InputError, match=r"plays action 'b' in state 't', which is not among"):
        policy.aligned(policy.states, Vocabulary(("a",)))


def test_aligning_names_up_to_five_states_without_a_row():
    with pytest.raises(InputError, match="has no row for state 'a', 'b', 'c', 'd', 'e' and 1 more"):
        Policy.uniform(["s"], 2).aligned(Vocabulary(tuple("abcdefs")), Vocabulary((0, 1)))


@pytest.mark.parametrize(
    "policy",
    [
        Policy([[0.5, 0.5]]),
        Policy.uniform(2, 2),
        Policy.uniform(2, 2).aligned(Vocabulary((1, 0)), Vocabulary((1, 0))),
    ],
)
def test_probabilities_are_read_only(policy):
    with pytest.raises(ValueError, match="read-only"):
        policy.probs[0, 0] = 1


def test_a_policy_copies_the_array_it_is_given():
    probs = np.array([[0.5, 0.5]])
    policy = Policy(probs)
    probs[0] = [1, 0]
    assert policy.probs.tolist() == [[0.5, 0.5]]


def test_labels_default_to_the_codes():
    assert Policy([[0.5, 0.5], [1, 0]]).row(1) == {0: 1.0, 1: 0.0}


def test_rounding_of_a_row_is_tolerated():
    assert Policy([[1 / 3, 1 / 3, 1 / 3 + 5e-7]]).n_actions == 3


@pytest.mark.parametrize(
    ("probs", "message"),
    [
        ([0.5, 0.5], r"policy has shape \(2,\), expected \[states, actions\]"),
        ([[1, 0], [1]], "policy has rows of different lengths"),
        ([["half", 1]], "expected an array of numbers"),
        ([[1.0, 0.0]], r"policy has shape \(1, 2\), expected \(2, 2\): one row per state label"),
        ([[1, 0], [-0.5, 1.5]], r"policy row 't', action 'a': probability is -0.5, expected a"),
        ([[1, 0], [0, 1.5]], r"policy row 't', action 'b': probability is 1.5"),
        ([[1, 0], [np.nan, 1]], r"policy row 't', action 'a': probability is nan"),
        ([[1, 0], [0.5, 0.48]], r"policy row 't' sums to 0.98, expected 1: renormalise it"),
        ([[1, 0], [0.5, 0.500002]], r"policy row 't' sums to 1.000002, expected 1: renormalise it"),
    ],
)
def test_rows_that_are_no_distributions_are_refused(probs, message):
    with pytest.raises(InputError, match=message):
        Policy(probs, ["s", "t"], ["a", "b"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("state,action\na,go\n", "'p.csv' has no column 'probability': its columns are 'state', "),
        ("state,action,probabilty\na,go,1\n", "did you mean 'probabilty'"),
        ("state,probability\na,1\n", "'p.csv' has no column 'action'"),
        ("action,probability\na,1\n", "'p.csv' has no column 'state'"),
        ("state,action,probability\n", "p.csv' is empty"),
        ("state,action,probability\na,go,much\n", "column 'probability' holds something other"),
        ("state,action,probability\na,go,\nb,go,1\n", "row 'a', action 'go': probability is nan"),
        ("state,action,probability\na,,1\nb,go,1\n", "column 'action' has 1 empty entries"),
        (
            "state,action,probability\na,go,0.5\na,go,0.5\n",
            "lists state 'a', action 'go' more than once: keep one",
        ),
        ("state,action,probability\na,go,0.5\na,no,0.48\n", "row 'a' sums to 0.98, expected 1"),
    ],
)
def test_a_bad_policy_file_is_named_with_its_fault(tmp_path, text, message):
    (tmp_path / "p.csv").write_text(text)
    with pytest.raises(InputError, match=message):
        read_policy(tmp_path / "p.csv")


@pytest.mark.parametrize("states", ["a", "2020-01-01", "0.5"])
def test_a_policy_file_whose_labels_have_another_type_is_refused(tmp_path, states):
    (tmp_path / "p.csv").write_text(f"state,action,probability\n{states},go,1\n")
    with pytest.raises(InputError, match=r"column 'state' is not of the type .* \(int\): write"):
        read_policy(tmp_path / "p.csv", log_with([0], ["go"]))


def test_a_date_column_is_not_taken_for_numbers(tmp_path):
    import datetime

    import pyarrow as pa

    day = datetime.date(2020, 1, 1)
    table = pa.table({"state": [day], "action": ["go"], "probability": [1.0]})
    write_table(table, tmp_path / "p.parquet")
    with pytest.raises(InputError, match="column 'state' is not of the type that the log has"):
        read_policy(tmp_path / "p.parquet", log_with([0], ["go"]))


def test_a_policy_is_saved_as_csv_or_parquet_only(tmp_path):
    with pytest.raises(InputError, match=r"cannot write 'p.txt': the name must end in .csv or"):
        Policy([[1.0]]).save(tmp_path / "p.txt")
    with pytest.raises(InputError, match=r"cannot write '.*missing/p.csv': No such file"):
        Policy([[1.0]]).save(tmp_path / "missing" / "p.csv")
    assert list(tmp_path.iterdir()) == []


@settings(max_examples=100)
@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.floats(-9e-7, 9e-7))
def test_rows_sum_to_one_to_the_last_bits_whatever_was_printed(seed, n_actions, off):
    probs = np.random.default_rng(seed).dirichlet(np.ones(n_actions), size=3)
    policy = Policy(probs * (1 + off))
    np.testing.assert_allclose(policy.probs.sum(axis=1), 1, rtol=0, atol=n_actions * 2.3e-16)
    np.testing.assert_allclose(policy.probs, probs, rtol=1e-15 * n_actions)
    np.testing.assert_array_equal(Policy(policy.probs).probs, policy.probs)


def test_the_value_of_a_baseline_does_not_depend_on_the_digits_of_its_file():
    mdp = MDP.from_outcomes(
        np.zeros(2, int), np.arange(2), np.ones(2), np.zeros(2, int), np.ones(2),
        np.zeros(2, bool), initial=np.ones(1), n_actions=2, discount=0.999,
    )  # fmt: skip
    assert exact_value(mdp, Policy([[0.3, 0.7 - 5e-7]])) == pytest.approx(1000, rel=1e-12)
