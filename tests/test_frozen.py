"""Arrays that cannot be written to stay so in copies and after pickling."""

from __future__ import annotations

import copy
import dataclasses
import importlib
import pickle
import pkgutil

import numpy as np
import pytest
from strategies import random_problem

import spibb
from spibb.assurance.posterior import posterior_improvement
from spibb.frozen import Frozen
from spibb.ope import off_policy_estimates

WITHIN_ONE_CALL = {
    "PlannedTest", "Chooser", "Sample", "Columns", "Snapshot", "_Aggregated", "Candidates",
    "ValuedCandidates", "Contributions", "Sweep", "CodedRows", "Visits", "Canonical", "Rests",
    "_Wealths", "Judge",
}  # fmt: skip
"""Working sets that no caller sees."""


def dataclasses_with_arrays():
    for module in pkgutil.walk_packages(spibb.__path__, "spibb."):
        if module.name.endswith("__main__"):
            continue
        try:
            content = vars(importlib.import_module(module.name))
        except ImportError:  # an optional part that is not installed
            continue
        for kind in content.values():
            if (
                isinstance(kind, type)
                and kind.__module__ == module.name
                and dataclasses.is_dataclass(kind)
                and kind.__dataclass_params__.frozen
                and any("ndarray" in str(field.type) for field in dataclasses.fields(kind))
            ):
                yield kind


def test_every_frozen_dataclass_that_holds_arrays_freezes_them():
    found = set(dataclasses_with_arrays())
    assert {spibb.Log, spibb.Counts, spibb.MDP, spibb.Policy} <= found
    loose = {kind.__name__ for kind in found if not issubclass(kind, Frozen)}
    assert loose == WITHIN_ONE_CALL


def arrays(value, seen):
    """All arrays below an object of ours."""
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from arrays(part, seen)
    elif isinstance(value, Frozen):
        for part in vars(value).values():
            yield from arrays(part, seen)


@pytest.fixture(scope="module")
def examples():
    problem = random_problem(3, 5, 3, 200, 0.9)
    result = spibb.PiBSpibb(n_wedge=5).improve(problem)
    rng = np.random.default_rng(0)
    hcpi = spibb.HCPI(seed=0).improve(problem)
    posterior = posterior_improvement(
        problem.counts, result.policy, problem.baseline, 0.9, rng=rng, draws=20
    )
    report = off_policy_estimates(problem.log, result.policy, problem.baseline, 0.9, rng=rng)
    return [problem.log, problem.counts, problem.model, result.policy, result, hcpi, posterior,
            *(bounded.estimate for bounded in report.rows)]  # fmt: skip


@pytest.mark.parametrize(
    "again",
    [copy.deepcopy, copy.copy, lambda x: pickle.loads(pickle.dumps(x)), lambda x: x],
    ids=["deep copy", "copy", "pickle", "itself"],
)
def test_arrays_stay_read_only(examples, again):
    assert len({type(example) for example in examples}) >= 8
    for example in examples:
        found = list(arrays(again(example), set()))
        assert found, type(example)
        for array in found:
            assert not array.flags.writeable, type(example)
            if array.size:
                with pytest.raises(ValueError, match="read-only"):
                    array[...] = array.reshape(-1)[0]


def test_counts_that_were_used_stay_read_only_with_what_they_derived(examples):
    counts = next(example for example in examples if isinstance(example, spibb.Counts))
    assert counts.pairs.sum() > 0
    again = pickle.loads(pickle.dumps(counts))
    assert not again.pairs.flags.writeable
    assert not again.mean_reward.flags.writeable
