"""RaMDP: what uncertainty costs."""

from __future__ import annotations

import numpy as np
from numba import njit

COUNT_FLOOR = 1e-5
"""What the released code adds to every count."""


@njit(cache=True)
def adjusted_rewards(rewards, counts, exits, setting, kappas, released) -> np.ndarray:
    """Rewards [M, S, A] after their penalties, for several κ [M], correct or as released [M].

    Correct: R̂ − κ/√N, and −V_max where N = 0. Released: R̂ − κ/√(N + 1e-5) − γ P̂(end) κ/√1e-5,
    where unseen pairs do not even end. `exits` are P̂(end) [S, A]; `setting` is (V_max, γ).
    """
    v_max, discount = setting
    out = np.empty((len(kappas), *rewards.shape))
    for s in range(len(rewards)):
        for a in range(rewards.shape[1]):
            n = counts[s, a]
            once = 1.0 / np.sqrt(max(n, 1))
            floored = 1.0 / np.sqrt(n + COUNT_FLOOR)
            if n > 0:
                floored += discount * exits[s, a] / np.sqrt(COUNT_FLOOR)
            for m in range(len(kappas)):
                if released[m]:
                    out[m, s, a] = rewards[s, a] - kappas[m] * floored
                else:
                    out[m, s, a] = rewards[s, a] - kappas[m] * once if n > 0 else -v_max
    return out
