"""One container: started, probed, restarted by policy and back-off, and stopped."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from lab.kubelet import backoff, probe
from lab.kubelet.api import ApiServer, Sources
from lab.kubelet.environment import Unresolved, expand
from lab.kubelet.events import Recorder
from lab.kubelet.forking import Zygote
from lab.kubelet.podspec import ContainerSpec, Images, PodSpec, Probe
from lab.kubelet.process import Process
from lab.kubelet.status import Running, State, Terminated, View, Waiting, ended, restarts

LOST = "ContainerStatusUnknown"


@dataclass(frozen=True)
class Tools:
    """What every pod of a node shares; ``service`` are the variables that each finds in its environment."""

    api: ApiServer
    sources: Sources
    events: Recorder
    prober: probe.Prober
    images: Images
    run: Path
    backoff_base_s: float = 10.0
    service: Mapping[str, str] = field(default_factory=dict)
    zygote: Zygote | None = None


@dataclass(frozen=True)
class Surroundings:
    """The parts of its pod that a container needs."""

    pod: PodSpec
    ip: str
    folder: Path
    tools: Tools
    environment: Callable[[ContainerSpec], Coroutine[Any, Any, dict[str, str]]]
    changed: Callable[[], None]
    event: Callable[[Literal["Normal", "Warning"], str, str], None]


class Container:
    """Runs one container until it will never run again; its state may be read at any time."""

    def __init__(self, spec: ContainerSpec, around: Surroundings, last: Terminated | None = None, count: int = 0) -> None:
        self.spec = spec
        self.state: State = Waiting()
        self.last = last
        self.restart_count = count
        self.ready = False
        self.over = False  # it will never run again
        self.ended = asyncio.Event()  # set while no process runs; a reader that follows the log waits for it
        self.ended.set()
        self._around = around
        self._policy = around.pod.restart_policy
        self._process: Process | None = None
        self._liveness: asyncio.Task[None] | None = None
        self._unhealthy = False
        self._stopping = asyncio.Event()
        self._kill_at: float | None = None

    @property
    def log(self) -> Path:
        """Log of the current run; earlier runs' are numbered."""
        return self._around.folder / f"{self.spec.name}.log"

    @property
    def previous_log(self) -> Path:
        """Log of the run before the current one; it exists only after a restart."""
        return self._around.folder / f"{self.spec.name}.{self.restart_count - 1}.log"

    @property
    def pid(self) -> int | None:
        """The process running now."""
        return self._process.pid if self._process else None

    def view(self) -> View:
        """What the pod's status shows of this container."""
        image_id = f"process://{self.spec.folder}"
        return View(self.spec.name, self.spec.image, image_id, self.state, self.last, self.restart_count, self.ready)

    def stop(self, grace_s: float) -> None:
        """Send SIGTERM now and SIGKILL after ``grace_s``. A later call can only shorten the grace."""
        loop = asyncio.get_running_loop()
        kill_at = loop.time() + grace_s
        self._kill_at = kill_at if self._kill_at is None else min(self._kill_at, kill_at)
        if self._process:
            if not self._stopping.is_set():
                self._say_stopping()
            self._process.terminate(self._kill_at - loop.time())
        if self._liveness:
            self._liveness.cancel()
        self._stopping.set()

    def _say_stopping(self) -> None:
        self._around.event("Normal", "Killing", f"Stopping container {self.spec.name}")

    async def run(self) -> None:
        """Start and restart, and return when the policy or :meth:`stop` says that it is over. The state is then terminated."""
        if self.last and not restarts(self._policy, self.last.exit_code):
            self._end(self.last)  # it ended for good under an earlier node process
            return
        delay: float | None = None
        while (env := await self._environment()) is not None:
            outcome = await self._once(env)
            again = restarts(self._policy, outcome.exit_code) or (self._unhealthy and self._policy != "Never")
            if self._stopping.is_set() or not again:
                self._end(outcome)
                return
            self._show(outcome)
            ran_s = (outcome.finished_at - outcome.started_at).total_seconds()
            delay = backoff.following(delay, ran_s, self._around.tools.backoff_base_s)
            if delay > 0:
                words = f"back-off {delay:g}s restarting failed container={self.spec.name} pod={self._around.pod.name}"
                self._wait("CrashLoopBackOff", words)
                self._around.event("Warning", "BackOff", f"Back-off restarting failed container {self.spec.name}")
                await self._pause(delay)
        # Stopped while no process ran: the status shows how the last run ended, or that there was none.
        now = datetime.now(UTC)
        lost = "The container could not be located when the pod was terminated"
        before = self.state if isinstance(self.state, Terminated) else self.last
        self._end(before or Terminated(137, LOST, now, now, message=lost))

    async def _environment(self) -> dict[str, str] | None:
        """Wait for the environment while a ConfigMap or Secret is missing; None when the container is stopped meanwhile."""
        attempt = 0
        while not self._stopping.is_set():
            asked = asyncio.create_task(self._around.environment(self.spec))
            stopped = asyncio.create_task(self._stopping.wait())
            await asyncio.wait({asked, stopped}, return_when=asyncio.FIRST_COMPLETED)
            stopped.cancel()
            if self._stopping.is_set():
                asked.cancel()
                break
            try:
                return asked.result()
            except Unresolved as missing:
                self._wait("CreateContainerConfigError", str(missing))
                self._around.event("Warning", "Failed", f"Error: {missing}")
                await self._pause(backoff.config_retry(attempt))
                attempt += 1
        return None

    async def _once(self, env: dict[str, str]) -> Terminated:
        """One run, from start to end."""
        if isinstance(self.state, Terminated):
            self.last = self.state
        if self.last is not None:
            if self.log.exists():
                self.log.rename(self.log.with_name(f"{self.spec.name}.{self.restart_count}.log"))
            self.restart_count += 1
        self._unhealthy = False
        command = [expand(word, env) for word in (*self.spec.command, *self.spec.args)]
        folder = self.spec.working_dir or self._around.folder
        try:
            self._process = process = await Process.start(
                command,
                env=env,
                cwd=folder,
                log=self.log,
                run=self._around.tools.run,
                name=f"pod/{self._around.pod.name}/{self.spec.name}",
                zygote=self._around.tools.zygote,
                report=lambda why: self._around.event("Warning", "ForkFailed", f"Executed in place of forked: {why}"),
            )
        except (OSError, ValueError) as error:
            now = datetime.now(UTC)
            self._around.event("Warning", "Failed", f"Error: {error}")
            return Terminated(128, "StartError", now, now, message=f"failed to start {command[0]!r}: {error}")
        self.ended.clear()
        self.ready = self.spec.readiness is None
        self._show(Running(process.started_at, process.pid), self.ready)
        self._around.event("Normal", "Started", f"Container {self.spec.name} started as process {process.pid}")
        probes = self._start_probes(process, env, folder)
        if self._kill_at is not None:  # the pod was deleted while the process was being started
            self._say_stopping()
            process.terminate(self._kill_at - asyncio.get_running_loop().time())
        code = await process.wait()
        for task in probes:
            task.cancel()
        await asyncio.gather(*probes, return_exceptions=True)
        self._process, self._liveness = None, None
        self.ended.set()
        return ended(code, process.started_at, datetime.now(UTC), process.pid)

    def _start_probes(self, process: Process, env: dict[str, str], folder: str | Path) -> list[asyncio.Task[None]]:
        def watched(spec: Probe, heard: Callable[[bool | None, str], None]) -> asyncio.Task[None]:
            check = self._around.tools.prober.check
            return asyncio.create_task(probe.watch(spec, lambda: check(spec, self._around.ip, env, folder), heard))

        def readiness(verdict: bool | None, wrong: str) -> None:
            if wrong:
                self._around.event("Warning", "Unhealthy", f"Readiness probe failed: {wrong}")
            if verdict is not None and verdict != self.ready:
                self.ready = verdict
                self._around.changed()

        def liveness(verdict: bool | None, wrong: str) -> None:
            if wrong:
                self._around.event("Warning", "Unhealthy", f"Liveness probe failed: {wrong}")
            if verdict is False and self.spec.liveness and not self._unhealthy:
                self._unhealthy = True
                grace_s = self.spec.liveness.grace_s
                self._around.event("Normal", "Killing", f"Container {self.spec.name} failed liveness probe, will be restarted")
                process.terminate(self._around.pod.grace_s if grace_s is None else grace_s)

        tasks = []
        if self.spec.readiness:
            tasks.append(watched(self.spec.readiness, readiness))
        # A kubelet stops the liveness probe of a pod that is being deleted, and continues its readiness probe.
        if self.spec.liveness and not self._stopping.is_set():
            self._liveness = watched(self.spec.liveness, liveness)
            tasks.append(self._liveness)
        return tasks

    async def _pause(self, seconds: float) -> None:
        """Wait, but not beyond :meth:`stop`."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()

    def _wait(self, reason: str, message: str) -> None:
        if isinstance(self.state, Terminated):
            self.last = self.state
        self._show(Waiting(reason, message))

    def _end(self, outcome: Terminated) -> None:
        self.over = True
        self._show(outcome)

    def _show(self, state: State, ready: bool = False) -> None:
        self.state, self.ready = state, ready
        self._around.changed()
