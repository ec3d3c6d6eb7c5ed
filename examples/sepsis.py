"""Sepsis treatment (ICU-Sepsis): from a simulated log to a report, compared with the truth.

    python examples/sepsis.py [--patients 1000 10000 100000] [--logs 5] [--out icu-sepsis]

Needs the extra: pip install ".[interop]". The package icu-sepsis holds a transition model and
the clinicians' policy, both estimated from MIMIC-III, and no patient's record: logs are simulated.
Its authors warn that the model is a benchmark and must not guide the treatment of patients.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import spibb
from spibb.envs.sepsis import DISCOUNT, MAX_STEPS, icu_sepsis
from spibb.solve import free_box, optimise

ALGORITHMS: dict[str, spibb.Algorithm] = {
    "basic-rl": spibb.BasicRL(),
    "pi-b 5": spibb.PiBSpibb(n_wedge=5),
    "pi-b 20": spibb.PiBSpibb(n_wedge=20),
    "pi-b 100": spibb.PiBSpibb(n_wedge=100),
    "pi-leq-b 20": spibb.PiLeqBSpibb(n_wedge=20),
    "auto": spibb.Auto(),
}


def values(
    mdp: spibb.MDP, clinicians: spibb.Policy, patients: int, rng: np.random.Generator
) -> np.ndarray:
    """What every algorithm's policy is worth, trained on one log: [in truth / in its model, M]."""
    counts = spibb.Sampler(mdp, clinicians, MAX_STEPS).counts(patients, rng=rng)
    problem = spibb.Problem.from_counts(counts, clinicians, discount=DISCOUNT, v_max=1.0)
    results = [algorithm.improve(problem) for algorithm in ALGORITHMS.values()]
    return np.array(
        [[spibb.exact_value(mdp, r.policy) for r in results], [r.value for r in results]]
    )


def print_study(
    mdp: spibb.MDP, clinicians: spibb.Policy, sizes: list[int], logs: int, seed: int
) -> None:
    """Mean (and worst) value over several logs, beside the clinicians' and the best possible."""
    best = float(mdp.initial @ optimise(mdp, free_box(np.ones(mdp.shape, dtype=bool))).v)
    value = spibb.exact_value(mdp, clinicians)
    print(f"true value of the clinicians' policy {value:.4f}, of the best policy {best:.4f}")
    print(f"{'patients':>8} {'over ' + str(logs) + ' logs':>16}", *(f"{n:>16}" for n in ALGORITHMS))
    for size in sizes:
        children = np.random.SeedSequence([seed, size]).spawn(logs)
        rngs = [np.random.default_rng(child) for child in children]
        true, promised = np.stack([values(mdp, clinicians, size, rng) for rng in rngs], axis=1)
        row = [f"{mean:.4f} ({worst:.4f})" for mean, worst in zip(true.mean(0), true.min(0))]
        print(f"{size:>8} {'true (worst)':>16}", *(f"{cell:>16}" for cell in row))
        row = [f"{mean:.4f}" for mean in promised.mean(0)]
        print(f"{'':>8} {'in the model':>16}", *(f"{cell:>16}" for cell in row), flush=True)


GRADED: dict[str, spibb.Algorithm] = {
    "auto": spibb.Auto(),
    "pi-b": spibb.PiBSpibb(n_wedge=20),
    "pi-leq-b": spibb.PiLeqBSpibb(n_wedge=20),
    "certified": spibb.Certified(),
}


def print_grades(
    mdp: spibb.MDP, clinicians: spibb.Policy, sizes: list[int], logs: int, seed: int
) -> None:
    """What the verdict says of each policy, beside what it truly gains."""
    value = spibb.exact_value(mdp, clinicians)
    print(f"\n{'patients':>8} {'log':>4} {'algorithm':>12} {'grade':>14} {'true gain':>10}")
    for size in sizes:
        children = np.random.SeedSequence([seed, size, 1]).spawn(logs)
        for number, child in enumerate(children):
            log = spibb.Sampler(mdp, clinicians, MAX_STEPS).log(
                size, rng=np.random.default_rng(child)
            )
            problem = spibb.Problem.from_log(log, clinicians, discount=DISCOUNT, v_max=1.0)
            for name, algorithm in GRADED.items():
                result = algorithm.improve(problem)
                gain = spibb.exact_value(mdp, result.policy) - value
                grade = result.verdict.grade
                print(f"{size:>8} {number:>4} {name:>12} {grade:>14} {gain:>+10.4f}", flush=True)


def write_report(
    mdp: spibb.MDP, clinicians: spibb.Policy, patients: int, folder: Path, seed: int
) -> None:
    """One log and the clinicians' policy as files, and what `spibb improve` makes of them."""
    folder.mkdir(parents=True, exist_ok=True)
    sampler = spibb.Sampler(mdp, clinicians, MAX_STEPS)
    log = sampler.log(patients, rng=np.random.default_rng(seed)).save(folder / "log.parquet")
    done = spibb.run(
        log, folder / "improved", baseline=clinicians.save(folder / "clinicians.csv"),
        algorithm="auto", discount=DISCOUNT, v_max=1.0, force=True,
    )  # fmt: skip
    print(f"\n{done.verdict}\n{done.folder}")


def main() -> None:
    """The study, then one log from file to report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--patients", type=int, nargs="+", default=[1000, 10_000, 100_000])
    parser.add_argument("--logs", type=int, default=5, help="logs per size")
    parser.add_argument("--graded", type=int, nargs="*", default=[300, 1000, 10_000],
                        help="patients in the logs whose verdicts are printed")  # fmt: skip
    parser.add_argument("--graded-logs", type=int, default=2, help="such logs per size")
    parser.add_argument("--report", type=int, default=10_000, help="patients in the report's log")
    parser.add_argument("--out", type=Path, default=Path("icu-sepsis"))
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    mdp, clinicians = icu_sepsis()
    print_study(mdp, clinicians, given.patients, given.logs, given.seed)
    print_grades(mdp, clinicians, given.graded, given.graded_logs, given.seed)
    write_report(mdp, clinicians, given.report, given.out, given.seed)


if __name__ == "__main__":
    main()
