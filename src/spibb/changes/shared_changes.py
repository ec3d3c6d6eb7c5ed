"""Changes that several contexts share: in all states with one value of a column, avoid the same.

Where episodes have one step, one test may decide on a change in many contexts at once (`certified`,
4). If an item is liked by one group of users, wherever it is shown, the clicks of the whole group
find it, and those of single contexts do not. So the same set of actions is looked at in *regions*:
single states, states that share the value of one of their columns, and all states.

Everything here is chosen and predicted on the choosing episodes; no judging episode is looked at,
so that a wrong prediction costs power, and never validity. In a region R an action's effect is
u(a) = Σ (G − V̂(x)) / N over its N rows, of variance σ²/N if all actions are alike. A change moves
the mass m(a), so it gains Σ m(a) u(a), with the standard error √(Σ m(a)² σ²/N(a)). The best of many
sets looks better than it is, hence `LOWERED`. For the same reason the mean square of X is at least
what it would be if all actions were alike: an action that by chance was never rewarded would
promise a gain without risk.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from spibb.bounds.betting import MOST
from spibb.changes.change_search import NOTHING, TRUSTED, Chooser
from spibb.changes.planned_tests import PlannedTest
from spibb.frozen import Frozen
from spibb.labels import Label

ALIKE = 0.99
"""Of rules with about the same evidence, that for the fewest states is taken."""
LOWERED = 1.5
"""Standard errors by which the predicted gain of a rule is lowered."""


@dataclass(frozen=True, eq=False)
class SharedChange(Frozen):
    """A set of actions to keep in some states, with the bet on it, and what is predicted.

    `evidence` is the predicted logarithm of the e-value.
    """

    states: np.ndarray
    kept: np.ndarray
    bet: float
    gain: float
    second: float
    evidence: float

    def plans(self, chooser: Chooser) -> tuple[PlannedTest, ...]:
        """The change of each state, where it changes anything."""
        found = (self._plan(chooser, int(s)) for s in self.states)
        return tuple(plan for plan in found if plan is not None)

    def _plan(self, chooser: Chooser, s: int) -> PlannedTest | None:
        p = np.where(self.kept, chooser.baseline[s], 0.0)
        mass = float(p.sum())
        if mass <= 0 or mass > 1 - NOTHING:
            return None
        return PlannedTest(
            s, p > 0, p / mass, mass, float(chooser.centre[s]), 1, 0, self.bet, self.evidence,
            self.gain, int(chooser.counts[s].sum()), self.second, 0.0, by_row=chooser.by_row,
        )  # fmt: skip


def best_shared(chooser: Chooser, labels: Sequence[Label]) -> SharedChange | None:
    """The rule whose test promises the strongest evidence; None without a prospect."""
    found = [rule for states in regions(labels) if (rule := _best(chooser, states))]
    most = max((rule.evidence for rule in found), default=0.0)
    if most < math.log(1 / chooser.delta):
        return None
    return min(
        (rule for rule in found if rule.evidence > ALIKE * most), key=lambda r: len(r.states)
    )


def regions(labels: Sequence[Label]) -> Iterator[np.ndarray]:
    """Codes of all states, of those that share the value of a column, and of each by itself."""
    yield np.arange(len(labels))
    if labels and isinstance(labels[0], tuple):
        for column in zip(*labels):  # type: ignore[arg-type]
            values: dict[Label, list[int]] = {}
            for code, value in enumerate(column):
                values.setdefault(value, []).append(code)
            yield from (np.array(codes) for codes in values.values() if len(codes) > 1)
    yield from np.arange(len(labels))[:, None]


def _best(chooser: Chooser, states: np.ndarray) -> SharedChange | None:
    """The set of actions whose test promises the strongest evidence in a region.

    States where everything paid the same are left out: nothing speaks for a change there.
    """
    states = states[np.ptp(chooser.q[states], axis=1) > chooser.rounding]
    n, b = chooser.counts[states], chooser.baseline[states]
    usable = np.flatnonzero((n.sum(axis=0) >= TRUSTED) & (b.sum(axis=0) > 0))
    if len(usable) < 2:
        return None
    region = _JointStates.of(chooser, states)
    order = usable[np.argsort(np.round(region.effect[usable] / chooser.rounding), kind="stable")]
    found = (region.change(chooser, order[worst:]) for worst in range(1, len(order)))
    return max((c for c in found if c is not None), key=lambda c: c.evidence, default=None)


@dataclass(frozen=True, eq=False)
class _JointStates(Frozen):
    """States as one: `rows` in all, and how often each action was tried in them [A].

    `played` [A] is the baseline's mass, `effect` [A] is u; the others are means over the rows.
    """

    states: np.ndarray
    rows: float
    tried: np.ndarray
    played: np.ndarray
    effect: np.ndarray
    noise: float
    v: float
    centre: float

    @classmethod
    def of(cls, chooser: Chooser, states: np.ndarray) -> _JointStates:
        """What the choosing episodes say of some states together."""
        n = chooser.counts[states]
        rows, tried = n.sum(axis=1), n.sum(axis=0)
        total = float(rows.sum())
        above = (n * (chooser.q[states] - chooser.v[states][:, None])).sum(axis=0)
        noise, v, centre = (
            float(rows @ values[states] / total)
            for values in (chooser.noise, chooser.v, chooser.centre)
        )
        played, effect = rows @ chooser.baseline[states] / total, above / np.maximum(tried, 1)
        return cls(states, total, tried, played, effect, noise, v, centre)

    def change(self, chooser: Chooser, actions: np.ndarray) -> SharedChange | None:
        """Keep only some actions: the best bet on that; None if no gain is predicted."""
        kept = np.zeros(len(self.tried), dtype=bool)
        kept[actions] = True
        mass = float(self.played[kept].sum())
        if not 0 < mass < 1 - NOTHING:
            return None
        moved = np.where(kept, self.played / mass, 0.0) - self.played
        error = math.sqrt(self.noise * float((moved**2 / np.maximum(self.tried, 1)).sum()))
        gain = float(moved @ self.effect) - LOWERED * error
        second = (1 / mass - 1) * (self.noise + (self.v - self.centre) ** 2)
        if gain <= chooser.rounding or second <= 0:
            return None
        high, low = chooser.bounds.high, chooser.bounds.low
        loss = max(high - self.centre, (1 / mass - 1) * (self.centre - low))
        bet = min(gain / second, MOST / loss)
        evidence = chooser.scale * self.rows * (bet * gain - bet**2 * second / 2)
        return SharedChange(self.states, kept, bet, gain, second, evidence)
