"""The training loop: Theorem 3, plain DQN, one network alone and among others, slow updates."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from strategies import random_problem

pytest.importorskip("deep_extra", exc_type=ImportError)

import deep_extra
import jax
import jax.numpy as jnp
import optax
from test_deep_targets import plain_dqn_targets, slow_row, slow_targets

from spibb.algorithms.spibb import PiBSpibb, PiLeqBSpibb
from spibb.deep import DeepLog, SpibbDQN, train_many, trainer
from spibb.deep.table import table

SMALL = SpibbDQN(n_wedge=5, hidden=(8,), passes=16, anneal_every=1000)


def weights(network):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(network)]


def assert_same_bits(one, other):
    for mine, wanted in zip(weights(one), weights(other), strict=True):
        np.testing.assert_array_equal(mine, wanted)


def one_hot_log(problem):
    """The transitions of a finite problem, with unit vectors as states."""
    log, eye = problem.log, np.eye(problem.baseline.n_states)
    known = log.known
    ended = log.terminated[known]
    following = np.where(ended, 0, log.next_state[known])
    return DeepLog(
        eye[log.state[known]],
        log.action[known],
        log.reward[known],
        eye[following],
        ended,
        rows_of(problem.baseline.probs),
    )


def rows_of(table):
    """The rows of a table [S, A] at unit vectors."""
    return lambda states: table[states.argmax(axis=1)]


def covered_problem(seed, discount=0.8):
    """A random finite problem in which every pair was seen: unseen ones have no fitted value."""
    problem = random_problem(seed, 4, 2, 300, discount)
    assert (problem.counts.pairs > 0).all()
    return problem


EXACT_FIT = SpibbDQN(
    hidden=(), batch_size=None, learning_rate=1.5, anneal_every=10**9, passes=6000,
    target_update=20,
    discount=0.8, optimiser=optax.identity(),
)  # fmt: skip


@pytest.mark.parametrize(("algorithm", "variant"), [(PiBSpibb, "pi-b"), (PiLeqBSpibb, "pi-leq-b")])
def test_theorem_3_exact_fit_reaches_the_model_based_values(algorithm, variant):
    """A linear network on unit vectors, gradient descent on the whole log: Q is a table.

    Tolerance: 1e-4 on values of about 1, in 32 bits.
    """
    for seed in (4, 5, 10):
        problem = covered_problem(seed)
        counts = problem.counts.pairs
        configs = replace(EXACT_FIT, variant=variant).grid([0, *np.quantile(counts, [0.3, 0.6])])
        results = train_many(one_hot_log(problem), rows_of(counts), configs)
        for config, result in zip(configs, results, strict=True):
            wanted = algorithm(config.n_wedge).improve(problem)
            q = result.networks[0].values(np.eye(4))
            np.testing.assert_allclose(q, wanted.q, atol=1e-4)
            v = (result.policy(np.eye(4)) * q).sum(axis=1)
            np.testing.assert_allclose(v, wanted.v, atol=1e-4)


@pytest.mark.parametrize("variant", ["pi-b", "pi-leq-b"])
def test_n_wedge_zero_is_batch_dqn_to_the_bit(variant, monkeypatch):
    """The same loop with the targets of plain double DQN, which know no baseline and no counts."""
    log = deep_extra.small_log()
    config = replace(SMALL, n_wedge=0, variant=variant)
    result = config.train(log)

    def plain(program, network, batch, next_values):
        judge = network(batch.next_state)
        return plain_dqn_targets(batch.reward, batch.discount, judge, next_values)

    monkeypatch.setattr(trainer, "_wanted", plain)
    program, networks = config.program(log), [(0, 0, 0)]
    rows = jnp.asarray(table(log, None, [config], None, None))
    arguments = (trainer.start(program, networks), trainer.each(networks), rows, 200, 0)
    final = jax.jit(lambda *given: trainer.run.__wrapped__(program, *given))(
        *arguments, result.steps // 10
    )
    assert_same_bits(result.networks[0], jax.tree.map(lambda leaf: leaf[0], final.network))


def slow_training(config, log, counts, n_updates):
    """Gradient descent of a linear network on the whole log, with slow rows and targets."""
    start = trainer.start(config.program(log), [(config.n_wedge, config.kappa, 0)]).network
    w, b = (np.asarray(leaf[0], np.float64) for leaf in jax.tree.leaves(start))
    reward = log.reward.copy()
    if config.kappa:
        reward -= config.kappa / np.sqrt(counts(log.state)[np.arange(len(log)), log.action])
    masks = counts(log.next_state) < config.n_wedge
    taken = np.eye(log.n_actions)[log.action]
    for step in range(n_updates):
        if step % config.target_update == 0:
            values = log.next_state @ w + b
        judge = log.next_state @ w + b if config.double else values
        rows = np.array([slow_row(*row, config.variant)
                         for row in zip(judge, log.next_baseline_probs, masks)])  # fmt: skip
        y = slow_targets(reward, config.discount * ~log.terminated, rows, values)
        q = log.state @ w + b
        slope = 2 / len(log) * taken * ((q * taken).sum(axis=1) - y)[:, None]
        w = w - config.learning_rate / 2 * log.state.T @ slope
        b = b - config.learning_rate / 2 * slope.sum(axis=0)
    return w, b


@pytest.mark.parametrize("variant", ["pi-b", "pi-leq-b"])
@pytest.mark.parametrize("double", [True, False])
def test_updates_equal_a_slow_transcription(variant, double):
    log = deep_extra.small_log(60)
    config = replace(
        EXACT_FIT, variant=variant, double=double, learning_rate=0.5, target_update=3, passes=9
    )

    def positive(states):
        return deep_extra.counts(states) + 0.1

    configs = config.grid([0, 4, 7, math.inf], [0, 0.3])
    for mine, result in zip(configs, train_many(log, positive, configs), strict=True):
        w, b = slow_training(mine, log, positive, result.steps)
        np.testing.assert_allclose(result.networks[0].weights[0], w, atol=2e-5)
        np.testing.assert_allclose(result.networks[0].biases[0], b, atol=2e-5)


def test_a_network_is_the_same_alone_and_among_others():
    log = deep_extra.small_log()
    configs = SMALL.grid([0, 5, math.inf], seeds=[0, 2**70])
    together = train_many(log, deep_extra.counts, configs)
    alone = replace(SMALL, seeds=(2**70,)).train(log, deep_extra.counts)
    assert_same_bits(alone.networks[0], together[1].networks[1])
    np.testing.assert_array_equal(alone.losses[0], together[1].losses[1])
    one, other = (weights(network)[0] for network in together[1].networks)
    assert not np.array_equal(one, other)


def test_side_by_side_training_gives_the_same_networks(monkeypatch):
    """On a GPU the networks train under vmap: the same to rounding, which training amplifies."""
    log, networks = deep_extra.small_log(), [(5.0, 0.0, 0), (0.0, 0.0, 1)]
    program = SMALL.program(log)
    rows = jnp.asarray(table(log, deep_extra.counts, [SMALL], None, None))
    arguments = (trainer.start(program, networks), trainer.each(networks), rows, 200, 0, 3)
    one_by_one = trainer.run(program, *arguments).network
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    side_by_side = jax.jit(lambda *given: trainer.run.__wrapped__(program, *given))(
        *arguments
    ).network
    for mine, wanted in zip(weights(side_by_side), weights(one_by_one), strict=True):
        np.testing.assert_allclose(mine, wanted, atol=1e-4)


def test_configurations_of_different_programs_keep_their_order():
    log = deep_extra.small_log()
    configs = [SMALL, replace(SMALL, variant="pi-leq-b"), replace(SMALL, n_wedge=0)]
    results = train_many(log, deep_extra.counts, configs)
    assert [result.config for result in results] == configs
    assert_same_bits(results[0].networks[0], SMALL.train(log, deep_extra.counts).networks[0])


def test_counts_given_as_arrays_are_as_good_as_the_callable():
    log = deep_extra.small_log()
    arrays = SMALL.train(log, next_counts=deep_extra.counts(log.next_state))
    asked = SMALL.train(log, deep_extra.counts)
    assert_same_bits(arrays.networks[0], asked.networks[0])


def test_rmsprop_is_that_of_keras():
    """Keras: ν ← ρν + (1 − ρ)g², then p ← p − lr·g/(√ν + ε), with ε outside the root."""
    program = SMALL.program(deep_extra.small_log())
    gradients = np.array([1e-6, -3e-8, 2.0])
    state, nu = program.scaling.init(jnp.zeros(3)), np.zeros(3)
    for _ in range(3):
        direction, state = program.scaling.update(jnp.asarray(gradients), state)
        nu = 0.95 * nu + 0.05 * gradients**2
    np.testing.assert_allclose(direction, gradients / (np.sqrt(nu) + 1e-7), rtol=1e-5)


def test_the_learning_rate_ends_where_reference_says():
    """0.01/(k + 2), k raised every 20,000 transitions: 1e-5 after 2,000 passes over 10,000."""
    log = deep_extra.small_log(10_000)
    config = SpibbDQN()
    program, rounds = config.program(log), config.rounds(10_000, 2000)
    assert rounds * 10 * 32 == pytest.approx(2e7, rel=1e-4)
    last = program.learning_rate / ((rounds * 10 - 1) // program.anneal_steps + 2)
    assert last == pytest.approx(1e-5, rel=0.01)


def test_he_uniform_weights_and_zero_biases():
    program = SpibbDQN().program(deep_extra.small_log())
    network = trainer.start(program, [(0, 0, seed) for seed in range(50)]).network
    assert jax.tree.map(lambda w: w.shape[1:], network).weights[1] == (32, 128)
    for weight, bias in zip(network.weights, network.biases, strict=True):
        limit = math.sqrt(6 / weight.shape[1])
        assert np.abs(weight).max() <= limit
        np.testing.assert_allclose(np.std(weight), limit / math.sqrt(3), rtol=0.05)
        assert not bias.any()


def test_training_fits_the_baselines_own_values_with_the_papers_optimiser():
    """Minibatches, RMSProp and annealing on a two-step chain whose values are known."""
    states = np.tile([[1.0, 0.0], [0.0, 1.0]], (100, 1))
    ended = np.tile([False, True], 100)
    log = DeepLog(
        states, np.arange(200) % 4 // 2, np.where(ended, 1.0, 0.0), states[:, ::-1], ended,
        baseline=lambda s: np.full((len(s), 2), 0.5),
    )  # fmt: skip
    result = SpibbDQN(n_wedge=math.inf, hidden=(16,), passes=2000).train(log)
    q = result.networks[0].values(np.eye(2))
    np.testing.assert_allclose(q, [[0.9, 0.9], [1.0, 1.0]], atol=0.02)
    assert result.losses[0, -1] < 1e-3


def test_a_table_row_holds_what_the_trainer_expects():
    log = deep_extra.small_log(50)
    config = replace(SMALL, kappa=0.5)
    rows = table(log, lambda s: deep_extra.counts(s) + 1, [config], None, None)
    batch = trainer.unpack(config.program(log), jnp.asarray(rows), 5.0, 0.5)
    taken = (deep_extra.counts(log.state) + 1)[np.arange(50), log.action]
    np.testing.assert_allclose(batch.reward, log.reward - 0.5 / np.sqrt(taken), atol=1e-6)
    np.testing.assert_allclose(batch.discount, 0.9 * ~log.terminated, atol=1e-7)
    np.testing.assert_array_equal(np.argmax(batch.action, axis=1), log.action)
    np.testing.assert_array_equal(batch.bootstrapped, deep_extra.counts(log.next_state) + 1 < 5)
