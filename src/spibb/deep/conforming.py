"""Was a log made by a policy on vectors? Its decisions must be about as frequent as it says.

No state occurs twice, so that decisions are pooled by what the policy would most probably do. In
each pool, N(a) is compared with Σ π(a|x) over its rows, as `spibb.episodes.conformity` compares
counts with probabilities of one state. Sums of different probabilities vary less than those of
their mean, so that the p-value is too large rather than too small.
"""

from __future__ import annotations

import numpy as np

from spibb.checks import instance
from spibb.deep.estimates import with_actions
from spibb.deep.vector_policy import VectorPolicy
from spibb.episodes.conformity import Conformity, Frequencies, Oddest
from spibb.errors import InputError
from spibb.ingest.vectors import VectorLog

FLIPPED = 0.01
"""Share of decisions that may be impossible: at the edge of the evidence, rounding decides."""


def conformity_on(log: VectorLog, policy: VectorPolicy) -> Conformity:
    """Compare a log's decisions with a policy; many that it never takes are an error."""
    instance("log", log, VectorLog, "read it with spibb.read_vectors")
    log = with_actions(log, policy.actions)
    probs = policy(log.state)
    _check_possible(log, probs)
    pool, n_actions = probs.argmax(axis=1), len(policy.actions)
    taken = np.zeros((n_actions, n_actions), dtype=np.int64)
    np.add.at(taken, (pool, log.action), 1)
    expected = np.zeros((n_actions, n_actions))
    np.add.at(expected, pool, probs)
    mean = expected / np.maximum(taken.sum(axis=1, keepdims=True), 1)
    found = Frequencies.of(taken, mean)
    odd = None if found.oddest is None else _named(found.oddest, taken, mean, policy)
    return Conformity(len(log), 0, found.statistic, found.freedom, found.p_value, odd)


def _check_possible(log: VectorLog, probs: np.ndarray) -> None:
    bad = probs[np.arange(len(log)), log.action] <= 0
    if bad.sum() > FLIPPED * len(log):
        first = int(np.argmax(bad))
        state = ", ".join(f"{name} {x:g}" for name, x in zip(log.features, log.state[first]))
        raise InputError(
            f"the log takes action {log.actions[log.action[first]]!r} at {state}, which the policy "
            f"never takes ({int(bad.sum())} of {len(log)} decisions are impossible): give only "
            "episodes that this policy made"
        )


def _named(
    pair: tuple[int, int], taken: np.ndarray, mean: np.ndarray, policy: VectorPolicy
) -> Oddest:
    where, action = pair
    visits = int(taken[where].sum())
    return Oddest(
        f"{policy.actions[where]} is most probable", policy.actions[action],
        int(taken[pair]), float(visits * mean[pair]), visits,
    )  # fmt: skip
