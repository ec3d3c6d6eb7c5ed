"""Does the step before matter beyond the state, and does the new policy gain if it does?

Drawn models, and so "supported", assume that states are Markov. Where the log contradicts that,
the same policies are judged in models whose states are (state and action before, state): what one
step of memory changes is then in the model. Changes that gain one at a time and lose together,
because an action hurts only after itself, lose there too; where states merely merge others that
are alike, the gain stays, and nothing is refused.

Decisions that depend on the past as well are another matter: whoever decided may have seen what the
states lack, such as how ill a patient really was. An action that is taken in easy cases then looks
good, with a step of memory too, and nothing is supported.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from spibb.algorithms.problem import Problem
from spibb.assurance.posterior import draws_for, posterior_improvement
from spibb.counts import Counts
from spibb.labels import Vocabulary
from spibb.log import Log
from spibb.policy import Policy
from spibb.sceptic.exchange import SUSPICIOUS, Exchange
from spibb.sceptic.markov import decisions_remember, markov_check

DRAWS = 400
"""Models with memory that are drawn."""
MOST_STATES = 2000
"""More states with memory are not drawn: it would take minutes."""


@dataclass(frozen=True)
class Memory:
    """The test of the Markov property; `lower` is the sure gain in models that remember a step.

    None where the test finds nothing, or where there are too many states for such models.
    `decisions_p` is the p-value of "decisions do not depend on the past", 1 where it was not asked.
    """

    test: Exchange
    lower: float | None = None
    decisions_p: float = 1.0

    @property
    def found(self) -> bool:
        """Whether the past predicts what follows."""
        return self.test.p_value < SUSPICIOUS

    @property
    def confounded(self) -> bool:
        """Whether it predicts the decisions too."""
        return self.found and self.decisions_p < SUSPICIOUS


def memory_of(log: Log, problem: Problem, policy: Policy, delta: float) -> Memory:
    """Ask a log about memory; if it has one, judge the policy with it."""
    memory = Memory(markov_check(log, np.random.default_rng(0)))
    if not memory.found:
        return memory
    memory = replace(memory, decisions_p=decisions_remember(log, np.random.default_rng(0)))
    remembering, state = with_memory(log)
    if memory.confounded or len(state) > MOST_STATES:
        return memory
    new, current = (
        Policy.trusted(one.probs[state], remembering.states, remembering.actions)
        for one in (policy, problem.baseline)
    )
    found = posterior_improvement(
        Counts.from_log(remembering), new, current, problem.discount,
        rng=np.random.default_rng(0), draws=draws_for(delta, DRAWS),
    )  # fmt: skip
    return replace(memory, lower=float(np.quantile(found.gains, delta)))


def with_memory(log: Log) -> tuple[Log, np.ndarray]:
    """The log in states that remember the pair before; and the state [S'] of each of them."""
    n_states = len(log.states)
    pair = log.pair + 1
    before = np.append(0, pair[:-1])
    before[log.episode_starts[:-1]] = 0  # nothing was before the first step
    known = log.next_state >= 0
    codes = np.concatenate(
        [before * n_states + log.state, (pair * n_states + log.next_state)[known]]
    )
    used, codes = np.unique(codes, return_inverse=True)
    following = np.full(len(log), -1, dtype=np.int32)
    following[known] = codes[len(log) :]
    states = Vocabulary(tuple(range(len(used))))
    remembering = replace(
        log, state=codes[: len(log)].astype(np.int32), next_state=following, states=states, bins={}
    )
    return remembering, used % n_states
