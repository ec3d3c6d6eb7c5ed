"""Does the past matter beyond the state, and does the new policy gain if it does?

Drawn models, and so "supported", assume that states are Markov. Two things are asked of the past:
the step before, and how many steps there were. Where one of them predicts what follows, the same
policies are judged in models whose states hold it too.

- (state and action before, state): changes that gain one at a time and lose together, because an
  action hurts only after itself, lose there; where states merely merge others that are alike, the
  gain stays, and nothing is refused.
- (number of steps, state): where episodes end after a fixed number of steps, what is left to gain
  depends on it, and a model without it promises gains of steps that never come.

Decisions that depend on the past as well are another matter: whoever decided may have seen what the
states lack, such as how ill a patient really was. An action that is taken in easy cases then looks
good, with a step of memory too, and nothing is supported.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from spibb.algorithms.problem import Problem
from spibb.assurance.posterior import draws_for, posterior_improvement, sure_gain
from spibb.counts import Counts
from spibb.labels import Vocabulary
from spibb.log import Log
from spibb.policy import Policy
from spibb.sceptic.exchange import SUSPICIOUS, Exchange
from spibb.sceptic.markov import clock_check, decisions_remember, markov_check
from spibb.words import listed

DRAWS = 400
"""Models with memory that are drawn."""
MOST_STATES = 2000
"""More states with memory are not drawn: it would take minutes."""


@dataclass(frozen=True)
class Memory:
    """The tests of the Markov property: of the step before, and of the number of steps (`clock`).

    `lower` is the sure gain in models that hold what was found, the smallest of them. None where
    nothing is found, or where there are too many states for such models. `decisions_p` is the
    p-value of "decisions do not depend on the past", 1 where it was not asked.
    """

    test: Exchange
    clock: Exchange
    lower: float | None = None
    decisions_p: float = 1.0

    @property
    def p_value(self) -> float:
        """The smaller of both."""
        return min(self.test.p_value, self.clock.p_value)

    @property
    def found(self) -> bool:
        """Whether the past predicts what follows."""
        return self.p_value < SUSPICIOUS

    @property
    def timed(self) -> bool:
        """Whether the number of steps does."""
        return self.clock.p_value < SUSPICIOUS

    @property
    def remembered(self) -> str:
        """What predicts what follows, and what the models of `lower` hold."""
        found = {
            "the previous step": self.test.p_value, "the number of steps so far": self.clock.p_value
        }  # fmt: skip
        return listed([what for what, p in found.items() if p < SUSPICIOUS] or ["the past"])

    @property
    def lacking(self) -> str:
        """What the states should contain."""
        if self.timed:
            return "the number of the step (add the column to --state)"
        return "what matters from the past (add a column to --state)"

    @property
    def confounded(self) -> bool:
        """Whether the step before predicts the decisions too."""
        return self.test.p_value < SUSPICIOUS and self.decisions_p < SUSPICIOUS


def memory_of(log: Log, problem: Problem, policy: Policy, delta: float | None) -> Memory:
    """Ask a log about memory; if it has one, judge the policy with it, unless there is no δ."""
    memory = Memory(
        markov_check(log, np.random.default_rng(0)), clock_check(log, np.random.default_rng(0))
    )
    models = []
    if memory.test.p_value < SUSPICIOUS:
        memory = replace(memory, decisions_p=decisions_remember(log, np.random.default_rng(0)))
        models.append(with_memory(log))
    if memory.timed:
        models.append(with_clock(log))
    large = any(len(state) > MOST_STATES for _, state in models)
    if delta is None or memory.confounded or large or not models:
        return memory
    lower = [_sure_gain(*model, problem, policy, delta) for model in models]
    return replace(memory, lower=min(lower))


def _sure_gain(
    log: Log, state: np.ndarray, problem: Problem, policy: Policy, delta: float
) -> float:
    """The δ-quantile of the gain in models of a log in wider states, whose own states [S'] are."""
    new, current = (
        Policy.trusted(one.probs[state], log.states, log.actions)
        for one in (policy, problem.baseline)
    )
    found = posterior_improvement(
        Counts.from_log(log), new, current, problem.discount,
        rng=np.random.default_rng(0), draws=draws_for(delta, DRAWS),
    )  # fmt: skip
    return float(sure_gain(found.gains, delta))


def with_memory(log: Log) -> tuple[Log, np.ndarray]:
    """The log in states that remember the pair before; and the state [S'] of each of them."""
    pair = log.pair + 1
    before = np.append(0, pair[:-1])
    before[log.episode_starts[:-1]] = 0  # nothing was before the first step
    return _wider(log, before, pair)


def with_clock(log: Log) -> tuple[Log, np.ndarray]:
    """The log in states that count the steps so far; and the state [S'] of each of them."""
    return _wider(log, log.step, log.step + 1)


def _wider(log: Log, before: np.ndarray, after: np.ndarray) -> tuple[Log, np.ndarray]:
    """The log in states that also hold `before` [N], or `after` [N] if they follow a row."""
    n_states, known = len(log.states), log.next_state >= 0
    codes = np.concatenate(
        [before * n_states + log.state, (after * n_states + log.next_state)[known]]
    )
    used, codes = np.unique(codes, return_inverse=True)
    following = np.full(len(log), -1, dtype=np.int32)
    following[known] = codes[len(log) :]
    states = Vocabulary(tuple(range(len(used))))
    wider = replace(
        log, state=codes[: len(log)].astype(np.int32), next_state=following, states=states, bins={}
    )
    return wider, used % n_states
