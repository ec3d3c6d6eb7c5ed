"""Greedy rows and targets against a slow transcription, for every mask."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("deep_extra", exc_type=ImportError)

import jax
import jax.numpy as jnp

from spibb.deep.targets import ROWS, pi_b_rows, pi_leq_b_rows, targets


def slow_row(q, baseline, bootstrapped, variant):
    """One row, action by action, as the paper writes it."""
    n_actions = len(q)
    if bootstrapped.all():
        return baseline.copy()
    row = np.zeros(n_actions)
    if variant == "pi-b":
        best, free = None, 1.0
        for a in range(n_actions):
            if bootstrapped[a]:
                row[a] = baseline[a]
                free -= baseline[a]
            elif best is None or q[a] > q[best]:
                best = a
        row[best] = free
        return row
    left = 1.0
    for a in sorted(range(n_actions), key=lambda a: (-q[a], a)):
        row[a] = min(left, baseline[a]) if bootstrapped[a] else left
        left -= row[a]
    return row


def slow_targets(reward, discount, rows, values):
    return np.array(
        [
            reward[j] + discount[j] * sum(rows[j, a] * values[j, a] for a in range(rows.shape[1]))
            for j in range(len(reward))
        ]
    )


def plain_dqn_targets(reward, discount, judge, values):
    """Double DQN as everyone writes it, without a baseline: the oracle for n_wedge=0."""
    best = jnp.argmax(judge, axis=-1)
    return reward + discount * jnp.take_along_axis(values, best[:, None], -1)[:, 0]


def every_mask(n_actions=5, seed=0):
    """Each of the 2^A masks, twice: with distinct values, and with ties and zero probabilities."""
    rng = np.random.default_rng(seed)
    masks = np.array(list(product([False, True], repeat=n_actions)))
    n = len(masks)
    q = np.concatenate([rng.normal(size=(n, n_actions)), rng.integers(0, 2, (n, n_actions))])
    rough = rng.integers(0, 3, (n, n_actions)) + (np.arange(n_actions) == 0)
    baseline = np.concatenate(
        [rng.dirichlet(np.ones(n_actions), n), rough / rough.sum(axis=1, keepdims=True)]
    )
    return q.astype(np.float32), baseline, np.concatenate([masks, masks])


@pytest.mark.parametrize("variant", ROWS)
@pytest.mark.parametrize("xp", [np, jnp], ids=["numpy", "jax"])
def test_rows_equal_the_slow_transcription_for_all_masks(variant, xp):
    q, baseline, masks = every_mask()
    wanted = np.array([slow_row(*row, variant) for row in zip(q, baseline, masks)])
    rows = np.asarray(ROWS[variant](xp.asarray(q), xp.asarray(baseline), xp.asarray(masks), xp))
    np.testing.assert_allclose(rows, wanted, atol=1e-12 if xp is np else 1e-6)


@pytest.mark.parametrize("xp", [np, jnp], ids=["numpy", "jax"])
def test_many_actions_are_sorted_and_give_the_same_rows(xp):
    rng = np.random.default_rng(3)
    q, baseline = rng.normal(size=(50, 40)).round(1), rng.dirichlet(np.ones(40), 50)
    masks = rng.random((50, 40)) < np.linspace(0, 1, 50)[:, None]
    wanted = np.array([slow_row(*row, "pi-leq-b") for row in zip(q, baseline, masks)])
    rows = np.asarray(pi_leq_b_rows(*(xp.asarray(x) for x in (q, baseline, masks)), xp))
    np.testing.assert_allclose(rows, wanted, atol=1e-12 if xp is np else 1e-6)


@pytest.mark.parametrize("variant", ROWS)
def test_targets_equal_the_slow_transcription(variant):
    q, baseline, masks = every_mask()
    rng = np.random.default_rng(1)
    values = rng.normal(size=q.shape)
    reward, discount = rng.normal(size=len(q)), 0.9 * (rng.random(len(q)) < 0.8)
    rows = np.array([slow_row(*row, variant) for row in zip(q, baseline, masks)])
    mine = ROWS[variant](jnp.asarray(q), jnp.asarray(baseline), jnp.asarray(masks))
    got = targets(jnp.asarray(reward), jnp.asarray(discount), mine, jnp.asarray(values))
    np.testing.assert_allclose(got, slow_targets(reward, discount, rows, values), atol=1e-5)


@pytest.mark.parametrize("variant", ROWS)
def test_nothing_bootstrapped_is_plain_double_dqn_to_the_bit(variant):
    rng = np.random.default_rng(2)
    judge, values = rng.normal(size=(2, 500, 9)).astype(np.float32)
    baseline = rng.dirichlet(np.ones(9), 500).astype(np.float32)  # rows that sum to 1 ± 1e-7
    reward, discount = rng.normal(size=(2, 500)).astype(np.float32)

    @jax.jit
    def mine(judge, values):
        rows = ROWS[variant](judge, baseline, jnp.zeros((500, 9), bool))
        return targets(reward, discount, rows, values)

    @jax.jit
    def oracle(judge, values):
        return plain_dqn_targets(reward, discount, judge, values)

    np.testing.assert_array_equal(mine(judge, values), oracle(judge, values))


@given(st.integers(0, 10_000), st.integers(1, 12))
def test_rows_are_distributions_within_the_constraints(seed, n_actions):
    rng = np.random.default_rng(seed)
    q = rng.normal(size=(20, n_actions)).round(1)
    baseline = rng.dirichlet(np.full(n_actions, 0.3), 20)
    masks = rng.random((20, n_actions)) < rng.random()
    for rows in (pi_b_rows(q, baseline, masks, np), pi_leq_b_rows(q, baseline, masks, np)):
        np.testing.assert_allclose(rows.sum(axis=1), 1, atol=1e-12)
        assert (rows >= 0).all()
        assert (rows[masks] <= baseline[masks]).all()
    narrow, wide = pi_b_rows(q, baseline, masks, np), pi_leq_b_rows(q, baseline, masks, np)
    np.testing.assert_array_equal(narrow[masks], baseline[masks])
    assert ((wide * q).sum(axis=1) >= (narrow * q).sum(axis=1) - 1e-12).all()
