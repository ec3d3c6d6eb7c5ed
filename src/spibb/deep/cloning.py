"""Cloning: the policy that made a log, as far as the log shows it.

Softmax over a network's outputs, fitted by L-BFGS to what was done: −log π(a_j|x_j). Where the log
has recorded probabilities p_j, they say more than one draw, and the loss is the cross entropy
−p_j log π(a_j|x_j) − (1 − p_j) log(1 − π(a_j|x_j)). Of the marginal frequencies, a linear and a
hidden layer, that is kept which predicts episodes best that did not fit it. Plain NumPy: there is
nothing to compile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from spibb.deep.network import MLP
from spibb.deep.policy import SoftmaxBaseline

HIDDEN = (32,)
"""The network that is tried besides the linear one."""
PENALTY = 1e-4
"""Weight decay."""
ITERATIONS = 100
BLOCK = 512
"""Rows whose layers are computed at once."""
CHECKED = 0.25
"""Share of the episodes that choose between the fits."""
MOST_ROWS = 10_000
"""Rows of a fit: whole episodes, the first in the order given."""


class Acted(NamedTuple):
    """What was done: inputs [N, d], action codes [N], recorded probabilities [N] or None."""

    z: np.ndarray
    action: np.ndarray
    prob: np.ndarray | None

    def some(self, which: slice) -> Acted:
        """Some of the rows."""
        return Acted(*(None if part is None else part[which] for part in self))  # type: ignore[arg-type]


@dataclass(frozen=True)
class Clone:
    """A fitted policy, and its mean log-loss in nats on episodes that did not fit it.

    `marginal_loss` is that of the mere frequencies of the actions; `kind` says what was fitted.
    """

    policy: SoftmaxBaseline
    kind: str
    log_loss: float
    marginal_loss: float
    rows_checked: int


def clone(rows: Acted, episode_starts: np.ndarray, n_actions: int) -> Clone:
    """The policy that made these rows, whose episodes start at `episode_starts` [E + 1]."""
    end = _end(episode_starts, min(MOST_ROWS, len(rows.z)))
    cut = _end(episode_starts, round(end * (1 - CHECKED)))
    fitting, checking = (rows.some(slice(0, cut)), rows.some(slice(cut, end)))
    if not len(checking.z):  # one long episode
        fitting = checking = rows.some(slice(0, end))
    marginal = _marginal(fitting, n_actions)
    tried = [("frequencies of the actions", marginal)]
    for hidden, words in (
        ((), "linear softmax"),
        (HIDDEN, f"softmax network of {HIDDEN[0]} units"),
    ):
        tried.append((words, _fit(fitting, n_actions, hidden)))
    losses = [_log_loss(network, checking) for _, network in tried]
    best = int(np.argmin(losses))
    kind, network = tried[best]
    return Clone(SoftmaxBaseline(network, 1.0), kind, losses[best], losses[0], len(checking.z))


def _end(episode_starts: np.ndarray, row: int) -> int:
    """The first end of an episode at or after a row."""
    return int(episode_starts[np.searchsorted(episode_starts, row)])


def _marginal(rows: Acted, n_actions: int) -> MLP:
    """No weights; biases that give the frequencies, with one more row of each action."""
    counts = np.bincount(rows.action, minlength=n_actions) + 1.0
    logits = np.log(counts / counts.sum()).astype(np.float32)
    return MLP((np.zeros((rows.z.shape[1], n_actions), np.float32),), (logits,))


def _log_loss(network: MLP, rows: Acted) -> float:
    taken = SoftmaxBaseline(network, 1.0)(rows.z)[np.arange(len(rows.z)), rows.action]
    return float(-np.log(np.maximum(taken, 1e-12)).mean())


def _fit(rows: Acted, n_actions: int, hidden: Sequence[int]) -> MLP:
    from scipy.optimize import minimize

    sizes = (rows.z.shape[1], *hidden, n_actions)
    start = MLP.init(sizes, np.random.default_rng(0))
    weights = [part.astype(np.float64) for part in (*start.weights, *start.biases)]
    if not hidden:
        weights = [0 * part for part in weights]
    shapes = [part.shape for part in weights]

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = _loss(_parts(flat, shapes), rows)
        return value, np.concatenate([part.ravel() for part in gradient])

    flat = np.concatenate([part.ravel() for part in weights])
    found = minimize(loss, flat, jac=True, method="L-BFGS-B", options={"maxiter": ITERATIONS})
    parts = [part.astype(np.float32) for part in _parts(found.x, shapes)]
    n = len(parts) // 2
    return MLP(tuple(parts[:n]), tuple(parts[n:]))


def _parts(flat: np.ndarray, shapes: Sequence[tuple[int, ...]]) -> list[np.ndarray]:
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1]
    return [part.reshape(shape) for part, shape in zip(np.split(flat, ends), shapes)]


def _loss(parts: Sequence[np.ndarray], rows: Acted) -> tuple[float, list[np.ndarray]]:
    """Mean loss with weight decay, and its gradient.

    Block by block: on large products, BLAS would start threads that mostly wait for each other.
    """
    n, n_weights = len(rows.z), len(parts) // 2
    value, slopes = 0.0, [np.zeros_like(part) for part in parts]
    for first in range(0, n, BLOCK):
        more, steps = _block_loss(parts, rows.some(slice(first, first + BLOCK)))
        value += more / n
        for slope, step in zip(slopes, steps):
            slope += step / n
    for slope, weight in zip(slopes[:n_weights], parts):
        value += 0.5 * PENALTY * float((weight**2).sum())
        slope += PENALTY * weight
    return value, slopes


def _block_loss(parts: Sequence[np.ndarray], rows: Acted) -> tuple[float, list[np.ndarray]]:
    """The sum of the losses of some rows, and its gradient, layer by layer from the last."""
    n = len(parts) // 2
    weights, biases = parts[:n], parts[n:]
    inputs = [rows.z]
    for weight, bias in zip(weights[:-1], biases[:-1]):
        inputs.append(np.maximum(inputs[-1] @ weight + bias, 0))
    value, back = _row_loss(inputs[-1] @ weights[-1] + biases[-1], rows)
    slopes, steps = [], []
    for layer in reversed(range(n)):
        slopes.append(inputs[layer].T @ back)
        steps.append(back.sum(axis=0))
        back = (back @ weights[layer].T) * (inputs[layer] > 0)
    return value, [*reversed(slopes), *reversed(steps)]


def _row_loss(logits: np.ndarray, rows: Acted) -> tuple[float, np.ndarray]:
    """The sum of the losses of rows and its gradient by the logits [N, A]."""
    at = np.arange(len(logits))
    logits = logits - logits.max(axis=1, keepdims=True)
    weights = np.exp(logits)
    q = weights / weights.sum(axis=1, keepdims=True)
    taken = np.maximum(q[at, rows.action], 1e-12)
    back = -q
    back[at, rows.action] += 1
    if rows.prob is None:
        return float(-np.log(taken).sum()), -back
    others = np.maximum(1 - taken, 1e-12)
    value = -(rows.prob * np.log(taken) + (1 - rows.prob) * np.log(others)).sum()
    slope = np.clip((taken - rows.prob) / others, -1e6, 1e6)
    return float(value), back * slope[:, None]
