"""The columns of a study on one data set, in one compiled call.

The three main studies train 200 million policies. Here a data set never becomes a log: episodes
stay codes of outcomes, and no Python runs between one algorithm and the next. Every algorithm says
which of its configurations its kernel knows, and gives its columns; nothing here knows them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np

from spibb.algorithms import REGISTRY
from spibb.algorithms.base import Algorithm
from spibb.algorithms.problem import Circumstances
from spibb.kernels import study
from spibb.kernels.tuples import Task
from spibb.policy import Policy
from spibb.simulate import Sampler


@dataclass(frozen=True, eq=False)
class CompiledTrainer:
    """Algorithms that meet on data sets that `sampler` draws from a true MDP.

    Those whose kernels know them take the compiled call: `members` are their numbers.
    """

    algorithms: Sequence[Algorithm]
    sampler: Sampler
    baseline: Policy
    v_max: float

    def performances(self, codes: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """True performance of each member's policy for drawn episodes [M], in their order."""
        found = np.empty(len(self._order))
        found[self._order] = self._train(codes, lengths).performances
        return found

    def policies(self, codes: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """Each member's policy for drawn episodes [M, S, A], in their order."""
        found = np.empty((len(self._order), *self.sampler.mdp.shape))
        found[self._order] = self._train(codes, lengths).policies
        return found

    def _train(self, codes: np.ndarray, lengths: np.ndarray) -> study.Trained:
        grids = self._grids(len(lengths))
        record = self.sampler.trusted_record(codes, lengths)
        probs, task = self._arrays
        return study.Trained(*self._call(record, probs, task, self.v_max, grids, len(self._order)))

    def circumstances(self, n_episodes: int) -> Circumstances:
        """What algorithms may know of a data set before it is drawn."""
        mdp = self.sampler.mdp
        return Circumstances(
            mdp.shape, mdp.discount, self.v_max, self._baseline, self.sampler.policy, n_episodes
        )

    @cached_property
    def _baseline(self) -> Policy:
        mdp = self.sampler.mdp
        return self.baseline.aligned(mdp.states, mdp.actions, "baseline")

    @cached_property
    def members(self) -> list[int]:
        """The algorithms whose kernels know them."""
        known = self.circumstances(1)
        return [m for m, algorithm in enumerate(self.algorithms) if algorithm.compiles(known)]

    @cached_property
    def _groups(self) -> dict[type[Algorithm], list[int]]:
        """Places among the members by kind, in the order of the call.

        All kinds of the registry that have a kernel are there, so that the call has one type.
        """
        groups: dict[type[Algorithm], list[int]] = {kind: [] for kind in kinds()}
        for i, m in enumerate(self.members):
            groups.setdefault(type(self.algorithms[m]), []).append(i)
        return groups

    @cached_property
    def _order(self) -> np.ndarray:
        """Which member each column of the call is."""
        return np.array([i for places in self._groups.values() for i in places], dtype=np.int64)

    @cached_property
    def _arrays(self) -> tuple[np.ndarray, Task]:
        """The baseline's rows and the MDP, which are the same for all data sets."""
        return self._baseline.probs.copy(), self.sampler.mdp.task

    @cached_property
    def _call(self) -> Callable[..., tuple[np.ndarray, np.ndarray]]:
        return study.trainer(self._grids(1))

    @cached_property
    def _grids_of_size(self) -> dict[int, tuple[Any, ...]]:
        return {1: tuple(self._grid(kind, 1) for kind in self._groups)}

    def _grids(self, n_episodes: int) -> tuple[Any, ...]:
        """The columns of every kind for data sets of a size.

        Grids that need no episodes do not depend on their number.
        """
        known = self._grids_of_size
        if n_episodes not in known:
            known[n_episodes] = tuple(
                self._grid(kind, n_episodes) if kind.needs_log else grid
                for kind, grid in zip(self._groups, known[1])
            )
        return known[n_episodes]

    def _grid(self, kind: type[Algorithm], n_episodes: int) -> Any:
        chosen = [self.algorithms[self.members[i]] for i in self._groups[kind]]
        return kind.columns(chosen, self.circumstances(n_episodes))


@cache
def kinds() -> tuple[type[Algorithm], ...]:
    """The kinds of the registry that have a kernel."""
    default = Algorithm.columns.__func__  # type: ignore[attr-defined]
    kinds = REGISTRY.values()
    return tuple(kind for kind in kinds if kind.columns.__func__ is not default)  # type: ignore[attr-defined]
