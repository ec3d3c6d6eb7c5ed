"""OnlineDQN: trains a network by interaction, to make a baseline that can then be improved."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from spibb import checks
from spibb.deep import trainer
from spibb.deep.lanes import episode_returns, lanes_of
from spibb.deep.network import HIDDEN, MLP
from spibb.deep.policy import DeepPolicy
from spibb.deep.trainer import DivergenceError, Program
from spibb.errors import InputError
from spibb.frozen import Frozen


@dataclass(frozen=True)
class OnlineDQN:
    """Double DQN with a replay buffer and an ε-greedy policy (Mnih et al. 2015).

    `epochs` × `steps_per_epoch` steps, one update every `update_every`, and a greedy evaluation
    after each epoch; the network of the best one is kept. ε falls linearly from `explore[0]` to
    `explore[1]` over `explore_steps`. A simulator is stepped in `lanes` parallel episodes, a
    Gymnasium environment in one; `max_steps` truncates an episode. Fewer epochs stop it before
    it converges, which suits a baseline.
    """

    epochs: int = 20
    steps_per_epoch: int = 10_000
    update_every: int = 10
    discount: float = 0.9
    hidden: tuple[int, ...] = HIDDEN
    batch_size: int = 32
    learning_rate: float = 0.01
    decay: float = 0.95
    epsilon: float = 1e-7
    target_update: int = 10
    anneal_every: int = 20_000
    double: bool = True
    buffer_size: int = 50_000
    warm_up: int = 1000
    explore: tuple[float, float] = (1.0, 0.1)
    explore_steps: int = 50_000
    lanes: int = 10
    max_steps: int = 100
    evaluation_episodes: int = 500
    seed: int = 0

    def __post_init__(self) -> None:
        trainer.check_settings(self)
        whole = ("epochs", "steps_per_epoch", "update_every", "batch_size", "buffer_size",
                 "warm_up", "explore_steps", "lanes", "max_steps",
                 "evaluation_episodes")  # fmt: skip
        for name in whole:
            checks.positive_field(self, name)
        checks.seed(self.seed)
        shares = checks.several("explore", self.explore, "(1.0, 0.1)")
        if len(shares) != 2:
            raise InputError(
                f"explore is {checks.shown(self.explore)}, expected two shares, the first and the "
                "last: write (1.0, 0.1)"
            )
        for share in shares:
            checks.number("explore", share, 0, 1)
        if self.buffer_size < max(self.warm_up, self.batch_size):
            raise InputError(
                f"buffer_size is {self.buffer_size}, expected at least warm_up = {self.warm_up} "
                f"and batch_size = {self.batch_size}: enlarge it"
            )

    def train(self, env: Any) -> OnlineResult:
        """Train in a Gymnasium environment or a `Simulator`."""
        return _OnlineTraining(self, env).train()

    def program(self, n_features: int, n_actions: int) -> Program:
        """What the updates compile to: batch DQN's program on the replay buffer."""
        return Program(
            n_features, n_actions, self.hidden, self.batch_size, self.target_update, "pi-b",
            self.double, self.discount, self.learning_rate,
            math.ceil(self.anneal_every / self.batch_size), self.decay, self.epsilon, None,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class OnlineResult(Frozen):
    """The best network by its greedy evaluation, and every epoch's network and mean return [E]."""

    network: MLP
    best_epoch: int
    networks: tuple[MLP, ...]
    returns: np.ndarray


class _OnlineTraining:
    """One training: lanes, replay buffer and network."""

    def __init__(self, config: OnlineDQN, env: Any) -> None:
        self.config, self.env = config, env
        self.rng = np.random.default_rng(config.seed)
        self.lanes = self._fresh_lanes()
        n_features, n_actions = self.lanes.states.shape[1], self.lanes.n_actions
        self.program = config.program(n_features, n_actions)
        networks = [(0.0, 0.0, config.seed)]
        self.of_each = trainer.each(networks)
        self.state = trainer.start(self.program, networks)
        self.network = self._online()
        width = 2 * n_features + 2 * n_actions + 4
        self.buffer = np.zeros((config.buffer_size, width), np.float32)
        self.steps = self.rounds = 0

    def _fresh_lanes(self) -> Any:
        return lanes_of(self.env, self.config.lanes, self.rng, self.config.max_steps)

    def _online(self) -> MLP:
        return jax.tree.map(lambda leaf: np.asarray(leaf)[0], self.state.network)

    def train(self) -> OnlineResult:
        networks: list[MLP] = []
        returns: list[float] = []
        for _ in range(self.config.epochs):
            self._epoch((len(networks) + 1) * self.config.steps_per_epoch)
            networks.append(self.network)
            returns.append(self._evaluate())
            self.lanes = self._fresh_lanes()  # a Gymnasium environment was used for the evaluation
        best = int(np.argmax(returns))
        return OnlineResult(networks[best], best, tuple(networks), np.array(returns))

    def _epoch(self, last: int) -> None:
        """Steps, and a round of `target_update` updates whenever enough of them were made."""
        per_round = self.config.update_every * self.config.target_update
        while self.steps < last:
            self._step()
            enough = self.steps >= max(self.config.warm_up, self.config.batch_size)
            if enough and self.steps // per_round > self.rounds:
                self._update(self.steps // per_round)

    def _step(self) -> None:
        states = self.lanes.states.copy()
        n, n_actions = len(states), self.program.n_actions
        greedy = self.network.values(states).argmax(axis=1)
        random = self.rng.random(n) < self._explore()
        actions = np.where(random, self.rng.integers(n_actions, size=n), greedy)
        step = self.lanes.step(actions, np.arange(n))
        rows = trainer.pack(
            {
                "states": states,
                "next_states": step.next_states,
                "next_baseline_probs": np.zeros((n, n_actions)),
                "next_counts": np.zeros((n, n_actions)),
                "actions": actions,
                "rewards": step.rewards,
                "continues": ~step.terminated,
                "penalties": np.zeros(n),
            }
        )
        self.buffer[(self.steps + np.arange(n)) % len(self.buffer)] = rows
        self.steps += n

    def _explore(self) -> float:
        first, last = self.config.explore
        return first + (last - first) * min(1.0, self.steps / self.config.explore_steps)

    def _update(self, rounds: int) -> None:
        """One round on a copy of the buffer: JAX might otherwise read it while it changes."""
        size = min(self.steps, len(self.buffer))
        self.state = trainer.run(
            self.program, self.state, self.of_each, jnp.array(self.buffer), size, rounds - 1, rounds
        )
        self.rounds, self.network = rounds, self._online()
        step = int(self.state.diverged[0])
        if step >= 0:
            raise DivergenceError(
                f"training diverged: the loss is not finite at update {step}: lower the learning "
                f"rate ({self.program.learning_rate:g}), or scale states and rewards to about 1",
                step,
            )

    def _evaluate(self) -> float:
        greedy = DeepPolicy(self.network)
        rng = np.random.default_rng([self.config.seed, self.steps])
        played = episode_returns(
            self.env, greedy, self.config.evaluation_episodes, rng=rng,
            max_steps=self.config.max_steps,
        )  # fmt: skip
        return float(played.mean())
