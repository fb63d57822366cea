"""Another session of the lab, in a process of its own, and what it holds of this machine."""

import contextlib
import re
import subprocess
import sys
import threading
from pathlib import Path

import psutil

from lab import paths
from lab.host import identity, processes
from tests.suite import NESTED_S


class Session:
    """Another session, in a process of its own, that goes as far as it is told. Its cache is the test's own."""

    def __init__(self, phase: str, folder: Path) -> None:
        command, pipe = [sys.executable, "-m", "tests.faults.session", phase, str(folder)], subprocess.PIPE
        self.process = subprocess.Popen(command, cwd=paths.PROJECT, stdin=pipe, stdout=pipe, text=True)
        self.register = paths.state_dir()
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
