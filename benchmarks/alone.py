"""What a command takes, measured by a small process of its own.

Linux counts the memory of the process that starts a command towards the peak of the command: a
benchmark that has just written a large file would measure itself.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import NamedTuple

MEASURE = """
import json, os, subprocess, sys, time
began = time.perf_counter()
child = subprocess.Popen(sys.argv[1:])
_, status, used = os.wait4(child.pid, 0)
if status:
    raise SystemExit(f"{sys.argv[1:]} ended with {os.waitstatus_to_exitcode(status)}")
cpu, wall = used.ru_utime + used.ru_stime, time.perf_counter() - began
print("\\n" + json.dumps([cpu, wall, used.ru_maxrss / 1024]))
"""


class Taken(NamedTuple):
    """Seconds of processor and wall clock, peak memory in MB, and what was printed."""

    cpu: float
    wall: float
    megabytes: float
    printed: str


def alone(command: list[str]) -> Taken:
    """Run a command that must succeed."""
    started = [sys.executable, "-c", MEASURE, *command]
    text = subprocess.run(started, stdout=subprocess.PIPE, text=True, check=True).stdout
    printed, _, taken = text.strip().rpartition("\n")
    cpu, wall, megabytes = json.loads(taken)
    return Taken(cpu, wall, megabytes, printed.strip())
