"""Episodes that choose changes, and others that judge them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from spibb.algorithms.baselines import Provenance
from spibb.algorithms.certified.change_search import Chooser
from spibb.algorithms.problem import Problem
from spibb.episodes.conformity import recorded_probs, recorded_table
from spibb.episodes.visits import Declared, ReturnBounds, Visits, check_returns
from spibb.log import Log
from spibb.splits import shuffled_by_content


@dataclass(frozen=True, eq=False)
class SplitLog:
    """A log as `certified` reads it, whatever δ is.

    `chooser` knows the choosing episodes, `judging` are the visits of the others; both are in units
    of the span of `bounds`. `sizes` are their numbers of episodes.
    """

    log: Log
    declared: Declared
    bounds: ReturnBounds
    chooser: Chooser
    judging: Visits
    sizes: tuple[int, int]

    @classmethod
    def of(
        cls, problem: Problem, declared: Declared, known: bool, n_choose: int, seed: int
    ) -> SplitLog:
        """Let the first `n_choose` shuffled episodes choose.

        `known` says that the probabilities of the log's actions are known.
        """
        log = problem.log
        assert log is not None  # `improve` has checked it
        bounds = declared.bounds(problem.discount)
        scaled = bounds.in_spans()
        order = shuffled_by_content(log, seed, named=False)
        inside = replace(log, reward=log.reward / scaled.unit)
        check_returns(inside, problem.discount, scaled)
        chosen, judged = inside.episodes(order[:n_choose]), inside.episodes(order[n_choose:])
        chooser = Chooser.of(
            chosen, _baseline(problem, chosen), problem.discount, scaled,
            judged.n_episodes / n_choose, known, problem.varying, _sure(problem, log, chosen),
        )  # fmt: skip
        judging = Visits.of(judged, problem.discount, scaled, shared=known)
        return cls(log, declared, bounds, chooser, judging, (n_choose, judged.n_episodes))


def _baseline(problem: Problem, chosen: Log) -> np.ndarray:
    """π_b [S, A]; where it depends on more than the state, its average."""
    return recorded_table(chosen) if problem.varying else problem.baseline.probs


def _sure(problem: Problem, log: Log, chosen: Log) -> np.ndarray | None:
    """What is known of π_b [S, A], if that is less than all."""
    if problem.baseline_source is not Provenance.RECORDED:
        return None
    return recorded_probs(chosen if problem.varying else log)
