"""Injects a trial's faults while its profile is driven, in a thread, and takes each back; each is a row of the record."""

from __future__ import annotations

import heapq
import http.client
import signal
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Any

from lab import clock
from lab.errors import LabFault
from lab.inputs.faults import CONSUMER, KILL, PODS, TERMINATE, Injection
from lab.record.trial import Fault
from lab.trial import signals
from lab.trial.closing import reason
from lab.trial.stage import Stage

Undo = Callable[[], object]
SIGNALS = {"sigkill": signal.SIGKILL, "sigstop": signal.SIGSTOP, "sigterm": signal.SIGTERM}
METRICS_PORT = 9090  # of manifests/consumer
ASK_S = 0.5
AIM_S = 1.0  # so long a consumer is looked for that is in a batch
LOOK_S = 0.005
CLOSE_S = 30.0  # a component's process is started in some ms


@contextmanager
def injected(stage: Stage) -> Iterator[None]:
    """Inject the faults of ``stage``, whose profile has begun, until the block ends, however it ends; all are then taken back.

    Raises :class:`LabFault` when one could not be injected, or not be taken back.
    """
    if not stage.inputs.faults:
        yield
        return
    told = stage.reports.last("profile")
    assert told is not None, "the profile has begun"
    stage.nemesis = nemesis = Nemesis(stage, float(told["start"]))
    try:
        yield
    finally:
        nemesis.close()
    nemesis.check()


class Nemesis:
    """The faults of ``stage``, whose profile begins at ``start`` (epoch s). A thread of its own injects them from now on."""

    def __init__(self, stage: Stage, start: float) -> None:
        self._stage = stage
        self._due = [(start + one.at, n, one) for n, one in enumerate(stage.inputs.faults)]
        self._struck: dict[Injection, tuple[Fault, Undo]] = {}  # what is to be taken back
        self._fault = ""
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="nemesis", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Raise :class:`LabFault` when a fault could not be injected, or not be taken back."""
        if self._fault:
            raise LabFault(self._fault)

    def close(self) -> None:
        """Inject no more, and take back what was injected. Raises :class:`LabFault` where that does not end in time."""
        self._over.set()
        self._thread.join(CLOSE_S)
        if self._thread.is_alive():
            raise LabFault(f"the faults were not taken back within {CLOSE_S:g} s")

    def _run(self) -> None:
        """Injections and their ends come in the order of their time."""
        try:
            heapq.heapify(self._due)
            while self._due:
                at, number, one = heapq.heappop(self._due)
                if self._over.wait(max(0.0, at - clock.now())):
                    break
                if one in self._struck:
                    self._end(one)
                elif self._strike(one):
                    heapq.heappush(self._due, (clock.now() + one.for_s, number, one))
        except Exception as error:
            self._lose(error)
        for one in list(self._struck):
            try:
                self._end(one)
            except Exception as error:
                self._lose(error)

    def _lose(self, error: Exception) -> None:
        self._fault = self._fault or f"a fault could not be injected or taken back: {reason(error)}"

    def _strike(self, one: Injection) -> bool:
        """Inject a fault and keep its row; returns whether it is to be taken back."""
        fault, undo = self._strike_pod(one) if one.component in PODS else self._strike_daemon(one)
        if undo is not None:
            self._struck[one] = fault, undo
        self._stage.journal.add_fault(fault)
        return undo is not None

    def _end(self, one: Injection) -> None:
        """Take a fault back."""
        fault, undo = self._struck.pop(one)
        undo()
        self._stage.journal.add_fault(replace(fault, until=clock.now()))

    def _strike_daemon(self, one: Injection) -> tuple[Fault, Undo]:
        daemon = self._stage.cluster.component(one.component)
        if one.kind == KILL:
            daemon.kill()
            undo: Undo = daemon.restart
        else:
            daemon.process.send_signal(signal.SIGSTOP)
            undo = partial(daemon.process.send_signal, signal.SIGCONT)
        return row(one, pid=daemon.process.pid), undo

    def _strike_pod(self, one: Injection) -> tuple[Fault, Undo | None]:
        """A pod's container that is there. A stopped one goes on even where its pod was told to go meanwhile."""
        containers, owned = signals.running(self._stage, one.component), self._stage.reports.owned()
        stopped = {fault.pod for fault, _ in self._struck.values()}
        if not (pods := ranked(containers, owned, stopped, one)):
            return row(one, skipped=f"no {one.component} was at work"), None
        taken: int | None = None
        if one.component == CONSUMER and one.kind == KILL:
            pods, taken = self._aim(pods)
        pod = pods[0]
        send = partial(self._send, pod, containers[pod])
        if not send(SIGNALS[one.kind]):
            return row(one, skipped=f"{pod} ended just before"), None
        fault = row(one, pod=pod, pid=_pid(containers[pod]), owned=owned.get(pod), in_flight=taken)
        if one.kind == TERMINATE:
            self._over.wait(one.for_s)
            send(signal.SIGKILL)
            return replace(fault, until=clock.now()), None
        return fault, None if one.kind == KILL else partial(send, signal.SIGCONT)

    def _aim(self, pods: Sequence[str]) -> tuple[list[str], int]:
        """``pods``, the first one first that is in a batch, and the messages that it has taken; as they are where none is."""
        ips = {pod["metadata"]["name"]: pod["status"].get("podIP", "") for pod in self._stage.transitions.pods(CONSUMER)}
        until = clock.now() + AIM_S
        while clock.now() < until and not self._over.is_set():
            for pod in pods:
                if taken := in_flight(ips.get(pod, "")):
                    return [pod], taken
            self._over.wait(LOOK_S)
        return list(pods), 0

    def _send(self, pod: str, container: str, sent: signal.Signals) -> bool:
        """Signal the container's process; returns whether it was still there."""
        with suppress(LabFault, ProcessLookupError):
            signals.send(self._stage, pod, container, sent)
            return True
        return False


def row(one: Injection, **known: Any) -> Fault:
    """The fault that was just injected."""
    return Fault(t=clock.now(), fault=one.kind, component=one.component, injection=one, **known)


def ranked(containers: Collection[str], owned: dict[str, int], stopped: Collection[str | None], one: Injection) -> list[str]:
    """The pods that ``one`` may strike, the one that it draws first, then the others in turn. Pure.

    Of the consumers that run in ``containers`` these are those that own partitions and are not ``stopped``. They are drawn from
    by rank, the one with most partitions first: a pod's name is another one in each run.
    """
    there = [pod for pod in containers if pod not in stopped and (one.component != CONSUMER or owned.get(pod))]
    there.sort(key=lambda pod: (-owned.get(pod, 0), pod))
    first = int(one.draw * len(there))
    return there[first:] + there[:first]


def in_flight(ip: str) -> int:
    """The messages that the consumer at ``ip`` has taken and not processed, by its metrics; 0 where it does not say."""
    asked = http.client.HTTPConnection(ip, METRICS_PORT, timeout=ASK_S)
    try:
        asked.request("GET", "/metrics")
        lines = asked.getresponse().read().decode(errors="replace").splitlines()
        return next((int(float(line.split()[1])) for line in lines if line.startswith("inflight ")), 0)
    except (OSError, http.client.HTTPException, ValueError, IndexError):
        return 0
    finally:
        asked.close()


def _pid(container: str) -> int:
    return int(container.rpartition("/")[2])
