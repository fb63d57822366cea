"""A process in a session of its own: started, signalled, and ended together with everything it started."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import psutil

from lab.host import identity, processes
from lab.kubelet.forking import ForkedProcess, ForkError, Zygote

# However short its grace is, a kubelet waits that long before SIGKILL: minimumGracePeriodInSeconds of its kuberuntime.
LEAST_GRACE_S = 2.0
OUTPUT_KEPT = 1024
GONE_S = 1.0


class Process:
    """One run of a command. SIGTERM goes to the command's own process; SIGKILL to its whole session."""

    def __init__(self, child: asyncio.subprocess.Process | ForkedProcess, run: Path) -> None:
        self._child = child
        self._run = run
        self._kill: asyncio.TimerHandle | None = None
        self._kill_at = 0.0
        self.started_at = datetime.now(UTC)

    @property
    def pid(self) -> int:
        """The process id, which is also the id of its session."""
        return self._child.pid

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: str | Path,
        log: Path,
        run: Path,
        name: str,
        zygote: Zygote | None = None,
        report: Callable[[str], None] = lambda why: None,
    ) -> Process:
        """Start ``command``, marked, its output appended to ``log``. ``zygote`` forks it, or ``report`` gets why not.

        Raises OSError, and nothing runs, when it can't be executed or recorded.
        """
        env = identity.environment(run, env)
        child: asyncio.subprocess.Process | ForkedProcess | None = None
        with log.open("ab") as output:
            if zygote and zygote.takes(command, env):
                try:
                    child = await zygote.fork(command, env=env, cwd=cwd, output=output.fileno())
                except ForkError as why:
                    report(str(why))
            child = child or await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=env,
                cwd=cwd,
                start_new_session=True,
            )
        try:
            processes.remember(run, child.pid, name)
        except OSError:
            kill_session(child.pid)
            await child.wait()
            raise
        return cls(child, run)

    async def wait(self) -> int:
        """The return code (-n for signal n), once the process has ended and the rest of its session was killed."""
        code = await self._child.wait()
        if self._kill:
            self._kill.cancel()
        await end_session(self.pid)
        processes.forget(self._run, self.pid)
        return code

    def terminate(self, grace_s: float) -> None:
        """SIGTERM now, SIGKILL to the session after ``grace_s``, LEAST_GRACE_S at least; a later call can only shorten it."""
        loop = asyncio.get_running_loop()
        kill_at = loop.time() + max(grace_s, LEAST_GRACE_S)
        if self._kill is None:
            # Not the child's send_signal: it polls, and would take the exit code of a process that has just ended from asyncio.
            if self._child.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.pid, signal.SIGTERM)
        elif kill_at >= self._kill_at:
            return
        else:
            self._kill.cancel()
        self._kill_at = kill_at
        self._kill = loop.call_at(kill_at, self.kill)

    def kill(self) -> None:
        """Send SIGKILL to the process and its session."""
        if self._child.returncode is None:
            kill_session(self.pid)


def kill_session(session: int) -> list[int]:
    """Send SIGKILL to every process of a session, whatever its process group; returns their pids."""
    members = sessions().get(session, [])
    for pid in members:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    return members


async def end_session(session: int) -> None:
    """Send SIGKILL to the rest of a session, and return once it is gone."""
    deadline = asyncio.get_running_loop().time() + GONE_S
    left = kill_session(session)
    # The kernel takes a moment to end them. Where there is a zygote they become this process's children, and no others' do.
    while any(_is_left(pid, left) for pid in left) and asyncio.get_running_loop().time() < deadline:
        await asyncio.sleep(0.005)


def _is_left(pid: int, session: list[int]) -> bool:
    """Whether a process runs, or is a zombie of this process or of one of the ``session``, whose zombies come to this one."""
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
    try:
        found = psutil.Process(pid)
        return found.status() != psutil.STATUS_ZOMBIE or found.ppid() in (os.getpid(), *session)
    except psutil.Error:
        return False


def sessions() -> dict[int, list[int]]:
    """The machine's processes by session."""
    found: dict[int, list[int]] = {}
    for pid in psutil.pids():
        with contextlib.suppress(ProcessLookupError, PermissionError):
            found.setdefault(os.getsid(pid), []).append(pid)
    return found


async def run_to_end(
    command: Sequence[str], env: Mapping[str, str], cwd: str | Path, timeout_s: float, run: Path, name: str
) -> tuple[int, str]:
    """Run ``command``, marked: its code and the start of its output. Raises TimeoutError, after killing it, and OSError."""
    child = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=identity.environment(run, env),
        cwd=cwd,
        start_new_session=True,
    )
    try:
        processes.remember(run, child.pid, name)
        async with asyncio.timeout(timeout_s):  # not wait_for: before Python 3.12 it may swallow a cancellation
            output, _ = await child.communicate()
        return child.returncode or 0, output[:OUTPUT_KEPT].decode(errors="replace").strip()
    finally:
        kill_session(child.pid)
        await child.wait()
        await end_session(child.pid)
        processes.forget(run, child.pid)
