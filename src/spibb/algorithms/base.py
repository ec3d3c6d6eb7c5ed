"""What every algorithm is; it takes a Problem and returns an Improvement."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from spibb import checks
from spibb.algorithms.improvement import Improvement
from spibb.algorithms.problem import Circumstances, Problem
from spibb.errors import InputError
from spibb.mdp import MDP
from spibb.policy import Policy


@dataclass(frozen=True)
class Truth:
    """What a simulated world may tell an algorithm beside the data.

    Attributes:
        returns: no return from any step on lies outside these limits.
        baseline_value: ρ(π_b, M*); None where it is not told.
        behaviour: the policy that made the log; None where it is not told.
    """

    returns: tuple[float, float]
    baseline_value: float | None = None
    behaviour: Policy | None = None


class Algorithm(ABC):
    """A way to improve a policy. Subclasses are frozen dataclasses: hyper-parameters in the
    constructor, data in `improve`.

    An algorithm guarantees nothing unless its own docstring says so: `no_certificate` is the reason
    why Theorem 2 does not cover it, None where it does.

    Attributes:
        name: the name in the registry.
        needs_log: whether `improve` needs the episodes, and not only their counts.
        answers_at_delta: whether its field `delta` is the level of its answer.
        no_certificate: why Theorem 2 does not apply; None where it does.

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
    needs_limits: ClassVar[bool] = False
    """Whether its promise is about the policy that made the log, and rests on limits of returns."""
    no_certificate: ClassVar[str | None] = "no theorem covers this algorithm"
    """Why Theorem 2 does not apply; None where it does."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Make `improve` check its argument."""
        super().__init_subclass__(**kwargs)
        if "improve" in vars(cls):
            cls.improve = checks.takes(problem=Problem)(cls.improve)  # type: ignore[method-assign]

    @abstractmethod
    def improve(self, problem: Problem) -> Improvement:
        """Train a policy on the problem's log."""

    def check(self, problem: Problem) -> None:  # noqa: B027 (most take any problem)
        """Refuse a problem that this configuration cannot take; `improve` calls it as well."""

    @classmethod
    def policies(cls, algorithms: Sequence[Self], problem: Problem) -> np.ndarray:
        """The policies of several configurations on one problem [M, S, A].

        Configurations that the algorithm's kernel knows share one compiled call, others are
        improved one by one.
        """
        checks.instance("problem", problem, Problem)
        cls._check_alike(algorithms)
        for algorithm in algorithms:
            algorithm.check(problem)
        known = problem.circumstances
        joined = [a.compiles(known) and (not a.needs_log or problem.is_coded) for a in algorithms]
        found = np.empty((len(algorithms), *problem.baseline.probs.shape))
        if any(joined):
            grid = cls.columns([a for a, joins in zip(algorithms, joined) if joins], known)
            pis = np.empty((sum(joined), *found.shape[1:]))
            data = problem.coded_data if cls.needs_log else problem.data
            grid.kernel()(data, grid, pis)
            found[joined] = pis
        for m, algorithm in enumerate(algorithms):
            if not joined[m]:
                found[m] = algorithm.improve(problem).policy.probs
        return found

    @classmethod
    def _check_alike(cls, algorithms: Any) -> None:
        """Refuse what is not a list of this algorithm's configurations."""
        if not isinstance(algorithms, Sequence) or not all(isinstance(a, cls) for a in algorithms):
            raise InputError(
                f"algorithms is {checks.shown(algorithms)}, expected configurations of "
                f"{cls.__name__}: write [{cls.__name__}(…), {cls.__name__}(…)]"
            )

    def told(self, truth: Truth) -> Self:
        """A copy that uses facts only a simulation knows: the paper's benchmark tells HCPI the
        truth, and `certified` needs limits of returns."""
        return self

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


def floats(values: Iterable[float]) -> np.ndarray:
    """A hyper-parameter of several configurations [M]."""
    return np.array([float(value) for value in values])
