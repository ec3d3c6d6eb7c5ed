"""HCPI: offline Q-learning, and eleven mixtures in one pass over drawn outcome codes.

The study draws episodes as codes of (state, action, successor) outcomes, of which there are few.
Everything that a step of an episode does to the estimate of a mixture is then a row of a table:
from the end of the episode backwards, all three estimators are x ← gain + ratio · x. A pass keeps
the x of all mixtures in registers; they are written out one by one, because an array of them would
live in memory and be twice as slow.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from spibb.kernels import dense
from spibb.kernels.projection import playable

N_LANES = 11
IS, PDIS, DR = range(3)


# ---- training ----------------------------------------------------------------------------------


@njit(cache=True)
def q_learning(transitions, rows, available, discount: float, step_size: float, q: np.ndarray):
    """Q(x, a) += step_size · (r + γ max_{a'} Q(x', a') − Q(x, a)) for each of `rows`, into `q`.

    The maximum is over the available actions [S, A]; a negative successor is the end, worth 0. It
    is found by arithmetic alone: branches on what was learnt would be mispredicted all the time.
    """
    state, action, reward, successor = transitions
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
    """Codes drawn uniformly with replacement, one per uniform in [0, 1)."""
    out = np.empty(len(uniforms), dtype=codes.dtype)
    for i in range(len(uniforms)):
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
def mixture_values(rows, rewards, discount: float, trained, baseline, alphas):
    """Q [S, A, K] and V [S + 1, K] of the mixtures (1 − α)π_t + απ_b; the last row of V is 0."""
    n_states, n_actions = rewards.shape
    q = np.empty((n_states, n_actions, len(alphas)))
    v = np.zeros((n_states + 1, len(alphas)))
    pi = np.empty(rewards.shape)
    for k in range(len(alphas)):
        dense.combine(1.0 - alphas[k], trained, alphas[k], baseline, pi)
        values = dense.evaluate(rows, rewards, discount, pi)
        of_pi = dense.q_values(rows, rewards, discount, values)
        for s in range(n_states):
            v[s, k] = values[s]
            for a in range(n_actions):
                q[s, a, k] = of_pi[s, a]
    return q, v


@njit(cache=True)
def step_tables(outcomes, policies, discount: float, q, v, alphas, whole: bool):
    """What a step does per outcome code and mixture: gains and ratios [C, 22], possible [C].

    x ← gain + ratio · x with ratio = γw and gain = V(x) + w(r − Q(x, a)), where w = π(a|x)/μ(a|x):
    the doubly robust estimator, from the end of an episode to its start. It is the per-decision one
    where `q` and `v` are 0. Whole importance sampling has neither gains nor a discount. Bit k of
    `possible` says whether mixture k plays the action. `outcomes` are the (state, action,
    successor, reward) of each code, `policies` the trained one, the baseline and the behaviour
    [S, A]. Unused codes have action −1 and no row.
    """
    state, action, _, reward = outcomes
    trained, baseline, behaviour = policies
    steps = np.empty((len(state), 2 * N_LANES))
    possible = np.zeros(len(state), dtype=np.int64)
    for c in range(len(state)):
        s, a = state[c], action[c]
        if a < 0:
            continue
        for k in range(N_LANES):
            mixed = (1.0 - alphas[k]) * trained[s, a] + alphas[k] * baseline[s, a]
            weight = mixed / behaviour[s, a]
            steps[c, k] = 0.0 if whole else v[s, k] + weight * (reward[c] - q[s, a, k])
            steps[c, N_LANES + k] = weight if whole else discount * weight
            possible[c] |= np.int64(mixed > 0.0) << k
    return steps, possible


@njit(cache=True)
def discounted(codes: np.ndarray, reward: np.ndarray, discount: float) -> float:
    """Σ_t γ^t r_t of an episode."""
    total = 0.0
    for j in range(len(codes) - 1, -1, -1):
        total = reward[codes[j]] + discount * total
    return total


@njit(cache=True, fastmath={"contract"})
def fold(codes: np.ndarray, steps: np.ndarray, possible: np.ndarray, x: np.ndarray):
    """Apply the steps of an episode, last first, to the `x` [11]; returns who can make them all."""
    x0, x1, x2, x3, x4, x5 = x[0], x[1], x[2], x[3], x[4], x[5]
    x6, x7, x8, x9, x10 = x[6], x[7], x[8], x[9], x[10]
    alive = np.int64(-1)
    for j in range(len(codes) - 1, -1, -1):
        code = np.uint32(codes[j])
        row = steps[code]
        alive &= possible[code]
        x0 = row[0] + row[11] * x0
        x1 = row[1] + row[12] * x1
        x2 = row[2] + row[13] * x2
        x3 = row[3] + row[14] * x3
        x4 = row[4] + row[15] * x4
        x5 = row[5] + row[16] * x5
        x6 = row[6] + row[17] * x6
        x7 = row[7] + row[18] * x7
        x8 = row[8] + row[19] * x8
        x9 = row[9] + row[20] * x9
        x10 = row[10] + row[21] * x10
    x[0], x[1], x[2], x[3], x[4], x[5] = x0, x1, x2, x3, x4, x5
    x[6], x[7], x[8], x[9], x[10] = x6, x7, x8, x9, x10
    return alive


@njit(cache=True, inline="always")
def moments(episodes, tables, reward: np.ndarray, discount: float, whole: bool, missing: float):
    """Σ X_i, Σ X_i², and whether any episode is possible (1 or 0), for each mixture: [3, 11].

    `episodes` are codes [N] and lengths [E], `tables` those of `step_tables`. Nothing is counted
    beyond the end of an episode, so that X begins there with 0 (pdis, dr), or with the return
    Σ_t γ^t r_t (is: `whole`, and then no step has a gain and no ratio is discounted). What weights
    leave out counts as `missing`: X begins lower by that much, which is added at the end.
    """
    codes, lengths = episodes
    steps, possible = tables
    sums, x = np.zeros((3, N_LANES)), np.empty(N_LANES)
    seen, j = np.int64(0), 0
    for length in lengths:
        episode = codes[j : j + length]
        beyond = discounted(episode, reward, discount) if whole else 0.0
        for k in range(N_LANES):
            x[k] = beyond - missing
        seen |= fold(episode, steps, possible, x)
        for k in range(N_LANES):
            value = x[k] + missing
            sums[0, k] += value
            sums[1, k] += value * value
        j += length
    for k in range(N_LANES):
        sums[2, k] = float((seen >> k) & 1)
    return sums


@njit(cache=True, inline="always")
def train(codes, transitions, model, baseline: np.ndarray, uniforms, step_size: float):
    """π_t [S, A]: greedy on offline Q-learning over codes that the `uniforms` draw.

    The tables of the outcome codes serve as the transitions, and codes as their row numbers.
    `model` is (N, R̂, P̂, γ) of the same codes.
    """
    state, action, successor, reward = transitions
    available = playable(baseline, model[0])
    q = np.zeros(baseline.shape)
    rows = replayed(codes, uniforms)
    q_learning((state, action, reward, successor), rows, available, model[3], step_size, q)
    return greedy(q, available, baseline)


@njit(cache=True)
def lowest_return(episodes, reward: np.ndarray, discount: float) -> float:
    """The lowest recorded return, or 0 if that is positive."""
    codes, lengths = episodes
    lowest, j = 0.0, 0
    for length in lengths:
        lowest = min(lowest, discounted(codes[j : j + length], reward, discount))
        j += length
    return lowest


@njit(cache=True, inline="always")
def test(episodes, transitions, policies, model, alphas, estimator: int, lowest: float):
    """The moments [3, 11] of the mixtures on test episodes, by IS, PDIS or DR.

    `policies` are the trained one, the baseline and the behaviour; `model` is (N, R̂, P̂, γ) of the
    training episodes, which DR alone looks at. What the log does not show counts as `lowest`: the
    weights that is and pdis miss, the pairs that the model of dr never saw.
    """
    trained, baseline, _ = policies
    pairs, mean, rows, discount = model
    state, action, successor, reward = transitions
    n_states, n_actions = baseline.shape
    q, v = np.zeros((n_states, n_actions, N_LANES)), np.zeros((n_states + 1, N_LANES))
    if estimator == DR:
        rewards = np.where(pairs > 0, mean, lowest)
        q, v = mixture_values(rows, rewards, discount, trained, baseline, alphas)
    whole = estimator == IS
    paid = reward - (1.0 - discount) * lowest if estimator == PDIS else reward
    outcomes = (state, action, successor, paid)
    tables = step_tables(outcomes, policies, discount, q, v, alphas, whole)
    missing = 0.0 if estimator == DR else lowest
    return moments(episodes, tables, reward, discount, whole, missing)


@njit(cache=True)
def choose(sums: np.ndarray, n: int, quantile: float, rival: float) -> int:
    """The lane of the highest Student's t bound, ties to the last, if above `rival`; else the last.

    The bound is x̄ − quantile · σ/√n; a lane under which no episode is possible has none. Two
    episodes are the least for a bound. A quantile of −∞ (δ = 1) asks for nothing: the trained
    policy is taken if any episode is possible under it, else the mixture next to it.
    """
    last = N_LANES - 1
    if n < 2:
        return last
    if quantile == -np.inf:
        return 0 if sums[2, 0] > 0.0 else 1
    best, highest = last, -np.inf
    for k in range(last, -1, -1):
        if sums[2, k] > 0.0:
            mean = sums[0, k] / n
            spread = np.sqrt(max(sums[1, k] - n * (mean * mean), 0.0) / (n - 1))
            bound = mean - spread / np.sqrt(n) * quantile
            if bound > highest:
                best, highest = k, bound
    return best if highest > rival else last
