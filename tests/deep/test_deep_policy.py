"""DeepPolicy and SoftmaxBaseline: rows, files, ONNX."""

from __future__ import annotations

import math

import numpy as np
import pytest

pytest.importorskip("deep_extra", exc_type=ImportError)

import deep_extra
from test_deep_targets import slow_row

from spibb.deep import MLP, DeepPolicy, SoftmaxBaseline, load_policy
from spibb.deep.checkpoint import write_arrays
from spibb.errors import InputError

NETWORK = MLP.init((2, 8, 4), np.random.default_rng(0))
STATES = np.random.default_rng(1).normal(size=(300, 2))


def policy(n_wedge, variant="pi-b"):
    return DeepPolicy(NETWORK, deep_extra.baseline, deep_extra.counts, n_wedge, variant)


@pytest.mark.parametrize("variant", ["pi-b", "pi-leq-b"])
@pytest.mark.parametrize("n_wedge", [0, 3, 5, 8, math.inf])
def test_rows_equal_the_slow_transcription(variant, n_wedge):
    q, masks = NETWORK.values(STATES), deep_extra.counts(STATES) < n_wedge
    rows = zip(q, deep_extra.baseline(STATES), masks)
    wanted = [slow_row(*row, variant) for row in rows]
    np.testing.assert_allclose(policy(n_wedge, variant)(STATES), wanted, atol=1e-12)


@pytest.mark.parametrize("variant", ["pi-b", "pi-leq-b"])
def test_an_infinite_n_wedge_is_the_baseline_to_the_bit(variant):
    wanted = deep_extra.baseline(STATES)
    np.testing.assert_array_equal(policy(math.inf, variant)(STATES), wanted)
    without = DeepPolicy(NETWORK, deep_extra.baseline, None, math.inf, variant)
    np.testing.assert_array_equal(without(STATES), wanted)


def test_bootstrapped_actions_keep_the_baselines_mass_to_the_bit():
    masks = deep_extra.counts(STATES) < 5
    assert masks.any() and not masks.all()
    wanted = deep_extra.baseline(STATES)
    np.testing.assert_array_equal(policy(5)(STATES)[masks], wanted[masks])


def test_n_wedge_zero_is_greedy_and_needs_neither_baseline_nor_counts():
    rows = DeepPolicy(NETWORK)(STATES)
    np.testing.assert_array_equal(rows.argmax(axis=1), NETWORK.values(STATES).argmax(axis=1))
    np.testing.assert_array_equal(rows.max(axis=1), 1)


def test_numpy_and_jax_agree_on_the_network():
    wanted = np.asarray(NETWORK(STATES.astype(np.float32)))
    np.testing.assert_allclose(NETWORK.values(STATES), wanted, atol=1e-5)


def test_samples_follow_the_probabilities():
    mine = policy(5)
    states = np.repeat(STATES[:2], 20_000, axis=0)
    actions = mine.sample(states, rng=np.random.default_rng(0)).reshape(2, -1)
    for row, drawn in zip(mine(STATES[:2]), actions, strict=True):
        np.testing.assert_allclose(np.bincount(drawn, minlength=4) / 20_000, row, atol=0.015)


@pytest.mark.parametrize("variant", ["pi-b", "pi-leq-b"])
def test_a_saved_policy_is_the_same_after_loading(tmp_path, variant):
    path = tmp_path / "policy.npz"
    policy(5, variant).save(path)
    loaded = load_policy(path, deep_extra.baseline, deep_extra.counts)
    assert (loaded.n_wedge, loaded.variant) == (5, variant)
    np.testing.assert_array_equal(loaded(STATES), policy(5, variant)(STATES))
    assert all(array.dtype != object for array in np.load(path, allow_pickle=False).values())


def test_a_loaded_policy_says_what_it_needs(tmp_path):
    policy(5).save(tmp_path / "policy.npz")
    with pytest.raises(InputError, match="no baseline, which n_wedge = 5 needs"):
        load_policy(tmp_path / "policy.npz")
    with pytest.raises(InputError, match="no counts, which n_wedge = 5 needs"):
        load_policy(tmp_path / "policy.npz", deep_extra.baseline)
    with pytest.raises(InputError, match=r"absent.npz': there is no such file"):
        load_policy(tmp_path / "absent.npz")
    SoftmaxBaseline(NETWORK).save(tmp_path / "baseline.npz")
    with pytest.raises(InputError, match="holds 'baseline', expected a policy"):
        load_policy(tmp_path / "baseline.npz")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_wedge": np.array("x")}, "n_wedge is <U1 of shape"),
        ({"variant": None}, "has no 'variant', expected a single text"),
        ({"variant": np.array("pi")}, "variant is 'pi'"),
        ({"weight_0": None, "weight_1": None}, "has no 'weight_0'"),
        ({"bias_1": None}, "has no 'bias_1'"),
        (
            {"weight_1": np.zeros((3, 4), np.float32)},
            r"weight_1 has shape \(3, 4\), which",
        ),
        ({"bias_0": np.array(["x"] * 8)}, "bias_0 is <U1 of shape"),
    ],
)
def test_a_damaged_policy_file_is_named(tmp_path, change, message):
    path = tmp_path / "policy.npz"
    policy(5).save(path)
    with np.load(path) as file:
        arrays = {**file, **change, "sha256": None}
    write_arrays(path, {name: value for name, value in arrays.items() if value is not None})
    with pytest.raises(InputError, match=message):
        load_policy(path, deep_extra.baseline, deep_extra.counts)


@pytest.mark.parametrize(
    ("states", "message"),
    [
        (np.full((3, 2), np.nan), "states in row 0, feature 0 is nan"),
        (np.zeros((3, 5)), r"states has shape \(3, 5\), expected \(M, 2\)"),
        (np.zeros(2), r"states has shape \(2,\)"),
    ],
)
def test_bad_states_are_named(states, message):
    with pytest.raises(InputError, match=message):
        policy(5)(states)


def test_a_baseline_that_changes_its_shape_is_named():
    wrong = DeepPolicy(NETWORK, lambda s: np.full((len(s), 2), 0.5), deep_extra.counts, 5)
    with pytest.raises(InputError, match="baseline gave 2 columns, expected 4"):
        wrong(STATES)


@pytest.mark.parametrize("variant", ["pi-b", "pi-leq-b"])
@pytest.mark.parametrize("n_wedge", [0, 5, math.inf])
def test_onnx_equals_jax(tmp_path, variant, n_wedge):
    import onnx
    import onnxruntime

    path = tmp_path / "policy.onnx"
    mine = policy(n_wedge, variant)
    mine.export_onnx(path)
    onnx.checker.check_model(onnx.load(str(path)), full_check=True)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    inputs = {
        "state": STATES.astype(np.float32),
        "baseline_probs": deep_extra.baseline(STATES).astype(np.float32),
        "counts": deep_extra.counts(STATES).astype(np.float32),
    }
    pi, q = session.run(["pi", "q"], inputs)
    np.testing.assert_allclose(q, np.asarray(NETWORK(inputs["state"])), atol=1e-5)
    np.testing.assert_allclose(pi, mine(STATES), atol=1e-5)


def test_a_softmax_baseline_is_a_distribution_and_survives_its_file(tmp_path):
    mine = SoftmaxBaseline(NETWORK, 0.5)
    probs = mine(STATES)
    q = NETWORK.values(STATES) / 0.5
    np.testing.assert_allclose(np.log(probs[:, 0] / probs[:, 1]), q[:, 0] - q[:, 1], atol=1e-4)
    mine.save(tmp_path / "baseline.npz")
    loaded = SoftmaxBaseline.load(tmp_path / "baseline.npz")
    assert loaded.temperature == 0.5
    np.testing.assert_array_equal(loaded(STATES), probs)
    with pytest.raises(InputError, match="temperature is 0"):
        SoftmaxBaseline(NETWORK, 0)


def torch_weights():
    """What `state_dict()` of nn.Sequential(Linear, ReLU, Linear) holds."""
    pairs = enumerate(zip(NETWORK.weights, NETWORK.biases))
    return {
        f"{2 * i}.{name}": part
        for i, (weight, bias) in pairs
        for name, part in (("weight", weight.T), ("bias", bias))
    }


def test_weights_of_pytorch_give_the_same_network():
    found = MLP.from_torch(torch_weights())
    np.testing.assert_array_equal(found.values(STATES), NETWORK.values(STATES))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "found nothing"),
        ({"0.weight": np.ones((2, 2)), "0.running_mean": np.ones(2)}, "running_mean"),
        ({"0.weight": np.ones((2, 2)), "1.bias": np.ones(2)}, "0.weight without 0.bias"),
        ({"0.weight": np.ones((2, 3, 3)), "0.bias": np.ones(2)}, "weight_0"),
        ({"0.weight": np.full((2, 3), np.nan), "0.bias": np.ones(2)}, "not finite"),
        ([1], "expected a module or its state_dict"),
    ],
)
def test_other_modules_of_pytorch_are_refused(given, message):
    with pytest.raises(InputError, match=message):
        MLP.from_torch(given)


@pytest.mark.parametrize("entry", ["weight_0", "n_wedge", "variant", "sha256"])
def test_a_policy_that_was_changed_is_refused_by_its_hash(entry, tmp_path):
    path = tmp_path / "policy.npz"
    policy(5).save(path)
    with np.load(path) as file:
        arrays = dict(file)
    if entry == "sha256":
        del arrays[entry]
    else:
        arrays[entry] = np.asarray("pi-leq-b") if entry == "variant" else arrays[entry] * 1.001
    np.savez(path, **arrays)
    with pytest.raises(InputError, match=r"changed after it was written|no 'sha256'"):
        load_policy(path, deep_extra.baseline, deep_extra.counts)
