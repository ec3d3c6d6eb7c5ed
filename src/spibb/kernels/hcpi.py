"""HCPI: offline Q-learning, and tests of eleven mixtures in one pass over drawn outcome codes.

The study draws episodes as codes of (state, action, successor) outcomes, of which there are few.
Everything that a step of an episode does to the estimate of a mixture is then a row of a table:
from the end of the episode backwards, all three estimators are x ← gain + ratio · x. A pass keeps
the x of all mixtures in three registers, whose twelfth number stays 0: an array of them would live
in memory and be twice as slow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import njit

from spibb.kernels import counting, dense, formulas, simd
from spibb.kernels import hcpi_released as released_code
from spibb.kernels.mixtures import LAST, N_LANES, Mixtures, mix, mixed
from spibb.kernels.projection import playable
from spibb.kernels.sampling import histogram
from spibb.kernels.tuples import Episodes

pdis_limit = njit(cache=True, inline="always")(formulas.pdis_limit)
student_t = njit(cache=True, inline="always")(formulas.student_t)

TIE = 1e-10
"""Lower bounds that differ by less, relative to the largest, are equal."""
ROOM = 12
"""Numbers in the registers of a pass, of which 11 are used."""
IS, PDIS, DR = range(3)
ESTIMATORS = ("is", "pdis", "dr")
"""In the order of these codes."""


class Steps(NamedTuple):
    """What a step does per outcome code and mixture: 12 gains and 12 ratios each [24 C], the last
    of them 0; possible [C].

    x ← gain + ratio · x; bit k of `possible` says whether mixture k plays the action.
    """

    factors: np.ndarray
    possible: np.ndarray


class Moments(NamedTuple):
    """Of the contributions X_i of n episodes, per mixture [11]: the mean, Σ(X_i − mean)², and
    whether any episode is possible."""

    n: int
    mean: np.ndarray
    square: np.ndarray
    possible: np.ndarray


# ---- training ----------------------------------------------------------------------------------


@njit(cache=True)
def q_learning(codebook, rows, available, discount: float, step_size: float, q: np.ndarray):
    """Q(x, a) += step_size · (r + γ max_{a'} Q(x', a') − Q(x, a)) for each of `rows`, into `q`.

    The maximum is over the available actions [S, A]; a negative successor is the end, worth 0. It
    is found by arithmetic alone: branches on what was learnt would be mispredicted all the time.
    """
    state, action, successor, reward = (
        codebook.state, codebook.action, codebook.successor, codebook.reward
    )  # fmt: skip
    n_actions = np.uint64(q.shape[1])
    flat = q.ravel()
    handicap = np.zeros(len(flat))
    for s in range(len(q)):
        for a in range(q.shape[1]):
            if not available[s, a]:
                handicap[s * q.shape[1] + a] = -np.inf
    for j in rows:
        following = successor[j]
        first = np.uint64(max(following, 0)) * n_actions
        best = -np.inf
        for i in range(first, first + n_actions):
            value = flat[i] + handicap[i]
            best = value if value > best else best
        best = best if following >= 0 else 0.0
        pair = np.uint64(state[j]) * n_actions + np.uint64(action[j])
        flat[pair] += step_size * (reward[j] + discount * best - flat[pair])


@njit(cache=True)
def replayed(codes: np.ndarray, uniforms: np.ndarray) -> np.ndarray:
    """Codes drawn uniformly with replacement, one per uniform in [0, 1); none of none."""
    out = np.empty(len(uniforms) if len(codes) > 0 else 0, dtype=codes.dtype)
    for i in range(len(out)):
        out[i] = codes[int(uniforms[i] * len(codes))]
    return out


@njit(cache=True)
def greedy(q: np.ndarray, available: np.ndarray, baseline: np.ndarray) -> np.ndarray:
    """The best available action of every state; the baseline's row where all are equal [S, A]."""
    probs = np.empty(q.shape)
    for s in range(len(q)):
        best, equal = -1, True
        for a in range(q.shape[1]):
            if available[s, a]:
                equal = equal and (best < 0 or q[s, a] == q[s, best])
                if best < 0 or q[s, a] > q[s, best]:
                    best = a
        for a in range(q.shape[1]):
            probs[s, a] = baseline[s, a] if equal else 0.0
        if not equal:
            probs[s, best] = 1.0
    return probs


# ---- testing -----------------------------------------------------------------------------------


@njit(cache=True, inline="always")
def mixture_values(model, mixtures, lowest: float):
    """Q [S, A, K] and V [S, K] of the mixtures in a model whose unseen pairs are worth `lowest`."""
    n_states, n_actions = model.rewards.shape
    n_lanes = len(mixtures.alphas)
    q, v = np.empty((n_states, n_actions, n_lanes)), np.empty((n_states, n_lanes))
    rewards, pi = np.empty(model.rewards.shape), np.empty(model.rewards.shape)
    counting.with_unseen(model, lowest, rewards)
    for k in range(n_lanes):
        mix(mixtures, k, pi)
        values = dense.evaluate(model.rows, rewards, model.discount, pi)
        of_pi = dense.q_values(model.rows, rewards, model.discount, values)
        for s in range(n_states):
            v[s, k] = values[s]
            for a in range(n_actions):
                q[s, a, k] = of_pi[s, a]
    return q, v


@njit(cache=True, inline="always")
def step(weight: float, reward: float, q: float, v: float, discount: float):
    """Gain and ratio of a step, x ← gain + ratio · x from the end of an episode to its start.

    gain = V(x) + w(r − Q(x, a)) and ratio = γw with w = π(a|x)/μ(a|x): the doubly robust
    estimator, and the per-decision one where Q and V are 0.
    """
    return v + weight * (reward - q), discount * weight


@njit(cache=True)
def step_tables(record, mixtures, model, estimator: int, lowest: float, released: bool):
    """The steps of all outcome codes for is, pdis or dr (see `step`).

    What the log lacks counts as `lowest`: pdis pays (1 − γ) · lowest less per step, and dr asks a
    model whose unseen pairs are worth that much. Whole importance sampling has no gains, and its
    ratios are not discounted. Unused codes have action −1 and no row. As released, dr asks for
    whole numbers, and ratios divide by the baseline, whoever made the log.
    """
    codebook, discount = record.codebook, model.discount
    shape = model.rewards.shape
    q, v = np.zeros((*shape, N_LANES)), np.zeros((shape[0], N_LANES))
    if estimator == DR and released:
        q, v = released_code.truncated_values(model, mixtures)
    elif estimator == DR:
        q, v = mixture_values(model, mixtures, lowest)
    shift = (1.0 - discount) * lowest if estimator == PDIS else 0.0
    state, action, reward = codebook.state, codebook.action, codebook.reward
    trained, baseline, alphas = mixtures.trained, mixtures.baseline, mixtures.alphas
    propensity = record.propensity  # taken out of their tuples here: in the loop, that is counted
    factors = np.empty((len(state), 2 * ROOM))
    possible = np.zeros(len(state), dtype=np.int64)
    for c in range(len(state)):
        s, a = state[c], action[c]
        if a < 0:
            continue
        taken = baseline[s, a] if released else propensity[c]
        for k in range(N_LANES):
            played: float = mixed(alphas[k], trained[s, a], baseline[s, a])
            weight = played / taken
            gain, ratio = step(weight, reward[c] - shift, q[s, a, k], v[s, k], discount)
            factors[c, k] = 0.0 if estimator == IS else gain
            factors[c, ROOM + k] = weight if estimator == IS else ratio
            possible[c] |= np.int64(played > 0.0) << k
        factors[c, LAST + 1] = factors[c, ROOM + LAST + 1] = 0.0
    return Steps(factors.ravel(), possible)


@njit(cache=True)
def discounted(codes: np.ndarray, reward: np.ndarray, discount: float) -> float:
    """Σ_t γ^t r_t of an episode."""
    total = 0.0
    for j in range(len(codes) - 1, -1, -1):
        total = reward[codes[j]] + discount * total
    return total


@njit(cache=True)
def fold(codes: np.ndarray, first: int, end: int, steps, x: np.ndarray):
    """Apply the steps of codes[first:end], last first, to the `x` [12]; returns who can make them.

    Views of the codes and of rows of factors would be counted.
    """
    factors, possible = steps.factors, steps.possible
    at0, at1, at2 = np.uint64(0), np.uint64(4), np.uint64(8)
    x0, x1, x2 = simd.load(x, at0), simd.load(x, at1), simd.load(x, at2)
    alive = np.int64(-1)
    for j in range(end - 1, first - 1, -1):
        code = np.uint64(codes[j])
        gain = code * np.uint64(2 * ROOM)
        ratio = gain + np.uint64(ROOM)
        alive &= possible[code]
        x0 = simd.plus(simd.load(factors, gain), simd.load(factors, ratio), x0)
        x1 = simd.plus(simd.load(factors, gain + at1), simd.load(factors, ratio + at1), x1)
        x2 = simd.plus(simd.load(factors, gain + at2), simd.load(factors, ratio + at2), x2)
    simd.store(x, at0, x0)
    simd.store(x, at1, x1)
    simd.store(x, at2, x2)
    return alive


@njit(cache=True)
def moments(episodes, reward: np.ndarray, discount: float, steps, estimator: int, lowest: float):
    """The moments of the contributions of episodes.

    Nothing is counted beyond the end of an episode, so that X begins there with 0, or with the
    return Σ_t γ^t r_t (is, where no step has a gain). The weight that is and pdis miss counts as
    `lowest`: X begins lower by that much, which is added at the end.
    """
    mean, square, possible = np.zeros(N_LANES), np.zeros(N_LANES), np.zeros(N_LANES)
    x, first = np.zeros(ROOM), np.zeros(N_LANES)
    missing = 0.0 if estimator == DR else lowest
    seen, j = np.int64(0), 0
    for length in episodes.lengths:
        beyond = 0.0
        if estimator == IS:
            beyond = discounted(episodes.codes[j : j + length], reward, discount)
        for k in range(N_LANES):
            x[k] = beyond - missing
        seen |= fold(episodes.codes, j, j + length, steps, x)
        for k in range(N_LANES):
            if j == 0:
                first[k] = x[k]
            off = x[k] - first[k]  # sums of these lose less to rounding than those of X itself
            mean[k] += off
            square[k] += off * off
        j += length
    n = len(episodes.lengths)
    for k in range(N_LANES):
        off = mean[k] / max(n, 1)
        mean[k] = first[k] + off + missing
        square[k] = max(square[k] - n * (off * off), 0.0)
        possible[k] = float((seen >> k) & 1)
    return Moments(n, mean, square, possible)


@njit(cache=True)
def lowest_return(record, low: float, discount: float) -> float:
    """The lowest recorded return, or 0 if that is positive, as it is if `low`, the lowest reward,
    is."""
    episodes, reward = record.episodes, record.codebook.reward
    lowest, j = 0.0, 0
    for length in episodes.lengths[: len(episodes.lengths) if low < 0.0 else 0]:
        returned = discounted(episodes.codes[j : j + length], reward, discount)
        lowest = min(lowest, returned)
        j += length
    return lowest


@njit(cache=True)
def lower_bounds(found, quantile: float, out: np.ndarray):
    """Student's t bounds x̄ − quantile · σ/√n of the mixtures into `out` [11].

    They are −∞ where no episode is possible or there are not two, and ∞ where the quantile is −∞
    (δ = 1), which asks for nothing.
    """
    for k in range(N_LANES):
        out[k] = -np.inf
        if found.n >= 2 and found.possible[k] > 0.0:
            bound = student_t(found.mean[k], found.square[k], found.n, quantile)
            out[k] = bound if quantile > -np.inf else np.inf


@njit(cache=True)
def choose(bounds: np.ndarray, rival: float) -> int:
    """The lane of the highest of lower bounds [11] if it is above `rival`, else the baseline's.

    Ties, which rounding must not break, go to the lane nearest to the baseline, but of infinite
    bounds the first is taken.
    """
    largest = 0.0
    for bound in bounds:
        largest = max(largest, abs(bound)) if np.isfinite(bound) else largest
    best = LAST
    for k in range(LAST, -1, -1):
        above = bounds[k] > bounds[best] + TIE * largest
        if above or bounds[k] == np.inf:
            best = k
    return best if bounds[best] > rival else LAST


@njit(cache=True)
def decide(found, quantile: float, rival: float, released: bool, bounds: np.ndarray) -> int:
    """The lane that is taken, given the moments of the test; fills the lower `bounds` [11]."""
    if released:
        released_code.lower_bounds(found, quantile, bounds)
        return released_code.choose(bounds, rival)
    lower_bounds(found, quantile, bounds)
    return choose(bounds, rival)


# ---- all configurations on one data set --------------------------------------------------------


@njit(cache=True)
def train(codes, codebook, model, baseline: np.ndarray, uniforms, step_size: float):
    """π_t [S, A]: greedy on offline Q-learning over codes that the `uniforms` draw.

    The tables of the outcome codes serve as the transitions, and codes as their row numbers. Gives
    it as we define it and as released.
    """
    available = playable(baseline, model.counts)
    q = np.zeros(baseline.shape)
    rows = replayed(codes, uniforms)
    q_learning(codebook, rows, available, model.discount, step_size, q)
    return greedy(q, available, baseline), released_code.greedy(q)


@njit(cache=True)
def split(episodes, n_first: int):
    """The first episodes, and the others."""
    rows = 0
    for length in episodes.lengths[:n_first]:
        rows += length
    first = Episodes(episodes.codes[:rows], episodes.lengths[:n_first])
    return first, Episodes(episodes.codes[rows:], episodes.lengths[n_first:])


@njit(cache=True)
def prepare(record, baseline: np.ndarray, discount: float, grid):
    """The model of the training episodes, π_t (ours, as released), and the test episodes."""
    training, testing = split(record.episodes, grid.n_train)
    visits = histogram(training.codes, len(record.codebook.reward))
    model = counting.estimate(visits, record.codebook, baseline.shape, discount)[0]
    trained = train(training.codes, record.codebook, model, baseline, grid.uniforms, grid.step_size)
    return model, trained, testing


@njit(cache=True)
def test(record, testing, mixtures, model, estimator: int, lowest: float, released: bool):
    """The moments of what the test episodes contribute to an estimate of every mixture."""
    lowest = pdis_limit(lowest) if estimator == PDIS else lowest
    reward = record.codebook.reward
    steps = step_tables(record, mixtures, model, estimator, lowest, released)
    return moments(testing, reward, model.discount, steps, estimator, lowest)


@njit(cache=True, inline="always")
def policies(data, grid, pis: np.ndarray):
    """HCPI for several tests of one trained policy: fills `pis` [M, S, A].

    Columns that differ in neither estimator nor lowest return share a pass over the episodes.
    """
    if len(pis) == 0:
        return
    record, baseline = data.record, data.baseline
    discount = data.model.discount
    model, trained, testing = prepare(record, baseline, discount, grid)
    logged = lowest_return(record, data.r_low, discount)
    lowest = grid.lowest.copy()
    for m in range(len(pis)):
        lowest[m] = logged if np.isnan(lowest[m]) else lowest[m]
    done, bounds = np.zeros(len(pis), dtype=np.bool_), np.empty(N_LANES)
    for first in range(len(pis)):
        if done[first]:
            continue
        kind, low, old = int(grid.estimator[first]), lowest[first], grid.released[first] > 0.0
        mixtures = Mixtures(trained[1] if old else trained[0], baseline, grid.alphas)
        found = test(record, testing, mixtures, model, kind, low, old)
        for m in range(first, len(pis)):
            same = grid.estimator[m] == kind and lowest[m] == low
            if same and grid.released[m] == grid.released[first]:
                lane = decide(found, grid.quantile[m], grid.rival[m], old, bounds)
                mix(mixtures, lane, pis[m])
                done[m] = True


class Grid(NamedTuple):
    """Configurations: estimators, Student's t quantiles, values to beat, lowest returns [M].

    A lowest return of NaN is the lowest of the log. `released` [M] says which are as released. All
    share the α of the mixtures, the uniforms and the step size of Q-learning, and the number of
    episodes that train.
    """

    estimator: np.ndarray
    quantile: np.ndarray
    rival: np.ndarray
    lowest: np.ndarray
    released: np.ndarray
    alphas: np.ndarray
    uniforms: np.ndarray
    step_size: float
    n_train: int

    @staticmethod
    def kernel() -> Callable[..., None]:
        """What trains them."""
        return policies
