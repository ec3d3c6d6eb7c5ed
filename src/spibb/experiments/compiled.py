"""The columns of the paper's grids on one data set, in one compiled call.

The three main studies train 200 million policies. Here a data set never becomes a log: episodes
stay codes of outcomes, and no Python runs between one algorithm and the next. What a column means
is defined by the classes in `spibb.algorithms`; this module must give the same policies, and tests
compare.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from scipy.special import stdtrit

from spibb.algorithms.base import Algorithm
from spibb.algorithms.basic_rl import BasicRL
from spibb.algorithms.hcpi import ALPHAS, HCPI, replay_uniforms
from spibb.algorithms.ramdp import RaMDP
from spibb.algorithms.robust_mdp import RobustMDP
from spibb.algorithms.spibb import PiBSpibb, PiLeqBSpibb, ThresholdSpibb
from spibb.certificate import Setting, error_radius
from spibb.estimate import unseen_value
from spibb.kernels import study
from spibb.mdp import MDP
from spibb.policy import Policy
from spibb.simulate import Sampler

ESTIMATORS = ("is", "pdis", "dr")
"""In the order of the kernel's codes."""


def supports(algorithm: Algorithm) -> bool:
    """Whether a configuration is one that the compiled call knows."""
    known = KNOWN.get(type(algorithm))
    return known is not None and known(algorithm)


def _plain(algorithm: Any) -> bool:
    return bool(algorithm.method == "auto" and getattr(algorithm, "r_max", None) is None)


def _plain_robust(algorithm: RobustMDP) -> bool:
    return _plain(algorithm) and not algorithm.known_rewards


def _plain_spibb(algorithm: ThresholdSpibb) -> bool:
    threshold = algorithm.n_wedge
    return (
        _plain(algorithm)
        and algorithm.unseen == "zero"
        and not isinstance(threshold, str)
        and threshold > 0
    )


def _plain_hcpi(algorithm: HCPI) -> bool:
    default = HCPI()
    return (
        algorithm.estimator in ESTIMATORS
        and algorithm.baseline_value is not None
        and (algorithm.bound, algorithm.trainer, algorithm.truncated)
        == ("student-t", None, "recorded")
        and _training(algorithm) == _training(default)
    )


def _training(algorithm: HCPI) -> tuple[float, ...]:
    return algorithm.train_share, algorithm.updates, algorithm.step_size, algorithm.seed


KNOWN: dict[type, Callable[[Any], bool]] = {
    BasicRL: _plain,
    RaMDP: _plain,
    RobustMDP: _plain_robust,
    HCPI: _plain_hcpi,
    PiBSpibb: _plain_spibb,
    PiLeqBSpibb: _plain_spibb,
}
"""Which algorithms the compiled call knows, in its order, and under which condition."""


@dataclass(frozen=True, eq=False)
class Plan:
    """Supported algorithms, for data sets that `sampler` draws from a true MDP."""

    algorithms: Sequence[Algorithm]
    sampler: Sampler
    baseline: Policy
    v_max: float

    def performances(self, codes: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """True performance of what each algorithm makes of drawn episodes [M]."""
        found = np.empty(len(self.algorithms))
        found[self._order] = study.performances(
            (codes, lengths), self.sampler.outcomes, self._policies, self._truth, self.v_max,
            self._columns(len(lengths)),
        )  # fmt: skip
        return found

    @cached_property
    def _order(self) -> np.ndarray:
        """Which algorithm each column of the compiled call is: by kind, then by threshold."""
        kinds = list(KNOWN)
        keys = [(kinds.index(type(a)), getattr(a, "n_wedge", 0.0)) for a in self.algorithms]
        return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.int64)

    @cached_property
    def _policies(self) -> tuple[np.ndarray, np.ndarray]:
        mdp = self.sampler.mdp
        baseline = self.baseline.aligned(mdp.states, mdp.actions, "baseline")
        return baseline.probs, self.sampler.policy.probs

    @cached_property
    def _truth(self) -> tuple[Any, ...]:
        mdp: MDP = self.sampler.mdp
        return mdp.rows, mdp.rewards, mdp.discount, mdp.initial

    def _of(self, kind: type, value: Callable[[Any], float]) -> np.ndarray:
        """A hyper-parameter of all algorithms of a kind, in the order of the call."""
        chosen = [self.algorithms[m] for m in self._order]
        return np.array([value(a) for a in chosen if type(a) is kind], dtype=np.float64)

    @cached_property
    def _fixed(self) -> tuple[Any, ...]:
        """The hyper-parameters that are the same for data sets of all sizes."""
        mdp, v_max = self.sampler.mdp, self.v_max

        def radius(algorithm: RobustMDP | RaMDP) -> float:
            setting = Setting(*mdp.shape, mdp.discount, v_max, algorithm.delta)
            return error_radius(1, setting)

        return (
            self._of(BasicRL, lambda a: unseen_value(a.unseen, v_max)),
            (
                self._of(RaMDP, lambda a: a.kappa),
                self._of(RaMDP, lambda a: a.released),
                self._of(RaMDP, lambda a: radius(a) if a.safety_test else 0.0),
            ),
            (self._of(RobustMDP, radius), self._of(RobustMDP, lambda a: a.safety_test)),
            self._of(PiBSpibb, lambda a: a.n_wedge),
            self._of(PiLeqBSpibb, lambda a: a.n_wedge),
            self._of(HCPI, lambda a: ESTIMATORS.index(a.estimator)),
            self._of(HCPI, lambda a: a.delta),
            self._of(HCPI, lambda a: a.baseline_value),
            self._of(HCPI, lambda a: np.nan if a.lowest_return is None else a.lowest_return),
        )

    def _columns(self, size: int) -> tuple[Any, ...]:
        *others, pi_b, pi_leq_b, estimators, deltas, rivals, lowest = self._fixed
        share, updates, step_size, seed = _training(HCPI())
        n_train = max(1, int(share * size))
        training = replay_uniforms(seed, updates), step_size, n_train
        quantiles = np.array([_quantile(size - n_train - 1, delta) for delta in deltas.tolist()])
        tests = ALPHAS, training, estimators, quantiles, rivals, lowest
        return *others, tests, pi_b, pi_leq_b


@lru_cache(maxsize=1024)
def _quantile(freedom: int, delta: float) -> float:
    """Of Student's t at 1 − δ; nothing is asked at δ = 1, and a bound needs a degree of freedom."""
    return float(stdtrit(freedom, 1 - delta)) if freedom > 0 and delta < 1 else -np.inf
