"""How objects show themselves: a line and a small table, never arrays, whatever they hold."""

from __future__ import annotations

import dataclasses
import html.parser

import numpy as np
import pytest

import spibb
from spibb import MDP, Counts, Log, Policy, Problem
from spibb.algorithms import REGISTRY
from spibb.envs.baselines import gridworld_baseline
from spibb.envs.garnet import Garnet
from spibb.envs.gridworld import Gridworld, gridworld_mdp
from spibb.envs.helicopter import Helicopter
from spibb.frozen import Frozen
from spibb.simulate import simulate
from spibb.solve import free_box

WORLD, BASELINE = gridworld_mdp(), gridworld_baseline()
LOG = simulate(WORLD, BASELINE, 60, rng=np.random.default_rng(0))
PROBLEM = Problem.from_log(LOG, BASELINE, v_max=1)
OPTIONS = {"certified": {"lowest_return": -1, "highest_return": 1}, "hcpi": {"updates": 50}}


@pytest.fixture(scope="module")
def results():
    return {
        name: spibb.algorithms.make(name, **OPTIONS.get(name, {})).improve(PROBLEM)
        for name in REGISTRY
    }


@pytest.fixture(scope="module")
def run():
    return spibb.run(LOG, baseline=BASELINE)


@pytest.fixture(scope="module")
def things(results, run, tmp_path_factory):
    """One of everything that is shown; made here, since every worker imports this file."""
    folder = tmp_path_factory.mktemp("shown")
    estimates = spibb.off_policy_estimates(LOG, BASELINE, BASELINE, rng=np.random.default_rng(0))
    improved = spibb.run(LOG, folder / "improved", baseline=BASELINE, n_wedge=10**9).policy
    played = simulate(WORLD, improved, 60, rng=np.random.default_rng(1))
    watched = spibb.monitor(folder / "improved", played, lowest_return=0, highest_return=1)
    return [
        LOG, WORLD, BASELINE, PROBLEM, PROBLEM.counts, LOG.states, *results.values(),
        *(result.certificate() for result in results.values()),
        results["pi-b"].posterior(draws=20), estimates, estimates.rows[0], run, run.assessment,
        run.assessment.verdict, watched, spibb.LivePolicy(BASELINE.save(folder / "policy.csv")),
        spibb.open_log(LOG.save(folder / "log.csv")), Gridworld(), Garnet(), Helicopter(),
        spibb.inspect_log(LOG), spibb.inspect_log(LOG).facts[0],
    ]  # fmt: skip


class Cells(html.parser.HTMLParser):
    """Counts what is open, and collects texts."""

    def __init__(self):
        super().__init__()
        self.depth, self.tags, self.texts = 0, [], []

    def handle_starttag(self, tag, attrs):
        self.depth, self.tags = self.depth + 1, [*self.tags, tag]

    def handle_endtag(self, tag):
        self.depth -= 1

    def handle_data(self, data):
        self.texts.append(data)


def test_a_repr_is_one_short_line_without_arrays(things):
    for thing in things:
        line = repr(thing)
        assert line.startswith(f"{type(thing).__name__}(")
        assert len(line) < 600 and "\n" not in line and "array(" not in line
        assert "[0." not in line and "probability=" not in line


def test_a_notebook_gets_the_same_facts_as_a_table(things):
    for thing in things:
        found = Cells()
        found.feed(thing._repr_html_())
        assert found.depth == 0 and set(found.tags) == {"table", "caption", "tr", "th", "td"}
        assert found.texts[0] == type(thing).__name__
        assert found.tags.count("tr") == len(thing._facts()) > 1


def test_facts_are_right():
    assert repr(LOG.states) == "Vocabulary(size=25, begins=0, 1, 2, columns=state)"
    shown = Log.from_arrays(["a", "b"], [0, 0], [-0.5, 2], terminated=[False, True])
    assert repr(shown) == "Log(transitions=2, episodes=1, states=2, actions=1, rewards=-0.5 to 2)"
    assert repr(Counts.from_log(shown)) == (
        "Counts(transitions=2, episodes=1, states=2, actions=1, pairs_seen=2, rewards=-0.5 to 2)"
    )
    assert repr(Policy.uniform(2, ["go", "stay"])) == (
        "Policy(states=2, actions=2, labels='go', 'stay')"
    )
    assert str(spibb.inspect_log(shown)) == (
        "Inspection(transitions=2, episodes=1, states=2, actions=1, rewards=-0.5 to 2, "
        "suspicions=States seen once, Nearly deterministic behaviour)"
    )
    problem = Problem.from_log(shown, discount=0.5)
    assert repr(problem) == (
        "Problem(states=2, actions=1, transitions=2, episodes=1, discount=0.5, v_max=5 (derived), "
        "baseline=estimated)"
    )
    assert repr(problem.model) == "MDP(states=2, actions=1, transitions=1, discount=0.5)"
    assert repr(spibb.improve(shown, None, discount=0.5, n_wedge=3)) == (
        "Improvement(algorithm=PiBSpibb(n_wedge=3), "
        "mean_return_in_log=0.5, value_in_model=0.5, baseline_value_in_model=0.5, "
        "states_changed=0 of 2, pairs_copied=100%)"
    )


def test_what_no_one_described_shows_its_fields_and_never_an_array():
    @dataclasses.dataclass(frozen=True, eq=False)
    class Sketch(Frozen):
        values: np.ndarray
        parts: tuple[np.ndarray, ...]
        text: str = "a " * 100

    line = repr(Sketch(np.zeros((300, 2)), (np.zeros(5),) * 9))
    assert line.startswith(
        "Sketch(values=float64[300, 2], parts=(float64[5], float64[5], float64[5], ...), text=a a"
    )
    assert len(line) < 200


def test_a_verdict_is_printed_as_a_sentence_and_shown_with_its_numbers(run):
    verdict = run.assessment.verdict
    assert str(verdict).startswith("Supported. According to the model, the new policy gains")
    assert repr(verdict).startswith("Verdict(grade=supported, sentence=Acc")


def test_what_kernels_take_and_evidence_are_short_too(run):
    box = free_box(PROBLEM.available)
    assert repr(box) == "Box(lower=float64[25, 4], upper=float64[25, 4], start=float64[25, 4])"
    assert len(repr(PROBLEM.data)) < 600
    assert repr(run.assessment.evidence).startswith("Evidence(states=25, states_changed=")
    assert "bound=beta, credible=True, zeta=" in repr(run.assessment.certificate)


def test_labels_are_not_markup():
    odd = Policy.uniform(1, ["<script>", "b"])
    assert "<script>" not in odd._repr_html_() and "&lt;script&gt;" in odd._repr_html_()


def test_a_subclass_of_an_improvement_is_short_too(results):
    assert {type(result).__name__ for result in results.values()} > {"Improvement"}
    for result in results.values():
        assert "value_in_model=" in repr(result)
    assert isinstance(WORLD, MDP)
