"""The ways in which a run's processes are recognised: the identity behind a pid, and the mark of a run.

An identity is a process's start in clock ticks since the boot, and the boot. A step of the wall clock moves neither. The mark
is a variable in the environment of everything that the lab starts for a run. A process inherits it from its parent, so a
process that no register knows is found too.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import psutil

_KERNEL_THREAD = 0x00200000  # PF_KTHREAD
_ENDED = "ZX"


@dataclass(frozen=True)
class Identity:
    """A process: its pid, its start in clock ticks since the boot, and the boot's id."""

    pid: int
    ticks: int
    boot: str


@dataclass(frozen=True)
class Stat:
    """A running process as the kernel describes it: its session, its start in clock ticks, whether it is the kernel's own."""

    session: int
    ticks: int
    kernel: bool


def stat(pid: int) -> Stat | None:
    """The kernel's description of process ``pid``; None when there is none, or only a zombie."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()  # the name before it may hold anything
    if len(fields) < 20 or fields[0] in _ENDED:
        return None
    return Stat(session=int(fields[3]), ticks=int(fields[19]), kernel=bool(int(fields[6]) & _KERNEL_THREAD))


def identify(pid: int) -> Identity | None:
    """The identity of process ``pid``; None when it does not run."""
    found = stat(pid)
    return Identity(pid, found.ticks, _boot()) if found else None


def read(entry: object) -> Identity | None:
    """The identity in an entry of a register, as JSON gives it; None when the entry holds none."""
    if not isinstance(entry, dict):
        return None
    pid, ticks, boot = entry.get("pid"), entry.get("ticks"), entry.get("boot")
    if isinstance(pid, int) and isinstance(ticks, int) and isinstance(boot, str):
        return Identity(pid, ticks, boot)
    return None


def lives(identity: Identity) -> bool:
    """Whether this very process still runs."""
    return identify(identity.pid) == identity


@cache
def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


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
    known = stat(pid)
    return [] if known is None or known.kernel else None
