"""Is this log good enough? A first look: sizes, coverage, and what is suspicious about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from spibb import checks
from spibb.behaviour import Baseline
from spibb.checks import takes
from spibb.counts import BRACKETS, Counts
from spibb.defaults import DISCOUNT
from spibb.episodes.conformity import contradiction, decisions, misrecorded
from spibb.episodes.propensities import varies
from spibb.forecast import FORECAST_ROWS, Forecast, forecast
from spibb.ingest.aggregate import ORDER_UP_TO, LogTable
from spibb.ingest.assumptions import WARNING, Finding, assumptions
from spibb.ingest.baselines import align, given_baseline, is_of_log
from spibb.log import Log
from spibb.policy import Policy
from spibb.showing import Range, Shown
from spibb.sql import queries
from spibb.sql.sources import Source

NEARLY_ALWAYS = 0.99
"""A state in which one action has this share of the visits shows no alternatives."""
VARYING = "Recorded probabilities vary within a state"
CERTIFIES = "divides by them"
REFUSES = "refuses such a log of longer episodes"
REGULAR = 0.1
"""Steps count as numbers, not times, where this share of the differences is the smallest one."""


@dataclass(frozen=True)
class Bracket:
    """Pairs (state visited, action) that were seen `at_least` times and fewer than the next."""

    at_least: int
    pairs: int
    rows: int


@dataclass(frozen=True)
class Neighbours:
    """How rows fit the next one of their episode.

    `followed` rows have a next row and a successor of their own, which is another state than the
    next row's for `contradicted` of them. `gapped` episodes leave out whole-number steps.
    """

    followed: int = 0
    contradicted: int = 0
    gapped: int = 0


@dataclass(frozen=True)
class Inspection(Shown):
    """What a log looks like; lengths are the shortest, the median and the longest episode's.

    States and actions are those that the log names, as `improve` counts them; `states_undecided`
    of the states are without a decision whose outcome is known: reached but never acted in, or only
    at the end of a record. `decided` is the share of decisions in states where one action is taken
    at least 99 % of the time; `backwards` counts rows that stand before an earlier step of their
    episode, None where that was not looked at; `neighbours` are None likewise. `assumptions` are
    what the log does not say itself, and what was left out of it. `misrecorded` says why recorded
    probabilities cannot be right, and `varying` where they differ within a state, if that was
    looked at. `clock` are the columns of the state and
    the step, if all episodes have as many steps and the states do not say how many are left.
    `unlike` says why a baseline that was given cannot have made the log. `forecast` says in how
    many states a change could be certified; None for more than 200,000 rows.

    >>> found = spibb.inspect_log(log)
    >>> found.rows, found.lengths, found.actions
    (6, (2, 2, 2), 2)
    """

    rows: int
    episodes: int
    lengths: tuple[int, int, int]
    terminated: int
    truncated: int
    unknown_successors: int
    states: int
    states_undecided: int
    actions: int
    reward_range: tuple[float, float]
    coverage: tuple[Bracket, ...]
    states_seen_once: int
    decided: float
    backwards: int | None
    neighbours: Neighbours | None
    assumptions: tuple[Finding, ...] = ()
    misrecorded: str | None = None
    clock: tuple[str, ...] = ()
    varying: str | None = None
    unlike: str | None = None
    forecast: Forecast | None = None

    def _facts(self) -> Mapping[str, Any]:
        """Sizes, and what is suspicious, by name; `findings` has the words."""
        return {
            "transitions": self.rows, "episodes": self.episodes, "states": self.states,
            "actions": self.actions, "rewards": Range(*self.reward_range),
            "suspicions": ", ".join(found.what for found in self.suspicions) or "none",
        }  # fmt: skip

    @property
    def facts(self) -> tuple[Finding, ...]:
        """Sizes, in words."""
        low, high = self.reward_range
        shortest, median, longest = self.lengths
        return (
            Finding("Transitions", f"{self.rows:,}"),
            Finding("Episodes", f"{self.episodes:,}"),
            Finding("Episode lengths", f"{shortest:,} to {longest:,}, median {median:,}"),
            Finding("Episodes cut short", f"{self.truncated:,} ({self._share_cut:.0%})"),
            Finding("States", f"{self.states:,}{self._undecided}"),
            Finding("Actions", f"{self.actions:,}"),
            Finding("Rewards", f"{low:g} to {high:g}"),
            *(found for found in self.assumptions if found.what != WARNING),
        )

    @property
    def _undecided(self) -> str:
        n = self.states_undecided
        return f", {n:,} of them without a decision to learn from" if n else ""

    @property
    def suspicions(self) -> tuple[Finding, ...]:
        """What may be wrong, each with a remedy."""
        return tuple(self._suspicions())

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Facts, then suspicions."""
        return self.facts + self.suspicions

    @property
    def one_step(self) -> bool:
        """Whether every episode is one decision."""
        return self.lengths[2] == 1

    @property
    def _share_cut(self) -> float:
        return self.truncated / self.episodes

    def _suspicions(self) -> Iterator[Finding]:
        yield from (found for found in self.assumptions if found.what == WARNING)
        if self.misrecorded:
            yield Finding(
                "Recorded probabilities", self.misrecorded,
                "correct the column, or add to the state what it depends on: until then nothing "
                "is supported",
            )  # fmt: skip
        elif self.varying:
            yield Finding(
                VARYING, f"{self.varying}: the policy that acted looked at more than the state, "
                "and an action that it took in good cases looks good in any model",
                "add to the state what the probabilities depend on; otherwise a change counts "
                "only if the recorded probabilities confirm it without a model, and "
                f"certified {CERTIFIES if self.one_step else REFUSES}",
            )  # fmt: skip
        if self.unlike:
            yield Finding(
                "Baseline", f"it cannot have made this log: {self.unlike}",
                "give the policy that made the log, and no other: until then nothing is supported "
                "or certified",
            )  # fmt: skip
        yield from self._about_rewards_and_ends()
        yield from self._about_coverage()
        if self.backwards:
            yield Finding(
                "Time going backwards",
                f"{self.backwards:,} rows come before an earlier step of their episode",
                "they are sorted by step; check that step is the order in which things happened",
            )
        if self.neighbours is not None:
            yield from self._about_neighbours(self.neighbours)

    def _about_neighbours(self, found: Neighbours) -> Iterator[Finding]:
        if found.contradicted:
            share = found.contradicted / found.followed
            yield Finding(
                "Successors contradict the next row",
                f"{found.contradicted:,} of {found.followed:,} rows with a next row "
                f"({share:.0%}) name a next_state that is not the state of that row",
                "next_state is used; check that the column is not shifted, or leave it out: then "
                "the state of the next row is used",
            )
        if found.gapped:
            yield Finding(
                "Gaps in step",
                f"{found.gapped:,} of {self.episodes:,} episodes leave out whole-number steps",
                "a next_state that is not given is read across the gap, and may be wrong; restore "
                "the rows, give next_state, or end the episode at the gap",
            )

    def _about_rewards_and_ends(self) -> Iterator[Finding]:
        low, high = self.reward_range
        if low == high:
            yield Finding(
                "Constant reward",
                f"every reward is {low:g}",
                "only the length of episodes can be improved; check which column is mapped",
            )
        if self.terminated == 0:
            yield Finding(
                "No episode terminates",
                f"all {self.episodes:,} are cut short",
                "check the column terminated: after a cut, the process is assumed to go on",
            )
        elif self._share_cut > 0.5:
            yield Finding(
                "Most episodes are cut short",
                f"{self._share_cut:.0%}",
                "check that ends of the process are not marked as truncated",
            )
        if self.clock and self.terminated:
            yield Finding(
                "Episodes of one length",
                f"all {self.episodes:,} have {self.lengths[0]:,} steps",
                "if the process always stops there, what is left to gain depends on the step: add "
                f"it to the state (--state {','.join(self.clock)}); if only the record stops "
                "there, mark the last rows as truncated",
            )
        if self.unknown_successors:
            yield Finding(
                "Unknown successors",
                f"{self.unknown_successors:,} rows end a record without saying what followed",
                "they are left out of the counts; give next_state there, or mark real ends",
            )

    def _about_coverage(self) -> Iterator[Finding]:
        never = self.coverage[0].pairs
        total = sum(part.pairs for part in self.coverage)
        if never:
            yield Finding(
                "Actions never tried",
                f"{never:,} of {total:,} pairs of a visited state and an action",
                "the log says nothing about them, so they keep the baseline's probability",
            )
        if self.states_seen_once > 0.1 * self.states:
            yield Finding(
                "States seen once",
                f"{self.states_seen_once:,} of {self.states:,}",
                "bin numeric columns (--bin age:10) or leave columns out of the state",
            )
        if self.decided > 0.9:
            yield Finding(
                "Nearly deterministic behaviour",
                f"{self.decided:.0%} of decisions are in states where one action is taken in at "
                f"least {NEARLY_ALWAYS:.0%} of the cases",
                "alternatives were hardly tried, so little can be improved; vary the decisions",
            )


@takes(log=(Log, LogTable), counts=(type(None), Counts), rows=(type(None), Log))
def inspect_log(
    log: LogTable | Log,
    counts: Counts | None = None,
    rows: Log | None = None,
    *,
    baseline: Baseline | str | Path | Source | None = None,
    discount: float | None = None,
) -> Inspection:
    """Look at a log before anything is trained: sizes, coverage, and what is suspicious.

    Of up to 200,000 rows it also says in how many states a change could be certified.

    Parameters:
        log: a log in memory, or a table that `open_log` opened.
        counts: its counts, if they are known already.
        rows: what the table holds, if that has been read already.
        baseline: the policy that made the log, as in `run`: the forecast is made for it, and it is
            a suspicion if it cannot have made the log. None is what the log records, or else
            unknown.
        discount: γ of the forecast, in [0, 1). None is 0.95, and 0 for single steps.

    Returns:
        Sizes, coverage, `facts` and `suspicions` with their remedies, and the `forecast`.

    >>> found = spibb.inspect_log(log, baseline=baseline)
    >>> for finding in found.facts[:3]:
    ...     print(f"{finding.what}: {finding.value}")
    Transitions: 6
    Episodes: 3
    Episode lengths: 2 to 2, median 2
    >>> found.forecast
    Forecast(states=2, now=0, then=0, more_episodes=None, discount=0.95, delta=0.05)
    """
    gamma = discount if discount is None else checks.discount(discount)
    table = LogTable.of(log) if isinstance(log, Log) else log
    if rows is None:
        rows = log if isinstance(log, Log) else table.log() if table.rows <= FORECAST_ROWS else None
    if counts is None:
        counts = table.counts() if rows is None else Counts.from_log(rows)
    found = look_at(table, counts, rows)
    policy = None if is_of_log(baseline) else given_baseline(baseline, counts)
    if policy is not None:
        found = replace(found, unlike=_unlike(counts if rows is None else rows, policy))
    if rows is None or len(rows) > FORECAST_ROWS:
        return found
    usual = 0.0 if table.handling.bandit else DISCOUNT
    gamma = usual if gamma is None else gamma
    return replace(found, forecast=forecast(rows, gamma, baseline=policy or baseline))


def look_at(table: LogTable, counts: Counts, rows: Log | None) -> Inspection:
    """The same without a forecast, of a table whose counts are known, and perhaps its rows."""
    row = table.ask(queries.episodes_query(table.x)).to_pylist()[0]
    visits = counts.pairs.sum(axis=1)
    visited = counts.pairs[visits > 0]
    n_rows = table.profile.rows
    peak = visited.max(axis=1, initial=0) >= NEARLY_ALWAYS * visited.sum(axis=1)
    episodes = int(row["episodes"])
    terminated = int(row["terminated"])
    return Inspection(
        rows=n_rows,
        episodes=episodes,
        lengths=(int(row["shortest"]), int(row["median"]), int(row["longest"])),
        terminated=terminated,
        truncated=episodes - terminated,
        unknown_successors=n_rows - int(counts.n.sum()),
        states=len(counts.states),
        states_undecided=int((visits == 0).sum()),
        actions=len(counts.actions),
        reward_range=counts.reward_range,
        coverage=_coverage(visited),
        states_seen_once=int((visits == 1).sum()),
        decided=float(visited[peak].sum() / max(visited.sum(), 1)),
        backwards=_backwards(table),
        neighbours=_neighbours(table),
        assumptions=assumptions(table),
        misrecorded=None if rows is None else misrecorded(rows),
        clock=() if rows is None or not rows.hides_time else _clock(table),
        varying=None if rows is None else varies(rows),
    )


def _clock(table: LogTable) -> tuple[str, ...]:
    """The columns of the state and of the step."""
    return (*table.names["state"], *(table.names["step"] or ("step",)))


def _unlike(log: Log | Counts, baseline: Policy) -> str | None:
    """Why a baseline cannot have made the log, if it cannot."""
    if isinstance(log, Log):
        rows, policy = align(log, baseline)
        taken = decisions(rows)
    else:
        counts, policy = align(log, baseline)
        taken = counts.pairs
    return contradiction(taken, policy.probs, policy.states, policy.actions)


def _coverage(pairs: np.ndarray) -> tuple[Bracket, ...]:
    bracket = np.searchsorted(BRACKETS, pairs.reshape(-1), side="right") - 1
    n = np.bincount(bracket, minlength=len(BRACKETS))
    rows = np.bincount(bracket, weights=pairs.reshape(-1), minlength=len(BRACKETS))
    return tuple(Bracket(*part) for part in zip(BRACKETS, n.tolist(), rows.astype(int).tolist()))


def _backwards(table: LogTable) -> int | None:
    """Only files and frames have an order of rows, and walking through it takes one thread."""
    if table.x.single or not table.engine.casts_text or table.profile.rows > ORDER_UP_TO:
        return None
    if table.kept.distinct:
        return None  # the rows that are left have no order
    return int(table.ask(queries.backwards_query(table.x)).column(0)[0].as_py() or 0)


def _neighbours(table: LogTable) -> Neighbours | None:
    """Large logs are not put in order for this."""
    if table.x.single or table.profile.rows > ORDER_UP_TO:
        return None
    loose = not table.engine.loose.isdisjoint(table.names["state"] + table.names["next_state"])
    query = queries.neighbours_query(table.x, table.time_column is None, loose)
    found = {k: int(v or 0) for k, v in table.ask(query).to_pylist()[0].items()}
    regular = not found["fractions"] and found["unit"] >= REGULAR * found["steps"]
    return Neighbours(found["followed"], found["contradicted"], found["gapped"] if regular else 0)
