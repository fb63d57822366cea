"""How fast this machine is at this moment. Two virtual machines of one name may differ (docs/decisions/02).

As a program it is the work of one core: it gets the moment at which the first round begins, and prints the count of each round.
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

ROUNDS, ROUND_S = 4, 0.2  # the interpreters start in the first round
DEADLINE_S = 60.0  # of what takes 0.8 s
EVENT = {"id": 4_711_000, "key": "driver-4711", "sent": 1_764_000_000.125, "value": "x" * 200}


def measure_speed() -> float:
    """Events/s that all cores together encode, check and decode in the best round, which others disturbed least. 0.8 s.

    Raises OSError, ``subprocess.SubprocessError`` or ValueError where a process does not start or end well.
    """
    command = [sys.executable, "-I", __file__, repr(time.monotonic())]
    with ExitStack() as started:
        workers = []
        for _ in range(os.cpu_count() or 1):
            workers.append(started.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True)))
            started.callback(workers[-1].kill)  # which does nothing to one that has ended
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
    begin = float(sys.argv[1])
    print(json.dumps([count(begin + ROUND_S * (number + 1)) for number in range(ROUNDS)]))
