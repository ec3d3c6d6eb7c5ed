"""Session: one training run of configurations that share a compiled program, with checkpoints."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import jax
import numpy as np

from spibb.deep import trainer
from spibb.deep.checkpoint import Snapshot, load_snapshot, save_snapshot
from spibb.deep.log import DeepLog
from spibb.deep.trainer import DivergenceError, Program
from spibb.errors import InputError

if TYPE_CHECKING:
    from spibb.deep.dqn import SpibbDQN


Tell = Callable[[float], None]
"""Told which share of the work is done, from 0 to 1."""
LOOKED_AT = 1000
"""Rows at which untrained networks are asked."""
EXPLODED = 1e4
"""During training, a loss this many times above the largest square of an error is an error."""


@dataclass(frozen=True, eq=False)
class Session:
    """Configurations that train in one program."""

    log: DeepLog
    table: Any
    configs: list[SpibbDQN]
    checkpoint: Path | None
    checkpoint_every: int
    refuse_exploded: bool = True

    @cached_property
    def program(self) -> Program:
        """What is compiled."""
        return self.configs[0].program(self.log)

    @cached_property
    def networks(self) -> list[tuple[float, float, int]]:
        """N∧, κ and seed of each network."""
        return [(c.n_wedge, c.kappa, seed) for c in self.configs for seed in c.seeds]

    @cached_property
    def settings(self) -> dict[str, Any]:
        """What a checkpoint must agree with. Not the passes: more of them may be added to it."""
        program = dict(vars(self.program))
        program["optimiser"] = "rmsprop" if self.program.optimiser is None else "given"
        digest = hashlib.sha256(np.asarray(self.table).tobytes()).hexdigest()
        n_wedge, kappa, seeds = (list(column) for column in zip(*self.networks))
        mine = {"n_wedge": n_wedge, "kappa": kappa, "seeds": seeds}
        return program | mine | {"n_transitions": len(self.log), "log_and_counts": digest}

    def _rounds(self, every: int) -> set[int]:
        """The rounds that end each `every` passes, and the last."""
        passes = self.configs[0].passes
        marks = (*range(every, passes, every), passes)
        return {self.configs[0].rounds(len(self.log), mark) for mark in marks}

    @cached_property
    def saves(self) -> set[int]:
        """Rounds after which to write a checkpoint."""
        return self._rounds(self.checkpoint_every) if self.checkpoint is not None else set()

    @cached_property
    def stops(self) -> list[int]:
        """Rounds after which to look at the losses: each hundredth of the way and checkpoint."""
        return sorted(self._rounds(max(1, self.configs[0].passes // 100)) | self.saves)

    def train(self, progress: bool | Tell) -> Snapshot:
        """Train to the end, from the checkpoint if there is one."""
        of_each = trainer.each(self.networks)
        now = self._begin(trainer.start(self.program, self.networks))
        with _bar(progress, self.stops[-1], now.rounds, len(self.networks)) as advance:
            for stop in (stop for stop in self.stops if stop > now.rounds):
                now = self._advance(now, of_each, stop)
                if self.refuse_exploded:
                    self._check_loss(now, EXPLODED if stop < self.stops[-1] else 1.0)
                advance(stop)
                if self.checkpoint is not None and stop in self.saves:
                    save_snapshot(self.checkpoint, now, self.settings)
        return now

    def _begin(self, untrained: trainer.State) -> Snapshot:
        if self.checkpoint is None or not self.checkpoint.exists():
            return Snapshot(0, untrained, (), ())
        now = load_snapshot(self.checkpoint, untrained, self.settings)
        if now.rounds > self.stops[-1]:
            update = self.program.target_update
            raise InputError(
                f"checkpoint {str(self.checkpoint)!r} has {now.rounds * update} updates, and "
                f"passes = {self.configs[0].passes} end after {self.stops[-1] * update}: "
                "ask for more passes, or use another file"
            )
        return now

    def _advance(self, now: Snapshot, of_each: trainer.Each, stop: int) -> Snapshot:
        size = len(self.log)
        state = trainer.run(self.program, now.state, of_each, self.table, size, now.rounds, stop)
        self._check_finite(np.asarray(state.diverged))
        losses = (*now.losses, np.asarray(state.loss))
        return Snapshot(stop, state, (*now.loss_rounds, stop), losses)

    def _check_finite(self, diverged: np.ndarray) -> None:
        if (diverged < 0).all():
            return
        index = int(np.argmin(np.where(diverged < 0, np.iinfo(np.int32).max, diverged)))
        self._diverged(index, "not finite", int(diverged[index]))

    @cached_property
    def largest_error(self) -> np.ndarray:
        """(2 (r_max/(1 − γ) + q_max))² [K]: twice what rewards allow and untrained networks say."""
        rows = np.asarray(self.table)
        reward, penalty = np.abs(rows[:, -3]).max(), rows[:, -1].max()
        kappa = np.array([kappa for _, kappa, _ in self.networks])
        allowed = (reward + kappa * penalty) / (1 - self.program.discount)
        return 4 * (allowed.astype(np.float64) + self._untrained(rows[:LOOKED_AT])) ** 2

    def _untrained(self, rows: np.ndarray) -> np.ndarray:
        """The largest value of each untrained network [K] at the states of some rows."""
        network = jax.tree.map(np.asarray, trainer.start(self.program, self.networks).network)
        states = rows[:, : 2 * self.program.n_features].reshape(-1, self.program.n_features)
        each = (jax.tree.map(itemgetter(k), network) for k in range(len(self.networks)))
        return np.array([float(np.abs(one.values(states)).max()) for one in each])

    def _check_loss(self, now: Snapshot, times: float) -> None:
        """Refuse a mean loss that is larger than any errors of values can make it."""
        loss = np.asarray(now.losses[-1], np.float64)
        bad = loss > times * self.largest_error
        if bad.any():
            index = int(np.argmax(bad))
            shown = f"{loss[index]:.2g}, beyond all possible values,"
            self._diverged(index, shown, now.rounds * self.program.target_update)

    def _diverged(self, index: int, loss: str, step: int) -> NoReturn:
        n_wedge, kappa, seed = self.networks[index]
        kept = ""
        if self.checkpoint is not None and self.checkpoint.exists():
            kept = f"; the last good state is kept in {str(self.checkpoint)!r}"
        raise DivergenceError(
            f"training diverged: the loss of the network with n_wedge {n_wedge:g}, "
            f"kappa {kappa:g}, seed {seed} is {loss} at step {step}: lower the learning rate "
            f"({self.program.learning_rate:g}), or scale states and rewards to about 1{kept}",
            step,
        )


@contextmanager
def _bar(shown: bool | Tell, total: int, done: int, n_networks: int) -> Iterator[Any]:
    if callable(shown):
        tell = shown
        yield lambda rounds: tell(rounds / total)
        return
    if not shown:
        yield lambda rounds: None
        return
    from rich.progress import Progress as Bar

    with Bar() as bar:
        task = bar.add_task(f"training {n_networks} networks", total=total, completed=done)
        yield lambda rounds: bar.update(task, completed=rounds)
