"""What every episode of a log adds to every estimate."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from spibb import checks
from spibb.episodes.limits import slack
from spibb.errors import InputError
from spibb.evaluate import returns
from spibb.log import Log
from spibb.mdp import MDP
from spibb.ope.estimate import Estimate, effective_sample_size, reach_of, warning_of
from spibb.ope.sweep import LIMITED, TERMS, Candidates, Sweep, limit_of
from spibb.words import apart

ESTIMATORS = tuple(TERMS)
WEIGHTED = ("wis", "wpdis", "wdr")
MODELLED = ("dr", "wdr")
TRUNCATED = ("recorded", "model")
DECLARE = "declare the lowest possible return (differences also need the highest)"


@dataclass(frozen=True, eq=False)
class Contributions:
    """What every episode adds to every estimate of every candidate.

    `weights` [E, K] are importance weights of whole episodes; `terms` holds an array [E, K] per
    estimator, and `limited` the same with missing mass at the limit, for those that have one.
    `lowest_return` is the limit that was declared, if any, and `no_limits` says by estimator why
    its contributions can be below what follows from it (`limit_of`); the others cannot. `reach`
    is the least and the most that the log's rewards can add up to.
    """

    weights: np.ndarray
    terms: Mapping[str, np.ndarray]
    limited: Mapping[str, np.ndarray]
    lowest_return: float | None
    no_limits: Mapping[str, str]
    reach: tuple[float, float]

    def estimate(self, name: str, lane: int = 0) -> Estimate:
        """The estimate of one candidate."""
        terms = self.terms[checks.choice("estimator", name, tuple(self.terms))]
        weights = self.weights[:, lane].copy()
        size, value = effective_sample_size(weights), float(terms[:, lane].mean())
        low = None if name in self.no_limits else self.lowest_return
        return Estimate(
            name=name,
            value=value,
            contributions=terms[:, lane].copy(),
            limited=self.limited.get(name, terms)[:, lane].copy(),
            weights=weights,
            effective_sample_size=size,
            warning=warning_of(weights, size),
            limit=-math.inf if low is None else limit_of(name, low),
            no_limit=self.no_limits.get(name, ""),
            remedy=self._remedy(name),
            reach=self.reach if size or name in MODELLED else (-math.inf, math.inf),
        )

    def _remedy(self, name: str) -> str:
        """What helps where an estimator has no exact bounds."""
        if name not in LIMITED:
            return "use is or pdis"
        return DECLARE if self.lowest_return is None else "declare a lower one"


def contributions(
    log: Log,
    candidates: Candidates,
    propensities: np.ndarray,
    discount: float,
    *,
    names: Sequence[str] = ESTIMATORS,
    model: MDP | None = None,
    truncated: str = "recorded",
    lowest_return: float | None = None,
) -> Contributions:
    """All wanted estimators of all candidates: one pass over the log, two more for weighted ones.

    `propensities` [N] are the behaviour's probabilities of the logged actions. Candidates, model
    and log share their labels. A weighted estimate is NaN where no episode has any weight.
    """
    for name in names:
        checks.choice("estimator", name, ESTIMATORS)
    if candidates.needs_model:
        _check_model(model, discount, truncated, names)
    _check_shapes(log, candidates, propensities, model)
    checks.discount(discount)
    checks.limit("lowest_return", lowest_return)
    sweep = Sweep(log, candidates, propensities, discount, model, truncated)
    return Contributions(
        sweep.plain.weights, {name: TERMS[name](sweep) for name in names},
        {} if lowest_return is None else _limited(sweep, names, lowest_return),
        lowest_return,
        no_limits(log, discount, lowest_return) | _no_limits_beyond(sweep, lowest_return),
        reach_of(
            log.reward, float(log.lengths.max()), discount,
            completed=truncated == "model",
        ),
    )  # fmt: skip


def _limited(sweep: Sweep, names: Sequence[str], lowest: float) -> dict[str, np.ndarray]:
    """The contributions with missing mass at the limit, of those estimators that have one."""
    return {name: LIMITED[name](sweep, limit_of(name, lowest)) for name in names if name in LIMITED}


def _ends(values: np.ndarray) -> tuple[float, float]:
    return float(values.min()), float(values.max())


def no_limits(log: Log, discount: float, lowest: float | None) -> dict[str, str]:
    """Why an estimator's contributions can be below a declared limit L on returns, by estimator.

    is cannot: L + w(G − L) with G ≥ L. Nor can pdis be below min(L, 0) if no reward is below 1 − γ
    times that. dr can, whatever is declared: an error of its model is multiplied by weights that
    nothing limits. Where nothing is declared nothing is limited: a log proves no limit. Where a
    return is below L, the log refutes what was declared, and no bound takes it for true.
    """
    found = dict.fromkeys(
        WEIGHTED, "weighted estimators are biased, and not means of independent terms"
    )
    found["dr"] = "the model's error, times a weight, can be below any limit"
    if lowest is None:
        return found | dict.fromkeys(LIMITED, "lowest_return was not declared")
    low, high = _ends(returns(log, discount))
    if low < lowest - slack(lowest, high):
        reason = "the log has a return of {}, below lowest_return {}".format(*apart(low, lowest))
        return found | dict.fromkeys(LIMITED, reason)
    least, (reward, most) = (1 - discount) * limit_of("pdis", lowest), _ends(log.reward)
    if reward < least - slack(least, most):
        found["pdis"] = (
            f"the log has a reward of {reward:g}, below (1 − γ) times lowest_return {lowest:g}"
        )
    return found


def _no_limits_beyond(sweep: Sweep, lowest: float | None) -> dict[str, str]:
    """The same for what a model adds beyond the cut of an episode."""
    if lowest is None or sweep.truncated == "recorded":
        return {}
    low = float(sweep.tables.v.min())
    limits = {name: limit_of(name, lowest) for name in LIMITED}
    found = {
        name: "the model completes cut episodes with {}, below {}".format(*apart(low, limit))
        for name, limit in limits.items() if low < limit
    }  # fmt: skip
    least, most = _ends(sweep.completed)  # each part may be within the limit, and their sum not
    if least < limits["is"] - slack(limits["is"], most):
        found["is"] = (
            "the log has a return of {}, completed by the model, below lowest_return {}"
        ).format(*apart(least, limits["is"]))
    return found


def _check_model(model: MDP | None, discount: float, truncated: str, names: Iterable[str]) -> None:
    checks.choice("truncated", truncated, TRUNCATED)
    if model is None:
        needy = [f"estimator {name!r}" for name in names if name in MODELLED]
        needy += ["truncated='model'"] if truncated == "model" else []
        if needy:
            raise InputError(f"{needy[0]} needs a model and none was given: give an MDP")
    elif model.discount != discount:
        raise InputError(
            f"the model's discount is {model.discount:g} and the estimate's is {discount:g}: "
            "use one discount"
        )


def _check_shapes(
    log: Log, candidates: Candidates, propensities: np.ndarray, model: MDP | None
) -> None:
    """What the kernels index must be there: they read without a check."""
    shape = len(log.states), len(log.actions)
    if candidates.probs.shape[:2] != shape or (model is not None and model.shape != shape):
        raise InputError(
            f"the policies are {candidates.probs.shape[:2]} and the log's labels {shape}: give "
            "policies, model and log the same labels"
        )
    checks.same_length(state=log.state, propensities=propensities)
