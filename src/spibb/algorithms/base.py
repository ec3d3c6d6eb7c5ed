"""What every algorithm takes (Problem), is (Algorithm) and returns (Improvement)."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

import spibb
from spibb import checks
from spibb import evaluate as evaluation
from spibb.assurance.posterior import Posterior, posterior_improvement
from spibb.certificate import Certificate, Premises, certify, refuse
from spibb.checks import InputError
from spibb.conformity import contradiction, decisions, misrecorded
from spibb.counts import Counts
from spibb.departures import changed_states
from spibb.estimate import (
    Baseline,
    Counted,
    as_policy,
    default_v_max,
    estimate_baseline,
    estimate_mdp,
    shown_v_max,
)
from spibb.frozen import Frozen
from spibb.ingest.policy_frames import is_frame, policy_from_frame
from spibb.kernels import projection
from spibb.kernels.tuples import Codebook, Data, Episodes, Model, Record, Rows
from spibb.labels import Label, Vocabulary
from spibb.log import Log
from spibb.mdp import MDP
from spibb.policy import Policy
from spibb.propensities import disagreement
from spibb.showing import Shown
from spibb.solve import Box, Solution, evaluate, free_box, unit_of

if TYPE_CHECKING:
    from spibb.verdict import Verdict

_INT, _INT32, _FLOAT = np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0)
NO_RECORD = Record(Episodes(_INT32, _INT), Codebook(_INT, _INT32, _INT32, _FLOAT, _INT), _FLOAT)
ROUNDING = 1e-6
"""Relative to V_max: values beyond it by less are rounding."""
ESTIMATED = (
    "the baseline collected the log; it was estimated from that log, and the bound compares with "
    "the estimate: how far this lies from the policy that really acted is not counted"
)


@dataclass(frozen=True, eq=False)
class Problem(Shown):
    """A log's statistics, the baseline that made it, and the discount: what is to be improved.

    `v_max` bounds the absolute value of any return; without it, it is derived from the rewards
    seen, and one that the log contradicts is refused. `log` keeps the transitions, for algorithms
    that need more than their counts. `baseline_estimated` says that the baseline was read off the
    log itself.

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
    baseline_estimated: bool = False

    def _facts(self) -> Mapping[str, Any]:
        """Sizes, and what the user knows of the process."""
        return {
            "states": len(self.states), "actions": len(self.actions),
            "transitions": int(self.counts.n.sum()), "episodes": self.n_episodes,
            "discount": self.discount,
            "v_max": f"{self.v_max:.4g} ({'given' if self.v_max_given else 'derived'})",
            "baseline": "estimated" if self.baseline_estimated else "given",
        }  # fmt: skip

    def __post_init__(self) -> None:
        for name, coded in (("counts", self.counts), ("log", self.log)):
            if coded is not None and (coded.states, coded.actions) != (self.states, self.actions):
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
        discount: float = 0.95,
        v_max: float | None = None,
        smoothing: float = 0.0,
    ) -> Problem:
        """Count a log and align it with the baseline's labels.

        The baseline is a policy; a dataframe, long (state, action, probability) or wide (a row per
        state, a column per action), read by its labels; an array [S, A] in the order of the log's
        labels; a function that gives the distribution of a state's label; or None: estimated from
        the log, with smoothing.
        """
        checks.discount(discount)
        if baseline is None:
            counts = Counts.from_log(log)
            policy = estimate_baseline(counts, smoothing=smoothing)
        else:
            log, policy = align(log, _policy(baseline, log))
            counts = Counts.from_log(log)
        return cls._of(counts, policy, discount, v_max, log=log, estimated=baseline is None)

    @classmethod
    @checks.takes(counts=Counts)
    def from_counts(
        cls,
        counts: Counts,
        baseline: Baseline | None = None,
        *,
        discount: float = 0.95,
        v_max: float | None = None,
        smoothing: float = 0.0,
    ) -> Problem:
        """A problem whose log is not at hand; the baseline is as in `from_log`."""
        checks.discount(discount)
        if baseline is None:
            policy = estimate_baseline(counts, smoothing=smoothing)
        else:
            counts, policy = align(counts, _policy(baseline, counts))
        return cls._of(counts, policy, discount, v_max, estimated=baseline is None)

    @classmethod
    def _of(
        cls,
        counts: Counts,
        policy: Policy,
        discount: float,
        v_max: float | None,
        *,
        log: Log | None = None,
        estimated: bool,
    ) -> Problem:
        """The problem of parts that have the same labels."""
        if v_max is not None:
            checks.number("v_max", v_max, 0, math.inf, "()")
        bound = v_max if v_max is not None else default_v_max(counts, discount)
        return cls(
            counts, policy, discount, bound, v_max_given=v_max is not None, log=log,
            baseline_estimated=estimated,
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

    @cached_property
    def available(self) -> np.ndarray:
        """bool [S, A]: the baseline plays the action there, or the log contains it."""
        return (self.baseline.probs > 0) | (self.counts.pairs > 0)

    @cached_property
    def seen_first(self) -> Box:
        """Any policy over the pairs seen; where a state has none, over the actions available."""
        return free_box(projection.seen_or_available(self.data.model.counts, self.available))

    @property
    def model(self) -> MDP:
        """M̂ with unseen pairs worth 0."""
        return self.models["zero"]

    @cached_property
    def models(self) -> Mapping[str, MDP]:
        """M̂ for each treatment of unseen pairs, estimated when asked for."""
        return _Models(self)

    @cached_property
    def return_range(self) -> float:
        """How far apart two returns can be, given v_max and the signs of the rewards seen."""
        low, high = self.counts.reward_range
        return self.v_max * ((low < 0) + (high > 0))

    @cached_property
    def data(self) -> Data:
        """What the log says, as the compiled algorithms take it: in units of the rewards.

        Its record is empty. Arrays are copied, since kernels are compiled for writable ones.
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
        """How often each action was taken [S, A], also where nothing is known of what followed."""
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
        if self.baseline_estimated:
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
    if problem.v_max < shown * (1 - ROUNDING):
        raise InputError(
            f"v_max is {problem.v_max:g}, but the log shows returns of {shown:.8g} in absolute "
            f"value: give at least {shown:.8g}, or leave v_max out"
        )


class _Models(dict[str, MDP]):
    """Estimated models by the name of their treatment of unseen pairs; rows of P̂ are shared."""

    def __init__(self, problem: Problem) -> None:
        super().__init__()
        self._problem = problem

    def __missing__(self, unseen: str) -> MDP:
        problem = self._problem
        model = estimate_mdp(problem.counts, problem.discount, unseen=unseen, v_max=problem.v_max)
        self[unseen] = model
        return model


def _policy(given: Baseline, log: Log | Counts) -> Policy:
    """A baseline in any form that `Problem.from_log` takes."""
    if is_frame(given):
        return policy_from_frame(given, log)
    return as_policy(given, log)


def floats(values: Iterable[float]) -> np.ndarray:
    """A hyper-parameter of several configurations [M]."""
    return np.array([float(value) for value in values])


def align(log: Counted, baseline: Policy) -> tuple[Counted, Policy]:
    """Give a log (or its counts) and a baseline the same labels.

    They are the baseline's, and actions that only the log has. The baseline may know states that
    the log never visits; the converse is an error. Columns have the names that the log gives them.
    """
    baseline = baseline.named(log.states.names, log.actions.names)
    if log.states == baseline.states and log.actions == baseline.actions:
        return log, baseline
    known = baseline.actions.index
    extra: list[Label] = [label for label in log.actions.labels if label not in known]
    actions = Vocabulary((*baseline.actions.labels, *extra), baseline.actions.names)
    missing = [label for label in log.states.labels if label not in baseline.states.index]
    if missing:
        raise InputError(
            f"baseline has no row for state {checks.some(missing)} ({len(missing)} of the log's "
            f"{len(log.states)} states): add the rows, or drop those states from the log"
        )
    aligned = baseline.aligned(baseline.states, actions, "baseline")
    return log.with_labels(baseline.states, actions), aligned


@dataclass(frozen=True, eq=False)
class Circumstances:
    """What is known of a data set before it is drawn, or of a problem: all that may set a grid.

    `behaviour` made the episodes, of which there are `n_episodes`. Rewards and `v_max` are in
    units of `unit`.
    """

    shape: tuple[int, int]
    discount: float
    v_max: float
    baseline: Policy
    behaviour: Policy
    n_episodes: int
    unit: float = 1.0


class Algorithm(ABC):
    """A way to improve a policy. Subclasses are frozen dataclasses: hyper-parameters in the
    constructor, data in `improve`.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Cautious(spibb.Algorithm):
    ...     name = "cautious"
    ...
    ...     def improve(self, problem):
    ...         return spibb.PiBSpibb(n_wedge=100).improve(problem)
    >>> bool(Cautious().improve(problem).bootstrapped.all())
    True
    """

    name: ClassVar[str]
    """The name in the registry."""
    needs_log: ClassVar[bool] = False
    """Whether the counts of a problem are not enough."""
    answers_at_delta: ClassVar[bool] = False
    """Whether its field `delta` is the level of its answer: how often that may be worse."""
    no_certificate: ClassVar[str | None] = "no theorem covers this algorithm"
    """Why Theorem 2 does not apply; None where it does."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Whatever an algorithm is given to improve, it is a problem."""
        super().__init_subclass__(**kwargs)
        if "improve" in vars(cls):
            cls.improve = checks.takes(problem=Problem)(cls.improve)  # type: ignore[method-assign]

    @abstractmethod
    def improve(self, problem: Problem) -> Improvement:
        """Train a policy on the problem's log."""

    @classmethod
    def policies(cls, algorithms: Sequence[Self], problem: Problem) -> np.ndarray:
        """The policies of several configurations on one problem [M, S, A].

        Configurations that the algorithm's kernel knows share one compiled call, others are
        improved one by one.
        """
        known = problem.circumstances
        joined = [a.compiles(known) and not a.needs_log for a in algorithms]
        found = np.empty((len(algorithms), *problem.baseline.probs.shape))
        if any(joined):
            grid = cls.columns([a for a, joins in zip(algorithms, joined) if joins], known)
            pis = np.empty((sum(joined), *found.shape[1:]))
            grid.kernel()(problem.data, grid, pis)
            found[joined] = pis
        for m, algorithm in enumerate(algorithms):
            if not joined[m]:
                found[m] = algorithm.improve(problem).policy.probs
        return found

    def compiles(self, known: Circumstances) -> bool:
        """Whether the algorithm's kernel knows this configuration."""
        return False

    @classmethod
    def columns(cls, algorithms: Sequence[Self], known: Circumstances) -> Any:
        """The grid of configurations that `compiles`, as the algorithm's kernel takes them.

        A named tuple whose class has the `kernel` (see `kernels.study`); None without one. An
        algorithm that has it joins the compiled call of the studies. Only one that needs the log
        may look at `known.n_episodes`.
        """
        return None

    def model(self, problem: Problem) -> MDP:
        """The estimated model that the trained policy's values refer to."""
        return problem.models[getattr(self, "unseen", "zero")]


@dataclass(frozen=True, eq=False)
class Improvement(Frozen):
    """A trained policy and what the estimated model M̂ says about it.

    `q` [S, A] and `v` [S] are its values in `model`; `bootstrapped` [S, A] is True where the
    baseline was copied because evidence is too thin. All arrays are read-only.

    >>> result = spibb.PiBSpibb(n_wedge=1).improve(problem)
    >>> result
    Improvement(algorithm=PiBSpibb(n_wedge=1, unseen='zero', method='auto'),
    value_in_model=0.9, baseline_value_in_model=0.54, states_changed=1 of 2, pairs_copied=0%)
    >>> result.verdict.grade
    <Grade.NOT_SUPPORTED: 'not supported'>
    """

    policy: Policy
    q: np.ndarray
    v: np.ndarray
    bootstrapped: np.ndarray
    iterations: int
    converged: bool
    problem: Problem
    algorithm: Algorithm

    def _facts(self) -> Mapping[str, Any]:
        """What was done, the values in the model, how much changed, and why if that is said."""
        moved = changed_states(self.policy.probs, self.problem.baseline.probs)
        reason = getattr(self, "reason", None)
        return {
            "algorithm": self.algorithm, "value_in_model": self.value,
            "baseline_value_in_model": self.baseline_value,
            "states_changed": f"{int(moved.sum())} of {len(moved)}",
            "pairs_copied": f"{self.bootstrapped.mean():.0%}",
            **({"reason": reason} if reason else {}),
            **({"verdict": str(self.verdict.grade)} if "verdict" in vars(self) else {}),
            **({} if self.converged else {"converged": False}),
        }  # fmt: skip

    def save(
        self,
        folder: str | Path,
        *,
        delta: float | None = None,
        seed: int = 0,
        force: bool = False,
        spreadsheet_safe: bool = False,
    ) -> Path:
        """Write what ``spibb improve`` writes: the policy with policy.json, summary and report.

        Parameters:
            folder: must be empty, or `force` given; the files appear all at once.
            delta: failure probability of certificate and verdict; the algorithm's own, or 0.05.
            seed: seed of the posterior draws.
            force: write into a folder that is not empty.
            spreadsheet_safe: put an apostrophe before labels that a spreadsheet might execute.

        Returns:
            The folder.
        """
        return spibb.save_result(
            self, folder, delta=delta, seed=seed, force=force, spreadsheet_safe=spreadsheet_safe
        )

    def report(self, path: str | Path, *, delta: float | None = None, seed: int = 0) -> Path:
        """Write the report, one HTML file that needs nothing else, and return its path."""
        return spibb.write_report(self, path, delta=delta, seed=seed)

    def __post_init__(self) -> None:
        super().__post_init__()
        theirs = self.problem.states, self.problem.actions
        if (self.policy.states, self.policy.actions) != theirs:
            raise InputError(
                f"algorithm {self.algorithm.name!r} returned a policy whose labels are not those "
                "of the problem: make it with problem.states and problem.actions"
            )

    @classmethod
    def from_solution(
        cls, solution: Solution, bootstrapped: np.ndarray, problem: Problem, algorithm: Algorithm
    ) -> Improvement:
        """Label a solution."""
        policy = Policy.trusted(solution.probs, problem.states, problem.actions)
        return cls(policy, solution.q, solution.v, bootstrapped, solution.iterations,
                   solution.converged, problem, algorithm)  # fmt: skip

    @cached_property
    def model(self) -> MDP:
        """The estimated model that `q` and `v` refer to."""
        return self.algorithm.model(self.problem)

    @cached_property
    def values(self) -> np.ndarray:
        """V^π in M̂ [S], the model that fits the log best, with unseen pairs worth 0.

        It is `v` where the algorithm solved that model, and not where it took another: unseen
        pairs worth −V_max (Basic RL), penalised rewards (RaMDP), the worst case (Robust MDP).
        """
        return self.v if self.model is self.problem.model else self._in_model(self.policy)

    @cached_property
    def baseline_values(self) -> np.ndarray:
        """V^{π_b} in M̂ [S]."""
        return self._in_model(self.problem.baseline)

    def _in_model(self, policy: Policy) -> np.ndarray:
        return evaluate(self.problem.model, policy.probs).v

    @cached_property
    def value(self) -> float:
        """ρ(π, M̂), which flatters a policy that was trained on the same log."""
        return float(self.problem.model.initial @ self.values)

    @cached_property
    def baseline_value(self) -> float:
        """ρ(π_b, M̂), in the same model as `value`."""
        return float(self.problem.model.initial @ self.baseline_values)

    @cached_property
    def objective(self) -> float:
        """ρ(π, `model`): what the algorithm itself maximised, such as the worst-case value."""
        return float(self.model.initial @ self.v)

    @cached_property
    def verdict(self) -> Verdict:
        """How sure the log is: certified, supported, or not supported (`spibb.judge`)."""
        return spibb.judge(self)

    def posterior(self, *, draws: int = 1000, seed: int = 0) -> Posterior:
        """The gain in models drawn given the log (`spibb.posterior_improvement`).

        Its probability is a belief of a model that judges with the log that trained the policy:
        measured as over-confident (docs/choosing.md). `verdict` says what to make of it.
        """
        problem = self.problem
        return posterior_improvement(
            problem.counts, self.policy, problem.baseline, problem.discount,
            rng=np.random.default_rng(seed), draws=draws,
        )  # fmt: skip

    def certificate(self, delta: float = 0.05) -> Certificate:
        """Theorem 2 and tighter bounds on the loss, or the reason why there is none.

        Returns:
            `bounds` with their ζ: ρ(π, M) ≥ ρ(π_b, M) − ζ with probability 1 − δ; or a `refusal`.

        >>> result = spibb.PiBSpibb(n_wedge=1).improve(problem)
        >>> result.certificate(delta=0.1).best.vacuous
        True
        """
        problem = self.problem
        n_wedge = getattr(self.algorithm, "n_wedge", math.nan)
        checks.delta(delta)
        refusal = self.algorithm.no_certificate or _refusal(self, n_wedge)
        if refusal is not None:
            return refuse(n_wedge, delta, refusal)
        n_states, n_actions = problem.baseline.probs.shape
        premises = Premises(n_states, n_actions, problem.discount, problem.v_max, delta)
        return certify(
            n_wedge,
            premises,
            gain=self.value - self.baseline_value,
            return_range=problem.return_range,
            assumptions=_assumptions(problem),
        )


def _refusal(result: Improvement, n_wedge: float) -> str | None:
    problem = result.problem
    if problem.contradictions:
        return (
            f"the log contradicts the baseline: {problem.contradictions} transitions take an "
            "action that the baseline never plays, so the baseline did not collect them"
        )
    if n_wedge == 0:
        return "n_wedge = 0 trusts every pair, and the bounds are infinite"
    if problem.misreported:
        return f"the log contradicts the baseline: {problem.misreported}"
    largest = max(float(np.abs(v).max()) for v in (result.values, result.baseline_values))
    if largest > problem.v_max * (1 + ROUNDING):
        return (
            f"a state is worth {largest:.4g} in the model, and the theorem takes v_max = "
            f"{problem.v_max:g} as the limit of all values: give a larger v_max, or leave it out"
        )
    return None


def _assumptions(problem: Problem) -> tuple[str, ...]:
    source = "given" if problem.v_max_given else "derived from the rewards in the log"
    collected = ESTIMATED if problem.baseline_estimated else "the baseline collected the log"
    return (
        collected,
        "episodes are independent and identically distributed",
        "the process is Markov in the states given",
        f"no return exceeds v_max = {problem.v_max:g} in absolute value ({source})",
    )
