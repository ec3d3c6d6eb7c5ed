"""In how many states a log could certify a change, and how many more episodes others need.

The arithmetic of `certified` without training anything: at the first visit of a state, with return
G from there on, X = (π(a|s)/π_b(a|s) − 1)(G − mean G), π_b being how often the log takes each
action; a test that may bet on X gains `betting.growth` per judging episode, and the r-th strongest
change needs about log(r/δ). A state's best set of actions to avoid is chosen on the same rows, so
its mean is lowered by one standard error. Where recorded probabilities p vary within a state and
episodes have one step, X = (π(a|s)/p − 1)(G − lowest G), as in `certified`; such a log of longer
episodes it refuses.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from spibb import checks
from spibb.bounds.betting import growth
from spibb.checks import takes
from spibb.defaults import DISCOUNT
from spibb.episodes.propensities import varies
from spibb.log import Log, returns_to_go
from spibb.words import roughly

JUDGING = 0.7
"""The share of the episodes that tests."""
FEWEST = 3
"""First visits that an action needs before its mean is worth a look."""
LARGEST = 200_000
"""Rows up to which `spibb inspect` makes a forecast."""
UNREAD = "certified reads such a log only if its episodes have one step"
HOPELESS = 100.0
"""A state that needs so many times the log is not forecast."""


@dataclass(frozen=True)
class Forecast:
    """`now` of the `states` visited have enough evidence to certify a change; with about
    `more_episodes` more it would be `then`, None where the log shows no further prospect.
    `refusal` says why `certified` does not read the log, if it does not."""

    states: int
    now: int
    then: int
    more_episodes: int | None
    discount: float
    delta: float
    refusal: str = field(default="", repr=False)

    def __str__(self) -> str:
        if self.refusal:
            return f"Nothing can be certified from this log: {self.refusal}."
        said = (
            f"Enough evidence to certify a change in {self.now:,} of the {self.states:,} states "
            "with logged decisions"
        )
        if self.more_episodes is None:
            return f"{said}; more episodes like these would hardly add one."
        more = roughly(self.more_episodes)
        return f"{said}; with about {more} more episodes, in {self.then:,}."


@takes(log=Log)
def forecast(log: Log, discount: float = DISCOUNT, delta: float = 0.05) -> Forecast:
    """How many states `certified` could change with this log, and how many with a longer one.

    Looks at every state's first visits; cut episodes count as recorded. It is a forecast, not a
    bound.

    Parameters:
        log: the log.
        discount: γ in [0, 1).
        delta: failure probability of the tests that are forecast.

    Returns:
        The number of states, how many could change now and with more episodes, and how many
        episodes that takes.

    >>> spibb.forecast.forecast(log, 0.9)
    Forecast(states=2, now=0, then=0, more_episodes=None, discount=0.9, delta=0.05)
    """
    checks.discount(discount)
    checks.delta(delta)
    differs, states = varies(log), len(np.unique(log.state))
    if differs and len(log) > log.n_episodes:
        return Forecast(states, 0, 0, None, discount, delta, f"{differs}, and {UNREAD}")
    evidence = sorted(_evidence(log, discount, bool(differs)), reverse=True)
    lacks = [
        log.n_episodes * (math.log(rank / delta) / found - 1)
        for rank, found in enumerate(evidence, start=1)
    ]
    now = sum(more <= 0 for more in lacks)
    waiting = sorted(more for more in lacks if 0 < more <= HOPELESS * log.n_episodes)
    half = (len(waiting) + 1) // 2
    return Forecast(
        states, now, now + half,
        math.ceil(waiting[half - 1]) if waiting else None, discount, delta,
    )  # fmt: skip


def _evidence(log: Log, discount: float, varying: bool) -> Iterator[float]:
    """log e that the judging episodes promise, for each state that has a prospect.

    `varying` says that the rows' own probabilities count.
    """
    ahead = returns_to_go(log, discount)
    unit = float(np.abs(ahead).max())
    if not unit > 0:
        return
    ahead = ahead / unit
    low, high = float(ahead.min()), float(ahead.max())
    episode = np.repeat(np.arange(log.n_episodes), np.diff(log.episode_starts))
    key = log.state.astype(np.int64) * log.n_episodes + episode
    _, first = np.unique(key, return_index=True)
    state = log.state[first]
    bounds = np.flatnonzero(np.diff(state)) + 1
    for rows in np.split(first, bounds):
        made = log.action_prob[rows] if varying and log.action_prob is not None else None
        best = _best(log.action[rows], ahead[rows], (low, high), made)
        if best > 0:
            yield JUDGING * best


def _best(
    action: np.ndarray, g: np.ndarray, limits: tuple[float, float], made: np.ndarray | None
) -> float:
    """The largest growth of log e over the visits of a state, over sets of actions to avoid."""
    n = np.bincount(action)
    means = np.bincount(action, weights=g) / np.maximum(n, 1)
    trusted = np.flatnonzero(n >= FEWEST)
    worst_first = trusted[np.argsort(means[trusted], kind="stable")]
    low, high = limits
    found, centre = 0.0, float(g.mean()) if made is None else low
    # how often an action is taken on average, beside how probable it was in this row
    often = 1.0 if made is None else n[action] / len(action) / made
    avoided = np.zeros(len(n), dtype=bool)
    for a in worst_first[:-1]:
        avoided[a] = True
        kept = ~avoided[action]
        mass = float(kept.mean())
        x = np.where(kept, often / mass - 1, -1.0) * (g - centre)
        lowered = float(x.mean()) - float(x.std()) / math.sqrt(len(x))
        loss = max(high - centre, (1 / mass - 1) * (centre - low))
        if lowered > 0 and loss > 0:
            found = max(found, len(x) * growth(lowered, float((x**2).mean()), loss)[1])
    return found
