"""SPIBB-DQN and its relatives: safe improvement with a neural network, in JAX.

Never imported by the core: the extra `deep` brings what it needs.

>>> from spibb.deep import VectorDQN
>>> VectorDQN(n_wedge=5, passes=20).variant
'pi-b'
"""

from __future__ import annotations

from spibb.errors import install

try:
    import equinox as _equinox  # noqa: F401
    import jax as _jax  # noqa: F401
    import optax as _optax  # type: ignore[import-untyped]  # noqa: F401
except ImportError as error:
    raise ImportError(
        f"spibb.deep needs JAX, Equinox and Optax, and {error.name or error} is missing: "
        f"{install('deep')}"
    ) from error

from spibb.deep.dqn import DeepImprovement, SpibbDQN, train_many
from spibb.deep.estimates import estimate_on
from spibb.deep.improving import VectorDQN, VectorImprovement, improve_vectors
from spibb.deep.lanes import Simulator, collect, episode_returns
from spibb.deep.log import DeepLog
from spibb.deep.network import MLP
from spibb.deep.online import OnlineDQN, OnlineResult
from spibb.deep.policy import DeepPolicy, SoftmaxBaseline, load_policy
from spibb.deep.trainer import DivergenceError
from spibb.deep.vector_policy import VectorPolicy, load_vector_policy

__all__ = [
    "MLP",
    "DeepImprovement",
    "DeepLog",
    "DeepPolicy",
    "DivergenceError",
    "OnlineDQN",
    "OnlineResult",
    "Simulator",
    "SoftmaxBaseline",
    "SpibbDQN",
    "VectorDQN",
    "VectorImprovement",
    "VectorPolicy",
    "collect",
    "episode_returns",
    "estimate_on",
    "improve_vectors",
    "load_policy",
    "load_vector_policy",
    "train_many",
]
