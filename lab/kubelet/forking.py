"""The node's side of a zygote: which commands it takes, and a process that was forked by it."""

from __future__ import annotations

import asyncio
import ctypes
import json
import logging
import os
import shutil
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path

from lab.errors import LabFault
from lab.host import identity, processes
from lab.kubelet import zygote
from lab.kubelet.environment import SYSTEM_PATH, bare

log = logging.getLogger("lab.node")

NAME = "zygote"
PATIENCE_S = 30.0  # the first pod waits for the imports
# The interpreter and its libraries read these before a program runs: a forked process would not notice another value.
EARLY = ("PYTHON", "LD_", "LC_", "LANG", "MALLOC_", "GLIBC_", "OPENSSL_", "PROMETHEUS_")
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of prctl(2), which Python has no function for


class ForkError(Exception):
    """The zygote can't fork this process, and none runs; it can still be executed."""


class ForkedProcess:
    """A forked process, a child of this one since its own parent has ended."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[int] = loop.create_future()
        self._descriptor = os.pidfd_open(pid)
        loop.add_reader(self._descriptor, self._reap)

    @property
    def returncode(self) -> int | None:
        """The code (-n for signal n); None while the process runs."""
        return self._ended.result() if self._ended.done() else None

    async def wait(self) -> int:
        """The code, once the process has ended."""
        return await asyncio.shield(self._ended)

    def _reap(self) -> None:
        asyncio.get_running_loop().remove_reader(self._descriptor)
        os.close(self._descriptor)
        try:
            code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        except ChildProcessError:
            code = 255
            log.error("process %d has ended, and its exit status is unknown", self.pid)
        self._ended.set_result(code)


class Zygote:
    """One zygote, of the executables in ``folder``; it takes ``python -m`` of ``modules``."""

    def __init__(self, run: Path, folder: Path, modules: Sequence[str], env: Mapping[str, str] | None = None) -> None:
        self._modules = tuple(modules)
        self._python = folder / "python"
        # As a pod's environment, so that the imports find what they would find in a pod.
        self._env = bare(f"{folder}:{SYSTEM_PATH}", run) | dict(env or {})
        self._run = run
        self._daemon: processes.Daemon | None = None
        self._requests: socket.socket | None = None

    @property
    def pid(self) -> int | None:
        """The zygote's own process; None before :meth:`start`."""
        return self._daemon.process.pid if self._daemon else None

    def start(self) -> None:
        """Start the interpreter, which imports while the node goes on. One that can't start is logged, and forks nothing."""
        ours, its = socket.socketpair()
        ours.setblocking(False)
        try:
            _adopt_orphans(True)
            with its:
                command: list[str | Path] = [self._python, "-P", zygote.__file__, str(its.fileno()), *self._modules]
                self._daemon = processes.start(
                    self._run,
                    NAME,
                    command,
                    env=self._env | {zygote.ROOM: " " * zygote.ROOM_BYTES},
                    cwd=self._run,
                    inherited=[its.fileno()],
                )
        except (LabFault, OSError) as fault:
            ours.close()
            log.warning("pods are executed, not forked: %s", fault)
            return
        self._requests = ours

    def stop(self) -> None:
        """End the zygote; what it has forked runs on."""
        if self._requests is not None:
            self._requests.close()
            self._requests = None
        if self._daemon is not None:
            self._daemon.process.kill()
            self._daemon.process.wait()
            processes.forget(self._run, self._daemon.process.pid)
            self._daemon = None
            _adopt_orphans(False)

    def takes(self, command: Sequence[str], env: Mapping[str, str]) -> bool:
        """Whether ``command`` in ``env`` comes to the same when it is forked."""
        if len(command) < 3 or command[1] != "-m" or command[2] not in self._modules:
            return False
        found = shutil.which(command[0], path=env.get("PATH"))
        same = found is not None and Path(found).parent == self._python.parent and Path(found).samefile(self._python)
        return same and _early(env) == _early(self._env)

    async def fork(self, command: Sequence[str], *, env: Mapping[str, str], cwd: str | Path, output: int) -> ForkedProcess:
        """Run ``command``, which :meth:`takes` accepts. Raises :class:`ForkError` or OSError, and then nothing runs."""
        # Where there is room for some only: the mark, by which the process is found, and then the short ones.
        ordered = dict(sorted(env.items(), key=lambda one: (one[0] != identity.VARIABLE, len(one[1]))))
        text = await self._ask({"module": command[2], "command": list(command), "env": ordered, "cwd": str(cwd)}, output)
        pid, _, outcome = text.strip().partition("\n")
        if not int(pid or 0):
            raise ForkError(outcome or "the zygote has ended")
        child = ForkedProcess(int(pid))
        if outcome != zygote.READY:
            await child.wait()
            raise OSError(outcome or "the forked process ended before it began")
        return child

    async def _ask(self, job: zygote.Job, output: int) -> str:
        """The zygote's whole answer; empty when it is dead, or was killed because it gave none in time."""
        if self._requests is None or self._daemon is None:
            raise ForkError("the zygote does not run")
        content = os.memfd_create("job")
        read, write = os.pipe()
        with os.fdopen(read, "rb", buffering=0) as answer:
            try:
                os.write(content, json.dumps(job).encode())
                os.lseek(content, 0, os.SEEK_SET)
                socket.send_fds(self._requests, [b"."], [content, output, write])
            except OSError as error:
                raise ForkError(f"the zygote takes no request: {error.strerror}") from error
            finally:
                os.close(content)
                os.close(write)
            reader = asyncio.StreamReader()
            loop = asyncio.get_running_loop()
            transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), answer)
            # A late answer would be a second process of the pod: a zygote that is late is killed, and then the pipe ends.
            late = loop.call_later(PATIENCE_S, self._daemon.process.kill)
            try:
                return (await reader.read()).decode()
            finally:
                late.cancel()
                transport.close()


def _early(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name.startswith(EARLY)}


def _adopt_orphans(wanted: bool) -> None:
    """Make this process the parent of its descendants whose own parent has ended, or no longer. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_SUBREAPER, int(wanted), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "this process can't become a subreaper")
