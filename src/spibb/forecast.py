"""In how many states `certified` changes something with a log, and with a longer one.

What it does with the log as it is, is done: the same episodes choose the same changes, and the
others test them (`changes.tested`). Without declared limits, returns stay within those of the log.
What it would do with more is predicted (`changes.ahead`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from spibb import checks
from spibb.changes.ahead import Ahead
from spibb.changes.split_log import (
    MadeBy,
    SplitLog,
    choosing_share,
    n_choosing,
)
from spibb.changes.tested import Tested
from spibb.changes.values import quick_values
from spibb.checks import takes
from spibb.counts import Counts
from spibb.defaults import DELTA, DISCOUNT
from spibb.episodes.conformity import recorded_table
from spibb.episodes.propensities import varies
from spibb.episodes.visits import Declared
from spibb.errors import InputError
from spibb.log import Log, returns_to_go
from spibb.splits import ordered_without_names
from spibb.words import roughly, short

LARGEST = 200_000
"""Rows up to which `spibb inspect` makes a forecast."""
UNREAD = "certified reads such a log only if its episodes have one step"


@dataclass(frozen=True)
class Forecast:
    """With this log, `certified` changes `now` of the `states` with logged decisions.

    With about `more_episodes` more it would probably change `then`; None where the log shows no
    prospect of more. `at_least` says that chance alone would let actions differ as much as they do
    in this log, so that it may take far more. Returns are taken to stay within `limits`, which are
    those of the log unless they were `declared`; `known` says that the log records the
    probabilities of its actions. `refusal` says why `certified` does not read the log, if it does
    not.
    """

    states: int
    now: int
    then: int
    more_episodes: int | None
    discount: float
    delta: float
    limits: tuple[float, float] = field(default=(0.0, 0.0), repr=False)
    declared: bool = field(default=False, repr=False)
    known: bool = field(default=False, repr=False)
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
        policy = "recorded" if self.known else "not known (spibb improve takes them: --baseline)"
        discounted = f"discount {self.discount:g}, " if self.discount else ""
        return (
            f"A forecast of --algorithm certified ({discounted}delta {self.delta:g}) if returns "
            f"stay in [{low}, {high}], {said}; the current policy's probabilities are {policy}."
        )


@takes(log=Log)
def forecast(
    log: Log,
    discount: float = DISCOUNT,
    delta: float = DELTA,
    *,
    lowest_return: float | None = None,
    highest_return: float | None = None,
) -> Forecast:
    """How many states `certified` changes with this log, and how many with a longer one.

    The first is what `certified` does with the same limits, if no baseline is given. The second is
    a prediction: at even odds, it is true.

    Parameters:
        log: the log.
        discount: γ in [0, 1).
        delta: failure probability of the tests that are forecast.
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
    log = log.with_labels(*ordered_without_names(log))  # as `certified` looks at them
    differs, states = varies(log), len(np.unique(log.state))
    none = Forecast(states, 0, 0, None, discount, delta)
    limits = lowest_return, highest_return
    try:
        return _forecast(log, none, limits, differs)
    except InputError as error:
        if None not in limits:
            raise
        return replace(none, refusal=str(error))


def _forecast(
    log: Log, none: Forecast, given: tuple[float | None, float | None], differs: str | None
) -> Forecast:
    """The same of a log that `certified` may read; an error says why it does not."""
    discount, delta = none.discount, none.delta
    counts = Counts.from_log(log)
    if differs and not counts.one_step:
        return replace(none, refusal=f"{differs}, and {UNREAD}")
    made_by = _made_by(log, counts, differs is not None)
    limits = _limits(log, discount, *given)
    none = replace(none, limits=limits, declared=None not in given, known=made_by.known)
    share = choosing_share(log, counts.pairs, made_by.known)
    n_choose = n_choosing(log, share)
    if n_choose is None or not limits[0] < limits[1] or not counts.n.sum():
        return none
    single = len(log) == log.n_episodes and bool(log.terminated.all())
    declared = Declared(*limits, horizon=1 if single else None)
    split = SplitLog.of(log, made_by, discount, declared, n_choose, 0, quick_values)
    now = len(Tested.of(log, made_by.probs, split, delta).accepted)
    ahead = Ahead.of(log, made_by, discount, split, delta, quick_values)
    then, times = ahead.half(now)
    more = None if times is None else ahead.more(times)
    return replace(none, now=now, then=then, more_episodes=more, at_least=not ahead.spread.shown)


def _made_by(log: Log, counts: Counts, varying: bool) -> MadeBy:
    """The policy that made the log as it records it, or else as it shows it."""
    if log.action_prob is not None:
        return MadeBy(recorded_table(log), known=True, recorded=True, varying=varying)
    visits = counts.pairs.sum(axis=1, keepdims=True)
    shown = np.where(visits > 0, counts.pairs / np.maximum(visits, 1), 1 / counts.shape[1])
    return MadeBy(shown, known=False, recorded=False, varying=False)


def _limits(
    log: Log, discount: float, lowest: float | None, highest: float | None
) -> tuple[float, float]:
    """Those given, or else those of the returns in the log; a cut episode may earn nothing more."""
    ahead = returns_to_go(log, discount)
    low, high = float(ahead.min()), float(ahead.max())
    if not log.terminated[log.episode_starts[1:] - 1].all():
        low, high = min(low, 0.0), max(high, 0.0)
    return low if lowest is None else lowest, high if highest is None else highest
