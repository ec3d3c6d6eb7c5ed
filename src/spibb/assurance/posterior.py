"""The posterior of the gain: how sure a log lets us be that a policy is no worse."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from spibb import checks
from spibb.arrays import RETURN_ROUNDING
from spibb.assurance.disasters import Disasters
from spibb.assurance.label_order import by_content
from spibb.assurance.limits import return_limits
from spibb.assurance.pooling import Pooling, pool
from spibb.assurance.rates import SuccessRates
from spibb.assurance.rows import Models, Paid, PooledRows
from spibb.assurance.values import BATCH_NUMBERS, Evaluator
from spibb.behaviour import in_common
from spibb.counts import Counts
from spibb.errors import InputError
from spibb.frozen import Frozen
from spibb.log import Log
from spibb.policy import Policy
from spibb.showing import Range
from spibb.solve import unit_of

ROUNDING, STEP_ROUNDING = RETURN_ROUNDING, 1e-6
"""Of a value, and of its steps from the mean model to a drawn one, which are as large as its
standard deviation."""
BELOW = 2
"""Drawn models that should lie below a quantile, at the least."""
MOST_DRAWS = 100_000
SUMMED_UP_TO = 3
"""Visits up to which a gamma variate is quicker to draw as a sum of exponential ones."""
ASSUMES = (
    "states are Markov, and episodes are independent",
    "the process did not change while the log was made, and will not change",
    "an action rarely seen in a state does what the other actions did there, plus or minus the "
    "usual differences between actions in the log",
    "new episodes start like those of the log",
)
"""What the posterior assumes."""


@dataclass(frozen=True, eq=False)
class Posterior(Frozen):
    """How the gain ρ(π, M) − ρ(π_b, M) is distributed over models M drawn given the log.

    `probability` is P(ρ(π, M) ≥ ρ(π_b, M) − zeta | D), `interval` the central one of `level`.
    `values` [draws, 2] are ρ(π, M) and ρ(π_b, M) themselves, `gains` [draws] their differences.

    The probability assumes what `ASSUMES` lists, and is measured as over-confident: of policies
    that were trained on the same log, those with 0.95 to 0.99 were truly no worse in 92 % of the
    cases, and in 73 % where sales with a long tail decide (docs/assurance.md). It is not printed
    anywhere; a `verdict` says how sure the log is.

    >>> spibb.PiBSpibb(n_wedge=1).improve(problem).posterior(draws=200)
    Posterior(gain=..., interval=... to ..., level=0.95, draws=200)
    """

    probability: float
    zeta: float
    gain: float
    interval: tuple[float, float]
    level: float
    gains: np.ndarray
    values: np.ndarray

    @classmethod
    def of(cls, rho: np.ndarray, *, zeta: float = 0.0, level: float = 0.95) -> Posterior:
        """From ρ(π, M) and ρ(π_b, M) in drawn models [draws, 2]."""
        rho, zeta, level = _pairs(rho), _zeta(zeta), _level(level)
        gains, tail = gains_over(rho[:, :1], rho[:, 1])[:, 0], (1 - level) / 2
        low, high = np.quantile(gains, [tail, 1 - tail])
        probability, gain = float((gains >= -zeta).mean()), float(gains.mean())
        return cls(probability, zeta, gain, (float(low), float(high)), level, gains, rho)

    @property
    def new(self) -> np.ndarray:
        """ρ(π, M) [draws]."""
        return np.asarray(self.values[:, 0])

    @property
    def current(self) -> np.ndarray:
        """ρ(π_b, M) [draws]."""
        return np.asarray(self.values[:, 1])

    def _facts(self) -> Mapping[str, Any]:
        """The gain, its interval, and how many models were drawn."""
        return {"gain": self.gain, "interval": Range(*self.interval), "level": self.level,
                "draws": len(self.gains)}  # fmt: skip


def _zeta(value: float) -> float:
    return checks.number("zeta", value, -np.inf, np.inf, "()")


def _level(value: float) -> float:
    return checks.number("level", value, 0, 1, "()")


def _pairs(given: np.ndarray) -> np.ndarray:
    """Check the values of two policies in drawn models [draws, 2]."""
    rho = checks.real_array("rho", given)
    if rho.ndim != 2 or rho.shape[1] != 2 or not len(rho):
        raise InputError(f"rho has shape {rho.shape}, expected (draws, 2): a row for each model")
    for values in rho.T:
        checks.finite(values, "rho")
    return rho


@dataclass(frozen=True, eq=False)
class Belief:
    """What a log says of its process, ready to be drawn from.

    A drawn model gives pair (x, a), seen n times, w = n/(n + α) of its own outcomes and 1 − w of
    those that state x showed under any action:

        P = w Σ_k θ_k [x'_k] + (1 − w) m_x,        θ ~ Dirichlet(n_1, …, n_K),
        R = w Σ_k θ_k r_k + (1 − w) (r̄_x + e_x) + slope · (1 − w) ℓ + error · N(0, 1).

    m_x and r̄_x are drawn with the same weights: all outcomes of the state together. e_x is a normal
    error of theirs. No value leaves the limits of `assurance.limits`.

    The mean reward r_k of an outcome is drawn as well: where all rewards of the log take two values
    it is the rate of success of its pair (`assurance.rates`), otherwise from a normal distribution.
    It is exact where the log as a whole shows that an outcome always pays the same
    (`PooledRows.doubt`). α, the slope of value on the baseline's preferences ℓ and the error are
    drawn as well, given the log (`assurance.pooling`): each α of `poolings` has its share of the
    models. A pair never tried has w = 0. All of it is in units of the largest reward; only `values`
    are not.
    """

    counts: Counts
    rows: PooledRows
    poolings: tuple[Pooling, ...]
    disasters: Disasters
    discount: float
    unit: float

    @classmethod
    def of(cls, counts: Counts, baseline: Policy, discount: float) -> Belief:
        """What a log says that the baseline made; both have the same labels."""
        checks.discount(discount)
        unit = unit_of(np.array([counts.reward_range]))
        counts = counts.in_units(unit)
        rows = PooledRows.of(counts)
        poolings = pool(rows, baseline, discount)
        likeliest = max(poolings, key=lambda pooling: pooling.probability)
        v = Evaluator(
            rows, baseline.probs[None], discount, rows.mean(likeliest.weight)
        ).mean_values()[0]
        disasters = Disasters.of(
            rows, baseline.probs, v, discount, counts.reward_range[0], likeliest.noise
        )
        return cls(counts, rows, poolings, disasters, discount, unit)

    def values(
        self, policies: Sequence[np.ndarray] | np.ndarray, draws: int, rng: np.random.Generator
    ) -> np.ndarray:
        """ρ of M policies [S, A] in the same drawn models [draws, M]."""
        draws = checks.positive("draws", draws)
        likeliest = max(self.poolings, key=lambda pooling: pooling.probability)
        evaluate = Evaluator(
            self.rows, np.ascontiguousarray(policies), self.discount,
            self.rows.mean(likeliest.weight),
        )  # fmt: skip
        parts = [evaluate(models) for models in self.models(draws, rng)]
        low, high = return_limits(self.rows, self.counts.reward_range, self.discount)
        return self.unit * np.clip(np.concatenate(parts), low, high)

    def models(self, draws: int, rng: np.random.Generator) -> Iterator[Models]:
        """Models drawn given the log, some at a time; rewards are in units of `unit`."""
        which = np.repeat(np.arange(len(self.poolings)), self._shares(draws))
        for begin in range(0, draws, self._batch):
            yield self._draw(which[begin : begin + self._batch], rng)

    @property
    def _batch(self) -> int:
        """How many models to draw at once, for any policies."""
        return max(1, BATCH_NUMBERS // max(len(self.rows.n), len(self.rows.visits)))

    def world(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """One drawn model: P [S, A, S], whose rows lack what ends, and mean rewards [S, A]."""
        chances = np.array([pooling.probability for pooling in self.poolings])
        which = rng.choice(len(chances), 1, p=chances / chances.sum())
        models, rows = self._draw(which, rng), self.rows
        return rows.transitions(models)[0], self.unit * models.rewards.reshape(rows.shape)

    def _shares(self, draws: int) -> list[int]:
        """How many of the models each pooling has: its probability times `draws`, rounded."""
        ends = draws * np.cumsum([pooling.probability for pooling in self.poolings])
        return np.diff(np.append(0.0, np.floor(ends + 0.5))).astype(int).tolist()

    @cached_property
    def _stacked(self) -> dict[str, np.ndarray]:
        """What the poolings say of pairs [L, P] and states [L, S], and their numbers [L, 1]."""
        return {
            name: np.stack([np.atleast_1d(getattr(pooling, name)) for pooling in self.poolings])
            for name in ("freedom", "slope", "slope_error", "weight", "preference", "error",
                         "state_error")
        }  # fmt: skip

    def _draw(self, which: np.ndarray, rng: np.random.Generator) -> Models:
        """Models drawn given the log, each with a pooling of its own [D]."""
        of, size = {name: stack[which] for name, stack in self._stacked.items()}, len(which)
        models = self.rows.models(
            self._mass(size, rng), self._mean_rewards(size, rng), of["weight"]
        )
        noise = np.sqrt(of["freedom"] / rng.chisquare(of["freedom"]))
        slope = of["slope"] + noise * of["slope_error"] * rng.standard_normal((size, 1))
        models.rewards[...] += slope * of["preference"]
        models.rewards[...] += noise * of["error"] * rng.standard_normal(models.rewards.shape)
        of_state = noise * of["state_error"] * rng.standard_normal((size, self.rows.shape[0]))
        models.rewards[...] += (1 - of["weight"]) * np.repeat(of_state, self.rows.shape[1], axis=1)
        if self.disasters.size:
            own = of["weight"][:, self.disasters.pairs]
            models.rewards[:, self.disasters.pairs] -= own * self.disasters.draw(size, rng)
        return models

    def _mass(self, size: int, rng: np.random.Generator) -> np.ndarray:
        """Gamma(n) variates [D, K]; sums of n exponential ones where that is quicker."""
        n, mass = self.rows.n, rng.standard_exponential((size, len(self.rows.n)))
        flat, row = mass.reshape(-1), np.arange(size)[:, None] * len(n)  # twice as fast as columns
        for more in range(2, SUMMED_UP_TO + 1):
            these = np.flatnonzero((n >= more) & (n <= SUMMED_UP_TO))
            more_mass = rng.standard_exponential((size, len(these)))
            np.add.at(flat, (row + these).reshape(-1), more_mass.reshape(-1))
        these = np.flatnonzero(n > SUMMED_UP_TO)
        flat[row + these] = rng.standard_gamma(n[these], size=(size, len(these)))
        return mass

    def _mean_rewards(self, size: int, rng: np.random.Generator) -> Paid:
        """Mean rewards of the outcomes."""
        rows, (low, high) = self.rows, self.counts.reward_range
        if not rows.doubt:
            return rows.paid(rows.mean_reward)
        if rows.two_valued:
            return self._paid_by_rate(size, rng)
        drawn = np.flatnonzero(rows.reward_squares)
        n = rows.n[drawn]
        error = np.sqrt(rows.reward_squares[drawn] / (n * (n + 1)))
        means = rng.standard_normal((size, len(n)))
        means *= error
        means += rows.mean_reward[drawn]
        return rows.paid(rows.mean_reward, drawn, np.clip(means, low, high, out=means))

    @cached_property
    def _rates(self) -> SuccessRates:
        return SuccessRates.of(self.rows, *self.counts.reward_range)

    def _paid_by_rate(self, size: int, rng: np.random.Generator) -> Paid:
        """Where rewards take two values: a share `doubt` of the models has rates of success, and in
        the others an outcome always pays what it paid."""
        (low, high), rates = self.counts.reward_range, self._rates
        drawn, values = rates.draw(size, rng)
        paid = low + (high - low) * values
        paid[rng.random(size) >= self.rows.doubt] = self.rows.mean_reward[drawn]
        return self.rows.paid(low + (high - low) * rates.mean, drawn, paid)


@checks.takes(log=(Log, Counts), policy=Policy, baseline=Policy, rng=np.random.Generator)
def posterior_improvement(
    log: Log | Counts,
    policy: Policy,
    baseline: Policy,
    discount: float,
    *,
    rng: np.random.Generator,
    zeta: float = 0.0,
    draws: int = 1000,
    level: float = 0.95,
) -> Posterior:
    """The percentile criterion, Equation 1: P(ρ(π, M) ≥ ρ(π_b, M) − ζ | M ~ P(·|D)).

    Models are drawn given the log as `Belief` says: transitions and mean rewards are uncertain. A
    rarely seen pair is assumed to do what its state did, within the differences between actions in
    this log, and to do worse if the baseline rarely plays it and the log shows such a trend.

    It assumes that states are Markov, that episodes are independent and start as they did in the
    log, and it judges with the log that it is given: a policy fitted to that log looks better than
    it is (see docs/choosing.md for how much).

    Parameters:
        log: the log or its counts.
        policy: π.
        baseline: π_b, which made the log.
        discount: γ in [0, 1).
        rng: the source of random numbers.
        zeta: loss that still counts as no worse.
        draws: models drawn.
        level: that of the interval.

    Returns:
        The gain in drawn models: `gain`, `interval`, `probability`, and all draws.

    >>> posterior = spibb.posterior_improvement(log, baseline, baseline, 0.9,
    ...                                         rng=np.random.default_rng(0), draws=50)
    >>> posterior.gain, posterior.probability
    (0.0, 1.0)
    """
    zeta, level = _zeta(zeta), _level(level)
    counts = Counts.from_log(log) if isinstance(log, Log) else log
    counts, (policy, baseline) = in_common(counts, {"policy": policy, "baseline": baseline})
    states, actions = by_content(counts, baseline, policy)
    counts = counts.with_labels(states, actions)
    policy, baseline = (p.aligned(states, actions) for p in (policy, baseline))
    rho = Belief.of(counts, baseline, discount).values([policy.probs, baseline.probs], draws, rng)
    return Posterior.of(rho, zeta=zeta, level=level)


def joint_level(gains: np.ndarray, delta: float) -> float:
    """The level at which the quantiles of all gains [D, M] hold together: in 1 − δ of the models no
    gain is below its own quantile.

    It lies between δ/M (Bonferroni) and δ, up to 1/D: the more the policies are alike, the larger.
    """
    if not gains.size:
        return delta
    places = [np.searchsorted(np.sort(one), one, side="right") - 1 for one in gains.T]
    lowest = np.min(places, axis=0) / (len(gains) - 1)
    return float(np.quantile(lowest, delta, method="lower"))


def sure_gain(gains: np.ndarray, level: float) -> np.ndarray:
    """The gain that all but a share `level` of the models reach, of gains [D] or [D, M]: a drawn
    gain, so that no unit of the rewards rounds it."""
    return np.asarray(np.quantile(gains, level, axis=0, method="lower"))


def draws_for(level: float, usual: int) -> int:
    """How many models to draw for a quantile at this level: more than usual if it is small."""
    if level * max(usual, MOST_DRAWS) < BELOW:
        raise InputError(
            f"delta (or a candidate's share of it) is {level:g}, which is too small: it needs more "
            f"than {MOST_DRAWS:,} models, the most that are drawn; give "
            f"{BELOW / MOST_DRAWS:g} or more for each candidate"
        )
    return max(usual, math.ceil(BELOW / level))


def gains_over(rho: np.ndarray, base: np.ndarray) -> np.ndarray:
    """ρ(π, M) − ρ(π_b, M) [D, M]; 0 where it is rounding."""
    gains = rho - base[:, None]
    gains[np.abs(gains) <= ROUNDING * np.abs(base).max() + STEP_ROUNDING * base.std()] = 0.0
    return gains
