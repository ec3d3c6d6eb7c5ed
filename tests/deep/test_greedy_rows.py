"""The greedy row of a box in its four forms, on the same boxes.

The exact solver has it row by row, the sweeps fuse it with their reading of the model, training
needs it for a batch, and a server as a graph. Each has a slow transcription elsewhere; here they
are compared with one another, where they are most likely to differ: in ties, in actions that the
baseline never takes, in rows that are bootstrapped as a whole, and with a single action.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("deep_extra", exc_type=ImportError)

import jax.numpy as jnp
import onnxruntime

from spibb.deep import onnx_graph
from spibb.deep.targets import COMPARE_UP_TO, ROWS
from spibb.kernels.projection import SORT_FROM, greedy
from spibb.kernels.sparse import solve as sparse
from spibb.kernels.tuples import Box, Rows

PER_KIND = 12
SIZES = (1, 2, 3, 5, SORT_FROM, SORT_FROM + 1, COMPARE_UP_TO, COMPARE_UP_TO + 6)
ROUNDING = 2e-6
"""Of sums of at most thirty products in single precision."""


def draw(n_actions):
    """Values, baselines and bootstrapped pairs [N, A], every kind with every other.

    All are numbers of single precision, so that nobody sees other ties than the rest.
    """
    rng = np.random.default_rng(n_actions)
    shape = PER_KIND, n_actions
    distinct = rng.permuted(np.tile(np.linspace(-1, 1, n_actions), (PER_KIND, 1)), axis=1)
    values = distinct, rng.integers(-1, 2, shape), np.zeros(shape)
    rare = rng.integers(0, 2, shape) * rng.random(shape)
    rare[np.arange(PER_KIND), rng.integers(0, n_actions, PER_KIND)] += 1
    baselines = (
        rng.dirichlet(np.ones(n_actions), PER_KIND),
        rare,
        np.eye(n_actions)[np.argmax(rare, axis=1)],
    )
    masks = rng.random(shape) < 0.5, np.ones(shape, bool), np.zeros(shape, bool)
    kinds = [(q, b, m) for q in values for b in baselines for m in masks]
    q, baseline, bootstrapped = (np.concatenate(parts) for parts in zip(*kinds))
    baseline = baseline / baseline.sum(axis=1, keepdims=True)
    return q.astype(np.float32), baseline.astype(np.float32), bootstrapped


def box_of(variant, baseline, bootstrapped):
    """The policies allowed, in double precision."""
    start = baseline.astype(float)
    start = start / start.sum(axis=1, keepdims=True)
    lower = np.where(bootstrapped, start if variant == "pi-b" else 0.0, 0.0)
    return Box(lower, np.where(bootstrapped, start, 1.0), start)


def by_projection(q, box):
    rows = np.empty(q.shape)
    greedy(q, box, np.zeros(len(q)), rows)
    return rows


def values_by_sweeps(q, box):
    """With a discount of 0 the optimal values are those of the greedy rows for the rewards."""
    nothing = Rows(np.zeros(q.size + 1, np.int64), np.empty(0, np.int32), np.empty(0))
    return sparse.optimise(nothing, q, 0.0, box, 1e-12, 10).v


def by_graph(variant, q, baseline, bootstrapped, path):
    n_actions = q.shape[1]
    graph = onnx_graph._Graph()
    policy = SimpleNamespace(
        n_wedge=1.0, variant=variant, network=SimpleNamespace(sizes=[n_actions])
    )
    onnx_graph.add_rows(graph, policy, "q")
    inputs = {"q": q, "baseline_probs": baseline, "counts": np.float32(~bootstrapped)}
    widths = dict.fromkeys(inputs, n_actions)
    onnx_graph.write_graph(graph, path, widths, {"pi": n_actions})
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return session.run(["pi"], inputs)[0]


@pytest.mark.parametrize("n_actions", SIZES)
@pytest.mark.parametrize("variant", ROWS)
def test_all_forms_of_the_greedy_row_agree(variant, n_actions, tmp_path):
    q, baseline, bootstrapped = draw(n_actions)
    box = box_of(variant, baseline, bootstrapped)
    exact = by_projection(q.astype(float), box)
    best = (exact * q).sum(axis=1)

    assert len(q) == 27 * PER_KIND
    np.testing.assert_allclose(values_by_sweeps(q.astype(float), box), best, atol=1e-11)

    batch = np.asarray(
        ROWS[variant](jnp.asarray(q), jnp.asarray(baseline), jnp.asarray(bootstrapped))
    )
    graph = by_graph(variant, q, baseline, bootstrapped, tmp_path / "rows.onnx")
    np.testing.assert_allclose(graph, batch, atol=ROUNDING)
    np.testing.assert_allclose((batch * q).sum(axis=1), best, atol=ROUNDING)

    alone = np.array([len(set(row)) == n_actions for row in q.tolist()])
    np.testing.assert_allclose(batch[alone], exact[alone], atol=ROUNDING)
