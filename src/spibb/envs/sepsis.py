"""ICU-Sepsis (Choudhary, Gupta and Thomas 2024): a world of 713 states and 25 actions.

The package icu-sepsis holds a transition model and the clinicians' policy, both estimated from
MIMIC-III, and no patient's record. Its authors warn that the model is a benchmark and must not
guide the treatment of patients.
"""

from __future__ import annotations

import warnings
from contextlib import suppress
from functools import cache

import numpy as np

from spibb.errors import InputError, install
from spibb.mdp import MDP
from spibb.policy import Policy

DISCOUNT = 0.99
MAX_STEPS = 500


def _silence_notices() -> None:
    """The old gym prints what the package gym-notices says of its version."""
    with suppress(ImportError):
        from gym_notices.notices import notices

        notices.clear()


@cache
def icu_sepsis() -> tuple[MDP, Policy]:
    """The model and the clinicians' policy.

    Death, survival and the absorbing state after them end an episode, so that they are not states
    here; theirs are the policy's rows that are all zero. Each end pays its own reward.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its import loads the old gym
        _silence_notices()
        try:
            from icu_sepsis.envs import ICUSepsisEnv
        except ImportError:
            raise InputError(
                f"icu-sepsis needs the package of that name: {install('interop')}"
            ) from None
    env = ICUSepsisEnv()
    model, paid, first, clinicians = env._tx_mat, env._r_mat, env._d_0, env._expert_policy
    alive = np.flatnonzero(clinicians.sum(axis=1) > 0)
    x, a, y = np.nonzero(model[alive])
    code = np.full(len(first), -1)
    code[alive] = np.arange(len(alive))
    states = [f"patient {s}" for s in alive]
    actions = [f"fluids {d // 5}, vasopressor {d % 5}" for d in range(clinicians.shape[1])]
    mdp = MDP.from_outcomes(
        x, a, model[alive][x, a, y], code[y], paid[alive][x, a, y], code[y] < 0,
        initial=first[alive], n_actions=len(actions), discount=DISCOUNT,
        states=states, actions=actions,
    )  # fmt: skip
    return mdp, Policy(clinicians[alive], mdp.states, mdp.actions)
