"""No number of a verdict depends on names, on the order of labels, or on that of the episodes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from spibb.algorithms.auto import Auto
from spibb.algorithms.improvement import Improvement
from spibb.algorithms.problem import Problem
from spibb.algorithms.spibb import PiBSpibb
from spibb.labels import Vocabulary
from spibb.log import Log
from spibb.policy import Policy
from spibb.verdict import gather_for, judge_by


def bandit(rng: np.random.Generator, paid: str) -> tuple[Log, np.ndarray]:
    """Single decisions in contexts with few visits each, so that many of them tie."""
    contexts, n = 12, 240
    plays = np.tile([0.5, 0.3, 0.2], (contexts, 1))
    state = rng.integers(contexts, size=n)
    action = (rng.random((n, 1)) > np.cumsum(plays[state], axis=1)).sum(axis=1).clip(max=2)
    reward = 0.8 * (action == 1) + rng.standard_normal(n)
    reward = {"normal": reward, "clicks": (reward > 0) * 1.0, "stars": np.rint(reward).clip(-2, 2)}[
        paid
    ]
    log = Log.from_arrays(state, action, reward, terminated=[True] * n, n_states=contexts)
    return log, plays


def chain(rng: np.random.Generator, kind: str) -> tuple[Log, np.ndarray]:
    """A first decision leads to one of three corridors, the end of which pays more or less often.

    All states of a corridor have as many visits. If it is `hidden`, states do not tell how far it
    is to the end, and in a `walk` steps go anywhere.
    """
    n, steps = 120, 5
    plays = [0.5, 0.25, 0.25]
    first = rng.choice(3, size=n, p=plays)
    rows = []
    for e in range(n):
        for t in range(steps):
            state = 0 if t == 0 else 1 + first[e] * (steps - 1) + t - 1
            if kind == "hidden":
                state = 0 if t == 0 else 1 + first[e]
            if kind == "walk":
                state = int(rng.integers(4))
            action = first[e] if t == 0 else int(rng.choice(3, p=plays))
            pays = rng.random() < (0.5, 0.9, 0.3)[first[e]]
            if kind == "walk":
                pays = rng.random() < (0.3, 0.6, 0.2)[action]
            paid = (pays + 0.01 * rng.standard_normal()) * (kind == "walk" or t == steps - 1)
            rows.append((state, action, paid, t))
    state, action, reward, step = (np.array(column) for column in zip(*rows))
    log = Log.from_arrays(state, action, reward, terminated=step == steps - 1)
    return log, np.tile(plays, (len(log.states), 1))


def recorded(rng: np.random.Generator) -> tuple[Log, None]:
    """Recorded probabilities that vary within a state."""
    n = 200
    state, eager = rng.integers(4, size=n), np.where(rng.random(n) < 0.5, 0.7, 0.3)
    action = (rng.random(n) < eager).astype(int)
    reward = 1.0 * action + rng.standard_normal(n)
    prob = np.where(action == 1, eager, 1 - eager)
    return Log.from_arrays(
        state, action, reward, terminated=[True] * n, action_prob=prob.tolist()
    ), None


WORLDS = {
    **{f"bandit, {paid}": (bandit, paid) for paid in ("normal", "clicks", "stars")},
    **{f"chain, {kind}": (chain, kind) for kind in ("told", "hidden", "walk")},
    "recorded": (recorded,),
}
TIED = ("bandit, clicks", "bandit, stars")
"""Here two actions may be equally good, and an algorithm takes the one that is listed first."""


Changed = tuple[Log, Vocabulary, Vocabulary]
"""A changed log, and what it calls the labels of the first one, in their order."""


def renamed(log: Log) -> Changed:
    """Other names, and the labels in another order."""
    rng = np.random.default_rng(5)
    states, actions = (
        Vocabulary(tuple(rng.permutation([f"{kind}{k:02d}" for k in range(len(labels))]).tolist()))
        for kind, labels in (("x", log.states), ("u", log.actions))
    )
    listed = (Vocabulary(tuple(sorted(labels.labels))) for labels in (states, actions))
    return replace(log, states=states, actions=actions).with_labels(*listed), states, actions


def reordered(log: Log) -> Changed:
    """The labels backwards."""
    listed = (Vocabulary(labels.labels[::-1]) for labels in (log.states, log.actions))
    return log.with_labels(*listed), log.states, log.actions


def permuted(log: Log) -> Changed:
    """The episodes in another order."""
    order = np.random.default_rng(3).permutation(log.n_episodes)
    return log.episodes(order), log.states, log.actions


def numbers(result: Improvement, timed: bool) -> dict[str, Any]:
    """All that a verdict says and rests on; the order of time is left out unless `timed`."""
    evidence = gather_for(result)
    verdict, _ = judge_by(evidence, result)
    memory, season, crossed = evidence.memory, evidence.season, evidence.cross_fitted
    said = [(c.name, c.found, c.passed) for c in verdict.criteria if timed or c.name != "season"]
    found: dict[str, Any] = {
        "words": (verdict.grade, verdict.sentence, verdict.remedy, said),
        "limits": [evidence.lower, evidence.sure, evidence.posterior.gain, evidence.chance.limit],
        "crossed": evidence.crossed,
        "direct": [one.lower for one in evidence.direct],
        "cross-fitted": None if crossed is None else [crossed.gain, crossed.standard_error],
    }
    if memory is not None:
        tests = [memory.test.p_value, memory.clock.p_value, memory.decisions_p]
        found["memory"] = [*tests, 0.0 if memory.lower is None else memory.lower]
    if timed and season is not None:
        found["season"] = [season.p_value, season.decisions_p, season.outcomes_p]
    return found


@pytest.mark.parametrize("change", [renamed, reordered, permuted])
@pytest.mark.parametrize("algorithm", [PiBSpibb(5), Auto(draws=300)], ids=lambda a: a.name)
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("world", WORLDS)
def test_a_verdict_is_the_same_whatever_is(world, seed, algorithm, change):
    make, *kind = WORLDS[world]
    log, plays = make(np.random.default_rng([seed, 4]), *kind)
    if world in TIED and isinstance(algorithm, Auto):
        algorithm = PiBSpibb(2)
    other, *labels = change(log)
    listed = other.states, other.actions
    given = None if plays is None else Policy(plays, *labels).aligned(*listed)
    first = algorithm.improve(Problem.from_log(log, plays, discount=0.9))
    second = algorithm.improve(Problem.from_log(other, given, discount=0.9))
    same = Policy(first.policy.probs, *labels).aligned(*listed)
    if world in TIED:
        second = replace(second, policy=same)
    np.testing.assert_allclose(second.policy.probs, same.probs, atol=1e-9)
    before, after = (numbers(one, change is not permuted) for one in (first, second))
    assert after.pop("words") == before.pop("words")
    for name, found in before.items():
        wanted = found if found is None else pytest.approx(found, rel=1e-7, abs=1e-9, nan_ok=True)
        assert after[name] == wanted
