"""Checkpoints: resumed bit for bit, refused elsewhere, kept when training diverges."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("deep_extra", exc_type=ImportError)

import deep_extra
import jax
import optax

from spibb.deep import DivergenceError, SpibbDQN, session, train_many
from spibb.deep.checkpoint import write_arrays
from spibb.errors import InputError

CONFIG = SpibbDQN(n_wedge=5, hidden=(8,), passes=16, anneal_every=1000, seeds=(0, 1))
LOG = deep_extra.small_log()


def same(one, other):
    leaves = zip(jax.tree.leaves(one.networks), jax.tree.leaves(other.networks), strict=True)
    return all(np.array_equal(a, b) for a, b in leaves) and np.array_equal(one.losses, other.losses)


class Interrupted(Exception):  # noqa: N818 (stands for a killed process)
    """Stands for a killed process."""


@pytest.fixture
def interrupted(tmp_path, monkeypatch):
    """A checkpoint of a run that was killed after 4 of 16 passes."""
    path, save = tmp_path / "run.npz", session.save_snapshot

    def save_and_die(file, progress, settings):
        save(file, progress, settings)
        if progress.rounds >= CONFIG.rounds(len(LOG), 4):
            raise Interrupted

    with monkeypatch.context() as patch:
        patch.setattr(session, "save_snapshot", save_and_die)
        with pytest.raises(Interrupted):
            CONFIG.train(LOG, deep_extra.counts, checkpoint=path, checkpoint_every=2)
    return path


def test_a_resumed_run_equals_an_uninterrupted_one_to_the_bit(interrupted):
    whole = CONFIG.train(LOG, deep_extra.counts)
    resumed = CONFIG.train(LOG, deep_extra.counts, checkpoint=interrupted, checkpoint_every=2)
    assert same(whole, resumed)
    again = CONFIG.train(LOG, deep_extra.counts, checkpoint=interrupted)  # nothing left to do
    assert same(whole, again)
    assert [path.name for path in interrupted.parent.iterdir()] == ["run.npz"]


def test_a_finished_run_may_be_given_more_passes(tmp_path):
    path = tmp_path / "run.npz"
    replace(CONFIG, passes=4).train(LOG, deep_extra.counts, checkpoint=path)
    longer = CONFIG.train(LOG, deep_extra.counts, checkpoint=path)
    assert same(longer, CONFIG.train(LOG, deep_extra.counts))
    with pytest.raises(InputError, match="ask for more passes, or use another file"):
        replace(CONFIG, passes=4).train(LOG, deep_extra.counts, checkpoint=path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_wedge": 6.0}, r"made with n_wedge = \[5.0, 5.0\], and this run has \[6.0, 6.0\]"),
        ({"hidden": (9,)}, r"made with hidden = \[8\], and this run has \[9\]"),
        ({"seeds": (0,)}, r"n_wedge"),
        ({"seeds": (0, 2)}, r"seeds = \[0, 1\]"),
        ({"discount": 0.95}, r"discount = 0.9, and this run has 0.95: use the same configuration"),
        ({"optimiser": optax.identity()}, r"optimiser"),
    ],
)
def test_a_checkpoint_of_another_configuration_is_refused(interrupted, change, message):
    with pytest.raises(InputError, match=message):
        replace(CONFIG, **change).train(LOG, deep_extra.counts, checkpoint=interrupted)


def test_a_checkpoint_of_other_data_is_refused(interrupted):
    with pytest.raises(InputError, match="log_and_counts"):
        CONFIG.train(deep_extra.small_log(seed=1), deep_extra.counts, checkpoint=interrupted)
    with pytest.raises(InputError, match="log_and_counts"):
        CONFIG.train(LOG, lambda s: deep_extra.counts(s) + 1, checkpoint=interrupted)


def test_a_file_that_is_no_checkpoint_is_named(tmp_path, interrupted):
    damaged = tmp_path / "damaged.npz"
    damaged.write_bytes(interrupted.read_bytes()[:500])
    with pytest.raises(InputError, match=r"checkpoint '.*damaged.npz' cannot be read"):
        CONFIG.train(LOG, deep_extra.counts, checkpoint=damaged)
    np.savez(damaged, a=1)
    with pytest.raises(InputError, match="holds 'unknown', expected a checkpoint"):
        CONFIG.train(LOG, deep_extra.counts, checkpoint=damaged)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rounds": None}, "has no 'rounds', expected a single number"),
        ({"rounds": np.array("x")}, "rounds is <U1 of shape (), expected a single number"),
        ({"rounds": np.array([1, 2])}, "rounds is int64 of shape (2,), expected a single number"),
        ({"settings": np.array("{")}, "settings is not JSON"),
        ({"settings": np.array("[1]")}, "settings is [1], expected a table"),
        ({"settings": np.array(3)}, "settings is int64 of shape (), expected a single text"),
        ({"losses": np.zeros(3)}, "losses is float64 of shape (3,), expected an array of numbers"),
        ({"loss_rounds": np.zeros(3)}, "loss_rounds is float64 of shape (3,), expected"),
        ({"leaf_0": np.zeros((3, 3), np.float32)}, "leaf_0 is float32 of shape (3, 3), expected "),
        ({"leaf_0": None}, "has no 'leaf_0', expected float32 of shape"),
        ({"kind": np.array(3)}, "kind is int64 of shape (), expected a single text"),
    ],
)
def test_a_damaged_entry_of_a_checkpoint_is_named(interrupted, change, message):
    with np.load(interrupted) as file:
        arrays = {**file, **change, "sha256": None}
    write_arrays(interrupted, {name: value for name, value in arrays.items() if value is not None})
    with pytest.raises(InputError) as raised:
        CONFIG.train(LOG, deep_extra.counts, checkpoint=interrupted)
    assert message in str(raised.value)
    assert str(raised.value).startswith("checkpoint '")
    assert "\n" not in str(raised.value)


def test_a_flipped_byte_in_a_checkpoint_is_refused_or_harmless(interrupted):
    content = interrupted.read_bytes()
    whole = CONFIG.train(LOG, deep_extra.counts)
    for place in np.random.default_rng(0).integers(len(content), size=40).tolist():
        changed = bytearray(content)
        changed[place] ^= 0xFF
        interrupted.write_bytes(changed)
        try:
            found = CONFIG.train(LOG, deep_extra.counts, checkpoint=interrupted)
        except InputError:
            continue
        assert same(found, whole)


def test_several_programs_write_several_files(tmp_path):
    configs = [replace(CONFIG, passes=passes) for passes in (16, 4)]
    train_many(LOG, deep_extra.counts, configs, checkpoint=tmp_path / "run.npz")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run-1.npz", "run.npz"]


def test_divergence_stops_with_the_step_and_keeps_the_last_good_checkpoint(tmp_path):
    """Gradient descent with a rate too large: the loss grows beyond all possible values."""
    path = tmp_path / "run.npz"
    config = replace(CONFIG, hidden=(), optimiser=optax.identity(), learning_rate=8.0)
    with pytest.raises(
        DivergenceError, match=r"beyond all possible values, at step \d+: lower the lear"
    ) as error:
        config.train(LOG, deep_extra.counts, checkpoint=path, checkpoint_every=1)
    assert f"kept in {str(path)!r}" in str(error.value)
    assert f"step {error.value.step}:" in str(error.value)
    kept = np.load(path)
    assert 0 < int(kept["rounds"]) * 10 <= error.value.step
    assert all(np.isfinite(kept[name]).all() for name in kept.files if name.startswith("leaf_"))


def test_a_study_may_keep_a_network_whose_values_exploded():
    config = replace(CONFIG, hidden=(), optimiser=optax.identity(), learning_rate=8.0)
    (kept,) = train_many(LOG, deep_extra.counts, [config], refuse_exploded=False)
    assert np.isfinite(kept.losses).all() and kept.losses[:, -1].min() > 1e9
    assert np.isfinite(kept.policy(LOG.state)).all()


def test_a_loss_that_is_not_finite_stops_too():
    config = replace(CONFIG, hidden=(), optimiser=optax.identity(), learning_rate=1e30)
    for refuse in (True, False):
        with pytest.raises(DivergenceError, match=r"not finite at step \d+: lower the learning r"):
            train_many(LOG, deep_extra.counts, [config], refuse_exploded=refuse)


def test_the_progress_bar_can_be_shown(capsys):
    CONFIG.train(LOG, deep_extra.counts, progress=True)
    assert "training 2 networks" in capsys.readouterr().out
