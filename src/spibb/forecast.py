"""In how many states `certified` changes something with a log, and with a longer one.

What it does with the log as it is, is done: the same episodes choose the same changes, and the
others test them (`changes.tested`). Without declared limits, returns stay within those of the log.
What it would do with more is predicted (`changes.ahead`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from spibb import checks
from spibb.behaviour import Baseline, Provenance
from spibb.changes.ahead import Ahead
from spibb.changes.split_log import MadeBy, SplitLog, choosing_share, n_choosing
from spibb.changes.tested import Tested
from spibb.changes.values import quick_values
from spibb.checks import takes
from spibb.defaults import DELTA, DISCOUNT
from spibb.episodes.conformity import contradiction, decisions, misrecorded
from spibb.episodes.visits import Declared
from spibb.errors import InputError
from spibb.ingest.baselines import Attributed, attributed
from spibb.log import Log, returns_to_go
from spibb.splits import ordered_without_names
from spibb.sql.sources import Source
from spibb.words import roughly, short

FORECAST_ROWS = 200_000
"""Rows up to which `spibb inspect` makes a forecast."""
POLICIES = {
    Provenance.GIVEN: "those of the baseline",
    Provenance.RECORDED: "recorded",
    Provenance.ESTIMATED: "not known (--baseline FILE gives them)",
}
"""Where the probabilities of the current policy come from, in a forecast's words."""


@dataclass(frozen=True)
class Forecast:
    """With this log, `certified` changes `now` of the `states` with logged decisions.

    With about `more_episodes` more it would probably change `then`; None where the log shows no
    prospect of more. `at_least` says that chance alone would let actions differ as much as they do
    in this log, so that it may take far more. Returns are taken to stay within `limits`, which are
    those of the log unless they were `declared`; `source` says where the probabilities of the
    current policy come from. `refusal` says why `certified` does not read the log, if it does not.
    """

    states: int
    now: int
    then: int
    more_episodes: int | None
    discount: float
    delta: float
    limits: tuple[float, float] = field(default=(0.0, 0.0), repr=False)
    declared: bool = field(default=False, repr=False)
    source: Provenance = field(default=Provenance.ESTIMATED, repr=False)
    at_least: bool = field(default=False, repr=False)
    refusal: str = field(default="", repr=False)

    def __str__(self) -> str:
        if self.refusal:
            return f"Nothing can be certified from this log: {self.refusal}."
        said = (
            f"Enough evidence to certify a change in {self.now:,} of the {self.states:,} states "
            "with logged decisions"
        )
        if self.now == self.states:
            return f"{said}."
        if self.more_episodes is None:
            return f"{said}; this log does not tell how many more episodes would add one."
        about = "at least about" if self.at_least else "about"
        more = roughly(self.more_episodes) + " more episodes"
        return f"{said}; with {about} {more}, in {self.then:,}."

    @property
    def premises(self) -> str:
        """What it is made of, in a sentence."""
        low, high = (short(end) for end in self.limits)
        said = "as declared" if self.declared else "as those of this log do"
        discounted = f"discount {self.discount:g}, " if self.discount else ""
        return (
            f"A forecast of --algorithm certified ({discounted}delta {self.delta:g}) if returns "
            f"stay in [{low}, {high}], {said}; the current policy's probabilities are "
            f"{POLICIES[self.source]}."
        )


@takes(log=Log)
def forecast(
    log: Log,
    discount: float = DISCOUNT,
    delta: float = DELTA,
    *,
    baseline: Baseline | str | Path | Source | None = None,
    lowest_return: float | None = None,
    highest_return: float | None = None,
) -> Forecast:
    """How many states `certified` changes with this log, and how many with a longer one.

    The first is what `certified` does with the same baseline and limits. The second is a
    prediction: at even odds, it is true.

    Parameters:
        log: the log.
        discount: γ in [0, 1).
        delta: failure probability of the tests that are forecast.
        baseline: the policy that made the log, as in `Problem.from_log`; None is what the log
            records, or else unknown.
        lowest_return: no return from any step on is below it; without it, that of the log.
        highest_return: no return from any step on is above it; without it, that of the log.

    Returns:
        The number of states, how many change now and with more episodes, and how many episodes
        that takes.

    >>> spibb.forecast.forecast(log, 0.9)
    Forecast(states=2, now=0, then=0, more_episodes=None, discount=0.9, delta=0.05)
    """
    checks.discount(discount)
    checks.delta(delta)
    limits = (
        checks.limit("lowest_return", lowest_return),
        checks.limit("highest_return", highest_return),
    )
    made = attributed(baseline, log)
    none = Forecast(len(np.unique(log.state)), 0, 0, None, discount, delta, source=made.source)
    if refuted := _refuted(made):
        return replace(none, refusal=refuted)
    try:
        return _forecast(made, none, limits)
    except InputError as error:
        if None not in limits:
            raise
        return replace(none, refusal=str(error))


def _refuted(made: Attributed) -> str | None:
    """Why the policy cannot have made the log, if it cannot: a verdict then certifies nothing."""
    log, policy = made.log, made.policy
    if made.source is Provenance.GIVEN:
        why = contradiction(decisions(log), policy.probs, log.states, log.actions)
        return why and f"the baseline cannot have made it ({why})"
    return misrecorded(log) if made.source is Provenance.RECORDED else None


def _forecast(
    made: Attributed, none: Forecast, given: tuple[float | None, float | None]
) -> Forecast:
    """The same of a log that `certified` may read; an error says why it does not."""
    discount, delta = none.discount, none.delta
    log, made_by = _in_own_order(made)
    limits = _limits(log, discount, *given)
    source = Provenance.RECORDED if made_by.recorded else none.source
    none = replace(none, limits=limits, declared=None not in given, source=source)
    n_choose = n_choosing(log, choosing_share(log, made.counts.pairs, made_by.known))
    apart = none.declared or limits[0] < limits[1]  # limits declared in vain are refused below
    if n_choose is None or not apart or not made.counts.n.sum():
        return none
    single = len(log) == log.n_episodes and bool(log.terminated.all())
    declared = Declared(*limits, horizon=1 if single else None)
    split = SplitLog.of(log, made_by, discount, declared, n_choose, 0, quick_values)
    now = len(Tested.of(log, made_by.probs, split, delta).accepted)
    ahead = Ahead.of(log, made_by, discount, split, delta, quick_values)
    then, times = ahead.half(now)
    more = None if times is None else ahead.more(times)
    return replace(none, now=now, then=then, more_episodes=more, at_least=not ahead.spread.shown)


def _in_own_order(made: Attributed) -> tuple[Log, MadeBy]:
    """The log and what is known of its policy, with labels in the order in which `certified` looks
    at them."""
    log, policy = made.log, made.policy
    made_by = MadeBy.of(log, policy.probs, made.source, made.counts.one_step)
    states, actions = ordered_without_names(log)
    rows, columns = policy.states.codes(states), policy.actions.codes(actions)
    return log.with_labels(states, actions), replace(
        made_by, probs=made_by.probs[rows[:, None], columns]
    )


def _limits(
    log: Log, discount: float, lowest: float | None, highest: float | None
) -> tuple[float, float]:
    """Those given, or else those of the returns in the log; a cut episode may earn nothing more."""
    ahead = returns_to_go(log, discount)
    low, high = float(ahead.min()), float(ahead.max())
    if not log.terminated[log.episode_starts[1:] - 1].all():
        low, high = min(low, 0.0), max(high, 0.0)
    return low if lowest is None else lowest, high if highest is None else highest
