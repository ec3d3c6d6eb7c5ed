"""A live policy on vectors: answers, refusals, and new files under load."""

from __future__ import annotations

import math
import os
import threading

import numpy as np
import pytest

pytest.importorskip("deep_extra", exc_type=ImportError)

import spibb
from spibb.deep.network import MLP
from spibb.deep.policy import SoftmaxBaseline
from spibb.deep.scaling import Scaling
from spibb.deep.vector_policy import FARTHEST, VectorPolicy, load_vector_policy
from spibb.errors import InputError
from spibb.labels import Vocabulary

CASES = {"x": [0.5, -1.0, 2.0, 40.0], "y": [1, 2, 3, -7]}


def vector_policy(name, seed=0):
    """A policy whose action names say which one it is."""
    rng = np.random.default_rng(seed)
    return VectorPolicy(
        ("x", "y"), Vocabulary([f"{name} {i}" for i in range(3)], ("action",)),
        Scaling(np.array([1.0, -2.0]), np.array([0.5, 1e-3])), MLP.init((2, 16, 3), rng),
        SoftmaxBaseline(MLP.init((2, 3), rng), 1.0), rng.normal(size=(60, 2)),
        rng.integers(0, 3, 60), 0.5, 2.0, "pi-b", 0.9, 1.0,
    )  # fmt: skip


def put(path, policy):
    """Rename a new file over an old one."""
    policy.save(path.with_name(f"aside{path.suffix}"))
    os.replace(path.with_name(f"aside{path.suffix}"), path)


def test_a_live_policy_on_vectors_keeps_the_last_good_one(tmp_path):
    path = tmp_path / "p.npz"
    put(path, vector_policy("old"))
    live = spibb.LivePolicy(path)
    assert live.current.sha256 == vector_policy("old").sha256 and not live.refresh()
    assert live.current.best({"x": 1, "y": 2}).startswith("old")
    put(path, vector_policy("new", 1))
    assert live.refresh() and live.current.sha256 == vector_policy("new", 1).sha256
    good = path.read_bytes()
    for bad in (b"", good[:100], good[:-30], b"x" * 500):
        path.write_bytes(bad)
        assert not live.refresh() and live.problem
        assert live.current.best((1, 2)).startswith("new")
    path.unlink()
    assert not live.refresh() and "no such file" in live.problem
    path.write_bytes(good)
    live.refresh()
    assert live.problem is None


def test_the_hash_is_that_of_the_file(tmp_path):
    policy = vector_policy("old")
    policy.save(tmp_path / "p.npz")
    with np.load(tmp_path / "p.npz") as stored:
        assert str(stored["sha256"]) == policy.sha256
    assert load_vector_policy(tmp_path / "p.npz").sha256 == policy.sha256
    assert vector_policy("old", 1).sha256 != policy.sha256


def test_a_folder_may_change_from_labels_to_vectors(tmp_path):
    log = spibb.Log.from_arrays(state=["x", "y"] * 4, action=["a", "b", "b", "a"] * 2,
                                reward=[0, 1] * 4, terminated=[False, True] * 4)  # fmt: skip
    spibb.run(log, tmp_path / "out", n_wedge=1)
    live = spibb.LivePolicy(tmp_path / "out")
    assert live.current.best("x") in ("a", "b")
    vector_policy("new").save(tmp_path / "out" / "policy.npz")
    assert live.refresh() and live.current.best((1, 2)).startswith("new")


def test_many_threads_ask_while_the_file_changes(tmp_path):
    path, stop, wrong, asked = tmp_path / "p.npz", threading.Event(), [], []
    policies = {name: vector_policy(name, seed) for seed, name in enumerate(("old", "new"))}
    by_hash = {policy.sha256: (name, policy) for name, policy in policies.items()}
    wanted = {name: policy.act_many(CASES, seed=3) for name, policy in policies.items()}
    put(path, policies["old"])
    live = spibb.LivePolicy(path)

    def ask():
        try:
            while not stop.is_set():
                current = live.current
                name, policy = by_hash[current.sha256]
                found = current.act_many(CASES, seed=3)
                assert found.labels == wanted[name].labels
                assert (found.probability == wanted[name].probability).all()
                assert current.row((0.5, 1)) == policy.row((0.5, 1))
                asked.append(name)
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        for turn in range(12):
            name, before = ("new", "old")[turn % 2], len(asked)
            put(path, policies[name])
            assert live.refresh() and live.current.sha256 == policies[name].sha256
            path.write_bytes(path.read_bytes()[: 200 + turn])
            assert not live.refresh() and live.problem
            while len(asked) < before + 8 and not wrong:
                stop.wait(0.001)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not wrong and set(asked) == {"old", "new"}


BAD = [
    ((1,), "a case has 1 numbers, expected 2: x, y"),
    ((1, 2, 3), "a case has 3 numbers, expected 2: x, y"),
    ({"x": 1}, "'y' is missing: a state here is x, y"),
    ({"x": 1, "y": 2, "z": 3}, "'z' is not a column of the state"),
    ({"x": math.nan, "y": 1}, "'x' is missing: give a number"),
    ({"x": None, "y": 1}, "'x' is missing: give a number"),
    ({"x": math.inf, "y": 1}, "x is inf, expected a number"),
    ({"x": "1e400", "y": 1}, "x is inf, expected a number"),
    ({"x": 10**400, "y": 1}, "x is 1000"),
    ({"x": [3], "y": 1}, r"x is \[3\], expected a number"),
    ({"x": 1e37, "y": 1}, r"'x' is 1e\+37 in row 0 .* within 1e\+12 standard deviations"),
    ({"x": 0, "y": -1e300}, r"'y' is -1e\+300 in row 0"),
]


@pytest.mark.parametrize(("case", "message"), BAD)
def test_a_case_that_has_no_answer_is_refused(case, message):
    with pytest.raises(InputError, match=message):
        vector_policy("old").row(case)


def test_many_cases_name_the_row_that_has_no_answer():
    policy = vector_policy("old")
    far = {"x": [0.0, 1e37, math.nan, 1.0], "y": [1.0] * 4}
    with pytest.raises(InputError, match="'x' is missing in row 12 of the cases"):
        policy.act_many(far, first_row=10)
    found = policy.act_many(far, unseen="empty")
    assert [label is None for label in found.labels] == [False, True, True, False]
    with pytest.raises(InputError, match=r"'x' is 1e\+37 in row 11 of the cases"):
        policy.act_many({**far, "x": [0.0, 1e37, 0.0, 1.0]}, first_row=10)
    with pytest.raises(InputError, match=r"column 'x' of the cases holds \[1\]"):
        policy.act_many([{"x": [1], "y": 2}])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("x", [0.0, 1e3, 1e6, 0.4 * FARTHEST, -0.4 * FARTHEST])
def test_every_case_within_the_limit_has_a_distribution(x):
    row = vector_policy("old")(np.array([[x, 0.0]]))
    assert row.min() >= 0 and abs(row.sum() - 1) < 1e-6
