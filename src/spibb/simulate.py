"""Draw logs from an MDP and a policy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from spibb.checks import codes as check_codes
from spibb.checks import instance, positive, positive_field, takes, whole_array
from spibb.counts import END, Counts
from spibb.errors import InputError
from spibb.kernels import counting, sampling
from spibb.kernels.tuples import Codebook, Episodes, Record
from spibb.log import Log
from spibb.mdp import MDP
from spibb.policy import Policy

MAX_STEPS = 50
"""Default cap on the length of an episode; a cut episode is truncated, not terminated."""
MAX_SLOTS = 1 << 31
"""Outcome codes are whole numbers of 32 bits."""
BATCH_STEPS = 1 << 26
"""Largest number of steps for which one batch of episodes reserves memory."""


@takes(mdp=MDP, policy=Policy, rng=np.random.Generator)
def simulate(
    mdp: MDP,
    policy: Policy,
    n_episodes: int,
    *,
    rng: np.random.Generator,
    max_steps: int = MAX_STEPS,
) -> Log:
    """Play `n_episodes` episodes of a policy in an MDP and record them.

    Parameters:
        mdp: the world.
        policy: what acts in it.
        n_episodes: how many.
        rng: the source of random numbers.
        max_steps: after which an episode is cut.

    Returns:
        The log, with the labels of the world.

    >>> from spibb.envs import gridworld_baseline, gridworld_mdp
    >>> from spibb.simulate import simulate
    >>> simulate(gridworld_mdp(), gridworld_baseline(), 5, rng=np.random.default_rng(0)).n_episodes
    5
    """
    return Sampler(mdp, policy, max_steps).log(n_episodes, rng=rng)


@dataclass(frozen=True, eq=False)
class Sampler:
    """Draws logs of one policy in one MDP; it prepares its tables once.

    From the same generator state, `log(n)` and `counts(n)` draw the same episodes.

    Parameters:
        mdp: the world.
        policy: what acts in it.
        max_steps: after which an episode is cut.

    >>> from spibb.envs import gridworld_baseline, gridworld_mdp
    >>> sampler = spibb.Sampler(gridworld_mdp(), gridworld_baseline())
    >>> sampler.log(5, rng=np.random.default_rng(0)).n_episodes
    5
    """

    mdp: MDP
    policy: Policy
    max_steps: int = MAX_STEPS

    def __post_init__(self) -> None:
        instance("mdp", self.mdp, MDP)
        instance("policy", self.policy, Policy)
        positive_field(self, "max_steps")
        aligned = self.policy.aligned(self.mdp.states, self.mdp.actions)
        object.__setattr__(self, "policy", aligned)

    def draw(self, n_episodes: int, *, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Draw episodes as outcome codes [N] and lengths [E]; `codebook` says what a code means.

        Parameters:
            n_episodes: how many.
            rng: the source of random numbers.

        >>> from spibb.envs import gridworld_baseline, gridworld_mdp
        >>> sampler = spibb.Sampler(gridworld_mdp(), gridworld_baseline())
        >>> codes, lengths = sampler.draw(5, rng=np.random.default_rng(0))
        >>> len(lengths), len(codes) == int(lengths.sum())
        (5, True)
        """
        parts = list(self._draw(n_episodes, rng))
        if len(parts) == 1:
            return parts[0]
        return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])

    def log(self, n_episodes: int, *, rng: np.random.Generator) -> Log:
        """Draw episodes and record every transition.

        Parameters:
            n_episodes: how many.
            rng: the source of random numbers.

        >>> from spibb.envs import gridworld_baseline, gridworld_mdp
        >>> sampler = spibb.Sampler(gridworld_mdp(), gridworld_baseline())
        >>> sampler.log(5, rng=np.random.default_rng(0)).n_episodes
        5
        """
        return self.to_log(*self.draw(n_episodes, rng=rng))

    def to_log(self, codes: np.ndarray, lengths: np.ndarray) -> Log:
        """The log of drawn episodes.

        Parameters:
            codes: outcome codes [N], from `draw`.
            lengths: lengths of the episodes [E], from `draw`.

        >>> from spibb.envs import gridworld_baseline, gridworld_mdp
        >>> sampler = spibb.Sampler(gridworld_mdp(), gridworld_baseline())
        >>> sampler.to_log(*sampler.draw(5, rng=np.random.default_rng(0))).n_episodes
        5
        """
        codes, lengths = self._drawn(codes, lengths)
        starts = np.concatenate([[0], np.cumsum(lengths)])
        successor = self.successor[codes]
        truncated = np.zeros(len(codes), dtype=bool)
        truncated[starts[1:] - 1] = successor[starts[1:] - 1] != END
        return Log(
            state=codes >> self.shift,
            action=self.action[codes],
            reward=self.reward[codes],
            next_state=successor,
            terminated=successor == END,
            truncated=truncated,
            episode_starts=starts,
            states=self.mdp.states,
            actions=self.mdp.actions,
        )

    def counts(self, n_episodes: int, *, rng: np.random.Generator) -> Counts:
        """Draw episodes and keep their counts only.

        Parameters:
            n_episodes: how many.
            rng: the source of random numbers.

        >>> from spibb.envs import gridworld_baseline, gridworld_mdp
        >>> sampler = spibb.Sampler(gridworld_mdp(), gridworld_baseline())
        >>> int(sampler.counts(5, rng=np.random.default_rng(0)).starts.sum())
        5
        """
        visits = np.zeros(len(self.action), dtype=np.int64)
        starts = np.zeros(len(self.mdp.states), dtype=np.int64)
        for codes, lengths in self._draw(n_episodes, rng):
            visits += sampling.histogram(codes, len(visits))
            starts += self._starts(codes, lengths)
        return self._counts(visits, starts)

    def to_counts(self, codes: np.ndarray, lengths: np.ndarray) -> Counts:
        """The counts of drawn episodes.

        Parameters:
            codes: outcome codes [N], from `draw`.
            lengths: lengths of the episodes [E], from `draw`.

        >>> from spibb.envs import gridworld_baseline, gridworld_mdp
        >>> sampler = spibb.Sampler(gridworld_mdp(), gridworld_baseline())
        >>> int(sampler.to_counts(*sampler.draw(5, rng=np.random.default_rng(0))).starts.sum())
        5
        """
        codes, lengths = self._drawn(codes, lengths)
        visits = sampling.histogram(codes, len(self.action))
        return self._counts(visits, self._starts(codes, lengths))

    def _drawn(self, codes: Any, lengths: Any) -> tuple[np.ndarray, np.ndarray]:
        """Outcome codes [N] and the lengths of their episodes [E], checked."""
        codes, lengths = whole_array("codes", codes), whole_array("lengths", lengths)
        check_codes("outcome codes", codes, len(self.action))
        if (lengths < 1).any() or lengths.sum() != len(codes):
            raise InputError(
                f"lengths add up to {lengths.sum()}, expected {len(codes)}, as many as there are "
                "codes, and at least 1 for each episode: give what draw gave"
            )
        return codes, lengths

    def _starts(self, codes: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        return sampling.first_states(codes, lengths, self.state, len(self.mdp.states))

    def _counts(self, visits: np.ndarray, starts: np.ndarray) -> Counts:
        """Counts from the visits of each outcome code and of each first state."""
        n_states, n_actions = self.mdp.shape
        n_pairs = n_states * n_actions
        found = counting.CountedOutcomes(
            *counting.outcomes_of_codes(visits, self.codebook, n_pairs)
        )
        return Counts(
            found.indptr, found.successors, found.n, found.reward_sum, found.reward_sq, starts,
            (found.low, found.high), self.mdp.states, self.mdp.actions,
        )  # fmt: skip

    def _draw(
        self, n_episodes: int, rng: np.random.Generator
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Outcome codes and episode lengths, in batches of bounded memory."""
        instance("rng", rng, np.random.Generator, "write rng=np.random.default_rng(0)")
        left = positive("n_episodes", n_episodes)
        batch = max(1, BATCH_STEPS // self.max_steps)
        while left > 0:
            seeds = rng.integers(2**64, size=sampling.LANES, dtype=np.uint64)
            size = min(batch, left)
            yield sampling.walk(self._tables, self._initial, seeds, size, self.max_steps)
            left -= size

    @cached_property
    def shift(self) -> int:
        """log₂ of the slots per state: an outcome code is x << shift | slot."""
        per_state = np.diff(self.mdp.paid.indptr[:: self.mdp.shape[1]])
        shift = max(1, int(per_state.max() - 1).bit_length())
        if (slots := len(per_state) << shift) > MAX_SLOTS:
            richest = self.mdp.states[int(per_state.argmax())]
            raise InputError(
                f"state {richest!r} has {per_state.max()} outcomes, and every state gets as many "
                f"slots: {slots} in all, expected at most {MAX_SLOTS}: merge outcomes of that state"
            )
        return shift

    @cached_property
    def codebook(self) -> Codebook:
        """What each outcome code means."""
        return Codebook(self.state, self.action, self.successor, self.reward, self._pair)

    @cached_property
    def propensity(self) -> np.ndarray:
        """The policy's probability of the action of each outcome code; 0 where it is unused."""
        probs = self.policy.probs[self.state, np.maximum(self.action, 0)]
        return np.where(self.action < 0, 0.0, probs)

    def record(self, codes: np.ndarray, lengths: np.ndarray) -> Record:
        """Drawn episodes, as the compiled algorithms take them.

        Parameters:
            codes: outcome codes [N], from `draw`.
            lengths: lengths of the episodes [E], from `draw`.

        >>> from spibb.envs import gridworld_baseline, gridworld_mdp
        >>> sampler = spibb.Sampler(gridworld_mdp(), gridworld_baseline())
        >>> len(sampler.record(*sampler.draw(5, rng=np.random.default_rng(0))).episodes.lengths)
        5
        """
        return self.trusted_record(*self._drawn(codes, lengths))

    def trusted_record(self, codes: np.ndarray, lengths: np.ndarray) -> Record:
        """The same of what the caller has just drawn: to check it takes a study 4 % of its time."""
        return Record(Episodes(codes, lengths), self.codebook, self.propensity)

    @cached_property
    def _slots(self) -> sampling.Slots:
        paid, width = self.mdp.paid, 1 << self.shift
        outcomes = sampling.PaidRows(paid.indptr, paid.successors, paid.probs, paid.rewards)
        return sampling.Slots(*sampling.list_outcomes(outcomes, self.policy.probs, width))

    @cached_property
    def _tables(self) -> sampling.AliasTables:
        slots = self._slots
        return sampling.AliasTables(*sampling.alias_tables(slots.weight), slots.successor)

    @cached_property
    def _initial(self) -> np.ndarray:
        return np.cumsum(self.mdp.initial)

    @cached_property
    def state(self) -> np.ndarray:
        """The state of each outcome code."""
        return np.arange(len(self.action)) >> self.shift

    @cached_property
    def action(self) -> np.ndarray:
        """The action of each outcome code."""
        return self._slots.action.reshape(-1)

    @cached_property
    def _pair(self) -> np.ndarray:
        """The pair x·A + a of each outcome code."""
        return self.state * self.mdp.shape[1] + np.maximum(self.action, 0)

    @cached_property
    def successor(self) -> np.ndarray:
        """The successor of each outcome code, −1 at the end."""
        return self._slots.successor.reshape(-1)

    @cached_property
    def reward(self) -> np.ndarray:
        """The reward of each outcome code."""
        return self._slots.reward.reshape(-1)
