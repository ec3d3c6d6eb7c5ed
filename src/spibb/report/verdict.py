"""The verdict of an improvement in words that need no statistics."""

from __future__ import annotations

from dataclasses import dataclass

from spibb.assurance.posterior import Posterior
from spibb.report.assessment import Assessment
from spibb.report.changes import changed
from spibb.report.words import number, percent


@dataclass(frozen=True)
class Verdict:
    """What the log speaks for (`advice`), why in one sentence, and what it touches."""

    advice: str
    sentence: str
    scope: str
    supports: bool = False


def verdict(assessment: Assessment) -> Verdict:
    """Whether the log supports the change: by the changes, the posterior probability and δ."""
    posterior, sure = assessment.posterior, 1 - assessment.certificate.delta
    moved = changed(assessment.result)
    if not moved.any():
        return Verdict("Keep the current policy", _kept(assessment), "No state changes.")
    scope = _scope(assessment, int(moved.sum()))
    doubt = contradiction(assessment)
    if doubt:
        return Verdict("Two estimates of the new policy disagree", doubt, scope)
    if posterior.probability >= sure and posterior.gain > 0:
        sentence = (
            f"The new policy should earn {_more(assessment)}, and the log gives a probability of "
            f"{believed(posterior)} that it is no worse than the current one."
        )
        return Verdict("The log supports the new policy", sentence, scope, supports=True)
    sentence = (
        f"The log gives a probability of only {believed(posterior)} that the new policy "
        f"is no worse than the current one, and {percent(sure)} was asked for."
    )
    remedy = " More data, or a larger N∧, makes it safer; n_wedge = auto looks for one."
    return Verdict("The log does not support the new policy yet", sentence, scope + remedy)


def contradiction(assessment: Assessment) -> str | None:
    """What to say if the log's own episodes, weighted, are far below what its model promises.

    The weighted per-decision estimate uses no model and, on the log that trained the policy,
    flatters it: where even its 95 % interval ends below the posterior's, the model is wrong.
    """
    if assessment.estimates is None or assessment.posterior.gain <= 0:
        return None
    estimate = assessment.estimates["wpdis"].estimate
    if estimate.warning is not None:
        return None
    error = float(estimate.contributions.std(ddof=1) / len(estimate.contributions) ** 0.5)
    lowest = assessment.result.baseline_value + assessment.posterior.interval[0]
    if estimate.value + 1.96 * error >= lowest:
        return None
    return (
        f"The model of the log promises at least {number(lowest)} per episode, but the log's own "
        f"episodes, weighted, say {number(estimate.value)} ± {number(1.96 * error)}: do not rely "
        "on the gain. Coarser states or a larger N∧ give the model more to go by."
    )


def believed(posterior: Posterior) -> str:
    """The probability of no loss; all of finitely many draws is not certainty."""
    if posterior.probability < 1:
        return percent(posterior.probability)
    return f"more than {percent(1 - 1 / len(posterior.gains))}"


def _kept(assessment: Assessment) -> str:
    reason = getattr(assessment.result, "reason", None)
    because = f": {reason}" if reason else ""
    return f"The log holds no evidence that is strong enough for any change{because}."


def _more(assessment: Assessment) -> str:
    """By how much, in absolute and, for positive values, in relative terms."""
    gain, old = assessment.posterior.gain, assessment.result.baseline_value
    text = f"{number(old + gain)} instead of {number(old)} per episode"
    return f"{text} ({percent(gain / old)} more)" if old > 0 else text


def _scope(assessment: Assessment, moved: int) -> str:
    """How many states change, and how much of the log's traffic they carry."""
    result = assessment.result
    visits = result.problem.counts.pairs.sum(axis=1)
    share = float(visits[changed(result)].sum() / max(visits.sum(), 1))
    return (
        f"It changes what is done in {moved:,} of {len(visits):,} states, which hold "
        f"{percent(share)} of the log's decisions."
    )
