"""The identity of a process behind a pid: its start in clock ticks since the boot, and the boot. A step of the wall clock moves
neither.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

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
    """The kernel's description of process ``pid``; None when there is no such process, or only a zombie that its parent has not
    fetched.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()  # the name before it may hold anything
    if len(fields) < 20 or fields[0] in _ENDED:
        return None
    return Stat(session=int(fields[3]), ticks=int(fields[19]), kernel=bool(int(fields[6]) & _KERNEL_THREAD))


def of(pid: int) -> Identity | None:
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
    return of(identity.pid) == identity


@cache
def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
