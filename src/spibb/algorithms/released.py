"""What the authors' released code assumes of a task, and the algorithms as they released them."""

from __future__ import annotations

import numpy as np

from spibb.algorithms.problem import Problem
from spibb.errors import InputError
from spibb.kernels import dense


def only_the_end_pays(problem: Problem, name: str) -> None:
    """Refuse a log in which anything but ending pays, or ending pays different rewards."""
    model = problem.data.model
    exits = dense.left_out(model.rows.indptr, model.rows.probs).reshape(model.rewards.shape)
    paid = np.where(model.counts > 0, problem.data.r_high * exits, 0.0)
    if problem.data.r_low < 0 or not np.allclose(model.rewards, paid, atol=1e-9):
        raise InputError(
            f"{name} with released=True is for the paper's tasks, where only a goal that ends the "
            "episode pays, and this log has other rewards: leave released out"
        )
