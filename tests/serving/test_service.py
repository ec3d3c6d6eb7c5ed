"""The FastAPI example on loopback: answers, refusals, and new policies under load."""

from __future__ import annotations

import os
import threading
import time

import numpy as np
import pytest
from loading import Client, load, service
from parts import needed

import spibb
from spibb import Bins, Policy, Vocabulary
from spibb.errors import InputError
from spibb.ingest.loaded import LoadedPolicy

AGES = Bins((18, 40))
STATES = Vocabulary([(w, a) for w in ("A", "B") for a in AGES.labels], ("ward", "age"))


def save(path, actions, seed=0):
    """A policy whose action names say which one it is."""
    probs = np.random.default_rng(seed).dirichlet(np.ones(3), len(STATES))
    loaded = LoadedPolicy(
        Policy(probs, STATES, [f"{actions} {i}" for i in range(3)]), {"age": AGES}, {}
    )
    loaded.save(path)
    return loaded


def web():
    """What the service needs."""
    needed("fastapi")
    needed("uvicorn")


def test_the_service_answers_and_refuses(tmp_path):
    web()
    policy = save(tmp_path / "p.spibb", "old")
    with service(tmp_path / "p.spibb") as port:
        client = Client(port)
        status, answer = client.ask("/decide", {"ward": "A", "age": 31})
        row = policy.row({"ward": "A", "age": 31})
        assert status == 200 and answer["policy"] == policy.sha256
        assert answer["probability"] == row[answer["action"]]
        for case, code, message in (
            ({"ward": "C", "age": 31}, 404, "state ('C', '[18, 40)') is not in the policy"),
            ({"ward": "A"}, 422, "'age' is missing"),
            ({"ward": "A", "age": "old"}, 422, "age is 'old', expected a number"),
            ({"ward": "A", "age": None}, 422, "'age' is missing"),
            ({"ward": "A", "age": [3]}, 422, "age is [3], expected a number"),
            ({"ward": {"x": 1}, "age": 3}, 422, "ward is {'x': 1}, expected one value"),
            ({"ward": ["A"], "age": 31}, 422, "ward is ['A'], expected one value"),
            ({"ward": "A", "age": 3, "x": 1}, 422, "'x' is not a column of the state"),
        ):
            status, answer = client.ask("/decide", case)
            assert (status, message in answer["detail"]) == (code, True), answer
        status, answer = client.ask("/decide_many", {"ward": ["A", "C"] * 50, "age": [3, 4] * 50})
        assert status == 200 and answer["actions"][1::2] == [None] * 50
        assert answer["probabilities"][1] is None and None not in answer["actions"][::2]
        assert client.ask("/decide_many", {"ward": ["A"]})[0] == 422
        drawn = [client.ask("/decide", {"ward": "B", "age": 3})[1]["action"] for _ in range(300)]
        row = policy.row({"ward": "B", "age": 3})
        for action, chance in row.items():
            assert abs(drawn.count(action) / 300 - chance) < 5 * np.sqrt(chance / 300) + 0.01


def test_a_new_policy_is_taken_up_under_load_without_a_dropped_request(tmp_path):
    web()
    path = tmp_path / "p.spibb"
    policies = {
        name: save(tmp_path / f"{name}.spibb", name, seed)
        for name, seed in (("old", 0), ("new", 1))
    }
    by_hash = {policy.sha256: (name, policy) for name, policy in policies.items()}
    texts = {name: (tmp_path / f"{name}.spibb").read_text() for name in policies}
    path.write_text(texts["old"])
    stop = threading.Event()

    def replace(text):
        (tmp_path / "aside").write_text(text)
        os.replace(tmp_path / "aside", path)

    with service(path) as port:
        watcher = Client(port)

        def swap():
            try:
                for turn in range(8):
                    name = ("new", "old")[turn % 2]
                    replace(texts[name])
                    _until(lambda n=name: watcher.ask("/health")[1]["policy"] ==
                           policies[n].sha256)  # fmt: skip
                    replace(texts[name][: 50 + turn])  # damaged: the policy before it stays
                    _until(lambda: watcher.ask("/health")[1]["problem"] is not None)
                    assert watcher.ask("/health")[1]["policy"] == policies[name].sha256
            finally:
                stop.set()

        swapping = threading.Thread(target=swap)
        swapping.start()
        cases = [{"ward": w, "age": a} for w in "AB" for a in (3, 20, 50)]
        answers = load(port, 4, lambda n: stop.is_set(), lambda n: cases[n % 6])
        swapping.join()
        assert watcher.ask("/health")[1]["policy"] == policies["old"].sha256
    assert {status for _, status, _, _ in answers} == {200}
    assert {answer["policy"] for _, _, _, answer in answers} == set(by_hash)
    for _, _, case, answer in answers:
        name, policy = by_hash[answer["policy"]]
        assert answer["action"].startswith(name)
        assert answer["probability"] == policy.row(case)[answer["action"]]


def _until(true, seconds=30):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_live_policy_keeps_the_last_good_one(tmp_path):
    path = tmp_path / "p.spibb"
    first = save(path, "old")
    live = spibb.LivePolicy(path)
    assert live.current.sha256 == first.sha256 and not live.refresh()
    second = save(path, "new", 1)
    assert live.refresh() and live.current.sha256 == second.sha256
    good = path.read_text()
    for bad in ("", "{", good[:-20], good.replace("new 0", "new 9")):
        path.write_text(bad)
        assert not live.refresh()
        assert live.current.sha256 == second.sha256 and live.problem
    path.unlink()
    assert not live.refresh() and "no such file" in live.problem
    path.write_text(good)
    live.refresh()
    assert live.problem is None and live.current.sha256 == second.sha256
    with pytest.raises(InputError, match="no such file"):
        spibb.LivePolicy(tmp_path / "nothere.spibb")


def test_a_result_folder_can_be_live(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    log = spibb.Log.from_arrays(state=["x", "y"] * 4, action=["a", "b", "b", "a"] * 2,
                                reward=[0, 1] * 4, terminated=[False, True] * 4)  # fmt: skip
    spibb.run(log, "out", n_wedge=1)
    live = spibb.LivePolicy("out")
    before = live.current.sha256
    assert not live.refresh()
    spibb.run(log, "out", n_wedge=1, discount=0.5, force=True)
    assert live.refresh() and live.current.sha256 != before
    assert live.current.discount == 0.5


def save_on_vectors(path):
    """A policy on vectors that draws between two actions."""
    from spibb.deep.network import MLP
    from spibb.deep.policy import SoftmaxBaseline
    from spibb.deep.scaling import Scaling
    from spibb.deep.vector_policy import VectorPolicy

    rng = np.random.default_rng(0)
    policy = VectorPolicy(
        ("x", "speed"), Vocabulary(["brake", "go"], ("action",)), Scaling(np.zeros(2), np.ones(2)),
        MLP.init((2, 8, 2), rng), SoftmaxBaseline(MLP.init((2, 2), rng), 1.0),
        rng.normal(size=(9, 2)), rng.integers(0, 2, 9), 0.1, 5.0, "pi-b", 0.9, 1.0,
    )  # fmt: skip
    policy.save(path)
    return policy


def test_the_service_answers_for_vectors(tmp_path):
    web()
    pytest.importorskip("jax")
    pytest.importorskip("equinox")
    policy = save_on_vectors(tmp_path / "p.npz")
    with service(tmp_path / "p.npz") as port:
        client = Client(port)
        status, answer = client.ask("/decide", {"x": 0.5, "speed": 2})
        assert status == 200 and answer["policy"] == policy.sha256
        assert answer["probability"] == policy.row((0.5, 2))[answer["action"]]
        for case, code, message in (
            ({"x": 0.5}, 422, "'speed' is missing"),
            ({"x": None, "speed": 2}, 422, "'x' is missing: give a number"),
            ({"x": "fast", "speed": 2}, 422, "x is 'fast', expected a number"),
            ({"x": 1e40, "speed": 2}, 404, "within 1e+12 standard deviations of the log"),
        ):
            status, answer = client.ask("/decide", case)
            assert (status, message in answer["detail"]) == (code, True), answer
        status, answer = client.ask("/decide_many", {"x": [0, 1e40, None], "speed": [1, 2, 3]})
        assert status == 200 and [action is None for action in answer["actions"]] == [0, 1, 1]
        assert client.ask("/health")[1]["columns"] == ["x", "speed"]
