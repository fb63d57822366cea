"""``python -m lab.programs.signaller 9``: sends a signal to the first process of the container that it is started in.

Started through the API in a pod whose containers share one PID namespace: the first process of a namespace ignores SIGKILL from
inside it. It prints the time (epoch s) and the pid as JSON before, since it ends with the container.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

PROC = Path("/proc")


def first_process(own: int, proc: Path = PROC) -> int:
    """The first process of the container of ``own``: the other one of its cgroup whose parent is outside (0).

    Raises :class:`LookupError` unless there is just one.
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
