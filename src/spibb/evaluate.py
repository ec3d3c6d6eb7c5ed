"""How good is a policy: exactly, by simulation, or in the light of the log alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from spibb import checks, solve
from spibb.counts import Counts
from spibb.estimate import estimate_mdp, in_common
from spibb.frozen import Frozen
from spibb.kernels import posterior
from spibb.log import Log
from spibb.mdp import MDP
from spibb.policy import Policy

BATCH_NUMBERS = 1 << 22
"""Random numbers held at once while drawing models."""


@checks.takes(mdp=MDP, policy=Policy)
def exact_value(mdp: MDP, policy: Policy) -> float:
    """ρ(π, M) = Σ_x p₀(x) V^π(x) in a known MDP."""
    rows = policy.aligned(mdp.states, mdp.actions).probs
    return float(mdp.initial @ solve.evaluate(mdp, rows).v)


def returns(log: Log, discount: float) -> np.ndarray:
    """The discounted return of each episode of a log [E]; a truncated one misses its tail."""
    checks.discount(discount)
    starts = log.episode_starts
    step = np.arange(len(log)) - np.repeat(starts[:-1], np.diff(starts))
    return np.add.reduceat(discount**step * log.reward, starts[:-1])


def returns_to_go(log: Log, discount: float) -> np.ndarray:
    """Σ_{u ≥ t} γ^{u−t} r_u from every row to the end of its episode's record [N].

    Each pass doubles the number of steps added up.
    """
    found, remaining, reach = log.reward.copy(), log.remaining, 1
    while reach < remaining.max(initial=0):
        rows = np.flatnonzero(remaining > reach)
        found[rows] += discount**reach * found[rows + reach]
        reach *= 2
    return found


def shown_v_max(log: Log, discount: float) -> float:
    """The least V_max that the recorded returns allow.

    A return that was recorded to its end is at most V_max; one of k steps that was cut may go on
    with up to V_max more, so that it shows no more than |return| / (1 + γ^k).
    """
    ended = np.repeat(log.terminated[log.episode_starts[1:] - 1], np.diff(log.episode_starts))
    beyond = np.where(ended, 0.0, discount**log.remaining)
    return float((np.abs(returns_to_go(log, discount)) / (1 + beyond)).max())


@dataclass(frozen=True)
class MonteCarlo:
    """A mean over simulated episodes and its standard error."""

    value: float
    standard_error: float
    n_episodes: int


@checks.takes(log=Log)
def monte_carlo_value(log: Log, discount: float) -> MonteCarlo:
    """The mean return of a log's own policy."""
    sample = returns(log, discount)
    error = float(sample.std(ddof=1) / np.sqrt(len(sample))) if len(sample) > 1 else np.inf
    return MonteCarlo(float(sample.mean()), error, len(sample))


@dataclass(frozen=True, eq=False)
class Posterior(Frozen):
    """How the gain ρ(π, M) − ρ(π_b, M) is distributed over models M drawn given the log.

    `probability` is P(ρ(π, M) ≥ ρ(π_b, M) − zeta | D), `interval` the central one of `level`.
    `values` [draws, 2] are ρ(π, M) and ρ(π_b, M) themselves, `gains` [draws] their differences.
    """

    probability: float
    zeta: float
    gain: float
    interval: tuple[float, float]
    level: float
    gains: np.ndarray
    values: np.ndarray


@checks.takes(counts=Counts, policy=Policy, baseline=Policy, rng=np.random.Generator)
def posterior_improvement(
    counts: Counts,
    policy: Policy,
    baseline: Policy,
    discount: float,
    *,
    rng: np.random.Generator,
    zeta: float = 0.0,
    prior: float = 0.5,
    draws: int = 1000,
    level: float = 0.95,
) -> Posterior:
    """The percentile criterion, Equation 1: P(ρ(π, M) ≥ ρ(π_b, M) − ζ | M ~ P(·|D)).

    Each pair's outcomes have a Dirichlet posterior: `prior` pseudo-counts on every successor
    observed from it (its ends included) and on one successor that was never observed, where the
    process ends and pays nothing.

    What this posterior does not know: rewards vary only through the outcomes they came with, whose
    mean rewards are taken as exact; a successor never observed is worth 0, which flatters risky
    actions where returns are negative; pairs never tried are worth 0 too; and it believes that the
    states are Markov and that episodes start as often in each state as they did in the log.
    """
    checks.number("level", level, 0, 1, "()")
    checks.number("zeta", zeta, -np.inf, np.inf, "()")
    rho = posterior_values(counts, [policy, baseline], discount, rng=rng, prior=prior, draws=draws)
    gains = rho[:, 0] - rho[:, 1]
    tail = (1 - level) / 2
    low, high = np.quantile(gains, [tail, 1 - tail])
    at_least = gains >= -zeta - _rounding(rho)
    return Posterior(
        float(at_least.mean()), zeta, float(gains.mean()), (float(low), float(high)), level, gains,
        rho,
    )  # fmt: skip


def _rounding(rho: np.ndarray) -> float:
    """Two equal policies differ by rounding only; that is no deterioration."""
    return 1e-12 * float(np.abs(rho).max())


def posterior_values(
    counts: Counts,
    policies: Sequence[Policy],
    discount: float,
    *,
    rng: np.random.Generator,
    prior: float = 0.5,
    draws: int = 1000,
) -> np.ndarray:
    """ρ of M policies in the same models drawn from the posterior [draws, M]."""
    checks.number("prior", prior, 0, np.inf, "()")
    checks.positive("draws", draws)
    counts, policies = in_common(counts, {f"policy {k}": p for k, p in enumerate(policies)})
    mdp = estimate_mdp(counts, discount)
    outcomes = counts.indptr, counts.successors, counts.reward_sum / counts.n
    stacked = np.stack([policy.probs for policy in policies])
    parts = []
    for gammas in _gamma_draws(counts, prior, draws, rng):
        if len(counts.states) <= solve.DENSE_UP_TO:
            stays = mdp.indptr, mdp.successors
            part = posterior.values(outcomes, stays, gammas, discount, mdp.initial, stacked)
        else:
            part = np.array([_values_by_sweeps(mdp, outcomes, row, stacked) for row in gammas])
        parts.append(part)
    return np.concatenate(parts)


def _gamma_draws(
    counts: Counts, prior: float, draws: int, rng: np.random.Generator
) -> Iterator[np.ndarray]:
    """Gamma variates per outcome and per pair's unobserved outcome, in batches [D, K + P]."""
    shape = np.concatenate([counts.n + prior, np.full(len(counts.indptr) - 1, prior)])
    batch = max(1, BATCH_NUMBERS // len(shape))
    for begin in range(0, draws, batch):
        yield rng.standard_gamma(shape, size=(min(batch, draws - begin), len(shape)))


def _values_by_sweeps(
    mdp: MDP, outcomes: tuple[np.ndarray, ...], gammas: np.ndarray, policies: np.ndarray
) -> list[float]:
    probs, rewards = np.empty(len(mdp.probs)), np.empty(mdp.shape)
    indptr, successors, mean_reward = outcomes
    posterior.draw_model(indptr, successors, mean_reward, gammas, probs, rewards)
    drawn = replace(mdp, probs=probs, rewards=rewards)
    return [float(mdp.initial @ solve.evaluate(drawn, rows).v) for rows in policies]
