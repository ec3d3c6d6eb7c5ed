"""The helicopter of appendix D.1 for many episodes at once: dynamics, reward, choice of actions."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

TAU = 0.1
"""Time step τ."""
CLOSEST = 1.0 / 14.0
"""Distance from the target below which the reward stays at its cap: 1/d − 4 = 10."""


@njit(cache=True)
def landing_reward(x: float, y: float) -> float:
    """min(10, max(−1, 1/√((x − 1)² + (y − 1)²) − 4)): close to the target (1, 1) is good."""
    distance = math.sqrt((x - 1.0) ** 2 + (y - 1.0) ** 2)
    return max(-1.0, 1.0 / max(distance, CLOSEST) - 4.0)


@njit(cache=True)
def step(states: np.ndarray, actions: np.ndarray, noise: np.ndarray):
    """One time step of N episodes: next states [N, 4], rewards [N], terminated [N].

    States are (s_x, s_y, v_x, v_y), action a is the thrust (a // 3 − 1, a % 3 − 1) and `noise`
    [N, 4] is added to the next state. In each of the two dimensions
    s' = s + v τ + a τ²/2 + noise,  v' = v + a τ + noise.
    A velocity outside (−1, 1) pays −1, wherever the helicopter is; else a position outside (0, 1)
    pays the landing reward. Both terminate.
    """
    n = len(states)
    following = np.empty((n, 4))
    rewards = np.zeros(n)
    terminated = np.zeros(n, dtype=np.bool_)
    for i in range(n):
        for k in range(2):
            thrust = actions[i] // 3 - 1 if k == 0 else actions[i] % 3 - 1
            moved = states[i, 2 + k] * TAU + 0.5 * thrust * TAU**2
            following[i, k] = states[i, k] + moved + noise[i, k]
            following[i, 2 + k] = states[i, 2 + k] + thrust * TAU + noise[i, 2 + k]
        x, y, v_x, v_y = following[i]
        if not (-1.0 < v_x < 1.0 and -1.0 < v_y < 1.0):
            rewards[i] = -1.0
            terminated[i] = True
        elif not (0.0 < x < 1.0 and 0.0 < y < 1.0):
            rewards[i] = landing_reward(x, y)
            terminated[i] = True
    return following, rewards, terminated


@njit(cache=True)
def choose(probs: np.ndarray, uniforms: np.ndarray, tolerance: float, actions: np.ndarray) -> int:
    """Draw an action from each row of probs [N, A] into `actions` [N], one uniform number each.

    Returns the first row that is not a distribution to within `tolerance`, or −1.
    """
    for i in range(len(probs)):
        total = 0.0
        for a in range(probs.shape[1]):
            if not probs[i, a] >= 0.0:  # also catches NaN
                return i
            total += probs[i, a]
        if not abs(total - 1.0) <= tolerance:
            return i
        left = uniforms[i] * total
        chosen = -1
        for a in range(probs.shape[1]):
            if probs[i, a] > 0.0 and (left >= 0.0 or chosen < 0):
                chosen = a
            left -= probs[i, a]
        actions[i] = chosen
    return -1
