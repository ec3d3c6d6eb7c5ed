"""The verdict: certified, supported, or not supported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

from spibb import checks
from spibb.algorithms.improvement import Improvement
from spibb.certificate import Certificate
from spibb.change_certificate import ChangeCertificate
from spibb.checks import takes
from spibb.grade import Grade, headline
from spibb.log import Log
from spibb.showing import Shown
from spibb.verdict import sentences
from spibb.verdict.criteria import criteria, surely_worse
from spibb.verdict.criterion import DECISIVE, Condition, Criterion, lacking
from spibb.verdict.evidence import Evidence, gather_for
from spibb.verdict.remedies import NO_REASON, WhyUnchanged, more_episodes

UNSOLVED = (
    "the solver stopped before the values in the model had settled, so they may be wrong; a "
    "smaller discount helps"
)


@dataclass(frozen=True)
class Verdict(Shown):
    """The verdict on a new policy: its grade, what it assumes, and what would raise it.

    Certified: P(ρ(π, M) ≥ ρ(π_b, M)) ≥ 1 − δ, given the `assumptions`. Supported: so says the
    posterior of the model, and all `criteria` hold. Not supported: keep the current policy.

    Attributes:
        grade: certified, supported, or not supported.
        sentence: the verdict in one sentence.
        assumptions: they complete "It assumes that …".
        remedy: what would raise the grade.
        delta: δ, the failure probability.
        lower_bound: what the new policy gains per episode at level 1 − δ, given the model
            (supported); 0 for a certified policy, which is no worse at that level whatever the
            model; None where the log supports nothing.
        criteria: the conditions of "supported"; the first that failed is the reason why a policy
            is not supported.
        doubts: reasons why its numbers may not hold; they stand beside the grade and do not change
            it.

    >>> spibb.PiBSpibb(n_wedge=1).improve(problem).verdict.grade
    <Grade.NOT_SUPPORTED: 'not supported'>
    """

    grade: Grade
    sentence: str
    assumptions: tuple[str, ...]
    remedy: str
    delta: float
    lower_bound: float | None
    criteria: tuple[Criterion, ...]
    doubts: tuple[str, ...] = ()

    def _facts(self) -> Mapping[str, Any]:
        """The grade and its numbers; what failed, if anything did."""
        failed = ", ".join(criterion.name for criterion in lacking(self.criteria)) or None
        return {
            "grade": self.grade.value, "sentence": self.sentence, "delta": self.delta,
            "lower_bound": self.lower_bound, "failed": failed, "doubts": len(self.doubts),
        }  # fmt: skip

    @property
    def headline(self) -> str:
        """The grade as a heading."""
        return headline(self.grade, self.doubts)

    @property
    def advice(self) -> str:
        """What would raise the grade, as a line of its own."""
        if self.grade is Grade.CERTIFIED:
            return self.remedy
        return f"What would raise the grade: {self.remedy}"

    @property
    def favourable(self) -> bool:
        """Whether the log speaks for the new policy."""
        return self.grade is not Grade.NOT_SUPPORTED

    def leaves(self, certificate: ChangeCertificate) -> ChangeCertificate:
        """The certificate, refused for the reason of this verdict if it is not a certified one."""
        if certificate.refusal or self.grade is Grade.CERTIFIED:
            return certificate
        reason = self.sentence[:1].lower() + self.sentence[1:].removesuffix(".")
        refusal = f"the changes passed their tests, but {reason}"
        return replace(certificate, bounds=(), refusal=refusal)

    def __str__(self) -> str:
        return f"{self.headline}. {self.sentence}"


@takes(result=Improvement, held_out=(type(None), Log))
def judge(
    result: Improvement, *, delta: float | None = None, seed: int = 0, held_out: Log | None = None
) -> Verdict:
    """Judge how sure the log is of an improvement: `Improvement.verdict` with other settings.

    Parameters:
        result: an algorithm's answer to a problem.
        delta: failure rate; None takes that of `auto` and `certified`, and 0.05 for others.
        seed: seed of the models drawn given the log.
        held_out: episodes that trained nothing, in the problem's labels (`--holdout`).

    Returns:
        The grade, and the criteria that it rests on.

    >>> result = spibb.PiBSpibb(n_wedge=1).improve(problem)
    >>> spibb.judge(result, delta=0.1).grade
    <Grade.NOT_SUPPORTED: 'not supported'>
    """
    evidence = gather_for(result, delta=delta, seed=checks.seed(seed), held_out=held_out)
    return judge_by(evidence, result)[0]


def judge_by(evidence: Evidence, result: Improvement) -> tuple[Verdict, Certificate]:
    """The verdict on an improvement, and the certificate that it leaves."""
    proof = _proof(result, evidence.delta)
    verdict = decide(evidence, proof, WhyUnchanged.of(result))
    if not result.converged and not isinstance(proof, ChangeCertificate):  # which needs no values
        verdict = replace(verdict, doubts=(*verdict.doubts, UNSOLVED))
    return verdict, verdict.leaves(proof) if isinstance(proof, ChangeCertificate) else proof


def _proof(result: Improvement, delta: float) -> Certificate:
    """What is proven before the verdict, which may withdraw a certificate, is asked."""
    tested = result.tested(delta)
    return result.certificate(delta) if tested is None else tested


def decide(
    evidence: Evidence, certificate: Certificate | None = None, unchanged: WhyUnchanged = NO_REASON
) -> Verdict:
    """The grade that the evidence gives; `unchanged` says why nothing changed, if that is so."""
    found = criteria(evidence, unchanged)
    if failed := _failed(evidence, certificate, found):
        return _not_supported(evidence, failed, found, certificate)
    if _proves(certificate):
        return _certified(evidence, certificate, found)
    return _supported(evidence, found)


def is_favourable(result: Improvement) -> bool:
    """`Verdict.favourable` of `judge`, without its words, and without trying `certified`."""
    evidence = gather_for(result)
    proof = _proof(result, evidence.delta)
    return not _failed(evidence, proof, criteria(evidence, WhyUnchanged.of(result)))


def _proves(certificate: Certificate | None) -> TypeGuard[ChangeCertificate]:
    return isinstance(certificate, ChangeCertificate) and not certificate.refusal


def _failed(
    evidence: Evidence, certificate: Certificate | None, found: Sequence[Criterion]
) -> list[Criterion]:
    """The criteria that speak against the policy: of a certified one, few matter."""
    failed = lacking(found)
    if not _proves(certificate):
        return failed
    against = DECISIVE
    if surely_worse(evidence.estimates):
        against |= {Condition.WHOLE_EPISODES}
    return [criterion for criterion in failed if criterion.name in against]


def _certified(
    evidence: Evidence, certificate: ChangeCertificate, found: tuple[Criterion, ...]
) -> Verdict:
    return Verdict(
        Grade.CERTIFIED,
        sentences.certified(certificate),
        (*certificate.assumptions, *sentences.single_steps(evidence)),
        sentences.beyond_certified(certificate),
        certificate.delta,
        0.0,
        found,
    )


def _supported(evidence: Evidence, found: tuple[Criterion, ...]) -> Verdict:
    remembered = None if evidence.memory is None else evidence.memory.lower
    lower = evidence.sure if remembered is None else min(evidence.sure, remembered)
    return Verdict(
        Grade.SUPPORTED,
        sentences.supported(evidence, found, lower),
        sentences.assumptions(evidence, remembering=remembered is not None),
        sentences.until_certified(evidence),
        evidence.delta,
        lower,
        found,
    )


def _not_supported(
    evidence: Evidence, failed: Sequence[Criterion], found: tuple[Criterion, ...],
    certificate: Certificate | None,
) -> Verdict:  # fmt: skip
    """The first condition that failed is the reason; the episodes must be enough for all."""
    first, most = failed[0], max((c.more for c in failed if c.more is not None), default=None)
    remedy = first.remedy
    if first.more is not None:
        remedy = more_episodes(most, evidence.problem.n_episodes)
    assumed = sentences.assumptions(evidence)
    if isinstance(certificate, ChangeCertificate):  # which uses no model
        assumed = (*certificate.assumptions, *sentences.single_steps(evidence))
    return Verdict(
        Grade.NOT_SUPPORTED,
        first.why,
        assumed,
        remedy,
        evidence.delta,
        None,
        found,
        sentences.shared_constant(evidence.problem.log),
    )
