"""SPIBB-DQN's gradient step per network, against the same step in eager PyTorch, on one core."""

from __future__ import annotations

import itertools
import os
import time

import numpy as np

N_NETWORKS, N_TRANSITIONS, BATCH, SIZES = 16, 10_000, 32, (4, 32, 128, 32, 9)
ROUNDS, STEPS_PER_ROUND, REPEATS = 10, 10, 12


def random_columns(seed=0):
    """A log of the helicopter's shape."""
    rng = np.random.default_rng(seed)
    n = N_TRANSITIONS
    return {
        "states": rng.normal(size=(n, 4)),
        "next_states": rng.normal(size=(n, 4)),
        "next_baseline_probs": rng.dirichlet(np.ones(9), n),
        "next_counts": rng.exponential(5, (n, 9)),
        "actions": rng.integers(0, 9, n),
        "rewards": rng.normal(size=n),
        "continues": (rng.random(n) < 0.9) * 1.0,
    }


def torch_step(columns):
    """One eager SPIBB-DQN step as a research script has it; None without PyTorch."""
    try:
        import torch
    except ImportError:
        return None
    torch.set_num_threads(1)

    def network():
        layers = []
        for m, n in itertools.pairwise(SIZES):
            layers += [torch.nn.Linear(m, n), torch.nn.ReLU()]
        return torch.nn.Sequential(*layers[:-1])

    online, target = network(), network()
    optimiser = torch.optim.RMSprop(online.parameters(), lr=0.001, alpha=0.95, eps=1e-7)
    data = {name: torch.tensor(column).float() for name, column in columns.items()}
    data["actions"] = data["actions"].long()

    def step():
        rows = torch.randint(0, N_TRANSITIONS, (BATCH,))
        batch = {name: column[rows] for name, column in data.items()}
        with torch.no_grad():
            boot = batch["next_counts"] < 5
            held = torch.where(boot, batch["next_baseline_probs"], 0.0)
            judge = online(batch["next_states"]).masked_fill(boot, -torch.inf)
            values = target(batch["next_states"])
            best = values.gather(1, judge.argmax(1, keepdim=True))[:, 0]
            following = (held * values).sum(1) + (1 - held.sum(1)) * best
            wanted = batch["rewards"] + 0.9 * batch["continues"] * following
        taken = online(batch["states"]).gather(1, batch["actions"][:, None])[:, 0]
        loss = torch.nn.functional.mse_loss(taken, wanted)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()

    return step


def jax_rounds(columns, n_networks, variant="pi-b"):
    """A call that trains n networks for some rounds, and what it compiled to."""
    import jax
    import jax.numpy as jnp

    from spibb.deep import SpibbDQN, trainer
    from spibb.deep.log import DeepLog

    log = DeepLog(
        columns["states"], columns["actions"], columns["rewards"], columns["next_states"],
        columns["continues"] == 0, next_baseline_probs=columns["next_baseline_probs"],
    )  # fmt: skip
    program = SpibbDQN(variant=variant).program(log)
    networks = [(5.0, 0.0, seed) for seed in range(n_networks)]
    state, of_each = trainer.start(program, networks), trainer.each(networks)
    table = jnp.asarray(trainer.pack(columns | {"penalties": np.zeros(N_TRANSITIONS)}))

    def call():
        jax.block_until_ready(trainer.run(program, state, of_each, table, N_TRANSITIONS, 0, ROUNDS))

    return call


def rounds_of(jobs, repeats=REPEATS):
    """Best seconds of each job; jobs take turns, so that other work disturbs all alike."""
    for job in jobs:
        job()
    best = [float("inf")] * len(jobs)
    for _ in range(repeats):
        for i, job in enumerate(jobs):
            begin = time.perf_counter()
            job()
            best[i] = min(best[i], time.perf_counter() - begin)
    return best


def main() -> None:
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})  # before JAX starts its threads
    try:
        report()
    finally:
        os.sched_setaffinity(0, cores)


def report() -> None:
    columns = random_columns()
    steps = ROUNDS * STEPS_PER_ROUND
    eager = torch_step(columns)
    jobs = [jax_rounds(columns, N_NETWORKS), jax_rounds(columns, N_NETWORKS, "pi-leq-b"),
            jax_rounds(columns, 1)]  # fmt: skip
    per_step = [steps * N_NETWORKS, steps * N_NETWORKS, steps]
    if eager is not None:
        jobs.append(lambda: [eager() for _ in range(steps)])
        per_step.append(steps)
    micros = [1e6 * seconds / n for seconds, n in zip(rounds_of(jobs), per_step)]
    print(
        f"SPIBB-DQN gradient step per network, batch {BATCH}, {'-'.join(map(str, SIZES))}, 1 core"
    )
    names = [f"JAX, {N_NETWORKS} networks, Π_b", f"JAX, {N_NETWORKS} networks, Π_≤b",
             "JAX, 1 network, Π_b", "PyTorch eager"]  # fmt: skip
    for name, mine in zip(names, micros):
        ratio = f"{micros[-1] / mine:8.1f}×" if eager is not None else ""
        print(f"  {name:24}{mine:9.1f} µs{ratio}")
    if eager is None:
        print("  PyTorch is not installed: no ratio (pip install torch)")
    else:
        print(f"  target: 15× with {N_NETWORKS} networks; measured {micros[-1] / micros[0]:.1f}×")


if __name__ == "__main__":
    main()
