"""Episodes that choose changes, and others that judge them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from spibb.behaviour import Provenance
from spibb.changes.change_search import Chooser, Valuation
from spibb.episodes.conformity import recorded_probs, recorded_table
from spibb.episodes.propensities import behaviour_probs, varies
from spibb.episodes.visits import Declared, ReturnBounds, Visits, check_returns
from spibb.errors import InputError
from spibb.frozen import Frozen
from spibb.log import Log
from spibb.splits import shuffled_by_content

CHOOSE, CHOOSE_AMONG_MANY, MANY = 0.3, 0.5, 10
"""The share of the episodes that choose; and where all have one step, the baseline is known, and
there are more pairs of state and action than `MANY`: finding a change is then harder than testing
it."""


@dataclass(frozen=True, eq=False)
class MadeBy(Frozen):
    """What is known of the policy that made a log.

    `probs` [S, A] are its probabilities, given or recorded, or estimates where it is not `known`.
    `recorded` says that they are those of the log's `action_prob`, and `varying` that these depend
    on more than the state.
    """

    probs: np.ndarray
    known: bool
    recorded: bool = False
    varying: bool = False

    @classmethod
    def of(cls, log: Log, baseline: np.ndarray, source: Provenance, one_step: bool) -> MadeBy:
        """Of a log, and a baseline [S, A] from that source.

        Every recorded probability must be the given baseline's, or, if none was given, that of the
        same pair elsewhere in the log, unless all episodes have one step. Actions that the log
        never takes in a state share what is left; no change keeps them (`planned_tests`).
        """
        if source is Provenance.GIVEN:
            behaviour_probs(log, baseline)
            return cls(baseline, known=True)
        if log.action_prob is None:
            return cls(baseline, known=False)
        table, differs = recorded_table(log), varies(log)
        if differs and not one_step:
            raise InputError(
                f"{differs}: for episodes of several steps, certified requires that decisions "
                "depended on the state only; otherwise an action that was taken in good cases "
                "looks good, with or without the column; add to the state what the probability "
                "depends on"
            )
        return cls(table, known=True, recorded=True, varying=differs is not None)


def choosing_share(log: Log, pairs: np.ndarray, known: bool) -> float:
    """The share of the episodes that choose, in a log with these visits of `pairs` [S, A]."""
    single = known and len(log) == log.n_episodes
    return CHOOSE_AMONG_MANY if single and np.count_nonzero(pairs) > MANY else CHOOSE


def n_choosing(log: Log, share: float) -> int | None:
    """How many episodes choose; None if less than two are left to judge."""
    n = max(1, round(share * log.n_episodes))
    return n if log.n_episodes - n >= 2 else None


@dataclass(frozen=True, eq=False)
class SplitLog:
    """A log as `certified` reads it, for any δ.

    `chooser` knows the choosing episodes, `judging` are the visits of the others; both are in units
    of the span of `bounds`. `sizes` are their numbers of episodes.
    """

    declared: Declared
    bounds: ReturnBounds
    chooser: Chooser
    judging: Visits
    sizes: tuple[int, int]

    @classmethod
    def of(
        cls, log: Log, made_by: MadeBy, discount: float, declared: Declared, n_choose: int,
        seed: int, values: Valuation,
    ) -> SplitLog:  # fmt: skip
        """Let the first `n_choose` shuffled episodes choose."""
        bounds = declared.bounds(discount)
        scaled = bounds.in_spans()
        order = shuffled_by_content(log, seed)
        inside = replace(log, reward=log.reward / scaled.unit)
        check_returns(inside, discount, scaled)
        chosen, judged = inside.episodes(order[:n_choose]), inside.episodes(order[n_choose:])
        chooser = chooser_of(
            chosen, log, made_by, discount, scaled, judged.n_episodes / n_choose, values
        )
        judging = Visits.of(judged, discount, scaled, shared=made_by.known)
        return cls(declared, bounds, chooser, judging, (n_choose, judged.n_episodes))


def chooser_of(
    chosen: Log, log: Log, made_by: MadeBy, discount: float, bounds: ReturnBounds, scale: float,
    values: Valuation,
) -> Chooser:  # fmt: skip
    """What some episodes of a log say, if `scale` times as many will judge."""
    baseline, sure = made_by.probs, None
    if made_by.varying:  # its average
        baseline = recorded_table(chosen)
    if made_by.recorded:
        sure = recorded_probs(chosen if made_by.varying else log)
    return Chooser.of(
        chosen,
        baseline,
        discount,
        bounds,
        scale,
        made_by.known,
        made_by.varying,
        sure,
        values=values,
    )
