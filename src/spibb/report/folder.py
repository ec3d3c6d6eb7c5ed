"""The output folder of an improvement: policy tables and a summary, all or nothing."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import spibb
from spibb.algorithms.candidate import Candidate
from spibb.algorithms.improvement import Improvement
from spibb.certificate import Certificate
from spibb.change_certificate import ChangeCertificate
from spibb.errors import InputError
from spibb.files import Held, disk_errors, hold, occupied, write_text
from spibb.ingest.policy_files import describe_policy
from spibb.ope import BoundedEstimate, OffPolicyReport
from spibb.report.assessment import Assessment
from spibb.report.changes import changed, policy_table, unchanged
from spibb.report.coverage import Coverage
from spibb.report.page import render
from spibb.tables import spreadsheet_safe, write_table
from spibb.verdict import Evidence, Verdict


@contextlib.contextmanager
def claim(folder: Path, force: bool) -> Iterator[Held]:
    """Have a folder to oneself until the result is there, or fail before any work is done.

    It must be empty, or `force` given. Another process that writes there is named.
    """
    _check_writable(folder)
    with hold(folder) as held:
        if occupied(folder) and not force:
            raise InputError(
                f"output folder {str(folder)!r} is not empty: name another, or overwrite with "
                "--force (force=True in Python)"
            )
        yield held


def _check_writable(folder: Path) -> None:
    with disk_errors(folder):
        nearest = next(p for p in (folder, *folder.absolute().parents) if p.exists())
    if not nearest.is_dir():
        raise InputError(f"output {str(folder)!r}: {str(nearest)!r} is a file, name a folder")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise InputError(
            f"output folder {str(folder)!r} cannot be written: check the permissions of "
            f"{str(nearest)!r}, or name another"
        )


def write_result(assessment: Assessment, folder: Path, *, safe: bool = False) -> None:
    """Write the policy with policy.json, summary.json, report.html and the log's returns.

    `Held.publish` calls this on a folder aside, so that all appear at once. With `safe`, no label
    of policy.csv can be taken for a formula by a spreadsheet.
    """
    problem, table = assessment.result.problem, policy_table(assessment.result)
    write_table(spreadsheet_safe(table) if safe else table, folder / "policy.csv")
    write_table(table, folder / "policy.parquet")
    write_summary(summary(assessment), folder)
    write_text(folder / "report.html", render(assessment))
    known = {
        "origin": dataclasses.asdict(assessment.origin),
        "discount": problem.discount,
        "verdict": verdict_in_short(assessment.verdict, assessment.evidence.share),
    }
    if assessment.reading is not None:
        known["reading"] = assessment.reading.content
    describe_policy(folder, problem.states, problem.actions, problem.counts.bins, known)
    if assessment.returns is not None:
        assessment.returns.write(folder)


def write_summary(content: dict[str, Any], folder: Path) -> None:
    """Write summary.json: numbers as JSON has them, and anything else by its repr."""
    text = json.dumps(_plain(content), indent=2, ensure_ascii=False, allow_nan=False, default=repr)
    write_text(folder / "summary.json", text + "\n")


def _plain(value: Any) -> Any:
    """Plain values at any depth. JSON has no infinity and no NaN: they become text and null."""
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value


def options_of(configuration: Any) -> dict[str, Any]:
    """The options of an algorithm by name."""
    names = [field.name for field in dataclasses.fields(configuration)]
    return {name: getattr(configuration, name) for name in names}


def summary(assessment: Assessment) -> dict[str, Any]:
    """The result, for summary.json."""
    result, problem = assessment.result, assessment.result.problem
    coverage = Coverage.of(result)
    return {
        "spibb_version": spibb.__version__,
        "verdict": verdict_summary(assessment.verdict),
        "values": _values(assessment.evidence),
        "algorithm": result.algorithm.name,
        "options": options_of(result.algorithm),
        "baseline": str(problem.baseline_source),
        "discount": problem.discount,
        "v_max": problem.v_max,
        "states": len(problem.states),
        "actions": len(problem.actions),
        "transitions": coverage.transitions,
        "episodes": coverage.episodes,
        "return_limits": _limits(result),
        "value_in_model": result.value,
        "baseline_value_in_model": result.baseline_value,
        "states_changed": changed(result).sum(),
        "unchanged": None if changed(result).any() else unchanged(problem),
        "bootstrapped_pairs_share": coverage.pairs_copied,
        "bootstrapped_baseline_mass": coverage.decisions_copied,
        "reason": result.reason,
        "converged": result.converged,
        "iterations": result.iterations,
        "certificate": _certificate(assessment.certificate),
        "sweep": [_candidate(candidate) for candidate in assessment.sweep],
        "off_policy": off_policy_summary(assessment.estimates),
        "held_out": off_policy_summary(assessment.held_out),
        "held_out_refusal": assessment.evidence.no_held_out,
        "sceptic": None if assessment.sceptic is None else assessment.sceptic.summary,
        "findings": [dataclasses.asdict(finding) for finding in assessment.findings],
        "origin": dataclasses.asdict(assessment.origin),
    }


def verdict_summary(verdict: Verdict) -> dict[str, Any]:
    """The grade and its words, which are those of the terminal and of the report."""
    named = ("what", "found", "wanted", "passed")
    return {
        "grade": str(verdict.grade),
        "headline": verdict.headline,
        "sentence": verdict.sentence,
        "doubts": verdict.doubts,
        "assumptions": verdict.assumptions,
        "remedy": verdict.remedy,
        "delta": verdict.delta,
        "lower_bound": verdict.lower_bound,
        "criteria": {c.name: {name: getattr(c, name) for name in named} for c in verdict.criteria},
    }


def verdict_in_short(verdict: Verdict, share: float | None = None) -> dict[str, Any]:
    """What a policy knows of its verdict; its level is a `share` of δ where the log chose it."""
    return {
        "grade": str(verdict.grade), "headline": verdict.headline, "sentence": verdict.sentence,
        "level": verdict.delta if share is None else share,
    }  # fmt: skip


def _values(evidence: Evidence) -> dict[str, Any]:
    """What the log earned, and both policies and the gain in the models drawn given the log."""
    earned = evidence.earned
    return {
        "earned": None if earned is None else dataclasses.asdict(earned),
        "current": dataclasses.asdict(evidence.current),
        "new": dataclasses.asdict(evidence.new),
        "gain": dataclasses.asdict(evidence.gain),
        "level": evidence.posterior.level,
        "direct": [dataclasses.asdict(one) for one in evidence.direct],
    }


def _candidate(candidate: Candidate) -> dict[str, Any]:
    """A row of the sweep; its posterior probability is left out: it is not a frequency."""
    shown = dataclasses.asdict(candidate)
    del shown["probability"], shown["level"]
    return shown


def _limits(result: Improvement) -> tuple[float, float] | None:
    """The declared limits of every return of an episode; None where none were declared."""
    problem = result.problem
    if result.return_limits is not None:
        return result.return_limits
    return (-problem.v_max, problem.v_max) if problem.v_max_given else None


def off_policy_summary(report: OffPolicyReport | None) -> dict[str, Any] | None:
    """Estimates and lower bounds by name; refused bounds are null."""
    if report is None:
        return None
    return {
        "episodes": report.n_episodes,
        "effective_sample_size": report.effective_sample_size,
        "delta": report.delta,
        "estimates": _estimates(report.rows),
        "earned": report.earned,
        "differences": _estimates(report.differences),
        "warning": report.warning,
    }


def _estimates(rows: Sequence[BoundedEstimate]) -> dict[str, Any]:
    return {
        row.estimate.name: {
            "value": row.estimate.value,
            "lower_bounds": {bound.name: bound.value for bound in row.bounds},
        }
        for row in rows
    }


def _certificate(certificate: Certificate) -> dict[str, Any]:
    return {
        "delta": certificate.delta,
        "refusal": certificate.refusal,
        "bounds": [
            dataclasses.asdict(bound) | {"credible": bound.credible} for bound in certificate.bounds
        ],
        "return_range": certificate.return_range,
        "assumptions": certificate.assumptions,
    } | _tests(certificate)


def _tests(certificate: Certificate) -> dict[str, Any]:
    """The tested changes, if the certificate is one of them."""
    if not isinstance(certificate, ChangeCertificate):
        return {}
    episodes = {"choosing": certificate.choosing, "judging": certificate.judging}
    tests = [dataclasses.asdict(test) | {"lacks": test.lacks} for test in certificate.tests]
    return {"episodes": episodes, "tests": tests}
