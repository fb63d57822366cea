"""How fast this machine is at this moment. Two virtual machines of one name may differ by half (docs/decisions/70).

As a program it is the work of one core. It says that it is up, reads when to begin, and prints its counts.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import zlib
from collections.abc import Sequence
from contextlib import ExitStack

ROUNDS, ROUND_S = 3, 0.2
DEADLINE_S = 60.0  # of what takes 0.6 s
EVENT = {"id": 4_711_000, "key": "driver-4711", "sent": 1_764_000_000.125, "value": "x" * 200}


def measure_speed() -> float:
    """Events that all cores at once encode, check and decode in a second, in the best of three rounds. It takes some 0.7 s.

    The best round counts, because whatever else runs can only make a round slower. A core is one process' work, as a pod is.
    Raises OSError where a process can't be started, ``subprocess.SubprocessError`` or ValueError where one does not end well.
    """
    command = [sys.executable, "-I", __file__]
    with ExitStack() as started:
        workers = [
            started.enter_context(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
            for _ in range(os.cpu_count() or 1)
        ]
        for one in workers:
            started.callback(one.kill)  # which does nothing to one that has ended
        for one in workers:
            assert one.stdout is not None
            one.stdout.readline()
        begin = time.monotonic()
        for one in workers:
            assert one.stdin is not None
            one.stdin.write(f"{begin!r}\n")
            one.stdin.flush()
        return best([json.loads(one.communicate(timeout=DEADLINE_S)[0]) for one in workers])


def best(counts: Sequence[Sequence[int]]) -> float:
    """Events a second of the round in which all processes together did most; ``counts`` has each process' rounds."""
    return max(map(sum, zip(*counts, strict=True))) / ROUND_S


def count(until: float) -> int:
    """How many events this process encodes, checks and decodes ``until`` a moment of the monotonic clock, which all share."""
    done = 0
    while time.monotonic() < until:
        text = json.dumps(EVENT).encode()
        zlib.crc32(text)
        json.loads(text)
        done += 1
    return done


if __name__ == "__main__":
    print("up", flush=True)
    start = float(sys.stdin.readline())
    print(json.dumps([count(start + ROUND_S * (number + 1)) for number in range(ROUNDS)]))
