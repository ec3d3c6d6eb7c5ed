"""One repetition of the helicopter study: data, pseudo-counts, networks, tests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from spibb.deep import DeepImprovement, DeepLog, SpibbDQN, train_many
from spibb.deep.helicopter import helicopter_baseline, load_baseline
from spibb.deep.policy import SoftmaxBaseline
from spibb.envs.helicopter import DISCOUNT, N_ACTIONS, ProbabilityFunction, collect, play
from spibb.errors import InputError
from spibb.experiments.helicopter_grids import mass_column, thresholds
from spibb.experiments.spec import Experiment, NetworkFile, Training
from spibb.pseudocounts import RADIUS, DistanceCounts

DATA, NETWORKS, TESTS, VISITS = range(4)
"""What a stream of randomness is for."""
VISITED = 5000
"""States of new visits of the baseline, where its entropy and bootstrapped mass are averaged."""


@cache
def baseline_of(network: NetworkFile | None) -> SoftmaxBaseline:
    """The baseline of an experiment: the file that it names, or the one that comes with spibb."""
    if network is None:
        return helicopter_baseline()
    now = NetworkFile.of(network.path)
    if now != network:
        raise InputError(
            f"baseline {now} is not what the experiment was begun with, {network}: restore it"
        )
    return load_baseline(network.path)


@dataclass(frozen=True)
class Trial:
    """A run at one noise factor and size.

    Its randomness depends on the experiment's seed, on these three and on the purpose alone, so
    that a column does not depend on what else is trained. Columns are tested on the same starts.
    """

    experiment: Experiment
    run: int
    noise: float
    size: int

    @property
    def training(self) -> Training:
        """How to train and test."""
        return self.experiment.training or Training()

    @property
    def baseline(self) -> SoftmaxBaseline:
        """The policy that makes the data."""
        return baseline_of(self.experiment.network)

    def stream(self, purpose: int, *more: int) -> np.random.SeedSequence:
        """Randomness for a purpose; the data of a study on one data set ignore the run."""
        run = 0 if self.training.one_log and purpose in (DATA, VISITS) else self.run
        place = (self.size, round(1e6 * self.noise)) if purpose != NETWORKS else ()
        return np.random.SeedSequence(self.experiment.seed, spawn_key=(run, purpose, *place, *more))

    def rng(self, purpose: int, *more: int) -> np.random.Generator:
        """A generator for a purpose."""
        return np.random.default_rng(self.stream(purpose, *more))

    def collect(self, n: int, purpose: int) -> Any:
        """Transitions of the baseline."""
        return collect(
            self.baseline, n, rng=self.rng(purpose), noise_factor=self.noise,
            max_steps=self.experiment.max_steps,
        )  # fmt: skip

    def test(self, policy: ProbabilityFunction, seed: int) -> float:
        """Mean undiscounted return of whole episodes."""
        return play(
            policy, self.training.episodes, rng=self.rng(TESTS, seed), noise_factor=self.noise,
            max_steps=self.experiment.max_steps,
        ).mean  # fmt: skip


def repeat(experiment: Experiment, run: int) -> list[dict[str, Any]]:
    """A row per noise factor, size, number of passes and network seed.

    Columns hold mean undiscounted returns. `baseline` is the baseline's, tested in every row as
    the networks are: its spread is the error of a test. `entropy` is the mean entropy of its rows
    in nats, `bootstrapped:n_wedge=…` its mean mass on bootstrapped actions.
    """
    training = experiment.training or Training()
    trials = (
        Trial(experiment, run, noise, size)
        for noise in training.noises
        for size in experiment.sizes
    )
    return [row for trial in trials for row in _rows(trial)]


def _rows(trial: Trial) -> Iterator[dict[str, Any]]:
    drawn = trial.collect(trial.size, DATA)
    baseline = trial.baseline
    log = DeepLog(
        drawn.state, drawn.action, drawn.reward, drawn.next_state, drawn.terminated, baseline
    )
    counts = DistanceCounts(drawn.state, drawn.action, N_ACTIONS, radius=RADIUS)
    same = {"run": trial.run, "noise": trial.noise, "size": trial.size}
    seeds = range(trial.training.seeds)
    tested = [trial.test(baseline, seed) for seed in seeds]
    about = _about_baseline(trial, counts)
    keys = [column.key for column in trial.experiment.columns]
    for passes, results in _trained(trial, log, counts):
        for seed in seeds:
            returns = [trial.test(result.policies[seed], seed) for result in results]
            yield (
                same | {"passes": passes, "seed": seed, "baseline": tested[seed]}
                | about | dict(zip(keys, returns))
            )  # fmt: skip


def _about_baseline(trial: Trial, counts: DistanceCounts) -> dict[str, float]:
    """Entropy of the baseline and its mass on bootstrapped actions, at states of new visits."""
    states = trial.collect(VISITED, VISITS).state
    probs, found = trial.baseline(states), counts(states)
    entropy = -(probs * np.log(np.maximum(probs, 1e-300))).sum(axis=1).mean()
    return {"entropy": float(entropy)} | {
        mass_column(n): float((probs * (found < n)).sum(axis=1).mean())
        for n in thresholds(trial.experiment)
    }


def _trained(
    trial: Trial, log: DeepLog, counts: DistanceCounts
) -> Iterator[tuple[int, Sequence[DeepImprovement]]]:
    """All networks of a data set after each number of passes; one training serves all of them.

    The schedule does not depend on the number of passes, and a checkpoint continues to the same
    bits: what was trained for fewer passes is the beginning of what is trained for more. A
    network whose values explode is a result too, and is tested as it is.
    """
    columns, training = trial.experiment.columns, trial.training
    streams = [trial.stream(NETWORKS, number) for number in range(training.seeds)]
    seeds = tuple(int(stream.generate_state(1, np.uint64)[0]) for stream in streams)
    configs = [SpibbDQN(**vars(column.dqn()), discount=DISCOUNT, seeds=seeds) for column in columns]
    next_counts, taken_counts = counts(log.next_state), _taken(log, counts)
    with TemporaryDirectory() as folder:
        checkpoint = Path(folder) / "networks.npz" if len(training.passes) > 1 else None
        for passes in training.passes:
            wanted = [replace(config, passes=passes) for config in configs]
            yield passes, train_many(
                log, counts, wanted, next_counts=next_counts, taken_counts=taken_counts,
                checkpoint=checkpoint, checkpoint_every=passes, refuse_exploded=False,
            )  # fmt: skip


def _taken(log: DeepLog, counts: DistanceCounts) -> np.ndarray:
    """Pseudo-counts of the pairs that the log took [N]."""
    return counts(log.state)[np.arange(len(log)), log.action]
