"""The compiled training loop: K networks on one table of transitions, in one program.

Updates come in rounds of `target_update` minibatches. The target network is the online network at
the start of the round, so it need not be kept; the minibatches of a round are gathered at once,
and the target network sees them in one product. On a CPU the networks train one after the other
(`lax.map`; batched small products are slow there), elsewhere side by side (`vmap`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax  # type: ignore[import-untyped]
from jax import lax
from jax.flatten_util import ravel_pytree

from spibb import checks
from spibb.deep.network import MLP
from spibb.deep.targets import ROWS, targets
from spibb.errors import InputError


class DivergenceError(InputError, RuntimeError):
    """The loss of a network exploded; `step` says where, the message what to do."""

    def __init__(self, message: str, step: int) -> None:
        super().__init__(message)
        self.step = step


@dataclass(frozen=True)
class Program:
    """What is compiled into the program: shapes, and everything that the K networks share."""

    n_features: int
    n_actions: int
    hidden: tuple[int, ...]
    batch_size: int | None
    target_update: int
    variant: str
    double: bool
    discount: float
    learning_rate: float
    anneal_steps: int
    decay: float
    epsilon: float
    optimiser: optax.GradientTransformation | None

    @property
    def scaling(self) -> optax.GradientTransformation:
        """RMSProp as Keras has it, g/(√ν + ε), without the learning rate.

        Optax adds ε under the root by default, as TensorFlow's own RMSProp does: with ε = 1e-7
        that would bound the steps of small gradients by a root of 3e-4 instead of 1e-7.
        """
        if self.optimiser is not None:
            return self.optimiser
        return optax.scale_by_rms(self.decay, self.epsilon, eps_in_sqrt=False)


def check_settings(config: Any) -> None:
    """Refuse settings that no program can have; `hidden` becomes a tuple, perhaps an empty one."""
    if not isinstance(config.hidden, list | tuple):
        raise InputError(
            f"hidden is {checks.shown(config.hidden)}, expected the widths of the layers: write "
            "(32, 32)"
        )
    hidden = tuple(checks.positive("hidden", width) for width in config.hidden)
    object.__setattr__(config, "hidden", hidden)
    checks.flags(config)
    checks.discount(config.discount)
    checks.number("learning_rate", config.learning_rate, 0, math.inf, "()")
    checks.number("decay", config.decay, 0, 1, "[)")
    checks.number("epsilon", config.epsilon, 0, math.inf, "()")
    for name in ("target_update", "anneal_every"):
        checks.positive_field(config, name)


class Each(NamedTuple):
    """What differs between the K networks, with a leading axis [K]."""

    key: Any
    n_wedge: Any
    kappa: Any


class State(eqx.Module):
    """Networks in training: weights, optimiser, mean loss of the last call, first bad step."""

    network: MLP
    optimiser: Any
    loss: Any
    diverged: Any


class Minibatch(NamedTuple):
    """Columns of the table for some transitions [..., B]."""

    state: Any
    next_state: Any
    next_baseline: Any
    bootstrapped: Any
    action: Any
    reward: Any
    discount: Any


def pack(columns: dict[str, np.ndarray]) -> np.ndarray:
    """One row of 32-bit numbers per transition, so that a minibatch is one gather.

    State [d], next state [d], baseline's row there [A], pseudo-counts there [A], action, reward,
    1 − terminated, and 1/√N of the pair taken (0 where RaMDP is not asked for).
    """
    order = ("states", "next_states", "next_baseline_probs", "next_counts",
             "actions", "rewards", "continues", "penalties")  # fmt: skip
    parts = [np.asarray(columns[name], np.float32).reshape(len(columns["states"]), -1)
             for name in order]  # fmt: skip
    return np.concatenate(parts, axis=1)


def unpack(program: Program, rows: Any, n_wedge: Any, kappa: Any) -> Minibatch:
    """Name the columns of table rows [..., W], for a network's own N∧ and κ."""
    d, a = program.n_features, program.n_actions
    ends = np.cumsum([d, d, a, a, 1, 1, 1]).tolist()
    state, following, baseline, counts, action, reward, continues, penalty = jnp.split(
        rows, ends, axis=-1
    )
    return Minibatch(
        state,
        following,
        baseline,
        counts < n_wedge,
        jnp.arange(a) == action.astype(jnp.int32),
        reward[..., 0] - kappa * penalty[..., 0],
        program.discount * continues[..., 0],
    )


def each(networks: Sequence[tuple[float, float, int]]) -> Each:
    """Stack (N∧, κ, seed) of K networks; a seed is a whole number of any size."""
    n_wedges, kappas, seeds = zip(*networks)
    words = [_streams(seed)[1].generate_state(2, np.uint32) for seed in seeds]
    keys = jax.random.wrap_key_data(jnp.asarray(np.stack(words)), impl="threefry2x32")
    return Each(keys, jnp.asarray(n_wedges, jnp.float32), jnp.asarray(kappas, jnp.float32))


def start(program: Program, networks: Sequence[tuple[float, float, int]]) -> State:
    """K untrained networks."""
    sizes = (program.n_features, *program.hidden, program.n_actions)
    drawn = [MLP.init(sizes, np.random.default_rng(_streams(seed)[0])) for _, _, seed in networks]
    stacked = jax.tree.map(lambda *leaves: jnp.asarray(np.stack(leaves)), *drawn)
    k = len(drawn)
    none = jnp.full(k, -1, jnp.int32)
    flat = jax.vmap(lambda network: ravel_pytree(network)[0])(stacked)
    return State(stacked, jax.vmap(program.scaling.init)(flat), jnp.zeros(k, jnp.float32), none)


def _streams(seed: int) -> list[np.random.SeedSequence]:
    """Independent randomness for the first weights and for the minibatches."""
    return np.random.SeedSequence(seed).spawn(2)


@partial(jax.jit, static_argnames="program")
def run(
    program: Program, state: State, of_each: Each, table: Any, size: Any, first: Any, last: Any
) -> State:
    """Train K networks for the rounds first … last − 1, on the first `size` rows of the table.

    A round depends on the network's key and its own number only: neither the other networks nor
    where the rounds are cut into calls make a difference.
    """

    def one(arguments: tuple[State, Each]) -> State:
        state, mine = arguments
        state = eqx.tree_at(lambda s: s.loss, state, jnp.float32(0))
        state = lax.fori_loop(first, last, partial(_round, program, mine, table, size), state)
        return eqx.tree_at(lambda s: s.loss, state, state.loss / (last - first))

    if jax.default_backend() == "cpu":
        return lax.map(one, (state, of_each))
    return jax.vmap(lambda *arguments: one(arguments))(state, of_each)


def _round(program: Program, mine: Each, table: Any, size: Any, number: Any, state: State) -> State:
    rows = table[_rows_drawn(program, mine.key, number, table, size)]
    batches = unpack(program, rows, mine.n_wedge, mine.kappa)
    next_values = state.network(batches.next_state)
    steps = number * program.target_update + jnp.arange(program.target_update)
    rates = program.learning_rate / (steps // program.anneal_steps + 2)
    flat, network_of = ravel_pytree(state.network)
    (flat, optimiser), losses = lax.scan(
        partial(_update, program, network_of),
        (flat, state.optimiser),
        (batches, next_values, rates),
    )
    bad = ~jnp.isfinite(losses)
    fresh = bad.any() & (state.diverged < 0)
    diverged = jnp.where(fresh, steps[jnp.argmax(bad)], state.diverged)
    return State(network_of(flat), optimiser, state.loss + losses.mean(), diverged)


def _rows_drawn(program: Program, key: Any, number: Any, table: Any, size: Any) -> Any:
    """Row numbers [T, B] of a round's minibatches, uniform; the whole table if B is None."""
    if program.batch_size is None:
        return jnp.broadcast_to(jnp.arange(len(table)), (program.target_update, len(table)))
    key = jax.random.fold_in(key, number)
    return jax.random.randint(key, (program.target_update, program.batch_size), 0, size)


def _wanted(program: Program, network: MLP, batch: Minibatch, next_values: Any) -> Any:
    """The targets y [B], given the target network's values [B, A] at the next states."""
    judge = network(batch.next_state) if program.double else next_values
    rows = ROWS[program.variant](judge, batch.next_baseline, batch.bootstrapped)
    return targets(batch.reward, batch.discount, rows, next_values)


def _update(program: Program, network_of: Callable[[Any], MLP], carry: Any, inputs: Any) -> Any:
    """One step on the mean squared error between Q(x_j, a_j) and y_j.

    The weights are one flat vector: the optimiser then runs in one pass over them, which compiles
    in half the time.
    """
    flat, optimiser = carry
    batch, next_values, rate = inputs
    network = network_of(flat)
    wanted = _wanted(program, network, batch, next_values)

    def squared_error(network: MLP) -> Any:
        taken = jnp.where(batch.action, network(batch.state), 0).sum(-1)
        return jnp.mean((taken - wanted) ** 2)

    loss, gradient = jax.value_and_grad(squared_error)(network)
    direction, optimiser = program.scaling.update(ravel_pytree(gradient)[0], optimiser, flat)
    return (flat - rate * direction, optimiser), loss
