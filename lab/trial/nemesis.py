"""Injects a trial's faults while its profile is driven, in a thread, and takes each back; each is a row of the record."""

from __future__ import annotations

import heapq
import http.client
import itertools
import signal
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Any

from lab import clock
from lab.errors import LabFault
from lab.inputs.faults import (
    ASKING,
    BACK_S,
    BROKER,
    CONSUMER,
    DAEMONS,
    EVICT,
    GROUP,
    KILL,
    NETWORK,
    NODE,
    PODS,
    ROLLOUT,
    ROOTS,
    SLOW,
    SLOW_BACK_S,
    STORM,
    TERMINATE,
    Injection,
)
from lab.record.trial import Fault
from lab.trial import disruptions, scaling, signals
from lab.trial.closing import deferred, reason
from lab.trial.disruptions import Storm, Undo
from lab.trial.network import SARAMA
from lab.trial.stage import Stage

SIGNALS = {"sigkill": signal.SIGKILL, "sigstop": signal.SIGSTOP, "sigterm": signal.SIGTERM, "slow": signal.SIGSTOP}
METRICS_PORT = 9090  # of manifests/consumer
ASK_S = 0.5
AIM_S = 1.0  # so long a consumer is looked for that is in a batch
LOOK_S = 0.005
OUT_S = 0.1  # how often a rolling update looks for the scale-out that it waits for
PULSES_S = {signal.SIGSTOP: 0.2, signal.SIGCONT: 0.05}  # what is slow stands still for four fifths of the time
CLOSE_S = 45.0  # a component's process is started in some ms; the API server, or a broker that is rolled, takes 20 s at most


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
    with deferred(nemesis.close):
        yield
    nemesis.check()


class Nemesis:
    """The faults of ``stage``, whose profile begins at ``start`` (epoch s). A thread of its own injects them from now on."""

    def __init__(self, stage: Stage, start: float) -> None:
        self._stage = stage
        self._due: list[tuple[float, int, Callable[[], None]]] = []  # by time, then in turn: a heap
        self._turn = itertools.count()
        for one in stage.inputs.faults:
            self._at(start + one.at, partial(self._begin, one, start + one.at + one.for_s))
        self._struck: dict[Injection, tuple[Fault, Undo]] = {}  # what is to be taken back
        self._starting: dict[str, float] = {}  # until when a component that was started again starts, epoch s
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
            self._stage.cluster.spoiled = why = f"the faults were not taken back within {CLOSE_S:g} s"
            raise LabFault(why)

    def _run(self) -> None:
        """Injections and their ends come in the order of their time."""
        try:
            while self._due:
                at, _, do = heapq.heappop(self._due)
                if self._over.wait(max(0.0, at - clock.now())):
                    break
                do()
        except Exception as error:
            self._lose(error)
        rest = [partial(self._end, one) for one in sorted(self._struck, key=lambda one: one.component not in ROOTS)]
        if any(one.component in ROOTS for one in self._stage.inputs.faults):  # what takes the trial down asks it
            rest.append(partial(disruptions.await_api, self._stage))
        for do in rest:
            try:
                do()
            except Exception as error:
                self._lose(error)
                self._stage.cluster.spoiled = f"a fault could not be taken back: {reason(error)}"

    def _at(self, t: float, do: Callable[[], None]) -> None:
        heapq.heappush(self._due, (t, next(self._turn), do))

    def _lose(self, error: Exception) -> None:
        self._fault = self._fault or f"a fault could not be injected or taken back: {reason(error)}"

    def _begin(self, one: Injection, latest: float) -> None:
        """Inject a fault, keep its row, and let it end. A rolling update waits for a scale-out, until ``latest``.

        Where this thread was late, a component's fault before this one may not be over, nor one that it can't be beside,
        or what was killed still starts. This one waits.
        """
        early = one.kind == ROLLOUT and clock.now() < latest and not disruptions.scaling_out(self._stage)
        if early or self._busy(one):
            self._at(clock.now() + OUT_S, partial(self._begin, one, latest))
            return
        fault, undo = self._strike(one)
        self._stage.journal.add_fault(fault)
        if undo is not None:
            self._struck[one] = fault, undo
            self._at(clock.now() + one.for_s, partial(self._end, one))

    def _busy(self, one: Injection) -> bool:
        """Whether what ``one`` can't be beside is not over, or not up again."""
        struck = {other.component for other in self._struck}
        if one.component != CONSUMER and one.component in struck:
            return True
        away = struck | {name for name, up in self._starting.items() if clock.now() < up}
        if one.component in ROOTS:  # what opens a node again asks it, and so does what starts
            return not away.isdisjoint((NODE, *DAEMONS))
        if one.component in DAEMONS:
            return not away.isdisjoint(ROOTS)
        return one.kind in ASKING and not struck.isdisjoint(ROOTS)

    def _strike(self, one: Injection) -> tuple[Fault, Undo | None]:
        if one.component in PODS:
            return self._strike_pod(one)
        idle = one.component == GROUP and not any(self._stage.reports.owned().values())
        if idle or (one.component == NODE and not self._stage.transitions.pods(CONSUMER)):
            return row(one, skipped="no consumer was at work"), None
        if one.kind == STORM:
            return row(one), Storm(self._stage).close
        if one.component == NODE:
            empty, undo = disruptions.drain(self._stage)
            self._struck[one] = row(one), undo  # what fails halfway is taken back, too
            return self._asked(one, empty), undo
        if one.component == BROKER:
            struck = disruptions.strike_broker(self._stage, one)
            return (row(one, skipped=struck), None) if isinstance(struck, str) else (row(one, pid=struck[0]), struck[1])
        return self._strike_daemon(one)

    def _end(self, one: Injection) -> None:
        """Take a fault back, unless it is."""
        if one in self._struck:
            fault, undo = self._struck[one]
            said = undo()
            del self._struck[one]  # what could not be taken back is tried again at the end
            if one.kind == KILL:
                self._starting[one.component] = clock.now() + (SLOW_BACK_S if one.component in ROOTS else BACK_S)
            skipped = said if isinstance(said, str) else fault.skipped
            self._stage.journal.add_fault(replace(fault, until=clock.now(), skipped=skipped))

    def _pulse(self, one: Injection, send: Callable[[signal.Signals], object], turn: Iterator[signal.Signals]) -> None:
        """Let what is slow go on for a moment, and stop it again, until it is taken back."""
        if one in self._struck:
            send(sent := next(turn))
            self._at(clock.now() + PULSES_S[sent], partial(self._pulse, one, send, turn))

    def _asked(self, one: Injection, do: Callable[[], object], **known: Any) -> Fault:
        """The row of what the API server is asked for, from then on; it may be away by a fault of its own."""
        begun = clock.now()
        try:
            if do() is False:
                known["skipped"] = f"{known.get('pod')} was gone"
        except LabFault as error:
            known["skipped"] = reason(error)
        return replace(row(one, **known), t=begun)

    def _strike_daemon(self, one: Injection) -> tuple[Fault, Undo]:
        daemon = self._stage.cluster.component(one.component)
        if one.kind == KILL:
            daemon.kill()
            undo: Undo = daemon.restart
        elif one.kind in NETWORK:
            undo = self._strike_network(SARAMA, one)
        else:
            daemon.process.send_signal(signal.SIGSTOP)
            undo = partial(daemon.process.send_signal, signal.SIGCONT)
        return row(one, pid=daemon.process.pid), undo

    def _strike_network(self, client_id: str, one: Injection) -> Undo:
        network = self._stage.network
        assert network is not None, "a trial with such faults has a proxy"
        return network.strike(client_id, one)

    def _strike_pod(self, one: Injection) -> tuple[Fault, Undo | None]:
        """A pod's container that is there. A stopped one goes on even where its pod was told to go meanwhile."""
        containers, owned = signals.running(self._stage, one.component), self._stage.reports.owned()
        stopped = {fault.pod for fault, _ in self._struck.values()}
        if not (pods := ranked(containers, owned, stopped, one)):
            return row(one, skipped=f"no {one.component} was at work"), None
        if one.kind == ROLLOUT:
            again = partial(scaling.roll, self._stage)
            return self._asked(one, partial(disruptions.ask, again, "the rolling update begun", disruptions.ASK_S)), None
        taken: int | None = None
        if one.component == CONSUMER and one.kind == KILL:
            pods, taken = self._aim(pods)
        pod = pods[0]
        known: dict[str, Any] = {"pod": pod, "pid": _pid(containers[pod]), "owned": owned.get(pod), "in_flight": taken}
        if one.kind == EVICT:
            return self._asked(one, partial(disruptions.evict, self._stage, pod), **known), None
        if one.kind in NETWORK:
            return row(one, **known), self._strike_network(pod, one)
        send = partial(self._send, pod, containers[pod])
        if not send(SIGNALS[one.kind]):
            return row(one, skipped=f"{pod} ended just before"), None
        fault = row(one, **known)
        if one.kind == TERMINATE:
            self._over.wait(one.for_s)
            drained = "" if send(signal.SIGKILL) else f"{pod} ended by itself before it was killed"
            return replace(fault, until=clock.now(), skipped=drained), None
        if one.kind == SLOW:
            turn = itertools.cycle((signal.SIGCONT, signal.SIGSTOP))
            self._at(fault.t + PULSES_S[signal.SIGSTOP], partial(self._pulse, one, send, turn))
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
