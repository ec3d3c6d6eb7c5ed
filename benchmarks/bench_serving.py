"""Decisions: a table of cases against a pandas merge, and the example service under load."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd  # type: ignore[import-untyped]

from spibb import Bins, LoadedPolicy, Policy, Vocabulary

ROWS = 2_000_000
REQUESTS, CLIENTS = 2_000, 4


def policy() -> LoadedPolicy:
    """1,080 states of a ward, an age and a severity; five actions."""
    rng, ages = np.random.default_rng(0), Bins(tuple(range(10, 90, 10)))
    states = [(f"ward-{w}", age, s) for w in range(40) for age in ages.labels for s in range(3)]
    probs = rng.dirichlet(np.ones(5), len(states))
    known = Vocabulary(states, ("ward", "age", "severity"))
    return LoadedPolicy(Policy(probs, known, list("abcde")), {"age": ages}, {})


def cases() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    return pd.DataFrame({
        "ward": pd.Series(rng.integers(0, 40, ROWS)).map(lambda w: f"ward-{w}"),
        "age": rng.uniform(0, 100, ROWS), "severity": rng.integers(0, 3, ROWS),
    })  # fmt: skip


def merged(loaded: LoadedPolicy, frame: pd.DataFrame) -> pd.Series:
    """The same by cut and merge: the most probable action."""
    cut = loaded.bins["age"]
    table = pd.DataFrame(loaded.policy.states.labels, columns=["ward", "age", "severity"])
    table["action"] = np.array(list("abcde"))[loaded.policy.probs.argmax(axis=1)]
    edges = [-np.inf, *cut.edges, np.inf]
    binned = pd.cut(frame["age"], edges, right=False, labels=list(cut.labels)).astype(str)
    return frame.assign(age=binned).merge(table, how="left")["action"]


def seconds(job: Callable[[], object], repeats: int = 3) -> tuple[float, float]:
    """Seconds by the clock and of processor time, the least of several rounds; one more before."""
    job()
    found = []
    for _ in range(repeats):
        clock, processor = time.perf_counter(), time.process_time()
        job()
        found.append((time.perf_counter() - clock, time.process_time() - processor))
    return min(wall for wall, _ in found), min(used for _, used in found)


def tables() -> None:
    loaded, frame = policy(), cases()
    assert merged(loaded, frame).tolist() == loaded.act_many(frame, deterministic=True).labels
    jobs = {
        "pandas cut and merge": lambda: merged(loaded, frame),
        "act_many, drawn": lambda: loaded.act_many(frame),
        "act_many, most probable": lambda: loaded.act_many(frame, deterministic=True),
    }
    peer = None
    for name, job in jobs.items():
        wall, used = seconds(job)
        peer = peer or used
        print(f"{name + ':':25} {ROWS / wall / 1e6:5.2f} million rows/s by the clock, "
              f"{ROWS / used / 1e6:5.2f} processor, {peer / used:.1f} × pandas")  # fmt: skip


def service() -> None:
    sys.path.append(str(Path(__file__).parents[1] / "tests" / "serving"))
    import loading  # type: ignore[import-not-found]

    rng = np.random.default_rng(2)
    asked = [
        {"ward": f"ward-{w}", "age": a, "severity": s}
        for w, a, s in zip(rng.integers(0, 40, 500).tolist(), rng.uniform(0, 99, 500).tolist(),
                           rng.integers(0, 3, 500).tolist())
    ]  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "policy.spibb"
        policy().save(path)
        with loading.service(path) as port:
            loading.load(port, CLIENTS, lambda n: n >= 100, lambda n: asked[n % 500])
            begin = time.perf_counter()
            each = REQUESTS // CLIENTS
            found = loading.load(port, CLIENTS, lambda n: n >= each, lambda n: asked[n % 500])
            lasted = time.perf_counter() - begin
    assert {status for _, status, _, _ in found} == {200}
    times = np.sort([one[0] for one in found]) * 1000
    print(f"service, 1 process, {CLIENTS} clients: {len(found) / lasted:.0f} requests/s, "
          f"median {np.median(times):.1f} ms, p99 {np.quantile(times, 0.99):.1f} ms")  # fmt: skip


def main() -> None:
    tables()
    service()


if __name__ == "__main__":
    main()
