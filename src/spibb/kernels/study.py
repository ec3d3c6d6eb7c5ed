"""One data set of a finite study in one compiled call: all columns of the paper's grids."""

from __future__ import annotations

import numpy as np
from numba import njit

from spibb.kernels import dense, hcpi, robust
from spibb.kernels.counting import estimate
from spibb.kernels.penalties import adjusted_rewards
from spibb.kernels.projection import free_rows, playable, seen_or_available
from spibb.kernels.sampling import first_states, histogram


@njit(cache=True)
def performances(episodes, outcomes, policies, truth, v_max: float, columns) -> np.ndarray:
    """ρ(π, M) of the policies that algorithms make of one data set [M].

    `episodes` are outcome codes and lengths; `outcomes` the (state, action, successor, reward) and
    the pair of each code; `policies` the baseline and the behaviour [S, A]; `truth` is (rows,
    rewards, discount, initial) of M. `columns` holds the hyper-parameters, in this order: Basic RL:
    values of unseen pairs; RaMDP: κ, whether as released, and e(1) of its safety test, 0 without
    one; Robust MDP: e(1), and whether it is tested; HCPI: see `mixtures`; Π_b and Π_≤b: increasing
    N∧ > 0. Any of them may be empty.
    """
    codes, lengths = episodes
    (state, _, successor, reward), pair = outcomes
    baseline = policies[0].copy()
    unseen, ramdp, robust_sets, tests, pi_b, pi_leq_b = columns
    visits = histogram(codes, len(pair))
    pairs, rewards, rows, r_max = estimate(visits, pair, successor, reward, baseline.shape)
    available = playable(baseline, pairs)
    seen = free_rows(seen_or_available(pairs, available))
    model = (pairs, rewards, rows, truth[2])
    starts = first_states(codes, lengths, state, len(baseline))
    groups = unseen, ramdp[0], robust_sets[0], tests[2], pi_b, pi_leq_b
    end, size = np.empty(len(groups), dtype=np.int64), 0
    for i, group in enumerate(groups):
        size += len(group)
        end[i] = size
    pis = np.empty((size, *baseline.shape))
    basic_rl(model, free_rows(available), unseen, pis[: end[0]])
    rival = (baseline, starts, r_max)
    reward_adjusted(model, seen, v_max, rival, ramdp, pis[end[0] : end[1]])
    robust_mdp(model, seen, rival, robust_sets, pis[end[1] : end[2]])
    mixtures(episodes, outcomes, (baseline, policies[1]), model[3], tests, pis[end[2] : end[3]])
    dense.spibb_sweep(rows, rewards, model[3], baseline, pairs, pi_b, 1.0, pis[end[3] : end[4]])
    dense.spibb_sweep(rows, rewards, model[3], baseline, pairs, pi_leq_b, 0.0, pis[end[4] :])
    return dense.performances(truth[0], truth[1], truth[2], truth[3], pis)


@njit(cache=True, inline="always")
def basic_rl(model, box, unseen: np.ndarray, pis: np.ndarray):
    """Basic RL for each value of unseen pairs: fills `pis` [M, S, A]."""
    pairs, mean, rows, discount = model
    rewards = np.empty(pis.shape)
    for m in range(len(pis)):
        for s in range(len(mean)):
            for a in range(mean.shape[1]):
                rewards[m, s, a] = mean[s, a] if pairs[s, a] > 0 else unseen[m]
    dense.optimise_each(rows, rewards, discount, box, pis)


@njit(cache=True, inline="always")
def reward_adjusted(model, box, v_max: float, rival, settings, pis: np.ndarray):
    """RaMDP for each κ, correct or as released, tested or not: fills `pis` [M, S, A].

    The test compares with the `rival` (baseline, first states, max |r|).
    """
    pairs, mean, rows, discount = model
    baseline, starts, r_max = rival
    kappas, released, test_radii = settings
    exits = dense.left_out(rows[0], rows[2]).reshape(mean.shape)
    rewards = adjusted_rewards(mean, pairs, exits, (v_max, discount), kappas, released)
    dense.optimise_each(rows, rewards, discount, box, pis)
    for m in range(len(pis)):
        if test_radii[m] > 0.0:
            cost, radius = r_max / (1.0 - discount), robust.radii(pairs, test_radii[m])
            dense.combine(1.0, mean, -cost, radius, rewards[m])
            worst = dense.performance(rows, rewards[m], discount, starts, pis[m])
            dense.combine(1.0, mean, cost, radius, rewards[m])
            if worst <= dense.performance(rows, rewards[m], discount, starts, baseline):
                dense.copy(baseline, pis[m])


@njit(cache=True, inline="always")
def robust_mdp(model, box, rival, sets, pis: np.ndarray):
    """Robust MDP for each radius e(1) of a pair seen once, tested or not: fills `pis` [M, S, A].

    The test compares with the best case of the `rival` (baseline, first states, max |r|).
    """
    pairs, mean, rows, discount = model
    baseline, starts, r_max = rival
    radii, tested = sets
    only = (baseline, baseline, baseline)
    q, kept, moved = np.empty(mean.shape), np.empty(len(rows[2])), np.empty(mean.size)
    pi = box[2].copy()  # each search starts from the policy found before
    for m in range(len(pis)):
        radius = robust.radii(pairs, radii[m])
        low, high = robust.reward_interval(mean, radius, r_max)
        xi = (rows, low, radius, discount)
        worst = robust.policy_iteration(xi, box, pi, q, kept, moved)[0]
        dense.copy(pi, pis[m])
        if tested[m] > 0.0:
            dense.combine(-1.0, high, 0.0, high, low)  # the best case is the worst of −R, negated
            best = robust.policy_iteration(xi, only, baseline, q, kept, moved)[0]
            if dense.expectation(starts, worst) <= -dense.expectation(starts, best):
                dense.copy(baseline, pis[m])


@njit(cache=True, inline="always")
def mixtures(episodes, outcomes, policies, discount: float, tests, pis: np.ndarray):
    """HCPI for several tests of one trained policy: fills `pis` [M, S, A].

    `tests` = (α of the mixtures; the uniforms of Q-learning, its step size and the number of
    episodes that train; estimators [M]; Student's t quantiles [M]; values to beat [M]; lowest
    returns [M], NaN for the lowest of the log). Columns that differ in neither estimator nor lowest
    return share a pass over the episodes.
    """
    alphas, (uniforms, step_size, n_train), estimators, quantiles, rivals, declared = tests
    if len(pis) == 0:
        return
    codes, lengths = episodes
    transitions, pair = outcomes
    baseline, behaviour = policies
    split = 0
    for length in lengths[:n_train]:
        split += length
    visits = histogram(codes[:split], len(pair))
    pairs, rewards, rows, _ = estimate(visits, pair, transitions[2], transitions[3], baseline.shape)
    model = (pairs, rewards, rows, discount)
    trained = hcpi.train(codes[:split], transitions, model, baseline, uniforms, step_size)
    tested = (codes[split:], lengths[n_train:])
    three = (trained, baseline, behaviour)
    recorded = hcpi.lowest_return(episodes, transitions[3], discount)
    lowest = np.where(np.isnan(declared), recorded, declared)
    done = np.zeros(len(pis), dtype=np.bool_)
    for first in range(len(pis)):
        if done[first]:
            continue
        kind, low = int(estimators[first]), lowest[first]
        sums = hcpi.test(tested, transitions, three, model, alphas, kind, low)
        for m in range(first, len(pis)):
            if estimators[m] == kind and lowest[m] == low:
                lane = hcpi.choose(sums, len(tested[1]), quantiles[m], rivals[m])
                alpha, done[m] = alphas[lane], True
                dense.combine(1.0 - alpha, trained, alpha, baseline, pis[m])
