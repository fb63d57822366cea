"""The processes that the lab starts. They are recorded and marked, so that all of them, and only they, are ever ended.

A run folder holds one small file for each process. An orderly stop, the guard after a crash and the sweep at the next start
read the same files, and leave a pid alone that now belongs to another process. A process without a file, such as one that a pod
started, is found by its mark.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from lab import wholefile
from lab.errors import LabFault
from lab.host import identity, resources

log = logging.getLogger("lab.cluster")

LOWEST_PORT = 15_000
END = "end"
DEAD = ".dead"
NODE = "node"
GRACE_S = 3.0
NODE_GRACE_S = 8.0  # the node gives its pods 2 s, and waits up to 7 s for them
LOOK_S = 0.25  # a process that is being ended may start another one meanwhile
CALM_S = 0.05  # a process that was just forked shows its mark only when its program runs
GIVE_UP_S = 30.0
UNDO_S = 120.0  # kind deletes a cluster in 10 s


def remember(run: Path, pid: int, name: str) -> None:
    """Record in ``run`` that the lab started process ``pid``. Raises OSError when it can't; then nothing is half recorded."""
    found = identity.identify(pid)
    if found is None:
        return
    folder = run / "pids"
    folder.mkdir(exist_ok=True)
    wholefile.write(folder / str(pid), json.dumps({"name": name, **asdict(found)}))


def forget(run: Path, pid: int) -> None:
    """Drop the record of a process that has ended."""
    (run / "pids" / str(pid)).unlink(missing_ok=True)


def remembered(run: Path, name: str = "") -> list[psutil.Process]:
    """The recorded processes whose name begins with ``name``, that still live and are still the recorded ones."""
    found = []
    for file in sorted((run / "pids").glob("[0-9]*")):
        try:
            process = psutil.Process(int(file.name))
            entry = json.loads(file.read_text())
        except (psutil.NoSuchProcess, ValueError, OSError):
            continue
        recorded = identity.read(entry)
        if recorded and recorded.pid == process.pid and identity.lives(recorded) and str(entry.get("name")).startswith(name):
            found.append(process)
    return found


def end(processes: Iterable[psutil.Process], grace_s: float) -> None:
    """Send SIGTERM, then SIGKILL to the processes that have not ended within ``grace_s`` seconds."""
    chosen = list(processes)
    for process in chosen:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.terminate()
    _, alive = psutil.wait_procs(chosen, timeout=grace_s)
    for process in alive:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(alive, timeout=5)


def living(run: Path, leaders: set[int]) -> list[psutil.Process]:
    """The processes of ``run``: the recorded ones, those with its mark, and all in the sessions that these lead.

    ``leaders`` are the sessions seen so far, and new ones are added: a session goes on when its leader is gone.
    """
    pids = {process.pid for process in remembered(run)} | identity.marked().get(run.resolve(), set())
    pids.discard(os.getpid())
    stats = {pid: stat for pid in psutil.pids() if (stat := identity.stat(pid))}
    leaders |= {pid for pid in pids if pid in stats and stats[pid].session == pid}
    pids |= {pid for pid, stat in stats.items() if stat.session in leaders and pid != os.getpid()}
    found = []
    for pid in pids & stats.keys():
        with contextlib.suppress(psutil.NoSuchProcess):
            found.append(psutil.Process(pid))
    return found


def end_all(run: Path) -> int:
    """End every process of ``run``, and those that these start meanwhile; returns how many there were.

    Each gets SIGTERM, and SIGKILL when its grace is over. Raises :class:`LabFault` when one is still there after 30 s.
    """
    node = set(remembered(run, NODE))
    kill_at: dict[psutil.Process, float] = {}
    leaders: set[int] = set()
    begun, calm = time.monotonic(), False
    while (found := living(run, leaders)) or not calm:
        now = time.monotonic()
        if now - begun > GIVE_UP_S:
            raise LabFault(f"{run.name}: the processes {', '.join(str(one.pid) for one in found)} can't be ended")
        for process in found:
            with contextlib.suppress(psutil.NoSuchProcess):
                if process not in kill_at:
                    kill_at[process] = now + (NODE_GRACE_S if process in node else GRACE_S)
                    process.terminate()
                elif now >= kill_at[process]:
                    process.kill()
        calm = not found
        if found:
            psutil.wait_procs(found, timeout=LOOK_S)
        else:
            threading.Event().wait(CALM_S)
    return len(kill_at)


def clear(run: Path) -> int:
    """End every process of ``run``, remove the folder, and return how many processes had to be ended.

    The command ``run/end``, which a runtime left, undoes what is not a process. The log names what can't be ended or undone,
    and the folder then stays for the next start.
    """
    try:
        count = end_all(run)
    except LabFault as fault:
        log.warning("%s", fault)
        return 0
    command, undone = run / END, not (run / END).exists()
    with contextlib.suppress(subprocess.TimeoutExpired):  # what it started goes by its mark, at the next start
        undone = undone or not subprocess.run([command], stdin=subprocess.DEVNULL, check=False, timeout=UNDO_S).returncode
    if not undone:
        log.warning("%s: %s failed; the next start tries again", run.name, END)
        return count
    remove(run)
    return count


def remove(run: Path) -> None:
    """Remove a run folder without processes. It is renamed to a dead one first, so that a later start finishes the removal."""
    dead = run if run.suffix == DEAD else run.with_name(f"{run.name}{DEAD}")
    with contextlib.suppress(FileNotFoundError):
        run.rename(dead)
    shutil.rmtree(dead, ignore_errors=True)


def free_ports(count: int) -> list[int]:
    """``count`` loopback TCP ports that are free now, all different, and given to no other session of the lab meanwhile.

    They lie below the range from which outgoing connections get theirs: a port of that range is easily taken in the seconds
    until a component binds it. Raises :class:`LabFault` when there are not enough.
    """
    resources.release_ports()
    ephemeral = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    found: list[int] = []
    for port in random.sample(range(LOWEST_PORT, max(ephemeral, LOWEST_PORT + 10_000)), k=5_000):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        if not resources.reserve_port(port):
            continue
        found.append(port)
        if len(found) == count:
            return found
    raise LabFault(f"no {count} free loopback ports from {LOWEST_PORT} to {ephemeral}")


@dataclass
class Daemon:
    """A component that the lab started, with its log file; ``begin`` starts its command. It is ``down`` after :meth:`kill`."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path
    begin: Callable[[], subprocess.Popen[bytes]]
    down: bool = False

    def check(self) -> None:
        """Raise :class:`LabFault` with the log's last line if the component has died, and was not killed on purpose."""
        process = self.process
        code = process.poll()
        if code is not None and not self.down and process is self.process:  # another thread may kill it, and start it
            raise LabFault(f"{self.name} ended with code {code}: {last_line(self.log)}")

    def kill(self) -> None:
        """SIGKILL it on purpose, and wait for its end. Raises :class:`LabFault` where it has died by itself."""
        self.check()
        self.down = True
        self.process.kill()
        self.process.wait(timeout=10)

    def restart(self) -> None:
        """Start it again. Raises :class:`LabFault` where it can't be started."""
        self.process, self.down = self.begin(), False


def start(
    run: Path,
    name: str,
    command: Sequence[str | Path],
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    inherited: Sequence[int] = (),
) -> Daemon:
    """Start ``command`` in a session of its own, marked, logging to ``run/logs``, and record its pid.

    The descriptors ``inherited`` stay open in it. Raises :class:`LabFault`, with nothing left running, when it can't be started
    or recorded.
    """
    file = run / "logs" / f"{name}.log"

    def begin() -> subprocess.Popen[bytes]:
        try:
            file.parent.mkdir(exist_ok=True)
            with file.open("ab") as output:
                process = subprocess.Popen(
                    [str(part) for part in command],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env=identity.environment(run, env),
                    cwd=cwd,
                    start_new_session=True,
                    pass_fds=inherited,
                )
            try:
                remember(run, process.pid, name)
            except BaseException:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                raise
            return process
        except OSError as error:
            raise LabFault(f"{name} can't be started: {error}") from error

    return Daemon(name, begin(), file, begin)


def stop(run: Path, daemon: Daemon, grace_s: float) -> None:
    """End one component and forget it."""
    with contextlib.suppress(psutil.NoSuchProcess):
        end([psutil.Process(daemon.process.pid)], grace_s)
    daemon.process.wait(timeout=10)
    forget(run, daemon.process.pid)


def last_line(file: Path) -> str:
    """The line of a log that best explains why the process ended, for a fault's one-line message."""
    lines = [line for line in file.read_text(errors="replace").splitlines() if line.strip()]
    telling = [line for line in lines if line.startswith(("Error:", "panic:", "error:", "Exception in"))]
    return (telling or lines or ["its log is empty"])[-1][:500]


def port_taken(run: Path) -> str | None:
    """The component of ``run`` whose log says that its port was taken between choice and bind; None otherwise."""
    for file in sorted((run / "logs").glob("*.log")):
        if b"address already in use" in file.read_bytes().lower():
            return file.stem
    return None


def guard(run: Path) -> subprocess.Popen[bytes]:
    """Start a watcher that clears ``run`` when this process is gone, however it ended: the watcher sees its stdin close."""
    return subprocess.Popen(
        [sys.executable, "-m", "lab.host.runs", str(run)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=identity.unmarked(),  # it ends marked processes, and must not end itself
        start_new_session=True,
    )


def dismiss(watcher: subprocess.Popen[bytes]) -> None:
    """Let a guard end: it finds nothing to clear, or it was told to end."""
    if watcher.stdin:
        watcher.stdin.close()
    watcher.wait(timeout=60)
