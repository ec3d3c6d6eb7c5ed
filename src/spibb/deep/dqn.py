"""SpibbDQN: batch DQN, SPIBB-DQN, RaMDP-DQN and Π_≤b-SPIBB-DQN behind one configuration."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from operator import itemgetter
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax  # type: ignore[import-untyped]

from spibb import checks
from spibb.deep.checkpoint import Snapshot
from spibb.deep.compiled import keep_programs
from spibb.deep.log import DeepLog, StateFunction
from spibb.deep.network import HIDDEN, MLP
from spibb.deep.policy import DeepPolicy
from spibb.deep.session import Session, Tell
from spibb.deep.table import table as table_of
from spibb.deep.targets import ROWS
from spibb.deep.trainer import Program, check_settings
from spibb.errors import InputError
from spibb.frozen import Frozen


@dataclass(frozen=True)
class SpibbDQN:
    """DQN fitted to the targets of SPIBB on a fixed log (section 2.3, Equation 8, appendix D.3).

        y_j = r_j + γ Σ_{a' ∈ 𝔅} π_b(a'|x'_j) Q(x'_j, a')
                  + γ (Σ_{a' ∉ 𝔅} π_b(a'|x'_j)) max_{a' ∉ 𝔅} Q(x'_j, a')

    `n_wedge=0` is batch DQN, `kappa > 0` RaMDP-DQN (r_j − κ/√Ñ(x_j, a_j)), `n_wedge=inf` fits the
    baseline's own Q-function, and `variant="pi-leq-b"` lets a bootstrapped action lose its mass
    (ours: the paper has no deep Π_≤b). One network is trained per seed, all in one program.

    1. Double-DQN (`double`): the row is greedy in the online network, valued by the target network,
       which is copied every `target_update` updates.
    2. A pass is |D|/`batch_size` minibatches drawn uniformly with replacement; training ends with
       the first whole round of `target_update` updates that completes `passes`.
       `batch_size=None` takes the whole log at every update.
    3. RMSProp with smoothing `decay`, momentum 0, ε outside the root as in Keras; the learning
       rate is `learning_rate`/(k + 2), k raised every max(`anneal_every`, |D|) transitions.
       `optimiser` replaces the RMSProp by any Optax transformation without learning rate; it
       sees all weights as one vector.
    4. The free mass is 1 − Σ_𝔅 π_b; with `n_wedge=0` nothing is bootstrapped, seen or not.
    """

    n_wedge: float = 10.0
    kappa: float = 0.0
    variant: str = "pi-b"
    discount: float = 0.9
    hidden: tuple[int, ...] = HIDDEN
    batch_size: int | None = 32
    learning_rate: float = 0.01
    decay: float = 0.95
    epsilon: float = 1e-7
    passes: int = 2000
    target_update: int = 10
    double: bool = True
    anneal_every: int = 20_000
    optimiser: optax.GradientTransformation | None = None
    seeds: tuple[int, ...] = (0,)

    def __post_init__(self) -> None:
        seeds = checks.several("seeds", self.seeds, "(0, 1), a seed for each network")
        numbers = {
            "n_wedge": checks.n_wedge(self.n_wedge),
            "kappa": checks.number("kappa", self.kappa, 0, math.inf, "[)"),
            "seeds": tuple(checks.seed(seed, "seeds") for seed in seeds),
        }
        for name, value in numbers.items():
            object.__setattr__(self, name, value)
        checks.choice("variant", self.variant, tuple(ROWS))
        check_settings(self)
        checks.positive_field(self, "passes")
        if self.batch_size is not None:
            checks.positive_field(self, "batch_size")

    def train(
        self,
        log: DeepLog,
        counts: StateFunction | None = None,
        *,
        next_counts: Any = None,
        taken_counts: Any = None,
        progress: bool | Tell = False,
        checkpoint: str | Path | None = None,
        checkpoint_every: int = 100,
    ) -> DeepImprovement:
        """Train one network per seed; see `train_many` for the arguments."""
        return train_many(
            log,
            counts,
            [self],
            next_counts=next_counts,
            taken_counts=taken_counts,
            progress=progress,
            checkpoint=checkpoint,
            checkpoint_every=checkpoint_every,
        )[0]

    def grid(
        self,
        n_wedges: Sequence[float] | None = None,
        kappas: Sequence[float] | None = None,
        seeds: Sequence[int] | None = None,
    ) -> list[SpibbDQN]:
        """One configuration per (N∧, κ), each with all seeds: what `train_many` takes."""
        pairs = product(n_wedges or (self.n_wedge,), kappas or (self.kappa,))
        mine = self.seeds if seeds is None else tuple(seeds)
        return [replace(self, n_wedge=n, kappa=k, seeds=mine) for n, k in pairs]

    def program(self, log: DeepLog) -> Program:
        """What training on this log compiles."""
        batch = len(log) if self.batch_size is None else self.batch_size
        return Program(
            log.n_features, log.n_actions, self.hidden, self.batch_size, self.target_update,
            self.variant, self.double, self.discount, self.learning_rate,
            math.ceil(max(self.anneal_every, len(log)) / batch), self.decay, self.epsilon,
            self.optimiser,
        )  # fmt: skip

    def rounds(self, n_transitions: int, passes: int) -> int:
        """Rounds of `target_update` updates for this many passes over the log."""
        batch = n_transitions if self.batch_size is None else self.batch_size
        return math.ceil(passes * n_transitions / (batch * self.target_update))


@dataclass(frozen=True, eq=False)
class DeepImprovement(Frozen):
    """One trained network per seed of a configuration, and how the training went.

    `losses` [seeds, T] are mean squared errors between the updates `loss_steps` [T]; `steps` is
    the number of updates.
    """

    config: SpibbDQN
    networks: tuple[MLP, ...]
    losses: np.ndarray
    loss_steps: np.ndarray
    steps: int
    baseline: StateFunction | None
    counts: StateFunction | None

    @property
    def policies(self) -> tuple[DeepPolicy, ...]:
        """The trained policy of each seed."""
        config = self.config
        return tuple(
            DeepPolicy(network, self.baseline, self.counts, config.n_wedge, config.variant)
            for network in self.networks
        )

    @property
    def policy(self) -> DeepPolicy:
        """The trained policy of the first seed."""
        return self.policies[0]


def train_many(
    log: DeepLog,
    counts: StateFunction | None,
    configs: Sequence[SpibbDQN],
    *,
    next_counts: Any = None,
    taken_counts: Any = None,
    progress: bool | Tell = False,
    checkpoint: str | Path | None = None,
    checkpoint_every: int = 100,
    refuse_exploded: bool = True,
) -> list[DeepImprovement]:
    """Train the networks of many configurations on one log.

    Configurations that differ in N∧, κ and seeds only train together in one compiled program, and
    each network comes out as it would alone. `counts` gives the pseudo-counts Ñ [M, A] at states
    [M, d]; it is asked at the log's next states (and states, if κ > 0) unless they are given as
    `next_counts` [N, A] (and `taken_counts` [N], of the pairs taken), and by the trained policy.
    `progress` draws a bar, or is called with the share that is done, from 0 to 1.
    Every `checkpoint_every` passes the state is written to `checkpoint`, and a run that finds that
    file continues from it, bit for bit; several programs add −1, −2, … to its name.
    A loss beyond what any values can make it is an error. With `refuse_exploded=False` such a
    network is kept as it is, for studies that count what it does; one that is not finite is not.
    """
    checks.positive("checkpoint_every", checkpoint_every)
    _check_length(log, configs)
    keep_programs()
    table = jnp.asarray(table_of(log, counts, configs, next_counts, taken_counts))
    done: dict[int, DeepImprovement] = {}
    for number, members in enumerate(_together(log, configs)):
        mine = [configs[i] for i in members]
        session = Session(
            log, table, mine, _numbered(checkpoint, number), checkpoint_every, refuse_exploded
        )
        done |= zip(members, _results(session, session.train(progress), counts))
    return [done[i] for i in range(len(configs))]


def _together(log: DeepLog, configs: Sequence[SpibbDQN]) -> list[list[int]]:
    """Group configurations that compile to the same program and train as long."""
    groups: dict[Any, list[int]] = {}
    for i, config in enumerate(configs):
        groups.setdefault((config.program(log), config.passes), []).append(i)
    return list(groups.values())


def _numbered(path: str | Path | None, number: int) -> Path | None:
    if path is None:
        return None
    path = Path(path)
    return path if number == 0 else path.with_name(f"{path.stem}-{number}{path.suffix}")


def _check_length(log: DeepLog, configs: Sequence[SpibbDQN]) -> None:
    if not configs:
        raise InputError("configs is empty: give at least one SpibbDQN")
    largest = max(config.batch_size or 1 for config in configs)
    if len(log) < largest:
        raise InputError(
            f"the log has {len(log)} transitions, fewer than a minibatch of {largest}: lower "
            "batch_size, or give more data"
        )


def _results(
    session: Session, final: Snapshot, counts: StateFunction | None
) -> list[DeepImprovement]:
    """Hand the K networks back to their configurations."""
    networks = jax.tree.map(np.asarray, final.state.network)
    losses = np.array(final.losses).T
    update = session.program.target_update
    found, first = [], 0
    for config in session.configs:
        mine = slice(first, first + len(config.seeds))
        first = mine.stop
        found.append(
            DeepImprovement(
                config,
                tuple(jax.tree.map(itemgetter(i), networks) for i in range(mine.start, mine.stop)),
                losses[mine],
                np.array(final.loss_rounds) * update,
                final.rounds * update,
                session.log.baseline,
                counts,
            )
        )
    return found
