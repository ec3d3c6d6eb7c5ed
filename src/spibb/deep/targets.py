"""The policies that SPIBB allows at the next state, and the training targets they give."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

RowFunction = Callable[..., Any]

COMPARE_UP_TO = 24
"""Number of actions up to which comparing all pairs beats sorting (XLA sorts 9 in 16 µs)."""


def pi_b_rows(q: Any, baseline: Any, bootstrapped: Any, xp: Any = jnp) -> Any:
    """The greedy row of Π_b: the baseline's mass on 𝔅, the rest on the best trusted action.

    q, baseline, bootstrapped [..., A]. The free mass is 1 − Σ_𝔅 π_b, which is exactly 1 when
    nothing is bootstrapped; where everything is, the row is the baseline's, to the bit.
    """
    held = xp.where(bootstrapped, baseline, 0)
    free = xp.maximum(1 - held.sum(-1, keepdims=True), 0)
    best = xp.argmax(xp.where(bootstrapped, -xp.inf, q), axis=-1)
    chosen = best[..., None] == xp.arange(q.shape[-1])
    everything = bootstrapped.all(-1, keepdims=True)
    return xp.where(everything, baseline, xp.where(chosen, free, held))


def pi_leq_b_rows(q: Any, baseline: Any, bootstrapped: Any, xp: Any = jnp) -> Any:
    """The greedy row of Π_≤b: mass in decreasing order of q, at most π_b on bootstrapped actions.

    Algorithm 2 of the paper's appendix, for all rows at once: an action receives min(cap, what the
    better ones left). Ties go to the lower action code.
    """
    caps = xp.where(bootstrapped, baseline, 1)
    left = xp.maximum(1 - _given_before(q, caps, xp), 0)
    return xp.where(bootstrapped.all(-1, keepdims=True), baseline, xp.minimum(caps, left))


def _given_before(q: Any, caps: Any, xp: Any) -> Any:
    """Sum of the caps of all better actions, by comparing all pairs if they are few, or sorting."""
    n_actions = q.shape[-1]
    if n_actions <= COMPARE_UP_TO:
        earlier = xp.arange(n_actions) < xp.arange(n_actions)[:, None]
        mine, other = q[..., :, None], q[..., None, :]
        better = (other > mine) | ((other == mine) & earlier)
        return xp.where(better, caps[..., None, :], 0).sum(-1)
    order = _descending(q, xp)
    total = xp.cumsum(xp.take_along_axis(caps, order, -1), -1)
    given = xp.concatenate([xp.zeros_like(total[..., :1]), total[..., :-1]], -1)
    return xp.take_along_axis(given, xp.argsort(order, -1), -1)


def _descending(q: Any, xp: Any) -> Any:
    return np.argsort(-q, axis=-1, kind="stable") if xp is np else jnp.argsort(-q, axis=-1)


ROWS: Mapping[str, RowFunction] = {"pi-b": pi_b_rows, "pi-leq-b": pi_leq_b_rows}
"""The greedy row by the name of the constraint."""


def targets(reward: Any, discount: Any, rows: Any, next_values: Any) -> Any:
    """y_j = r_j + γ_j Σ_a' π(a'|x'_j) Q(x'_j, a') (Equation 8).

    reward, discount [B], with γ_j = γ(1 − terminated_j) and r_j less κ/√N for RaMDP; rows and
    next_values [B, A]. In Double-DQN the rows are greedy in the online network's values and
    `next_values` are the target network's.
    """
    return reward + discount * (rows * next_values).sum(-1)
