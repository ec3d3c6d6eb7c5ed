"""Start the example service on loopback, and load it from several clients."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

SERVICE = Path(__file__).parents[2] / "examples" / "serve.py"
READY = 60.0
"""Seconds that the service may take to answer for the first time."""


class Client:
    """One connection that is kept open."""

    def __init__(self, port: int) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)

    def ask(self, path: str, content: Any = None) -> tuple[int, Any]:
        """The status and the answer to a request."""
        method = "GET" if content is None else "POST"
        body = None if content is None else json.dumps(content)
        self.connection.request(method, path, body, {"Content-Type": "application/json"})
        answer = self.connection.getresponse()
        return answer.status, json.loads(answer.read())


@contextlib.contextmanager
def service(policy: Path) -> Iterator[int]:
    """The port of a service that runs until the end of the block."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, str(SERVICE), str(policy), "--port", str(port)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        _wait(process, port)
        yield port
    finally:
        process.terminate()
        process.communicate(timeout=20)


def _wait(process: subprocess.Popen[str], port: int) -> None:
    end = time.monotonic() + READY
    while time.monotonic() < end:
        if process.poll() is not None:
            assert process.stderr is not None
            raise RuntimeError(process.stderr.read())
        with contextlib.suppress(OSError):
            if Client(port).ask("/health")[0] == 200:
                return
        time.sleep(0.1)
    raise TimeoutError("the service does not answer")


def load(
    port: int, clients: int, until: Callable[[int], bool], case: Callable[[int], Any]
) -> list[tuple[float, int, Any, Any]]:
    """Ask from several clients at once until each is told to stop; seconds, status, case, answer.

    `until` and `case` get the number of the request of their client.
    """
    found: list[list[tuple[float, int, Any, Any]]] = [[] for _ in range(clients)]

    def work(mine: list[tuple[float, int, Any, Any]]) -> None:
        client, n = Client(port), 0
        while not until(n):
            asked = case(n)
            begin = time.perf_counter()
            try:
                status, answer = client.ask("/decide", asked)
            except (OSError, http.client.HTTPException) as error:
                status, answer = 0, repr(error)
                client = Client(port)
            mine.append((time.perf_counter() - begin, status, asked, answer))
            n += 1

    threads = [threading.Thread(target=work, args=(mine,)) for mine in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [one for mine in found for one in mine]
