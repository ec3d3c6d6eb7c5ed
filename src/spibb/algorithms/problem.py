"""What every algorithm takes: a log's statistics, the baseline that made it, and the discount."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from spibb import checks
from spibb import evaluate as evaluation
from spibb.algorithms.coded_log import coded, distinct, fits_tables
from spibb.behaviour import Baseline, Provenance
from spibb.counts import Counts
from spibb.defaults import DISCOUNT
from spibb.episodes.conformity import contradiction, decisions, misrecorded
from spibb.episodes.departures import values_where_seen
from spibb.episodes.propensities import behaviour_probs, disagreement, unplayed, varies
from spibb.errors import InputError
from spibb.estimate import UNSEEN, default_v_max, estimate_mdp, shown_v_max
from spibb.ingest.baselines import attributed, attributed_counts
from spibb.kernels.formulas import is_playable
from spibb.kernels.projection import seen_first_box
from spibb.kernels.tuples import Codebook, Data, Episodes, Model, Record, Rows
from spibb.labels import Vocabulary
from spibb.log import Log
from spibb.mdp import MDP
from spibb.policy import Policy
from spibb.showing import Shown
from spibb.solve import Box, unit_of
from spibb.splits import ordered_without_names
from spibb.words import apart

_INT, _INT32, _FLOAT = np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0)
NO_RECORD = Record(Episodes(_INT32, _INT), Codebook(_INT, _INT32, _INT32, _FLOAT, _INT), _FLOAT)
AS_BASELINE = "baseline"
"""The treatment of unseen pairs in which they are worth what the baseline earns from there."""
TREATMENTS = (*UNSEEN, AS_BASELINE)
"""What pairs that the log never has may be worth in M̂."""
V_MAX_ROUNDING = 1e-6
"""Relative to V_max: values beyond it by less are rounding."""


@dataclass(frozen=True, eq=False)
class Circumstances:
    """What is known of a data set before it is drawn, or of a problem: all that may set a grid.

    `behaviour` made the episodes, of which there are `n_episodes`. Rewards and `v_max` are in
    units of `unit`.

    >>> problem.circumstances.shape, problem.circumstances.n_episodes
    ((2, 2), 3)
    """

    shape: tuple[int, int]
    discount: float
    v_max: float
    baseline: Policy
    behaviour: Policy
    n_episodes: int
    unit: float = 1.0


@dataclass(frozen=True, eq=False)
class Problem(Shown):
    """A policy to improve: a log's statistics, the baseline that made the log, and the discount.

    Build it with `from_log` or `from_counts`, which give all of them the same labels.

    Parameters:
        counts: what the log says of each pair of state and action.
        baseline: π_b, the policy that made the log.
        discount: γ in [0, 1).
        v_max: a bound on the absolute value of any return. One that the log contradicts is refused.
        v_max_given: whether `v_max` was declared; otherwise it is derived from the rewards seen.
        log: the transitions, for algorithms that need more than their counts.
        baseline_source: whether the baseline was given, is the log's `action_prob`, or was
            estimated from how often the log takes each action.

    >>> problem = spibb.Problem.from_log(log, baseline, discount=0.9)
    >>> problem
    Problem(states=2, actions=2, transitions=6, episodes=3, discount=0.9,
    v_max=10 (derived), baseline=given)
    """

    counts: Counts
    baseline: Policy
    discount: float
    v_max: float
    v_max_given: bool = False
    log: Log | None = None
    baseline_source: Provenance = Provenance.GIVEN

    def _facts(self) -> Mapping[str, Any]:
        """Sizes, and what the user knows of the process."""
        return {
            "states": len(self.states), "actions": len(self.actions),
            "transitions": int(self.counts.n.sum()), "episodes": self.n_episodes,
            "discount": self.discount,
            "v_max": f"{self.v_max:.4g} ({'given' if self.v_max_given else 'derived'})",
            "baseline": str(self.baseline_source),
        }  # fmt: skip

    def __post_init__(self) -> None:
        for name, kind in (("counts", Counts), ("baseline", Policy), ("log", (type(None), Log))):
            checks.instance(name, getattr(self, name), kind)
        checks.flag("v_max_given", self.v_max_given)
        checks.discount(self.discount)
        checks.number("v_max", self.v_max, 0, math.inf, "[)")
        for name, part in (("counts", self.counts), ("log", self.log)):
            if part is not None and (part.states, part.actions) != (self.states, self.actions):
                raise InputError(
                    f"the problem's {name} and baseline have different labels: build it with "
                    "Problem.from_log or Problem.from_counts, which align them"
                )
        if self.v_max_given:
            _check_v_max(self)

    @classmethod
    @checks.takes(log=Log)
    def from_log(
        cls,
        log: Log,
        baseline: Baseline | None = None,
        *,
        discount: float = DISCOUNT,
        v_max: float | None = None,
        smoothing: float = 0.0,
    ) -> Problem:
        """Count a log and align it with the baseline's labels.

        Where every episode is a single step that ends, v_max is the largest reward.

        Parameters:
            log: the log.
            baseline: the policy that made it. A `Policy`, or what `load_policy` gives; the name of
                a file, as in `read_policy`; a dataframe, long (state, action, probability) or wide
                (a row per state, a column per action), read by its labels; an array [S, A] in the
                order of the log's labels; a function that gives the distribution of a state's
                label; ``"recorded"``, what the log's `action_prob` says; ``"estimate"``, how often
                the log takes each action, or ``"estimate:0.5"`` with a smoothing, whatever
                `action_prob` says: the problem's log is then without it. None means
                recorded where the log has an `action_prob` that a policy can have and no smoothing
                is asked for, and else estimated.
            discount: γ in [0, 1).
            v_max: largest absolute return; derived from the rewards if None.
            smoothing: visits added to every action where the baseline is estimated.

        Returns:
            The problem, whose labels are the baseline's and the actions that only the log has.

        >>> rows = [[0.6, 0.4], [0.5, 0.5]]
        >>> spibb.Problem.from_log(log, rows, discount=0.9).baseline.row("severe")
        {'treat': 0.5, 'wait': 0.5}
        """
        checks.discount(discount)
        smoothing = checks.number("smoothing", smoothing, 0, math.inf, "[)")
        log, counts, policy, source = attributed(baseline, log, smoothing)
        return cls._of(counts, policy, discount, v_max, log=log, source=source)

    @classmethod
    @checks.takes(counts=Counts)
    def from_counts(
        cls,
        counts: Counts,
        baseline: Baseline | None = None,
        *,
        discount: float = DISCOUNT,
        v_max: float | None = None,
        smoothing: float = 0.0,
    ) -> Problem:
        """A problem without its log.

        Parameters:
            counts: the counts of the log.
            baseline: the policy that made it, as in `from_log`; None estimates it.
            discount: γ in [0, 1).
            v_max: largest absolute return; derived from the rewards if None.
            smoothing: visits added to every action where the baseline is estimated.

        Returns:
            The problem, without a log.

        >>> spibb.Problem.from_counts(spibb.Counts.from_log(log), baseline, discount=0.9).log
        """
        checks.discount(discount)
        smoothing = checks.number("smoothing", smoothing, 0, math.inf, "[)")
        counts, policy, source = attributed_counts(baseline, counts, smoothing)
        return cls._of(counts, policy, discount, v_max, source=source)

    @classmethod
    def _of(
        cls,
        counts: Counts,
        policy: Policy,
        discount: float,
        v_max: float | None,
        *,
        log: Log | None = None,
        source: Provenance,
    ) -> Problem:
        """The problem of parts that have the same labels."""
        if v_max is not None:
            checks.number("v_max", v_max, 0, math.inf, "()")
        bound = v_max if v_max is not None else default_v_max(counts, discount)
        return cls(
            counts, policy, discount, bound, v_max_given=v_max is not None, log=log,
            baseline_source=source,
        )  # fmt: skip

    def in_own_order(self) -> Problem:
        """The problem with labels in an order that depends on no name, if it has its log.

        What the order of labels decides, such as which of two equal actions is taken, is then the
        same whatever they are called.

        >>> sorted(problem.in_own_order().states.labels)
        ['mild', 'severe']
        """
        if self.log is None:
            return self
        states, actions = ordered_without_names(self.log)
        return replace(
            self, counts=self.counts.with_labels(states, actions),
            baseline=self.baseline.aligned(states, actions),
            log=self.log.with_labels(states, actions),
        )  # fmt: skip

    @property
    def states(self) -> Vocabulary:
        """Labels of the states."""
        return self.baseline.states

    @property
    def actions(self) -> Vocabulary:
        """Labels of the actions."""
        return self.baseline.actions

    @property
    def n_episodes(self) -> int:
        """Number of episodes in the log."""
        return int(self.counts.starts.sum())

    @property
    def baseline_estimated(self) -> bool:
        """Whether the baseline is how often the log takes each action."""
        return self.baseline_source is Provenance.ESTIMATED

    @cached_property
    def varying(self) -> bool:
        """Whether the log records probabilities that depend on more than states.

        A baseline that was given is then not what made the log, which `misreported` says.
        """
        if self.baseline_source is Provenance.GIVEN or self.log is None:
            return False
        return varies(self.log) is not None

    @cached_property
    def available(self) -> np.ndarray:
        """bool [S, A]: the baseline plays the action there, or the log contains it."""
        return np.asarray(is_playable(self.baseline.probs, self.counts.pairs))

    @cached_property
    def seen_first(self) -> Box:
        """Any policy over the pairs seen; where a state has none, over the actions available."""
        return seen_first_box(self.data.model.counts, self.data.baseline)

    @property
    def model(self) -> MDP:
        """M̂ with unseen pairs worth 0."""
        return self.models["zero"]

    @cached_property
    def models(self) -> Mapping[str, MDP]:
        """M̂ for each treatment of unseen pairs, estimated when asked for."""
        return _Estimated(self.counts, self.baseline, self.discount, self.v_max)

    @cached_property
    def return_range(self) -> float:
        """How far apart two returns can be, given v_max and the signs of the rewards seen."""
        low, high = self.counts.reward_range
        return self.v_max * ((low < 0) + (high > 0))

    @cached_property
    def data(self) -> Data:
        """What the log says, as the compiled algorithms take it: in units of the rewards.

        Its record is empty: see `coded_data`. Arrays are copied, since kernels are compiled for
        writable ones.
        """
        model, unit = self.model, self.unit
        rows = Rows(model.indptr.copy(), model.successors.copy(), model.probs.copy())
        counted = Model(self.counts.pairs.copy(), model.rewards / unit, rows, self.discount)
        low, high = self.counts.reward_range
        return Data(
            counted, self.baseline.probs.copy(), model.initial.copy(), low / unit, high / unit,
            self.v_max / unit, NO_RECORD,
        )  # fmt: skip

    @cached_property
    def coded_data(self) -> Data:
        """`data` with the episodes of the log, played by the baseline."""
        assert self.log is not None
        record = coded(self.log, behaviour_probs(self.log, self.behaviour_rows), self.unit)
        return self.data._replace(record=distinct(record))

    @cached_property
    def is_coded(self) -> bool:
        """Whether there is such data: kernels take the log, and the baseline can have made it."""
        log = self.log
        return log is not None and fits_tables(log) and not unplayed(log, self.behaviour_rows)

    @property
    def behaviour_rows(self) -> np.ndarray | None:
        """The rows [S, A] of the baseline; None if the log records what it played."""
        recorded = self.baseline_source is Provenance.RECORDED
        return None if recorded else self.baseline.probs

    @cached_property
    def unit(self) -> float:
        """The unit of the rewards, in which no tolerance depends on their scale."""
        return unit_of(np.array([self.counts.reward_range]))

    @property
    def circumstances(self) -> Circumstances:
        """What sets the grid of an algorithm's kernel."""
        return Circumstances(
            self.counts.shape, self.discount, self.v_max / self.unit, self.baseline, self.baseline,
            int(self.counts.starts.sum()), self.unit,
        )  # fmt: skip

    @cached_property
    def decisions(self) -> np.ndarray:
        """How often each action was taken [S, A], even where what followed is unknown."""
        return self.counts.pairs if self.log is None else decisions(self.log)

    @cached_property
    def contradictions(self) -> int:
        """Number of logged decisions whose action the baseline never plays."""
        return int(self.decisions[self.baseline.probs == 0].sum())

    @cached_property
    def misreported(self) -> str | None:
        """Why the baseline, or `action_prob`, cannot be what made the log, in words, if it cannot.

        1. `action_prob` must be the given baseline's probability, and sum to 1 in every state.
        2. Actions must be as frequent as the given baseline says, or else `action_prob`.
        """
        if self.baseline_source is not Provenance.GIVEN:
            return None if self.log is None else misrecorded(self.log)
        wrong = None if self.log is None else disagreement(self.log, self.baseline.probs)
        return wrong or contradiction(
            self.decisions, self.baseline.probs, self.states, self.actions
        )


def _check_v_max(problem: Problem) -> None:
    """Refuse a bound on returns that the log has exceeded."""
    log, discount = problem.log, problem.discount
    shown = shown_v_max(problem.counts, discount)
    if log is not None:
        shown = max(shown, evaluation.shown_v_max(log, discount))
    if problem.v_max < shown * (1 - V_MAX_ROUNDING):
        given, seen = apart(problem.v_max, shown)
        raise InputError(
            f"v_max is {given}, but the log shows returns of {seen} in absolute "
            "value: give a limit that no return exceeds, or leave v_max out"
        )


class _Estimated(dict[str, MDP]):
    """Estimated models by the name of their treatment of unseen pairs; rows of P̂ are shared.

    It does not hold the problem, which holds it: whoever improves many logs would keep them all
    until Python looks for circles.
    """

    def __init__(self, counts: Counts, baseline: Policy, discount: float, v_max: float) -> None:
        super().__init__()
        self._counts, self._baseline = counts, baseline
        self._discount, self._v_max = discount, v_max

    def __missing__(self, unseen: str) -> MDP:
        if unseen == AS_BASELINE:
            model = self._worth_the_baseline()
        else:
            model = estimate_mdp(self._counts, self._discount, unseen=unseen, v_max=self._v_max)
        self[unseen] = model
        return model

    def _worth_the_baseline(self) -> MDP:
        """M̂ in which a pair that the log never has is worth what the baseline earns from its state.

        By the pairs that were seen. Other than a fixed value it moves along with all values if a
        constant is added to all rewards, where states tell how many steps are left.
        """
        model, counts = self["zero"], self._counts
        _, v = values_where_seen(counts, self._baseline.probs, self._discount)
        return replace(model, rewards=np.where(counts.pairs > 0, model.rewards, v[:, None]))
