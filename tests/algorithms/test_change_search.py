"""The plans of `certified`, made all at once, against a slow transcription."""

from __future__ import annotations

import math
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from oracles_ope import random_mdp, simulate
from scipy.special import ndtr

from spibb.bounds.betting import MOST, growth
from spibb.changes import change_search as module
from spibb.changes import window_sums as windows
from spibb.changes.change_search import Chooser
from spibb.changes.planned_tests import PlannedTest
from spibb.changes.window_sums import EARLIEST, FOREVER, Passages
from spibb.episodes.departures import values_where_seen
from spibb.episodes.visits import ReturnBounds, Visits
from spibb.log import Log

BOUNDS = ReturnBounds(-1.0, 11.0, "declared")


# ---- a slow transcription -----------------------------------------------------------------------


def slow_plans(chooser: Chooser) -> list[PlannedTest]:
    visited = np.flatnonzero(chooser.counts.sum(axis=1) >= module.TRUSTED)
    found = [slow_best(chooser, int(s)) for s in visited]
    return sorted((p for p in found if p is not None), key=lambda p: (-p.evidence, p.state))


def slow_best(chooser, s):
    rough = [p for kept in slow_sets(chooser, s) if (p := slow_plan(chooser, s, kept, 1, FOREVER))]
    rough.sort(key=lambda plan: -plan.power * plan.advantage)
    steps = chooser.visits.step[chooser.visits.of_state(s)]
    lasts = {FOREVER, *np.quantile(steps, EARLIEST).astype(int).tolist()}
    closer = [
        plan
        for first in rough[: module.SETS]
        for last in sorted(lasts)
        for counted in (module.COUNTED if chooser.known else (1,))
        if (plan := slow_plan(chooser, s, first.kept, counted, last))
    ]
    return max(closer, key=lambda plan: plan.power * plan.advantage, default=None)


def slow_sets(chooser, s):
    playable = chooser.baseline[s] > 0
    trusted = [a for a in np.flatnonzero(playable) if chooser.counts[s, a] >= module.TRUSTED]
    ranks = np.round((chooser.q[s] - chooser.v[s]) / chooser.rounding)
    worst_first = sorted(trusted, key=lambda a: ranks[a])
    for n in range(1, len(worst_first)):
        kept = playable.copy()
        kept[worst_first[:n]] = False
        yield kept
    if worst_first and playable.sum() > len(worst_first):
        yield np.arange(len(playable)) == worst_first[-1]


def slow_plan(chooser, s, kept, counted, last):
    p, mass = chooser.baseline[s], float(chooser.baseline[s][kept].sum())
    played = np.where(kept, p / mass, 0.0)
    noise, n_pairs = float(chooser.noise[s]), np.maximum(chooser.counts[s], 1)
    error = math.sqrt(noise * float(((played - p) ** 2 / n_pairs).sum()))
    lowered = float((played - p) @ (chooser.q[s] - chooser.v[s])) - module.SHRINKAGE * error
    centre = chooser.bounds.low if chooser.by_row else float(chooser.v[s])
    plan = PlannedTest(s, kept, played, mass, centre, counted, last, 0, 0, lowered, 0, 0, 0,
                       by_row=chooser.by_row)  # fmt: skip
    if lowered <= chooser.rounding or mass > 1 - module.NOTHING:
        return None
    sample = plan.sample(chooser.visits, chooser.bounds)
    if not len(sample.x):
        return None
    n, per_episode = len(sample.x), float(sample.times.mean())
    x = plan.sample(chooser.likely, chooser.bounds).x
    prior = 2 * noise * (1 / mass - 1) * per_episode
    second = (float((x**2).sum()) + prior) / (n + 2)
    more = math.sqrt(chooser.scale) if chooser.known else 1.0
    mean = lowered * per_episode - (float(x.sum()) - sample.total) / n / more
    if mean <= 0 or second <= module.INVISIBLE**2:
        return None
    plan = replace(plan, visiting=n, second=second)
    bet = slow_bet if chooser.known else slow_block
    return slow_power(chooser, bet(chooser, plan, mean), error * per_episode)


def slow_bet(chooser, plan, mean):
    bet, each = growth(mean, plan.second, plan.loss(chooser.bounds) * plan.counted)
    return replace(plan, bet=bet, evidence=chooser.scale * plan.visiting * each)


def slow_block(chooser, plan, mean):
    best = plan
    for b in (2, 4, 8, 16):
        z_mean, z_second = (b - 1) * plan.mass * mean, (b - 1) * plan.mass**2 * plan.second
        bet = min(z_mean / z_second, MOST / (b / 4 * chooser.bounds.span))
        evidence = chooser.scale * plan.visiting / b * (bet * z_mean - bet**2 * z_second / 2)
        if evidence > best.evidence:
            best = replace(plan, block=b, bet=bet, evidence=evidence)
    return best


def slow_power(chooser, plan, error):
    unsure = plan.bet * (plan.mass if plan.block else 1.0) * chooser.scale * plan.visiting * error
    spread = math.sqrt(2 * plan.evidence + unsure**2) or 1.0
    wanted = math.log(module.TYPICAL_FAMILY / chooser.delta)
    return replace(plan, power=float(ndtr((plan.evidence - wanted) / spread)))


# ---- both agree ---------------------------------------------------------------------------------


def chooser_of(seed: int, *, cap: int, known: bool = True, by_row: bool = False) -> Chooser:
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, n_states=4, n_actions=3)
    pi = rng.dirichlet(np.ones(3), size=4)
    log = simulate(mdp, pi, int(rng.integers(5, 120)), rng, cap=cap)
    if by_row:
        made = pi[log.state, log.action] * rng.uniform(0.8, 1.0, len(log))
        log = replace(log, action_prob=made)
    chooser = Chooser.of(
        log, pi, mdp.discount, BOUNDS, 7 / 3, known, by_row, values=values_where_seen
    )
    return chooser.at(float(rng.choice([0.05, 0.2])))


def same(found: PlannedTest, slow: PlannedTest) -> None:
    exact = ("state", "counted", "last_step", "visiting", "block", "by_row")
    assert [getattr(found, name) for name in exact] == [getattr(slow, name) for name in exact]
    assert (found.kept == slow.kept).all()
    np.testing.assert_allclose(found.played, slow.played, rtol=1e-12)
    for name in ("mass", "centre", "bet", "evidence", "advantage", "second", "power"):
        assert getattr(found, name) == pytest.approx(getattr(slow, name), rel=1e-9), name


CASES = [
    {"cap": 100}, {"cap": 4}, {"cap": 4, "known": False}, {"cap": 100, "known": False},
    {"cap": 1, "by_row": True},
]  # fmt: skip


@pytest.mark.parametrize("how", CASES)
def test_the_plans_are_those_of_the_slow_transcription(how):
    planned = 0
    for seed in range(30):
        chooser = chooser_of(seed, **how)
        found, slow = chooser.plans(), slow_plans(chooser)
        assert len(found) == len(slow)
        for pair in zip(found, slow):
            same(*pair)
        planned += len(found)
    assert planned


def test_the_plans_do_not_depend_on_how_many_passages_are_summed_at_once(monkeypatch):
    chooser = chooser_of(3, cap=4)
    whole = chooser.plans()
    monkeypatch.setattr(windows, "AT_ONCE", 1)
    assert len(whole) == len(chooser.plans()) > 0
    for pair in zip(chooser.plans(), whole):
        same(*pair)


def test_the_plans_do_not_depend_on_how_many_sets_are_looked_at_once(monkeypatch):
    chooser = chooser_of(3, cap=4)
    whole = chooser.plans()
    monkeypatch.setattr(module, "AT_ONCE", 1)
    assert len(chooser._blocks()) > 1
    assert len(whole) == len(chooser.plans()) > 0
    for pair in zip(chooser.plans(), whole):
        same(*pair)


def test_sets_take_memory_for_trusted_actions_only():
    """A bool for every state, number of actions and action would be 800 MB here."""
    n, states, actions, rng = 4000, 200, 2000, np.random.default_rng(0)
    log = Log.from_arrays(
        rng.integers(states, size=n), rng.integers(actions, size=n), rng.random(n),
        terminated=np.ones(n, bool), n_states=states, n_actions=actions,
    )  # fmt: skip
    baseline = np.full((states, actions), 1 / actions)
    chooser = Chooser.of(log, baseline, 0.0, BOUNDS, 1.0, known=True, values=values_where_seen).at(
        0.05
    )
    tracemalloc.start()
    chooser.plans()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1e8


def test_last_steps_are_quantiles_of_the_steps_of_visits():
    for seed in range(40):
        rng = np.random.default_rng(seed)
        mdp = random_mdp(rng, n_states=4, n_actions=2)
        log = simulate(mdp, np.full((4, 2), 0.5), int(rng.integers(1, 40)), rng, cap=30)
        visits = Visits.of(log, mdp.discount, BOUNDS)
        lasts = Passages(visits, (1, 2)).lasts
        for s in range(4):
            steps = visits.step[visits.of_state(s)]
            if len(steps):
                wanted = np.quantile(steps, EARLIEST).astype(int)
                assert lasts[s].tolist() == [*wanted.tolist(), FOREVER]
