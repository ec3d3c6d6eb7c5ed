"""DeepLog: what it accepts, and what it says about bad input."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("deep_extra", exc_type=ImportError)

import deep_extra

from spibb.deep import DeepLog, OnlineDQN, SpibbDQN, train_many
from spibb.errors import InputError


def changed(column, row, value):
    """Columns with one entry replaced."""
    columns = deep_extra.columns(50)
    columns[column] = columns[column].copy()
    columns[column][row] = value
    return columns


def test_a_callable_and_arrays_give_the_same_log():
    columns = deep_extra.columns()
    asked = DeepLog(**columns, baseline=deep_extra.baseline)
    probs = deep_extra.baseline(columns["state"])
    given = DeepLog(
        **columns, baseline_probs=probs, next_baseline_probs=asked.next_baseline_probs, n_actions=4
    )
    np.testing.assert_array_equal(given.next_baseline_probs, asked.next_baseline_probs)
    np.testing.assert_array_equal(given.baseline_probs, probs)
    assert (len(given), given.n_features, given.n_actions) == (200, 2, 4)
    assert not given.state.flags.writeable


def test_single_precision_probabilities_are_renormalised():
    log = DeepLog(
        **deep_extra.columns(), baseline=lambda s: (deep_extra.baseline(s) * 1.00001).astype("f4")
    )
    np.testing.assert_allclose(log.next_baseline_probs.sum(axis=1), 1, atol=1e-12)


def test_a_terminated_row_needs_no_next_state():
    columns = deep_extra.columns()
    columns["next_state"] = np.where(columns["terminated"][:, None], np.nan, columns["state"])
    assert np.isfinite(DeepLog(**columns, baseline=deep_extra.baseline).next_state).all()


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (changed("state", 7, np.nan), r"state in row 7, feature 0 is nan.*fix or drop the row"),
        (changed("next_state", 0, np.inf), r"next_state in row 0, feature 0 is inf"),
        (changed("reward", 3, np.nan), r"reward in row 3 is nan"),
        (changed("action", 9, 4), r"action in row 9 is 4, expected a code in 0 … 3"),
        (changed("action", 9, -1), r"action in row 9 is -1"),
        (deep_extra.columns(50) | {"action": np.full(50, 0.5)}, "expected one whole number"),
        (deep_extra.columns(50) | {"terminated": np.full(50, 2)}, "terminated holds something"),
        (deep_extra.columns(50) | {"reward": np.zeros(49)}, "columns differ in length"),
        (deep_extra.columns(50) | {"state": np.zeros(50)}, r"state has shape \(50,\)"),
        (deep_extra.columns(50) | {"state": np.zeros((50, 3))}, "the same features"),
        (deep_extra.columns(0), "the log is empty"),
    ],
)
def test_bad_columns_are_named(columns, message):
    with pytest.raises(InputError, match=message) as error:
        DeepLog(**columns, baseline=deep_extra.baseline)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("baseline", "message"),
    [
        (lambda s: np.full((len(s), 4), 0.24), r"baseline row 0 sums to 0.96, expected 1: renorm"),
        (lambda s: np.full((len(s), 4), np.nan), r"baseline row 0, action 0: probability is nan"),
        (lambda s: np.full((3, 4), 0.25), r"baseline has shape \(3, 4\), expected \(50, columns\)"),
        (lambda s: "soft", "baseline cannot be read as a matrix of numbers"),
        (None, "the log has no baseline"),
    ],
)
def test_a_bad_baseline_is_named(baseline, message):
    with pytest.raises(InputError, match=message):
        DeepLog(**deep_extra.columns(50), baseline=baseline)


def test_probability_arrays_must_agree_in_their_actions():
    columns = deep_extra.columns(50)
    uniform = np.full((50, 4), 0.25)
    with pytest.raises(InputError, match="next_baseline_probs has 4 columns, expected 5"):
        DeepLog(**columns, next_baseline_probs=uniform, n_actions=5)
    with pytest.raises(InputError, match="baseline_probs has 2 columns, expected 4"):
        DeepLog(**columns, next_baseline_probs=uniform, baseline_probs=np.full((50, 2), 0.5))


def test_a_log_shorter_than_a_minibatch_is_refused():
    with pytest.raises(InputError, match="20 transitions, fewer than a minibatch of 32: lower bat"):
        SpibbDQN(n_wedge=0).train(deep_extra.small_log(20))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_wedge": -1}, "n_wedge is -1"),
        ({"kappa": -0.1}, "kappa is -0.1"),
        ({"variant": "pi-leq"}, r"variant is 'pi-leq' \(did you mean 'pi-leq-b'\?\)"),
        ({"discount": 1.0}, "discount is 1.0"),
        ({"batch_size": 0}, "batch_size is 0"),
        ({"passes": 0}, "passes is 0"),
        ({"seeds": ()}, r"seeds is \(\), expected one or more"),
        ({"seeds": 3}, "seeds is 3, expected one or more"),
        ({"seeds": (-1,)}, "seeds is -1"),
        ({"seeds": (0.5,)}, "seeds is 0.5"),
        ({"seeds": ("x",)}, "seeds is 'x'"),
    ],
)
def test_bad_settings_are_named(arguments, message):
    with pytest.raises(InputError, match=message):
        SpibbDQN(**arguments)


@pytest.mark.parametrize("config", [SpibbDQN, OnlineDQN])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"hidden": (32, 0)}, "hidden is 0"),
        ({"hidden": 32}, r"hidden is 32, expected the widths of the layers: write \(32, 32\)"),
        ({"learning_rate": 0}, "learning_rate is 0"),
        ({"learning_rate": -1}, "learning_rate is -1"),
        ({"decay": 7}, "decay is 7"),
        ({"epsilon": -1}, "epsilon is -1"),
        ({"double": 2}, "double is 2, expected true or false"),
        ({"target_update": 0}, "target_update is 0"),
        ({"anneal_every": 0.5}, "anneal_every is 0.5"),
        ({"discount": 1}, "discount is 1"),
    ],
)
def test_bad_settings_of_a_network_are_named_whatever_trains_it(config, arguments, message):
    with pytest.raises(InputError, match=message):
        config(**arguments)


def test_the_layers_of_a_network_may_be_a_list():
    assert OnlineDQN(hidden=[8, 4]).hidden == SpibbDQN(hidden=[8, 4]).hidden == (8, 4)


def test_missing_and_bad_counts_are_named():
    log = deep_extra.small_log(50)
    with pytest.raises(InputError, match="needs pseudo-counts: give counts, a callable"):
        SpibbDQN(n_wedge=5).train(log)
    with pytest.raises(InputError, match=r"next_counts has shape \(50, 3\), expected \(50, 4\)"):
        SpibbDQN(n_wedge=5).train(log, lambda s: np.ones((len(s), 3)))
    with pytest.raises(InputError, match="next_counts in row 0, column 0 is nan"):
        SpibbDQN(n_wedge=5).train(log, lambda s: np.full((len(s), 4), np.nan))
    with pytest.raises(InputError, match="taken_counts in row 0 is 0, expected a positive number"):
        SpibbDQN(n_wedge=0, kappa=0.1).train(log, lambda s: np.zeros((len(s), 4)))
    with pytest.raises(InputError, match="configs is empty"):
        train_many(log, None, [])


def test_without_the_extra_the_message_has_the_command():
    code = "import sys; sys.modules['jax'] = None\nimport spibb.deep"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 1
    last = result.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: spibb.deep needs JAX")
    assert 'pip install ".[deep]"' in last


def rows_of(log):
    """A table of a log's transitions, one episode each."""
    import pyarrow as pa

    n = len(log["action"])
    table = {"episode_id": np.arange(n), "step": np.zeros(n), "action": log["action"],
             "reward": log["reward"], "terminated": log["terminated"]}  # fmt: skip
    for k in range(2):
        table |= {f"x{k}": log["state"][:, k], f"next_x{k}": log["next_state"][:, k]}
    return pa.table(table)


def test_a_frame_gives_the_same_log_as_arrays():
    columns = deep_extra.columns()
    wanted = DeepLog(**columns, baseline=deep_extra.baseline)
    found = DeepLog.from_frame(
        rows_of(columns), deep_extra.baseline, columns={"state": ["x0", "x1"]}
    )
    for name in ("state", "action", "reward", "terminated"):
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name))
    goes_on = ~wanted.terminated
    np.testing.assert_array_equal(found.next_state[goes_on], wanted.next_state[goes_on])


def test_rows_without_a_successor_are_left_out():
    table = rows_of(deep_extra.columns()).drop_columns(["next_x0", "next_x1"])
    found = DeepLog.from_frame(table, deep_extra.baseline, columns={"state": ["x0", "x1"]})
    assert len(found) == deep_extra.columns()["terminated"].sum()
    assert found.terminated.all()
