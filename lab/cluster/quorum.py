"""Several real KRaft nodes as local processes, each broker and controller: one may die, and start again or be lost."""

from __future__ import annotations

import resource
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import psutil

from lab.cluster import broker
from lab.errors import LabFault
from lab.host import processes

STOP_S = 3.0  # nothing of them is kept: they are not waited for as brokers that go in order are
ROLL_S = 15.0  # until a broker that was told to end has handed over what it leads; some s on a quiet machine
FULL_BYTES = 1  # beyond it a write fails; what a broker maps into its memory is there before


@dataclass
class Node:
    """One node: where clients find it, its folder, and its process, None while it is down."""

    bootstrap: str
    folder: Path
    daemon: processes.Daemon | None = None


@dataclass
class Quorum:
    """Running nodes by number, from 1, in the ``run`` of a cluster; ``settings`` are those with which a client logs in."""

    run: Path
    folder: Path
    nodes: dict[int, Node]
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def bootstrap(self) -> str:
        """The addresses of all nodes, whether they are up or not."""
        return ",".join(node.bootstrap for node in self.nodes.values())

    @property
    def down(self) -> list[int]:
        """The nodes that were killed and not started since."""
        return [number for number, node in self.nodes.items() if node.daemon is None]

    def check(self) -> None:
        """Raise :class:`LabFault` when a node has died that was not killed."""
        for daemon in [node.daemon for node in self.nodes.values()]:  # another thread may kill one meanwhile
            if daemon is not None:
                daemon.check()

    def kill(self, number: int) -> int:
        """SIGKILL node ``number``, and return its pid when it is gone. Raises :class:`LabFault` for one that is down."""
        daemon = self.running(number)
        daemon.kill()
        self.nodes[number].daemon = None
        processes.forget(self.run, daemon.process.pid)
        return daemon.process.pid

    def roll(self, number: int) -> Callable[[], None]:
        """Tell node ``number`` to end, as one that is rolled. What it returns waits ROLL_S for that, and starts it again."""
        daemon = self._expect_end(number)
        daemon.process.terminate()
        return partial(self._start_again, number, daemon)

    def fill(self, number: int) -> Callable[[], None]:
        """Let no file of node ``number`` grow, as if its disk were full: it ends by that. It returns what :meth:`roll` does."""
        daemon = self._expect_end(number)
        _, hard = resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE, (FULL_BYTES, hard))
        return partial(self._start_again, number, daemon)

    def _expect_end(self, number: int) -> processes.Daemon:
        daemon = self.running(number)
        daemon.check()
        daemon.down = True
        return daemon

    def _start_again(self, number: int, daemon: processes.Daemon) -> None:
        with suppress(subprocess.TimeoutExpired):
            daemon.process.wait(ROLL_S)
        daemon.process.kill()  # nothing where it has ended
        daemon.process.wait(timeout=10)
        processes.forget(self.run, daemon.process.pid)
        self.start([number])

    def running(self, number: int) -> processes.Daemon:
        """The process of node ``number``. Raises :class:`LabFault` for one that is down."""
        daemon = self.nodes[number].daemon
        if daemon is None:
            raise LabFault(f"broker {number} is down already")
        return daemon

    def lose(self, number: int, *topics: str) -> int:
        """Delete what node ``number``, which is down, has of ``topics``; returns how many partitions that were."""
        folders = [path for path in (self.nodes[number].folder / "data").iterdir() if path.is_dir()]
        copies = [path for path in folders if path.name.rpartition("-")[0] in topics]
        for path in copies:
            shutil.rmtree(path)
        return len(copies)

    def start(self, numbers: Sequence[int]) -> None:
        """Start these nodes, for the first time or again, with what is in their folders. It does not wait for them."""
        for number in numbers:
            node = self.nodes[number]
            node.daemon = broker.begin(self.run, node.folder, f"{self.folder.name}-{number}")

    def close(self) -> None:
        """End all nodes, and delete what they kept."""
        daemons = [node.daemon for node in self.nodes.values() if node.daemon is not None]
        for node in self.nodes.values():
            node.daemon = None
        alive = [psutil.Process(one.process.pid) for one in daemons if one.process.poll() is None]
        processes.end(alive, STOP_S)
        for one in daemons:
            one.process.wait(timeout=10)
            processes.forget(self.run, one.process.pid)
        shutil.rmtree(self.folder, ignore_errors=True)


def start(run: Path, count: int, login: Mapping[str, str] | None = None) -> Quorum:
    """Start ``count`` nodes on free loopback ports; returns when they answer. Raises :class:`LabFault`, and none runs on."""
    folder = Path(tempfile.mkdtemp(prefix="quorum-", dir=run))
    ports = iter(processes.free_ports(2 * count))
    clients, controllers = ({number: f"127.0.0.1:{next(ports)}" for number in range(1, count + 1)} for _ in range(2))
    nodes = {number: Node(client, folder / str(number)) for number, client in clients.items()}
    made = Quorum(run, folder, nodes, dict(login or {}))
    cluster = broker.cluster_id()

    def prepare(number: int) -> None:
        node, own = nodes[number], {"CLIENT": clients[number]}
        text = broker.properties(node.folder / "data", own, own, controllers[number], login, number=number, voters=controllers)
        broker.prepare(run, node.folder, text, cluster)

    try:
        with ThreadPoolExecutor(count) as pool:
            list(pool.map(prepare, nodes))
        made.start(list(nodes))
        broker.wait_for(made.bootstrap, made.check, login, count)
    except BaseException:
        made.close()
        raise
    return made
