"""From a log of vectors to a trained policy, and what is known about it.

Stages: order by content, hold out, standardise, clone, count, train, estimate. Networks see inputs
in deviations and rewards in units of the returns, so that no unit of the log matters.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from spibb import checks
from spibb.arrays import fair_permutation
from spibb.deep.canonical import Canonical, canonical
from spibb.deep.cloning import Acted, Clone, clone
from spibb.deep.dqn import DeepImprovement, SpibbDQN
from spibb.deep.estimates import estimate_on
from spibb.deep.judging import VectorDepartures, departures, fit_current, verdict_of
from spibb.deep.log import DeepLog
from spibb.deep.network import MLP
from spibb.deep.policy import SoftmaxBaseline
from spibb.deep.proposals import propose_n_wedge, propose_passes, propose_radius
from spibb.deep.scaling import Scaling, in_units, reward_unit
from spibb.deep.vector_policy import VectorDecisions, VectorPolicy
from spibb.defaults import DISCOUNT
from spibb.episodes.departures import changed_states
from spibb.episodes.returns import EpisodeReturns
from spibb.errors import InputError
from spibb.frozen import Frozen
from spibb.ingest.vectors import VectorLog
from spibb.log import returns_to_go
from spibb.ope import OffPolicyReport
from spibb.pseudocounts import counts_within
from spibb.tables import Stage
from spibb.verdict import Verdict

SMALLEST, LARGEST = 1e-100, 1e100
"""The largest reward lies between them: squares must not overflow, nor vanish."""
FEWEST = 2
"""Fewest episodes to hold out: a single one cannot show how much episodes differ."""


@dataclass(frozen=True)
class VectorDQN:
    """How SPIBB-DQN trains on a log of vectors; what is None is proposed from the data.

    `n_wedge` is the least pseudo-count of a trusted pair, `radius` the distance, in standard
    deviations, at which two states have nothing in common, `passes` how often training goes through
    the log. The others are those of `SpibbDQN`.
    """

    learns_from_vectors: ClassVar[bool] = True
    """What `spibb.run` asks before it reads a log."""

    n_wedge: float | Literal["auto"] | None = None
    radius: float | None = None
    passes: int | None = None
    variant: str = "pi-b"
    kappa: float = 0.0
    learning_rate: float = 0.01
    batch_size: int = 32

    def __post_init__(self) -> None:
        if self.n_wedge is not None and self.n_wedge != "auto":
            checks.n_wedge(self.n_wedge)
        if self.radius is not None:
            checks.number("radius", self.radius, 0, math.inf, "()")
        if self.passes is not None:
            checks.positive_field(self, "passes")
        self.network(0.5, 1.0, 1, 0)

    def network(self, discount: float, n_wedge: float, passes: int, seed: int) -> SpibbDQN:
        """The configuration of the network."""
        return SpibbDQN(
            n_wedge, self.kappa, self.variant, discount, batch_size=self.batch_size,
            learning_rate=self.learning_rate, passes=passes, seeds=(seed,),
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class VectorImprovement(Frozen):
    """A policy trained on a log of vectors, and what is known about it.

    `log` are the episodes that trained it and `decisions` the policy there; `held_out` is the
    estimate on the others, None where none were kept apart. `clone` says how the policy that made
    the log was found, None where it was given. `returns` are those of all episodes. `losses` [T]
    are those of the training, in the unit of the rewards squared, after `loss_steps` [T] updates.
    """

    policy: VectorPolicy
    settings: VectorDQN
    passes: int
    log: VectorLog
    decisions: VectorDecisions
    clone: Clone | None
    held_out: OffPolicyReport | None
    departures: VectorDepartures | None
    losses: np.ndarray
    loss_steps: np.ndarray
    seed: int
    returns: EpisodeReturns

    def _facts(self) -> Mapping[str, Any]:
        """The policy's, and what the held-out episodes say."""
        told = {} if self.held_out is None else {"held_out": self.held_out}
        return {**self.policy._facts(), "transitions": len(self.log), **told}

    @property
    def changed(self) -> float:
        """The share of the decisions at the logged states in which the new policy differs."""
        return float(changed_states(self.decisions.probs, self.decisions.baseline).mean())

    @cached_property
    def verdict(self) -> Verdict:
        """How sure the held-out episodes are."""
        cloned = self.clone is not None
        return verdict_of(self.changed, self.departures, self.held_out, cloned=cloned)

    @property
    def taken_counts(self) -> np.ndarray:
        """Pseudo-counts of the logged pairs without themselves [N]."""
        rows = np.arange(len(self.log))
        return np.maximum(self.decisions.counts[rows, self.log.action] - 1, 0)


def improve_vectors(
    log: VectorLog,
    settings: VectorDQN | None = None,
    *,
    baseline: SoftmaxBaseline | None = None,
    discount: float = DISCOUNT,
    holdout: float = 0.3,
    delta: float = 0.05,
    seed: int = 0,
    progress: Stage | None = None,
    checkpoint: str | Path | None = None,
) -> VectorImprovement:
    """Train SPIBB-DQN on a log of vectors.

    Parameters:
        log: the log, as `spibb.read_vectors` gives it.
        settings: how to train.
        baseline: the policy that made the log, as a function of its states; None clones it from
            what was done, and from the recorded probabilities if the log has them.
        discount: γ in [0, 1).
        holdout: share of the episodes that trains nothing and tests the result; 0 keeps none apart.
        delta: failure probability of the lower bounds.
        seed: seed of the first weights, of the minibatches and of the split.
        progress: called with the stage and the share that is done.
        checkpoint: a file that keeps the state of training; an interrupted run continues there.

    Returns:
        The policy, in the log's own columns, labels and units, with its evidence.
    """
    settings = VectorDQN() if settings is None else settings
    tell = progress or (lambda stage, share: None)
    checks.discount(discount)
    checks.delta(delta)
    checks.seed(seed)
    _check(log)
    tell("preparing", 0)
    ordered = canonical(log)
    kept, held = _split(ordered, checks.number("holdout", holdout, 0, 1, "[)"), seed)
    trained = _train(
        kept, settings, _given(baseline, ordered.features, ordered.actions, log),
        discount, seed, tell, checkpoint,
    )  # fmt: skip
    tell("estimating", 0)
    decisions = trained.policy.at(kept.state)
    fit = fit_current(returns_to_go(kept, discount), (decisions.probs * decisions.q).sum(axis=1))
    fitted = replace(trained.policy, current_fit=fit)
    tested = _test(held, fitted, discount, delta, seed)
    policy = fitted.reordered(ordered.features, ordered.actions)
    tell("estimating", 1)
    losses = trained.found
    return VectorImprovement(
        policy, settings, losses.config.passes,
        _as_given(kept, log, ordered.features, ordered.actions),
        _by_action(decisions, ordered.actions), trained.clone, *tested,
        losses.losses[0].astype(np.float64) * policy.reward_unit**2, losses.loss_steps, seed,
        EpisodeReturns.of([log], discount),
    )  # fmt: skip


class _TrainedPolicy(NamedTuple):
    """A policy in the order of training, and how it came to be."""

    policy: VectorPolicy
    clone: Clone | None
    found: DeepImprovement


class _TestedCases(NamedTuple):
    """What the held-out episodes say; nothing where none were kept apart."""

    report: OffPolicyReport | None
    departures: VectorDepartures | None


def _test(
    held: VectorLog | None,
    policy: VectorPolicy,
    discount: float,
    delta: float,
    seed: int,
) -> _TestedCases:
    """Estimate the policy on the held-out episodes."""
    if held is None:
        return _TestedCases(None, None)
    rng = np.random.default_rng(seed)
    report = estimate_on(held, policy, discount, delta=delta, rng=rng)
    return _TestedCases(report, departures(held, policy, discount, delta=delta, rng=rng))


def _by_action(found: VectorDecisions, actions: np.ndarray) -> VectorDecisions:
    """Decisions with their columns in the order of the caller's actions."""
    columns = np.argsort(actions)
    tables = (getattr(found, field.name)[:, columns] for field in fields(VectorDecisions))
    return VectorDecisions(*tables)


def _train(
    log: VectorLog,
    settings: VectorDQN,
    baseline: _Given | None,
    discount: float,
    seed: int,
    tell: Stage,
    checkpoint: str | Path | None,
) -> _TrainedPolicy:
    scaling = Scaling.of(log.state, log.features)
    z = scaling(log.state)
    tell("cloning the current policy", 0)
    made = None
    if baseline is not None:
        current = _in_units(baseline, scaling)
    else:
        acted = Acted(z, log.action, log.action_prob)
        made = clone(acted, log.episode_starts, len(log.actions))
        current = made.policy
    tell("counting", 0)
    radius = propose_radius(z) if settings.radius is None else settings.radius
    counts = counts_within(z, log.action, len(log.actions), radius)
    at_states = counts(z)
    if settings.n_wedge is None or settings.n_wedge == "auto":
        n_wedge = propose_n_wedge(at_states[np.arange(len(log)), log.action] - 1)
    else:
        n_wedge = settings.n_wedge
    tell("training", 0)
    unit = reward_unit(returns_to_go(log, discount))
    passes = propose_passes(len(log)) if settings.passes is None else settings.passes
    deep = _deep_log(log, scaling, unit, current)
    config = settings.network(discount, n_wedge, passes, seed)
    config = replace(config, batch_size=min(config.batch_size or 1, len(deep)))
    found = config.train(
        deep, counts, progress=lambda share: tell("training", share), checkpoint=checkpoint,
        checkpoint_every=max(1, passes // 10),
    )  # fmt: skip
    policy = VectorPolicy(
        log.features, log.actions, scaling, found.networks[0].numpy(), current, z,
        log.action.astype(np.int64), radius, n_wedge, settings.variant, discount, unit,
    )  # fmt: skip
    return _TrainedPolicy(policy, made, found)


def _deep_log(log: VectorLog, scaling: Scaling, unit: float, current: SoftmaxBaseline) -> DeepLog:
    """The rows that say what followed, as the network sees them."""
    rows = log.known
    following = np.where(log.terminated[:, None], log.state, log.next_state)
    return DeepLog(
        scaling(log.state)[rows], log.action[rows], in_units(log.reward[rows], unit),
        scaling(following[rows]), log.terminated[rows], current, n_actions=len(log.actions),
    )  # fmt: skip


def _check(log: VectorLog) -> None:
    if len(log.actions) < 2:
        raise InputError(
            f"the log has one action, {log.actions[0]!r}: there is nothing to choose between"
        )
    if not log.known.any():
        raise InputError(
            "no row of the log says what followed it: check episode_id, step and next_state"
        )
    largest = float(np.abs(log.reward).max())
    if not SMALLEST < largest < LARGEST:
        what = "all rewards are 0" if largest == 0 else f"the largest reward is {largest:g}"
        raise InputError(
            f"{what}, expected one between {SMALLEST:g} and {LARGEST:g}: check the column, or use "
            "another unit"
        )


def _split(ordered: Canonical, share: float, seed: int) -> tuple[VectorLog, VectorLog | None]:
    """Episodes that train, and those held out."""
    log, n = ordered.log, ordered.log.n_episodes
    order = fair_permutation(ordered.content, seed)
    if share == 0:
        return log.episodes(order), None
    held = min(round(share * n), n - 1)
    if held < FEWEST:
        raise InputError(
            f"holdout {share:g} holds out {held} of {n} episodes, expected at least {FEWEST}: "
            "give a larger share, more episodes, or 0 to test nothing"
        )
    kept, apart = log.episodes(order[held:]), log.episodes(order[:held])
    if not kept.known.any():
        raise InputError(
            f"no row of the {kept.n_episodes} episodes that train says what followed it: give more "
            "episodes, or a smaller holdout"
        )
    return kept, apart


class _Given(NamedTuple):
    """A baseline on the log's own states, and the order of features and actions in training."""

    policy: SoftmaxBaseline
    features: np.ndarray
    actions: np.ndarray


def _given(
    baseline: SoftmaxBaseline | None, features: np.ndarray, actions: np.ndarray, log: VectorLog
) -> _Given | None:
    if baseline is None:
        return None
    sizes = baseline.network.sizes
    if (sizes[0], sizes[-1]) != (len(log.features), len(log.actions)):
        raise InputError(
            f"the baseline goes from {sizes[0]} features to {sizes[-1]} actions, and the log has "
            f"{len(log.features)} and {len(log.actions)}: give the baseline of this log"
        )
    return _Given(baseline, features, actions)


def _in_units(given: _Given, scaling: Scaling) -> SoftmaxBaseline:
    """A baseline on the log's own states as one on scaled ones, in the order of training."""
    baseline, features, actions = given
    weights = [np.asarray(weight, np.float64) for weight in baseline.network.weights]
    biases = [np.asarray(bias, np.float64) for bias in baseline.network.biases]
    first = weights[0][features]
    biases[0] = biases[0] + scaling.centre @ first
    weights[0] = first * scaling.spread[:, None]
    weights[-1], biases[-1] = weights[-1][:, actions], biases[-1][actions]
    return SoftmaxBaseline(
        MLP(
            tuple(weight.astype(np.float32) for weight in weights),
            tuple(bias.astype(np.float32) for bias in biases),
        ),
        baseline.temperature,
    )


def _as_given(
    ordered: VectorLog, log: VectorLog, features: np.ndarray, actions: np.ndarray
) -> VectorLog:
    """Episodes of the ordered log in the columns and labels of the caller's."""
    columns = np.argsort(features)
    return replace(
        ordered, state=ordered.state[:, columns], next_state=ordered.next_state[:, columns],
        features=log.features, action=actions[ordered.action], actions=log.actions,
    )  # fmt: skip
