"""An order of columns, actions and episodes that their content decides.

Training draws first weights and minibatches by place. If places came from names and files, another
order of columns or episodes, other names of actions or other units would train another network.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from spibb.arrays import on_grid, scrambled
from spibb.ingest.vectors import VectorLog
from spibb.labels import Vocabulary


@dataclass(frozen=True, eq=False)
class Canonical:
    """A log in an order of its own; `features` [d] and `actions` [A] are the caller's places.

    `content` [E] are numbers made of its episodes.
    """

    log: VectorLog
    content: np.ndarray
    features: np.ndarray
    actions: np.ndarray


def canonical(log: VectorLog) -> Canonical:
    """Order by hashes of ranks: they know neither names, nor units, nor the order of the file."""
    with np.errstate(over="ignore"):
        ranks = np.column_stack([_ranks(column) for column in log.state.T])
        paid = scrambled(on_grid(log.reward))
        step = log.remaining.astype(np.uint64)
        row = scrambled(scrambled(ranks).sum(axis=1, dtype=np.uint64) + paid + step)
        by_action = np.zeros(len(log.actions), np.uint64)
        np.add.at(by_action, log.action, scrambled(row))
        actions = np.argsort(by_action, kind="stable")
        code = np.argsort(actions, kind="stable")[log.action]
        row = scrambled(row + code.astype(np.uint64) + (log.terminated.astype(np.uint64) << 32))
        features = np.argsort(scrambled(ranks + row[:, None]).sum(axis=0, dtype=np.uint64))
        content = np.add.reduceat(row, log.episode_starts[:-1])
        episodes = np.argsort(content, kind="stable")
    ordered = replace(
        log, state=log.state[:, features], next_state=log.next_state[:, features],
        features=tuple(log.features[k] for k in features), action=code,
        actions=Vocabulary(tuple(log.actions[a] for a in actions), log.actions.names),
    )  # fmt: skip
    return Canonical(ordered.episodes(episodes), content[episodes], features, actions)


def _ranks(column: np.ndarray) -> np.ndarray:
    return np.unique(column, return_inverse=True)[1].astype(np.uint64)
