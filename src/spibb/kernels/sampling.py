"""Random walks through an MDP: alias tables over (action, successor), several walkers at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit


class PaidRows(NamedTuple):
    """What may follow each pair: successor (−1 at an end), probability and reward [K]; pair p has
    the entries indptr[p] … indptr[p + 1] − 1."""

    indptr: np.ndarray
    successors: np.ndarray
    probs: np.ndarray
    rewards: np.ndarray


class Slots(NamedTuple):
    """The outcomes of each state, side by side [S, W]; unused slots have weight 0 and action −1."""

    weight: np.ndarray
    action: np.ndarray
    successor: np.ndarray
    reward: np.ndarray


class AliasTables(NamedTuple):
    """Of every slot [S, W]: a threshold of 53 bits, the code of its alias, and its successor."""

    threshold: np.ndarray
    alias: np.ndarray
    successor: np.ndarray


LANES = 8
"""Walkers that take turns: while one waits for its table entry, the others compute."""


@njit(cache=True, inline="always")
def next_random(seeds: np.ndarray, lane: int) -> np.uint64:
    """splitmix64: the next 64 random bits of a lane."""
    seeds[lane] += np.uint64(0x9E3779B97F4A7C15)
    z = seeds[lane]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@njit(cache=True)
def list_outcomes(outcomes, pi: np.ndarray, width: int):
    """Joint outcomes of each state in slots, by actions and then in the order of the outcomes.

    Returns the fields of `Slots`.
    """
    indptr, successors = outcomes.indptr, outcomes.successors
    probs, rewards = outcomes.probs, outcomes.rewards
    n_states, n_actions = pi.shape
    weight = np.zeros((n_states, width))
    action = np.full((n_states, width), -1, dtype=np.int32)
    successor = np.full((n_states, width), -1, dtype=np.int32)
    reward = np.zeros((n_states, width))
    for s in range(n_states):
        j = 0
        for a in range(n_actions):
            if pi[s, a] == 0.0:
                continue
            for k in range(indptr[s * n_actions + a], indptr[s * n_actions + a + 1]):
                weight[s, j] = pi[s, a] * probs[k]
                action[s, j] = a
                successor[s, j] = successors[k]
                reward[s, j] = rewards[k]
                j += 1
    return weight, action, successor, reward


@njit(cache=True)
def alias_tables(weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Vose's alias method for each row of weights [S, W]: thresholds of 53 bits and aliases.

    Draw a slot j uniformly and 53 bits u: the outcome's code is s·W + j if u < threshold[s, j],
    else alias[s, j].
    """
    n_states, width = weight.shape
    threshold = np.zeros((n_states, width), dtype=np.uint64)
    alias = np.empty((n_states, width), dtype=np.int32)
    small = np.empty(width, dtype=np.int32)
    large = np.empty(width, dtype=np.int32)
    scaled = np.empty(width)
    full = 2.0**53
    for s in range(n_states):
        total, heaviest = 0.0, 0
        for j in range(width):
            total += weight[s, j]
            heaviest = j if weight[s, j] > weight[s, heaviest] else heaviest
        n_small = 0
        n_large = 0
        for j in range(width):
            scaled[j] = weight[s, j] * width / total
            if scaled[j] < 1.0:
                small[n_small] = j
                n_small += 1
            else:
                large[n_large] = j
                n_large += 1
        while n_small > 0 and n_large > 0:
            n_small -= 1
            j = small[n_small]
            i = large[n_large - 1]
            threshold[s, j] = np.uint64(scaled[j] * full)
            alias[s, j] = s * width + i
            scaled[i] -= 1.0 - scaled[j]
            if scaled[i] < 1.0:
                n_large -= 1
                small[n_small] = i
                n_small += 1
        for k in range(n_large):
            threshold[s, large[k]] = np.uint64(full)
            alias[s, large[k]] = s * width + large[k]
        for k in range(n_small):  # left over by rounding: as full as makes no difference
            j = small[k]
            threshold[s, j] = np.uint64(full) if scaled[j] > 0.5 else np.uint64(0)
            alias[s, j] = s * width + heaviest
    return threshold, alias


@njit(cache=True)
def first_state(cumulative: np.ndarray, seeds: np.ndarray, lane: int) -> int:
    """Draw an initial state from cumulative probabilities [S]."""
    u = (next_random(seeds, lane) >> np.uint64(11)) * 2.0**-53 * cumulative[-1]
    low, high = 0, len(cumulative) - 1
    while low < high:
        middle = (low + high) // 2
        if cumulative[middle] > u:
            high = middle
        else:
            low = middle + 1
    return low


@njit(cache=True)
def walk(tables, cumulative: np.ndarray, seeds: np.ndarray, n_episodes: int, max_steps: int):
    """Run `n_episodes` walks of at most `max_steps` steps, split evenly over the lanes.

    Returns the outcome codes x·W + j of all steps, lane by lane and episode by episode [N], and
    the length of each episode [E]. The number of episodes is fixed beforehand, because stopping
    parallel walks at a step budget would favour short episodes. Indices are unsigned, which spares
    Numba's test for negative ones, and the choice between slot and alias is arithmetic, because a
    branch would be mispredicted half of the time: together 2.5 times as fast.
    """
    width = np.uint64(tables.threshold.shape[1])
    threshold, alias = tables.threshold.ravel(), tables.alias.ravel()
    successor = tables.successor.ravel()
    one, cap = np.uint64(1), np.uint64(max_steps)
    lanes = min(len(seeds), n_episodes)
    base = np.empty(lanes + 1, dtype=np.int64)
    for lane in range(lanes + 1):
        base[lane] = n_episodes * lane // lanes
    episode = base[:lanes].copy()
    at, stop = np.empty(lanes, dtype=np.uint64), np.empty(lanes, dtype=np.uint64)
    state = np.empty(lanes, dtype=np.uint64)
    for lane in range(np.uint64(lanes)):
        at[lane] = base[lane] * max_steps
        stop[lane] = at[lane] + cap
        state[lane] = first_state(cumulative, seeds, lane)
    active = np.empty(lanes, dtype=np.uint64)  # filled apart: 5 % faster than in the loop above
    for lane in range(np.uint64(lanes)):
        active[lane] = lane
    codes = np.empty(n_episodes * max_steps, dtype=np.int32)
    lengths = np.empty(n_episodes, dtype=np.int64)
    n_active = np.uint64(lanes)
    while n_active > 0:
        i = np.uint64(0)
        while i < n_active:
            lane = active[i]
            random = next_random(seeds, lane)
            slot = state[lane] * width + (random & (width - one))
            other = np.uint64(alias[slot])
            keep = np.uint64((random >> np.uint64(11)) < threshold[slot])
            code = other + keep * (slot - other)
            codes[at[lane]] = code
            at[lane] += one
            following = successor[code]
            state[lane] = np.uint64(following)
            if following < 0 or at[lane] == stop[lane]:
                lengths[episode[lane]] = np.int64(at[lane] + cap - stop[lane])
                stop[lane] = at[lane] + cap
                episode[lane] += 1
                if episode[lane] == base[lane + one]:
                    n_active -= one
                    active[i] = active[n_active]
                    continue
                state[lane] = first_state(cumulative, seeds, lane)
            i += one
    return compact(codes, base * max_steps, at), lengths


@njit(cache=True)
def compact(codes: np.ndarray, begin: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Join the parts begin[i] … end[i] of an array."""
    size = 0
    for i in range(len(end)):
        size += np.int64(end[i]) - begin[i]
    out = np.empty(size, dtype=codes.dtype)
    k = np.uint64(0)
    for i in range(len(end)):
        for j in range(np.uint64(begin[i]), end[i]):
            out[k] = codes[j]
            k += np.uint64(1)
    return out


@njit(cache=True)
def histogram(codes: np.ndarray, size: int) -> np.ndarray:
    """How often each code occurs [size]; four counters avoid waiting on repeated codes."""
    parts = np.zeros((4, size), dtype=np.int64)
    n = len(codes) - len(codes) % 4
    for j in range(0, n, 4):
        parts[0, codes[j]] += 1
        parts[1, codes[j + 1]] += 1
        parts[2, codes[j + 2]] += 1
        parts[3, codes[j + 3]] += 1
    for j in range(n, len(codes)):
        parts[0, codes[j]] += 1
    for c in range(size):
        parts[0, c] += parts[1, c] + parts[2, c] + parts[3, c]
    return parts[0]


@njit(cache=True)
def first_states(codes: np.ndarray, lengths: np.ndarray, state, n_states: int) -> np.ndarray:
    """How many episodes begin in each state [S]; `state` is that of each code."""
    starts = np.zeros(n_states, dtype=np.int64)
    j = 0
    for length in lengths:
        starts[state[codes[j]]] += 1
        j += length
    return starts
