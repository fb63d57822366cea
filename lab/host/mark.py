"""The mark of a run: a variable in the environment of everything that the lab starts for it. A run's processes are found by it.

A process inherits the mark from its parent, so a process that no register knows is found too.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psutil

from lab.host import identity

VARIABLE = "ELASTIC_LAB_RUN"
EXEC_S = 0.1  # while a process changes its program it has no environment for less than a millisecond


def environment(run: Path, env: Mapping[str, str] | None = None) -> dict[str, str]:
    """``env`` (this process's own if there is none) with the mark of ``run``."""
    return {**(os.environ if env is None else env), VARIABLE: str(run.resolve())}


def unmarked() -> dict[str, str]:
    """This process's environment without any run's mark."""
    return {name: value for name, value in os.environ.items() if name != VARIABLE}


@contextmanager
def inherited(run: Path) -> Iterator[None]:
    """Mark this process's own environment, so that everything started in the block inherits the mark."""
    before = os.environ.get(VARIABLE)
    os.environ.update(environment(run, {}))
    try:
        yield
    finally:
        del os.environ[VARIABLE]
        os.environ.update({} if before is None else {VARIABLE: before})


def marked() -> dict[Path, set[int]]:
    """The pids of the machine's marked processes, by run folder; this process and other users' are left out."""
    prefix = f"{VARIABLE}=".encode()
    found: dict[Path, set[int]] = {}
    waiting = {pid for pid in psutil.pids() if pid != os.getpid()}
    deadline = time.monotonic() + EXEC_S
    while waiting:
        unknown = set()
        for pid in waiting:
            variables = _variables(pid)
            if variables is None:
                unknown.add(pid)
                continue
            value = next((one.removeprefix(prefix) for one in variables if one.startswith(prefix)), None)
            if value is not None:
                found.setdefault(Path(os.fsdecode(value)), set()).add(pid)
        waiting = unknown if time.monotonic() < deadline else set()
        if waiting:
            threading.Event().wait(0.002)  # the kernel sends no event at the end of an exec
    return found


def _variables(pid: int) -> list[bytes] | None:
    """The environment that process ``pid`` was started with; None when it is empty, as it is for a moment at the start."""
    try:
        content = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return []
    if content:
        return content.split(b"\0")
    known = identity.stat(pid)
    return [] if known is None or known.kernel else None
