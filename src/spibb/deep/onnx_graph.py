"""A DeepPolicy as an ONNX graph, for serving outside Python.

Inputs `state` [M, d], `baseline_probs` [M, A] and `counts` [M, A]; outputs `pi` [M, A] and `q`
[M, A], all 32-bit. The greedy row of Π_b or Π_≤b is part of the graph, so that the server has
only the baseline and the pseudo-counts to bring.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spibb.errors import install
from spibb.files import write_whole

if TYPE_CHECKING:
    from spibb.deep.policy import DeepPolicy

OPSET = 17


class _Graph:
    """Nodes and constants, added in order."""

    def __init__(self) -> None:
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
    """Write the policy's graph."""
    try:
        from onnx import TensorProto, helper, save
    except ImportError:
        raise ImportError(f"export_onnx needs onnx: {install('deep')}") from None
    sizes = policy.network.sizes
    graph = _Graph()
    q = _network(graph, policy)
    boot = graph.add("Less", "counts", graph.constant(np.float32(policy.n_wedge)))
    _ROWS[policy.variant](graph, q, boot, sizes[-1])

    def value(name: str, width: int) -> Any:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", width])

    inputs = [value("state", sizes[0]), value("baseline_probs", sizes[-1])]
    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "spibb_policy",
            [*inputs, value("counts", sizes[-1])],
            [value("pi", sizes[-1]), value("q", sizes[-1])],
            graph.constants,
        ),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=8,
        producer_name="spibb",
    )
    write_whole(path, lambda place: save(model, str(place)))


def _network(graph: _Graph, policy: DeepPolicy) -> str:
    layers = list(zip(policy.network.weights, policy.network.biases))
    x = "state"
    for weight, bias in layers[:-1]:
        x = graph.add("Relu", _layer(graph, x, weight, bias))
    return _layer(graph, x, *layers[-1], out="q")


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
