"""A DeepPolicy as an ONNX graph, for serving outside Python.

Inputs `state` [M, d], `baseline_probs` [M, A] and `counts` [M, A]; outputs `pi` [M, A] and `q`
[M, A], all 32-bit. The greedy row of Π_b or Π_≤b is part of the graph, so that the server has
only the baseline and the pseudo-counts to bring.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spibb.deep.network import MLP
from spibb.deep.scaling import ROUNDED_TO
from spibb.errors import install
from spibb.files import write_whole

if TYPE_CHECKING:
    from spibb.deep.policy import DeepPolicy
    from spibb.deep.vector_policy import VectorPolicy

OPSET = 17


class _Graph:
    """Nodes and constants, added in order."""

    def __init__(self) -> None:
        try:
            import onnx  # noqa: F401
        except ImportError:
            raise ImportError(f"export_onnx needs onnx: {install('deep')}") from None
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, value: Any) -> str:
        from onnx import numpy_helper

        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def add(self, kind: str, *inputs: str, out: str | None = None, **attributes: Any) -> str:
        from onnx import helper

        name = out or f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], **attributes))
        return name


def export(policy: DeepPolicy, path: Path) -> None:
    """Write the policy's graph, which is given the baseline's probabilities and the counts."""
    d, a = policy.network.sizes[0], policy.network.sizes[-1]
    graph = _Graph()
    add_rows(graph, policy, _network(graph, policy.network, "state", "q"))
    write_graph(graph, path, {"state": d, "baseline_probs": a, "counts": a}, {"pi": a, "q": a})


def export_whole(policy: VectorPolicy, path: Path) -> None:
    """Write a graph that needs the state alone: units, baseline and pseudo-counts are in it.

    `state` is 64-bit, in the log's own units. Distances to all logged states are computed for every
    row of a batch: ask for few rows at a time where the log is large.
    """
    d, a = len(policy.features), len(policy.actions)
    graph = _Graph()
    z = _inputs(graph, policy)
    single = graph.add("Cast", z, to=1)
    _baseline(graph, policy, single)
    _counts(graph, policy, z)
    add_rows(graph, policy, _network(graph, policy.network, single, "q_in_units"))
    graph.add("Mul", "q_in_units", graph.constant(np.float32(policy.reward_unit)), out="q")
    write_graph(
        graph, path, {"state": d}, {"pi": a, "q": a, "baseline_probs": a, "counts": a}, double=True
    )


def add_rows(graph: _Graph, policy: DeepPolicy | VectorPolicy, q: str) -> None:
    """The greedy row of the policy's set, from `q`, `baseline_probs` and `counts`, as `pi`."""
    boot = graph.add("Less", "counts", graph.constant(np.float32(policy.n_wedge)))
    _ROWS[policy.variant](graph, q, boot, policy.network.sizes[-1])


def write_graph(
    graph: _Graph,
    path: Path,
    inputs: Mapping[str, int],
    outputs: Mapping[str, int],
    *,
    double: bool = False,
) -> None:
    """Write a graph with inputs and outputs of these widths; `double` inputs have 64 bits."""
    from onnx import TensorProto, helper, save

    kind = TensorProto.DOUBLE if double else TensorProto.FLOAT

    def values(widths: Mapping[str, int], kind: int) -> list[Any]:
        return [helper.make_tensor_value_info(name, kind, ["batch", width])
                for name, width in widths.items()]  # fmt: skip

    model = helper.make_model(
        helper.make_graph(
            graph.nodes, "spibb_policy", values(inputs, kind), values(outputs, TensorProto.FLOAT),
            graph.constants,
        ),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=8,
        producer_name="spibb",
    )  # fmt: skip
    write_whole(path, lambda place: save(model, str(place)))


def _inputs(graph: _Graph, policy: VectorPolicy) -> str:
    """As `Scaling.__call__`."""
    scaling = policy.scaling
    centred = graph.add("Sub", "state", graph.constant(scaling.centre))
    steps = graph.add("Div", centred, graph.constant(scaling.spread * ROUNDED_TO))
    return graph.add("Mul", graph.add("Round", steps), graph.constant(np.float64(ROUNDED_TO)))


def _baseline(graph: _Graph, policy: VectorPolicy, z: str) -> None:
    logits = _network(graph, policy.baseline.network, z, "baseline_logits")
    cold = graph.add("Div", logits, graph.constant(np.float32(policy.baseline.temperature)))
    graph.add("Softmax", cold, axis=1, out="baseline_probs")


def _counts(graph: _Graph, policy: VectorPolicy, z: str) -> None:
    """Σ max(0, 1 − ‖z − z_i‖/radius) over the logged pairs of each action."""
    squares = ""
    for k, column in enumerate(policy.points.T):
        mine = graph.add("Gather", z, graph.constant(np.array([k])), axis=1)
        gap = graph.add("Sub", mine, graph.constant(np.ascontiguousarray(column)[None]))
        square = graph.add("Mul", gap, gap)
        squares = graph.add("Add", squares, square) if squares else square
    far = graph.add("Div", graph.add("Sqrt", squares), graph.constant(np.float64(policy.radius)))
    near = graph.add("Sub", graph.constant(np.float64(1)), far)
    near = graph.add("Max", near, graph.constant(np.float64(0)))
    taken = np.eye(len(policy.actions))[policy.point_actions]
    graph.add("Cast", graph.add("MatMul", near, graph.constant(taken)), to=1, out="counts")


def _network(graph: _Graph, network: MLP, x: str, out: str) -> str:
    layers = list(zip(network.weights, network.biases))
    for weight, bias in layers[:-1]:
        x = graph.add("Relu", _layer(graph, x, weight, bias))
    return _layer(graph, x, *layers[-1], out=out)


def _layer(graph: _Graph, x: str, weight: Any, bias: Any, out: str | None = None) -> str:
    return graph.add("Gemm", x, graph.constant(weight), graph.constant(bias), out=out)


def _where_not_all(graph: _Graph, boot: str, rows: str) -> None:
    """The baseline's row where every action is bootstrapped."""
    flags = graph.add("Cast", graph.add("Not", boot), to=1)
    free = graph.add("ReduceMax", flags, axes=[1], keepdims=1)
    some = graph.add("Greater", free, graph.constant(np.float32(0)))
    graph.add("Where", some, rows, "baseline_probs", out="pi")


def _pi_b(graph: _Graph, q: str, boot: str, n_actions: int) -> None:
    """As `targets.pi_b_rows`."""
    zero, one = graph.constant(np.float32(0)), graph.constant(np.float32(1))
    lowest = graph.constant(np.float32(-np.inf))
    held = graph.add("Where", boot, "baseline_probs", zero)
    mass = graph.add("ReduceSum", held, graph.constant(np.array([1], np.int64)), keepdims=1)
    free = graph.add("Max", graph.add("Sub", one, mass), zero)
    best = graph.add("ArgMax", graph.add("Where", boot, lowest, q), axis=1, keepdims=1)
    chosen = graph.add("Equal", best, graph.constant(np.arange(n_actions, dtype=np.int64)))
    _where_not_all(graph, boot, graph.add("Where", chosen, free, held))


def _pi_leq_b(graph: _Graph, q: str, boot: str, n_actions: int) -> None:
    """As `targets.pi_leq_b_rows`; TopK breaks ties by index, as a stable sort does."""
    from onnx import helper

    zero, one = graph.constant(np.float32(0)), graph.constant(np.float32(1))
    order = "order"
    length = graph.constant(np.array([n_actions], np.int64))
    graph.nodes.append(
        helper.make_node("TopK", [q, length], ["sorted_q", order], axis=1, largest=1, sorted=1)
    )
    caps = graph.add("Where", boot, "baseline_probs", one)
    caps = graph.add("GatherElements", caps, order, axis=1)
    given = graph.add("CumSum", caps, graph.constant(np.int64(1)), exclusive=1)
    left = graph.add("Max", graph.add("Sub", one, given), zero)
    filled = graph.add(
        "ScatterElements", "baseline_probs", order, graph.add("Min", caps, left), axis=1
    )
    _where_not_all(graph, boot, filled)


_ROWS = {"pi-b": _pi_b, "pi-leq-b": _pi_leq_b}
