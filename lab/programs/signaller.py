"""Sends a signal to the first process of the container that this program is started in: ``python -m lab.programs.signaller 9``.

The lab starts it through the API, because a container's process is none of the lab's machine. The pod's containers must share
one PID namespace: the first process of a namespace ignores SIGKILL from inside it (pid_namespaces(7)).
It prints the time (epoch s) and the number of the process as JSON, and then signals: a container that ends ends this program.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

PROC = Path("/proc")


def first_process(own: int, proc: Path = PROC) -> int:
    """The process of the container of process ``own`` that no process of the pod started.

    Processes of one container have one cgroup. The parent of its first process is outside of the namespace, which the kernel
    shows as 0. The parent of ``own`` is too, and ``own`` is not meant. Raises :class:`LookupError` unless there is just one.
    """
    mine = (proc / str(own) / "cgroup").read_text()
    found = []
    for entry in proc.iterdir():
        if not entry.name.isdigit() or int(entry.name) == own:
            continue
        try:
            parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
            cgroup = (entry / "cgroup").read_text()
        except OSError:  # it has ended meanwhile
            continue
        if parent == "0" and cgroup == mine:
            found.append(int(entry.name))
    if len(found) != 1:
        raise LookupError(f"one first process is expected in this container, there are {len(found)}")
    return found[0]


def main(signal: int) -> None:
    """Send ``signal`` to the first process of this container."""
    pid = first_process(os.getpid())
    print(json.dumps({"t": time.time(), "pid": pid}), flush=True)
    os.kill(pid, signal)


if __name__ == "__main__":
    main(int(sys.argv[1]))
