"""Two means compared at any time: a test by betting whose looks cost nothing.

**The test.** Returns X of the new policy come one after the other; the baseline's returns Z are all
there. Both lie between declared limits. Hypothesis H: E[X] ≥ E[Z] − margin ("no worse").

1. For every m, bets that E[X] < m make the wealth W_t(m) after t episodes, and bets that E[Z] > m +
   margin the wealth B(m) on the baseline's. Under H no bet at m* = E[Z] − margin is favourable:
   B(m*) has mean at most 1, and B(m*)·W_t(m*), which goes on betting with what the first won, is a
   non-negative supermartingale in t. By Ville's inequality it ever reaches 1/δ with probability at
   most δ.
2. m* is not known. An alarm is given when sup_{s ≤ t} B(m)·W_s(m) ≥ 1/δ for **every** m: m* is one
   of them. So a false alarm, at whatever time and however often one looks, has probability at most
   δ; and an alarm stays.
3. No variance, no normality, no number of looks enters. Of each log it assumes independent episodes
   of one process with returns within the limits. That the policy was trained on the baseline's
   episodes does no harm: given these, the new episodes are a fresh sample.
4. "No worse" is shown by the same test of the other hypothesis, on the negative returns.

The bets are fixed mixtures with equal capital: on the new policy's side shares of the wealth from
0.95 down to 10⁻⁴, because it is not known when it will be decided; on the baseline's the shares of
`bounds.means.betting_shares`, with half of the capital kept in hand, so that B never falls below
1/2, however certain the baseline's mean is. Only the supremum over time depends on the order of the
episodes.

As m grows B falls and W rises. So B·W on a cell [m_j, m_{j+1}] is at least B(m_{j+1})·W(m_j): a few
cells prove the statement for all m.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from spibb.bisection import halved
from spibb.bounds.betting import MOST
from spibb.bounds.means import betting_bound, betting_shares
from spibb.frozen import Frozen
from spibb.kernels.wealth import wealth

SHARES = MOST / 1.7 ** np.arange(18)
"""κ: the shares of the wealth that the bets on the new policy's returns stake."""
CAPITAL = np.full(len(SHARES), 1 / len(SHARES))
IN_HAND = 0.5
"""Capital on the baseline's side that is never staked."""
CELLS_PER_WIDTH, WIDTHS = 16, 3
"""Cells from the baseline's lower bound to its mean, and how many times as far they go."""
HALVINGS = 40
DIFFERENCE_HALVINGS = 24
NEVER = -1
OVERHEAD = 2.5
"""Beyond log(1/δ): what half of the simulated drops had to win; the price of mixtures."""


@dataclass(frozen=True, eq=False)
class Reference(Frozen):
    """What the baseline's returns say about the least that its mean can be.

    Cells [c_j, c_{j+1}] that cover the mean from a lower bound (below it, B ≥ 1/δ) to 1, and the
    logarithms of B at their right ends. Returns are in units of the span between their limits.
    """

    cells: np.ndarray
    log_b: np.ndarray
    delta: float

    @classmethod
    def of(cls, z: np.ndarray, delta: float) -> Reference:
        """From returns in [0, 1] [n]."""
        shares = np.append(betting_shares(len(z), delta), 0.0)
        capital = np.append(np.full(len(shares) - 1, (1 - IN_HAND) / (len(shares) - 1)), IN_HAND)

        def log_b(mean: float) -> float:
            return wealth(z, mean, shares, capital, math.inf)[1]

        low = _largest(lambda mean: mean > 0 and log_b(mean) >= math.log(1 / delta), float(z.max()))
        step = (float(z.mean()) - low) / CELLS_PER_WIDTH or 1 / CELLS_PER_WIDTH / WIDTHS
        edges = low + step * np.arange(CELLS_PER_WIDTH * WIDTHS + 1)
        edges = np.append(edges[edges < 1], 1.0)
        return cls(edges, np.array([log_b(edge) for edge in edges[1:].tolist()]), delta)


def first_shown_worse(x: np.ndarray, reference: Reference, margin: float) -> int:
    """After how many returns x [n] in [0, 1] it is shown that E[x] < E[z] − margin; −1: not yet."""
    time, goal = 0, math.log(1 / reference.delta)
    for left, log_b in zip(reference.cells[:-1].tolist(), reference.log_b.tolist()):
        limit = 1 - (left - margin)  # of the mean distance from the upper end, if E[x] ≥ left
        if limit <= 0:
            continue  # no mean is so high: refuted without any return
        shown, _ = wealth(1 - x, limit, SHARES, CAPITAL, goal - log_b)
        if shown == NEVER:
            return NEVER
        time = max(time, shown)
    return time


def highest_difference(x: np.ndarray, reference: Reference) -> float:
    """The least D for which E[x] ≥ E[z] + D is refuted: an upper bound that holds at all times."""
    return -_largest(
        lambda margin: first_shown_worse(x, reference, margin) != NEVER, 1.0, -1.0,
        DIFFERENCE_HALVINGS,
    )  # fmt: skip


def episodes_to_show(drop: float, spread: float, old_error: float, delta: float) -> float:
    """About how many episodes show a drop: n with drop² = 2 (log(1/δ) + c)(σ²/n + σ_b²/n_b).

    `spread` σ is the standard deviation of the new returns, `old_error` σ_b/√n_b. Infinite where
    the baseline's mean is not known well enough to show such a drop at all.
    """
    left = drop * drop / (2 * _price(delta)) - old_error**2
    return spread**2 / left if left > 0 else math.inf


def drop_to_show(episodes: float, spread: float, old_error: float, delta: float) -> float:
    """The inverse: about what drop so many episodes show."""
    return math.sqrt(2 * _price(delta) * (spread**2 / episodes + old_error**2))


def _price(delta: float) -> float:
    return math.log(1 / delta) + OVERHEAD


def interval_at_any_time(x: np.ndarray, delta: float) -> tuple[float, float]:
    """A confidence sequence of the mean of x: holds at all times with probability 1 − δ.

    Each end is the best of all times. A lower end above the upper one refutes that x has one mean.
    """
    return _at_least(x, delta / 2), 1 - _at_least(1 - x, delta / 2)


def interval(z: np.ndarray, delta: float) -> tuple[float, float]:
    """A confidence interval of the mean of z, whatever its order."""
    return max(betting_bound(z, delta / 2), 0.0), min(1 - betting_bound(1 - z, delta / 2), 1.0)


def _at_least(y: np.ndarray, delta: float) -> float:
    goal = math.log(1 / delta)
    return _largest(
        lambda mean: mean > 0 and wealth(y, mean, SHARES, CAPITAL, goal)[0] != NEVER,
        float(y.max(initial=0.0)),
    )


def _largest(
    holds: Callable[[float], bool], high: float, low: float = 0.0, halvings: int = HALVINGS
) -> float:
    """The largest number for which something holds that holds for all smaller ones, or `low`."""
    return halved(holds, low, high, halvings)[0]
