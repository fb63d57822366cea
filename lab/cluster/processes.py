"""Processes the lab starts: recorded by pid and start time, so that only the lab's own are ever ended.

A run folder holds one small file for each process. Whoever ends them (an orderly stop, the guard after a crash, the sweep
at the next start) reads the same files, and a pid that now belongs to another process is left alone.
"""

from __future__ import annotations

import contextlib
import json
import logging
import random
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from lab.errors import LabFault

log = logging.getLogger("lab.cluster")

LOWEST_PORT = 15_000
END = "end"


def remember(run: Path, pid: int, name: str) -> None:
    """Record in ``run`` that the lab started process ``pid``."""
    folder = run / "pids"
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(psutil.NoSuchProcess):
        entry = {"pid": pid, "name": name, "created": psutil.Process(pid).create_time()}
        (folder / str(pid)).write_text(json.dumps(entry))


def forget(run: Path, pid: int) -> None:
    """Drop the record of a process that has ended."""
    (run / "pids" / str(pid)).unlink(missing_ok=True)


def remembered(run: Path) -> list[psutil.Process]:
    """The recorded processes that still live and still are the ones recorded."""
    found = []
    for file in sorted((run / "pids").glob("*")):
        try:
            entry = json.loads(file.read_text())
            process = psutil.Process(int(entry["pid"]))
            if abs(process.create_time() - float(entry["created"])) < 0.05 and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (psutil.NoSuchProcess, ValueError, KeyError, OSError):
            continue
    return found


def end(processes: Iterable[psutil.Process], grace_s: float) -> None:
    """SIGTERM, then SIGKILL for those that have not ended within ``grace_s`` seconds."""
    chosen = list(processes)
    for process in chosen:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.terminate()
    _, alive = psutil.wait_procs(chosen, timeout=grace_s)
    for process in alive:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(alive, timeout=5)


def clear(run: Path) -> int:
    """End every process recorded in ``run``, remove the folder, and return how many had to be ended.

    What a runtime made that is not a process is undone by the command it left as ``run/end``.
    """
    processes = remembered(run)
    end(processes, grace_s=3)
    if (run / END).exists():
        subprocess.run([str(run / END)], stdin=subprocess.DEVNULL, check=False)
    shutil.rmtree(run, ignore_errors=True)
    return len(processes)


def free_ports(count: int) -> list[int]:
    """``count`` loopback TCP ports that are free now, all different.

    They lie below the range outgoing connections are given theirs from: a port of that range is easily taken by one in the
    seconds until a component binds it. Raises :class:`LabFault` when there are not so many.
    """
    ephemeral = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    found: list[int] = []
    for port in random.sample(range(LOWEST_PORT, max(ephemeral, LOWEST_PORT + 10_000)), k=5_000):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            return found
    raise LabFault(f"no {count} free loopback ports from {LOWEST_PORT} to {ephemeral}")


@dataclass(frozen=True)
class Daemon:
    """A long-running component started by the lab, with its log file."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    def check(self) -> None:
        """Raise :class:`LabFault` with the log's last line if the component has died."""
        code = self.process.poll()
        if code is not None:
            raise LabFault(f"{self.name} ended with code {code}: {last_line(self.log)}")


def start(
    run: Path, name: str, command: Sequence[str | Path], env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> Daemon:
    """Start ``command`` in a session of its own, logging to ``run/logs``, and remember its pid."""
    logs = run / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    file = logs / f"{name}.log"
    with file.open("ab") as output:
        process = subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=dict(env) if env is not None else None,
            cwd=cwd,
            start_new_session=True,
        )
    remember(run, process.pid, name)
    return Daemon(name, process, file)


def stop(run: Path, daemon: Daemon, grace_s: float) -> None:
    """End one component and forget it."""
    with contextlib.suppress(psutil.NoSuchProcess):
        end([psutil.Process(daemon.process.pid)], grace_s)
    daemon.process.wait(timeout=10)
    forget(run, daemon.process.pid)


def last_line(file: Path) -> str:
    """The line of a log that says best why the process ended, for a fault's one-line message."""
    lines = [line for line in file.read_text(errors="replace").splitlines() if line.strip()]
    telling = [line for line in lines if line.startswith(("Error:", "panic:", "error:", "Exception in"))]
    return (telling or lines or ["its log is empty"])[-1][:500]


def guard(run: Path) -> subprocess.Popen[bytes]:
    """Start a watcher that clears ``run`` once this process is gone, however it went (it sees its stdin close)."""
    return subprocess.Popen(
        [sys.executable, "-m", "lab.cluster.guard", str(run)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def dismiss(watcher: subprocess.Popen[bytes]) -> None:
    """Let a guard go: it finds nothing to clear, or was told to end."""
    if watcher.stdin:
        watcher.stdin.close()
    watcher.wait(timeout=60)
