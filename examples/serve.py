"""A policy as a web service that takes up a new policy file without a restart.

    python examples/serve.py policy.spibb --port 8000

POST /decide       {"ward": "A", "age": 31}           one case: an action, drawn
POST /decide_many  {"ward": ["A", "B"], "age": [31, 4]}   many, by columns
GET  /health                                          which policy, and what is wrong if anything is

Replace the file by renaming another over it (`spibb export … --out new.spibb && mv new.spibb
policy.spibb`): requests under way are answered by the old policy, later ones by the new.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import numpy as np
import uvicorn
from fastapi import FastAPI, HTTPException

import spibb

LOOK_EVERY = 0.2
"""Seconds between two looks at the file."""


def make_app(path: str) -> FastAPI:
    """The service for a policy file, or for the folder that `spibb improve` wrote."""
    live, rng = spibb.LivePolicy(path), np.random.default_rng()

    async def follow() -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY)
            await asyncio.to_thread(live.refresh)

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        task = asyncio.create_task(follow())
        yield
        task.cancel()

    app = FastAPI(title="Decisions", lifespan=lifespan)

    @app.post("/decide")
    async def decide(case: dict[str, Any]) -> dict[str, Any]:
        loaded = live.current  # one policy for all of this request
        try:
            state = loaded.encode(case)
        except spibb.InputError as error:
            raise HTTPException(422, str(error)) from None
        try:
            row = loaded.row(state)
        except spibb.InputError as error:  # the log knows nothing of it: act as before
            raise HTTPException(404, str(error)) from None
        actions, chances = list(row), list(row.values())
        drawn = rng.choice(len(row), p=chances)
        return {"action": actions[drawn], "probability": chances[drawn], "policy": loaded.sha256}

    @app.post("/decide_many")
    def decide_many(cases: dict[str, list[Any]]) -> dict[str, Any]:
        loaded = live.current
        seed = int(np.random.default_rng().integers(2**63))
        try:
            decided = loaded.act_many(cases, seed=seed, unseen="empty")
        except spibb.InputError as error:
            raise HTTPException(422, str(error)) from None
        chances = [None if p != p else p for p in decided.probability.tolist()]
        return {"actions": decided.labels, "probabilities": chances, "policy": loaded.sha256}

    @app.get("/health")
    async def health() -> dict[str, Any]:
        loaded = live.current
        return {
            "policy": loaded.sha256, "columns": loaded.state_names,
            "verdict": loaded.verdict, "problem": live.problem,
        }  # fmt: skip

    return app


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("policy")
    parser.add_argument("--port", type=int, default=8000)
    given = parser.parse_args()
    uvicorn.run(make_app(given.policy), host="127.0.0.1", port=given.port, log_level="warning")
