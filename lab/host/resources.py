"""What the sessions of one machine share: locks, the disk, ports, and the loopback addresses of pods.

A pod network is a /16 of loopback addresses that no other run on this machine has, of any user and with any cache.
"""

from __future__ import annotations

import logging
import shutil
import socket
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from lab.errors import InputError, LabFault

log = logging.getLogger("lab")


@contextmanager
def hold_lock(file: Path, work: str) -> Iterator[None]:
    """Hold the lock ``file``, and log that ``work`` is waited for. Raises :class:`LabFault` when the file can't be made."""
    lock = FileLock(file)
    try:
        try:
            lock.acquire(blocking=False)
        except Timeout:
            log.info("waiting for another session: %s (it holds %s)", work, file)
            lock.acquire()
    except OSError as error:
        raise LabFault(f"the lock {file} can't be taken: {error.strerror}") from error
    try:
        yield
    finally:
        lock.release()


# Measured: an event with a value of 256 B takes 278 B in the broker's log, and a receipt of some 16 events takes 100 B there.
# The record of 774,400 events took 19.4 MB, most of it the ledger of events.
LOG_BYTES, RECORD_BYTES = 285, 26
BASE_BYTES = 100_000_000  # logs of the components, etcd, Spark's scratch


def needed_bytes(events: int, log_bytes: float = LOG_BYTES) -> tuple[int, int]:
    """The bytes that so many ``events`` need in the broker's log (``log_bytes`` each, receipts included) and the record."""
    return BASE_BYTES + round(log_bytes * events), RECORD_BYTES * events


def shortage(wanted: Mapping[Path, int]) -> str | None:
    """One line for the first file system with fewer free bytes than its folders in ``wanted``; None when all have enough."""
    systems: dict[int, dict[Path, int]] = {}
    for folder, amount in wanted.items():
        systems.setdefault(folder.stat().st_dev, {})[folder] = amount
    for folders in systems.values():
        total, first = sum(folders.values()), next(iter(folders))
        if (free := shutil.disk_usage(first).free) < total:
            return f"disk: {' and '.join(map(str, folders))}: {total:,} bytes are needed, {free:,} are free"
    return None


def check_disk(events: int, log: Path, results: Path, log_bytes: float = LOG_BYTES) -> None:
    """Raise :class:`LabFault` when a trial of ``events`` would fill the disk of the broker's ``log`` or of ``results``."""
    for_log, for_record = needed_bytes(events, log_bytes)
    if line := shortage({log: for_log, results: for_record} if log != results else {log: for_log + for_record}):
        raise LabFault(f"{line}; this trial sends {events:,} events")


def claim(folder: Path) -> FileLock:
    """Have ``folder``, which is made, for this process alone until the lock is released or the process ends.

    Raises :class:`InputError` where another process has it, and where it can't be made.
    """
    lock = FileLock(folder / ".lock")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire(blocking=False)
    except Timeout:
        raise InputError("command line", "--results", str(folder), "a folder that no other session writes now") from None
    except OSError as error:
        raise InputError("command line", "--results", str(folder), f"a folder that can be written ({error.strerror})") from None
    return lock


RESERVED_S = 300.0  # by then a component has bound the port that was chosen for it
_RESERVED: deque[tuple[float, socket.socket]] = deque()  # with the moment; an abstract socket ends with this process


def reserve_port(port: int) -> bool:
    """Keep ``port`` from other sessions on this machine for RESERVED_S; False when one has reserved it."""
    holder = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        holder.bind(f"\0elastic-lab-port-{port}")
    except OSError:
        holder.close()
        return False
    _RESERVED.append((time.monotonic(), holder))
    return True


def release_ports() -> None:
    """Let go of the ports whose time is over."""
    while _RESERVED and _RESERVED[0][0] < time.monotonic() - RESERVED_S:
        _RESERVED.popleft()[1].close()


FIRST, LAST = 16, 249
SOCKET = "\0elastic-lab-pods-{}"


@dataclass(frozen=True)
class PodNetwork:
    """A claimed network: the first two octets of its addresses, and the abstract socket that holds it while it is open.

    The node inherits the socket, and so holds the network as long as its pods live.
    """

    prefix: str
    holder: socket.socket


def claim_pod_network() -> PodNetwork:
    """The first network that nobody holds. Raises :class:`LabFault` when there is none."""
    for octet in range(FIRST, LAST + 1):
        prefix = f"127.{octet}"
        holder = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            holder.bind(SOCKET.format(prefix))
        except OSError:
            holder.close()
            continue
        return PodNetwork(prefix, holder)
    raise LabFault(f"no free pod network: clusters hold all of 127.{FIRST} to 127.{LAST}; elastic-lab down ends those kept")
