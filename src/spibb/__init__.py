"""Improve a decision policy from its own log, without making it worse.

    log      = spibb.read_log("log.parquet")
    baseline = spibb.read_policy("baseline.csv", log)
    problem  = spibb.Problem.from_log(log, baseline, discount=0.95)
    result   = spibb.PiBSpibb(n_wedge=10).improve(problem)

Names are imported when they are first used, so that ``import spibb`` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "InputError": "spibb.errors",
    "Vocabulary": "spibb.labels",
    "Policy": "spibb.policy",
    "Decisions": "spibb.decisions",
    "LoadedPolicy": "spibb.ingest.loaded",
    "Log": "spibb.log",
    "Counts": "spibb.counts",
    "Source": "spibb.sql.sources",
    "read_log": "spibb.ingest",
    "count_log": "spibb.ingest",
    "read_vectors": "spibb.ingest.vectors",
    "read_policy": "spibb.ingest.policy_files",
    "load_policy": "spibb.ingest.policy_files",
    "export_policy": "spibb.serving.export",
    "LivePolicy": "spibb.serving.live",
    "Bins": "spibb.binning",
    "open_log": "spibb.ingest",
    "inspect_log": "spibb.inspection",
    "from_minari": "spibb.ingest.converters",
    "from_d3rlpy": "spibb.ingest.converters",
    "from_bandit": "spibb.ingest.converters",
    "collect": "spibb.ingest.converters",
    "MDP": "spibb.mdp",
    "estimate_mdp": "spibb.estimate",
    "Sampler": "spibb.simulate",
    "estimate_baseline": "spibb.behaviour",
    "exact_value": "spibb.evaluate",
    "posterior_improvement": "spibb.assurance.posterior",
    "Problem": "spibb.algorithms.problem",
    "Improvement": "spibb.algorithms.improvement",
    "Algorithm": "spibb.algorithms.base",
    "off_policy_estimates": "spibb.ope",
    "monitor": "spibb.monitoring.watch",
    "compare": "spibb.comparison",
    "PiBSpibb": "spibb.algorithms.spibb",
    "PiLeqBSpibb": "spibb.algorithms.spibb",
    "ModelFreeSpibb": "spibb.algorithms.spibb",
    "BasicRL": "spibb.algorithms.basic_rl",
    "Auto": "spibb.algorithms.auto",
    "Certified": "spibb.algorithms.certified",
    "HCPI": "spibb.algorithms.hcpi",
    "RobustMDP": "spibb.algorithms.robust_mdp",
    "RaMDP": "spibb.algorithms.ramdp",
    "ARBRM": "spibb.algorithms.arbrm",
    "improve": "spibb.algorithms",
    "run": "spibb.running",
    "Run": "spibb.running",
    "judge": "spibb.verdict",
    "Verdict": "spibb.verdict",
}
_BEHIND = {"save_result": "spibb.running.saving", "save_report": "spibb.running.saving"}
"""What methods of public classes ask for, because they cannot import it: not public itself."""

__all__ = ["__version__", *_HOME]


_MODULES = (
    "algorithms", "assurance", "certificate", "change_certificate", "checks", "comparison", "deep",
    "envs", "forecast", "grade", "ingest", "kernels", "monitoring", "ope", "pseudocounts", "report",
    "running", "simulate", "solve", "splits", "verdict",
)  # fmt: skip
"""Modules that docs/api.md names."""


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"spibb.{name}")
    home = _HOME.get(name) or _BEHIND.get(name)
    if home is None:
        raise AttributeError(f"module 'spibb' has no attribute {name!r}")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(_HOME))


if TYPE_CHECKING:
    from spibb.algorithms import improve as improve
    from spibb.algorithms.arbrm import ARBRM as ARBRM
    from spibb.algorithms.auto import Auto as Auto
    from spibb.algorithms.base import Algorithm as Algorithm
    from spibb.algorithms.basic_rl import BasicRL as BasicRL
    from spibb.algorithms.certified import Certified as Certified
    from spibb.algorithms.hcpi import HCPI as HCPI
    from spibb.algorithms.improvement import Improvement as Improvement
    from spibb.algorithms.problem import Problem as Problem
    from spibb.algorithms.ramdp import RaMDP as RaMDP
    from spibb.algorithms.robust_mdp import RobustMDP as RobustMDP
    from spibb.algorithms.spibb import ModelFreeSpibb as ModelFreeSpibb
    from spibb.algorithms.spibb import PiBSpibb as PiBSpibb
    from spibb.algorithms.spibb import PiLeqBSpibb as PiLeqBSpibb
    from spibb.assurance.posterior import posterior_improvement as posterior_improvement
    from spibb.behaviour import estimate_baseline as estimate_baseline
    from spibb.binning import Bins as Bins
    from spibb.comparison import compare as compare
    from spibb.counts import Counts as Counts
    from spibb.decisions import Decisions as Decisions
    from spibb.errors import InputError as InputError
    from spibb.estimate import estimate_mdp as estimate_mdp
    from spibb.evaluate import exact_value as exact_value
    from spibb.ingest import count_log as count_log
    from spibb.ingest import open_log as open_log
    from spibb.ingest import read_log as read_log
    from spibb.ingest.converters import collect as collect
    from spibb.ingest.converters import from_bandit as from_bandit
    from spibb.ingest.converters import from_d3rlpy as from_d3rlpy
    from spibb.ingest.converters import from_minari as from_minari
    from spibb.ingest.loaded import LoadedPolicy as LoadedPolicy
    from spibb.ingest.policy_files import load_policy as load_policy
    from spibb.ingest.policy_files import read_policy as read_policy
    from spibb.ingest.vectors import read_vectors as read_vectors
    from spibb.inspection import inspect_log as inspect_log
    from spibb.labels import Vocabulary as Vocabulary
    from spibb.log import Log as Log
    from spibb.mdp import MDP as MDP
    from spibb.monitoring.watch import monitor as monitor
    from spibb.ope import off_policy_estimates as off_policy_estimates
    from spibb.policy import Policy as Policy
    from spibb.running import Run as Run
    from spibb.running import run as run
    from spibb.running.saving import save_report as save_report
    from spibb.running.saving import save_result as save_result
    from spibb.serving.export import export_policy as export_policy
    from spibb.serving.live import LivePolicy as LivePolicy
    from spibb.simulate import Sampler as Sampler
    from spibb.sql.sources import Source as Source
    from spibb.verdict import Verdict as Verdict
    from spibb.verdict import judge as judge
