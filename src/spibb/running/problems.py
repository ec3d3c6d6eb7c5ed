"""From any log to a problem that an algorithm can improve."""

from __future__ import annotations

from dataclasses import replace

from spibb.algorithms.base import Algorithm
from spibb.algorithms.problem import Problem
from spibb.behaviour import Baseline
from spibb.counts import Counts
from spibb.errors import InputError
from spibb.estimate import default_v_max
from spibb.ingest.aggregate import ORDER_UP_TO, LogTable
from spibb.log import Log
from spibb.splits import split_episodes

ROWS_IN_MEMORY = ORDER_UP_TO
"""Logs of up to this many rows are kept, since off-policy estimates need their episodes."""
MANY_STATES = 10_000
FEWEST_HELD_OUT = 2
"""A single episode cannot show how much episodes differ."""


def load_problem(
    source: LogTable | Log,
    baseline: Baseline | None,
    algorithm: Algorithm,
    *,
    discount: float,
    v_max: float | None,
) -> Problem:
    """Read the rows if the algorithm needs them or they are few, else only count them.

    `baseline` is what `Problem.from_log` takes.
    """
    found = _read(source, algorithm.needs_log)
    rows = len(found) if isinstance(found, Log) else int(found.n.sum())
    check_coverage(rows, found)
    if isinstance(found, Log):
        return Problem.from_log(found, baseline, discount=discount, v_max=v_max)
    return Problem.from_counts(found, baseline, discount=discount, v_max=v_max)


def _read(source: LogTable | Log, needs_log: bool) -> Log | Counts:
    if isinstance(source, Log):
        return source
    return source.log() if needs_log or source.rows <= ROWS_IN_MEMORY else source.counts()


def hold_out(problem: Problem, share: float, seed: int) -> tuple[Problem, Log]:
    """A problem without a random share of its episodes, and the log of those.

    The baseline stays as it is: one that was estimated is that of the whole log. The split is that
    of `splits.split_episodes`, so that the same seed holds the same episodes out.
    """
    if problem.log is None:
        raise InputError(
            "holdout needs the episodes, and the log is so large that only counts were kept: "
            "keep some files of it apart for spibb evaluate"
        )
    kept, held = split_episodes(problem.log, share, seed)
    if held.n_episodes < FEWEST_HELD_OUT:
        raise InputError(
            f"holdout {share:g} holds out {held.n_episodes} of {problem.log.n_episodes} episodes, "
            f"expected at least {FEWEST_HELD_OUT}: a larger share is needed to test anything"
        )
    counts = Counts.from_log(kept)
    v_max = problem.v_max if problem.v_max_given else default_v_max(counts, problem.discount)
    return replace(problem, counts=counts, log=kept, v_max=v_max), held


def check_coverage(rows: int, log: Log | Counts) -> None:
    """Where most states are seen once there is nothing to learn: say which column to bin."""
    n_states = len(log.states)
    if n_states <= MANY_STATES or rows >= 2 * n_states:
        return
    columns = log.states.names
    parts = zip(*log.states.labels) if len(columns) > 1 else [log.states.labels]
    sizes = {column: len(set(part)) for column, part in zip(columns, parts)}
    worst = max(sizes, key=lambda column: sizes[column])
    raise InputError(
        f"the log has {n_states} states in {rows} rows, so most are seen once and nothing can "
        f"be learnt: column {worst!r} has {sizes[worst]} values; leave it out of the state, or cut "
        f"it with --bin {worst}:10 (bins={{{worst!r}: 10}} in Python)"
    )
