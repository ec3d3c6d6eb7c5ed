"""VectorPolicy: a trained policy with all it needs: columns, units, network, baseline, counts."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from spibb import checks
from spibb.cases import UNKNOWN, case_number, case_numbers, check_case
from spibb.decisions import Decisions as ManyDecisions
from spibb.decisions import check_unseen, choose
from spibb.deep.checkpoint import REMEDY, digest, read_arrays, write_arrays
from spibb.deep.log import finite_states, matrix
from spibb.deep.network import MLP
from spibb.deep.policy import SoftmaxBaseline
from spibb.deep.scaling import Scaling
from spibb.deep.targets import ROWS
from spibb.errors import InputError
from spibb.frozen import Frozen
from spibb.ingest.loaded import Loaded
from spibb.ingest.mapping import MAPPING, ColumnMap
from spibb.ingest.policy_files import vector_policy_file
from spibb.ingest.whole_policy import STORED_VERDICT
from spibb.labels import Label, Vocabulary
from spibb.loading import (
    anything,
    array,
    either,
    flag,
    list_of,
    null,
    parse_json,
    record,
    table_of,
    text,
    whole,
)
from spibb.pseudocounts import counts_within

KIND = "vector policy"
FORMS = {
    "format": array("iu"), "features": array("U", 1), "actions": array("U"),
    "action_names": array("U", 1), "centre": array("f", 1), "spread": array("f", 1),
    "points": array("f", 2), "point_actions": array("iu", 1), "radius": array("f"),
    "n_wedge": array("fiu"), "variant": array("U"), "discount": array("f"),
    "reward_unit": array("f"), "temperature": array("f"), "current_fit": array("f", 1),
    "known": array("U"),
}  # fmt: skip
_PART = either(flag(), whole(), text())
LABELS = list_of(either(_PART, list_of(_PART, least=2)), least=1)
KNOWN = record({
    "origin": table_of(anything()), "reading": either(null(), MAPPING),
    "verdict": either(null(), STORED_VERDICT),
})  # fmt: skip
FARTHEST = 1e12
"""Standard deviations from the log's mean beyond which numbers of 32 bits may overflow."""
PIECE = 1 << 16
"""Cases that are decided at a time."""


@dataclass(frozen=True, eq=False)
class VectorPolicy(Loaded):
    """π(a|x) for states in the columns `features` and actions with labels, in the log's own units.

    `scaling` turns states [M, d] into the inputs z of all else: the Q-network (values in
    `reward_unit`), the baseline, and pseudo-counts of logged `points` [n, d] (in z) with
    `point_actions` [n] within `radius`. Called with states, it gives probabilities [M, A].
    `current_fit` (a, b) says what the current policy earns from a state, about a + b V̂. `origin`,
    `verdict` and `reading` (how the log was read) are those of a `LoadedPolicy`.
    """

    features: tuple[str, ...]
    actions: Vocabulary
    scaling: Scaling
    network: MLP
    baseline: SoftmaxBaseline
    points: np.ndarray
    point_actions: np.ndarray
    radius: float
    n_wedge: float
    variant: str
    discount: float
    reward_unit: float
    current_fit: tuple[float, float] = (0.0, 1.0)
    origin: Mapping[str, Any] = field(default_factory=dict)
    verdict: Mapping[str, Any] | None = None
    reading: ColumnMap | None = None

    def _facts(self) -> Mapping[str, Any]:
        """What it takes and gives."""
        return {
            "features": ", ".join(self.features), "actions": len(self.actions),
            "n_wedge": self.n_wedge, "radius": self.radius, "states_known": len(self.points),
        }  # fmt: skip

    def __call__(self, states: Any) -> np.ndarray:
        """Probabilities [M, A] at states [M, d]."""
        return self.at(states).probs

    def at(self, states: Any) -> VectorDecisions:
        """Everything that the policy knows of states [M, d]."""
        z = self.inputs(states)
        q = self.network.values(z)
        baseline, counts = self.baseline(z), self.counts(z)
        bootstrapped = counts.astype(np.float32) < np.float32(self.n_wedge)
        probs = ROWS[self.variant](q, baseline, bootstrapped, np)
        _check_answers(q, probs)
        return VectorDecisions(probs, q.astype(np.float64) * self.reward_unit, baseline, counts)

    def inputs(self, states: Any) -> np.ndarray:
        """States [M, d] in the units of the networks."""
        states = matrix(states, "states")
        if states.shape[1] != len(self.features):
            raise InputError(
                f"states have {states.shape[1]} columns, expected {len(self.features)}: "
                f"{', '.join(self.features)}"
            )
        finite_states(states, "states")
        if (far := self._far(states)).any():
            raise self._too_far(states, far, 0)
        return self.scaling(states)

    def _far(self, states: np.ndarray) -> np.ndarray:
        """bool [M]: states of which the network would give no number."""
        with np.errstate(over="ignore"):
            return np.asarray((np.abs(self.scaling(states)) > FARTHEST).any(axis=1))

    def _too_far(self, states: np.ndarray, far: np.ndarray, first_row: int) -> InputError:
        """The refusal of states that are too far off: the first, and how many."""
        row = int(np.argmax(far))
        with np.errstate(over="ignore"):
            feature = int(np.argmax(np.abs(self.scaling(states[row : row + 1]))))
        return InputError(
            f"{self.features[feature]!r} is {states[row, feature]:g} in row {row + first_row} of "
            f"the cases, expected within {FARTHEST:g} standard deviations of the log "
            f"({checks.such_rows(far.sum())}): check its unit, or follow the current policy there"
        )

    @cached_property
    def counts(self) -> Any:
        """Pseudo-counts [M, A] at inputs [M, d]."""
        return counts_within(self.points, self.point_actions, len(self.actions), self.radius)

    @property
    def state_names(self) -> tuple[str, ...]:
        """The columns of a state."""
        return self.features

    @property
    def number_names(self) -> tuple[str, ...]:
        """All of them."""
        return self.features

    def encode(self, case: Mapping[str, Any] | Label) -> Label:
        """The numbers of a case, in the order of the columns."""
        if not isinstance(case, Mapping):
            values = tuple(case) if isinstance(case, tuple | list | np.ndarray) else (case,)
            if len(values) != len(self.features):
                raise InputError(
                    f"a case has {len(values)} numbers, expected {len(self.features)}: "
                    f"{', '.join(self.features)}"
                )
            case = dict(zip(self.features, values))
        check_case(case, self.features)
        found = tuple(case_number(name, case[name]) for name in self.features)
        for name, value in zip(self.features, found):
            if math.isnan(value):
                raise InputError(
                    f"{name!r} is missing: give a number, or follow the current policy"
                )
        return found if len(found) > 1 else found[0]

    @property
    def example(self) -> Label:
        """The mean of the log's states."""
        return self.encode(tuple(self.scaling.centre.tolist()))

    def row(self, case: Mapping[str, Any] | Label) -> dict[Label, float]:
        """The distribution over actions for a case: one number for each feature."""
        return dict(
            zip(self.actions.labels, self(np.reshape(self.encode(case), (1, -1)))[0].tolist())
        )

    def act_many(
        self,
        cases: Any,
        *,
        seed: int = 0,
        deterministic: bool = False,
        unseen: str = "error",
        first_row: int = 0,
    ) -> ManyDecisions:
        """An action for each of many cases, as `spibb.LoadedPolicy.act_many` gives them.

        `unseen` is about cases in which a number is missing, or so far from all that the log has
        that the network has no answer.
        """
        check_unseen(unseen)
        states = case_numbers(cases, self.features)
        known = ~np.isnan(states).any(axis=1)
        if unseen == "error" and not known.all():
            raise _missing(states, self.features, first_row)
        far = known & self._far(states)
        if unseen == "error" and far.any():
            raise self._too_far(states, far, first_row)
        known &= ~far
        probs = np.full((len(states), len(self.actions)), 1 / len(self.actions))
        for piece in np.array_split(np.flatnonzero(known), -(-len(states) // PIECE) or 1):
            if len(piece):
                probs[piece] = self(states[piece])
        return choose(
            probs, np.where(known, np.arange(len(states)), UNKNOWN), self.actions, seed=seed,
            deterministic=deterministic, first_row=first_row,
        )  # fmt: skip

    @property
    def own(self) -> ColumnMap:
        """How its log was read."""
        known = self.reading or ColumnMap()
        names = {"state": self.features, "action": self.actions.names}
        return ColumnMap({**known.columns, **names}, {}, known.said)

    def reordered(self, features: np.ndarray, actions: np.ndarray) -> VectorPolicy:
        """The same policy with column k at the place features[k], and action a at actions[a]."""
        columns, rows = np.argsort(features), np.argsort(actions)
        return replace(
            self, features=tuple(self.features[k] for k in columns),
            actions=Vocabulary(tuple(self.actions[a] for a in rows), self.actions.names),
            scaling=Scaling(self.scaling.centre[columns], self.scaling.spread[columns]),
            network=_reordered(self.network, columns, rows),
            baseline=replace(
                self.baseline, network=_reordered(self.baseline.network, columns, rows)
            ),
            points=self.points[:, columns], point_actions=actions[self.point_actions],
        )  # fmt: skip

    @cached_property
    def sha256(self) -> str:
        """The hash of all of it, which its file has too."""
        return digest(self._arrays())

    def save(self, path: str | Path) -> Path:
        """Write everything as one .npz, with its hash; `load_vector_policy` reads it."""
        return write_arrays(path, self._arrays())

    def _arrays(self) -> dict[str, np.ndarray]:
        """All of it as arrays by name."""
        named = {
            "kind": KIND, "format": 1, "features": np.array(self.features),
            "actions": json.dumps([*self.actions.labels]),
            "action_names": np.array(self.actions.names),
            "centre": self.scaling.centre, "spread": self.scaling.spread,
            "points": self.points, "point_actions": self.point_actions,
            "radius": float(self.radius), "n_wedge": float(self.n_wedge), "variant": self.variant,
            "discount": float(self.discount), "reward_unit": float(self.reward_unit),
            "temperature": float(self.baseline.temperature),
            "current_fit": np.array(self.current_fit, np.float64),
            "known": json.dumps({
                "origin": dict(self.origin), "verdict": self.verdict,
                "reading": None if self.reading is None else self.reading.content,
            }, default=str),
            **_prefixed("q", self.network), **_prefixed("baseline", self.baseline.network),
        }  # fmt: skip
        return {name: np.asarray(value) for name, value in named.items()}

    def export_onnx(self, path: str | Path) -> None:
        """Write the whole policy as an ONNX graph: state [M, d] → pi, q, baseline_probs, counts."""
        from spibb.deep.onnx_graph import export_whole

        export_whole(self, Path(path))


@dataclass(frozen=True, eq=False)
class VectorDecisions(Frozen):
    """At M states, all [M, A]: new probabilities, Q-values, the baseline's rows, pseudo-counts."""

    probs: np.ndarray
    q: np.ndarray
    baseline: np.ndarray
    counts: np.ndarray


def load_vector_policy(path: str | Path) -> VectorPolicy:
    """Read what `VectorPolicy.save` wrote, or the folder of `spibb improve --algorithm dqn`.

    Nothing is trusted: the hash, every type, every shape and every number are checked.
    """
    path = vector_policy_file(path) or Path(path)
    arrays = read_arrays(path, KIND, FORMS)
    what = f"{KIND} {str(path)!r}"
    labels = parse_json(str(arrays["actions"]), LABELS, f"{what}: actions", REMEDY)
    actions = Vocabulary(
        tuple(tuple(label) if isinstance(label, list) else label for label in labels),
        tuple(arrays["action_names"].tolist()),
    )
    features = tuple(arrays["features"].tolist())
    known = parse_json(str(arrays["known"]), KNOWN, f"{what}: known", REMEDY)
    _check_shapes(arrays, len(features), len(actions), what)
    return VectorPolicy(
        features, actions, Scaling(arrays["centre"], arrays["spread"]),
        _network(arrays, "q", (len(features), len(actions)), what),
        SoftmaxBaseline(
            _network(arrays, "baseline", (len(features), len(actions)), what),
            float(arrays["temperature"]),
        ),
        arrays["points"], arrays["point_actions"], _positive(arrays, "radius", what),
        checks.n_wedge(float(arrays["n_wedge"])),
        checks.choice("variant", str(arrays["variant"]), tuple(ROWS)),
        checks.discount(float(arrays["discount"])), _positive(arrays, "reward_unit", what),
        (float(arrays["current_fit"][0]), float(arrays["current_fit"][1])),
        known["origin"], known["verdict"],
        None if known["reading"] is None else ColumnMap.of(known["reading"]),
    )  # fmt: skip


def _check_answers(q: np.ndarray, probs: np.ndarray) -> None:
    """Refuse to decide where a network gave no number; `FARTHEST` is for weights of usual size."""
    bad = ~(np.isfinite(q) & np.isfinite(probs)).all(axis=1)
    if bad.any():
        raise InputError(
            f"the networks returned NaN or infinity in row {int(np.argmax(bad))} of the states "
            f"({checks.such_rows(bad.sum())}): train the policy again, or follow the current "
            "policy there"
        )


def _missing(states: np.ndarray, features: Sequence[str], first_row: int) -> InputError:
    """The refusal of cases in which a number is missing: the first, and how many."""
    rows = np.flatnonzero(np.isnan(states).any(axis=1))
    feature = features[int(np.argmax(np.isnan(states[rows[0]])))]
    return InputError(
        f"{feature!r} is missing in row {rows[0] + first_row} of the cases "
        f"({checks.such_rows(len(rows))}): fill it, or decide the others with unseen='empty' "
        "(--unseen empty)"
    )


def _check_shapes(
    arrays: Mapping[str, np.ndarray], n_features: int, n_actions: int, what: str
) -> None:
    wanted = {"centre": (n_features,), "spread": (n_features,), "current_fit": (2,),
              "points": (len(arrays["point_actions"]), n_features)}  # fmt: skip
    for name, shape in wanted.items():
        if arrays[name].shape != shape or not np.isfinite(arrays[name]).all():
            raise InputError(
                f"{what}: {name} has shape {arrays[name].shape} or numbers that are not finite, "
                f"expected finite numbers of shape {shape}: {REMEDY}"
            )
    codes = arrays["point_actions"]
    if not (arrays["spread"] > 0).all() or not ((codes >= 0) & (codes < n_actions)).all():
        raise InputError(f"{what}: spread or point_actions are out of range: {REMEDY}")


def _positive(arrays: Mapping[str, np.ndarray], name: str, what: str) -> float:
    value = float(arrays[name])
    if not 0 < value < np.inf:
        raise InputError(f"{what}: {name} is {value:g}, expected a positive number: {REMEDY}")
    return value


def _prefixed(prefix: str, network: MLP) -> dict[str, np.ndarray]:
    return {f"{prefix}_{name}": value for name, value in network.to_arrays().items()}


def _network(
    arrays: Mapping[str, np.ndarray], prefix: str, ends: tuple[int, int], what: str
) -> MLP:
    mine = {
        name.removeprefix(f"{prefix}_"): value
        for name, value in arrays.items()
        if name.startswith((f"{prefix}_weight_", f"{prefix}_bias_"))
    }
    network = MLP.from_arrays(mine, f"{what}: {prefix}")
    if (network.sizes[0], network.sizes[-1]) != ends:
        raise InputError(
            f"{what}: the network {prefix} goes from {network.sizes[0]} to {network.sizes[-1]}, "
            f"expected {ends[0]} features to {ends[1]} actions: {REMEDY}"
        )
    return network


def _reordered(network: MLP, columns: np.ndarray, rows: np.ndarray) -> MLP:
    weights, biases = list(network.numpy().weights), list(network.numpy().biases)
    weights[0] = weights[0][columns]
    weights[-1], biases[-1] = weights[-1][:, rows], biases[-1][rows]
    return MLP(tuple(weights), tuple(biases))
