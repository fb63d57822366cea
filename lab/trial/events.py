"""Executes the events of a trial: one function an event, all in the registry :func:`perform`, and one row for what happened."""

from __future__ import annotations

import os
import signal
from functools import singledispatch
from typing import Any

import psutil
from kubernetes import client
from kubernetes.dynamic import DynamicClient

from lab import clock
from lab.errors import LabFault
from lab.spec.brokers import KillBroker, StartBrokers
from lab.spec.events import Delete, Event, Grow, Kill, Pause, PauseScaling, Restart, Resume, ScaleTo
from lab.spec.steps import Decree
from lab.trial import failover, rollout, stepping
from lab.trial.stage import CONSUMER, Stage

_PROCESS = "process://"
_PAUSED = {"autoscaling.keda.sh/paused": "true"}


def happen(stage: Stage, phase: str | None, event: Event) -> None:
    """Perform ``event`` and keep what happened as a row of ``stage.events``.

    The row has ``t`` and ``until``, when the event began and was through, ``due``, when its ``phase`` began (None after the
    profile; all in epoch s), the event's name and fields, and its result. Raises :class:`LabFault` when it can't be performed.
    """
    stage.phase = f"event {len(stage.events) + 1} of {len(stage.inputs.schedule)}, {event}"
    began = clock.now()
    result = perform(event, stage)
    times = {"t": began, "until": clock.now(), "due": stage.reports.begun(phase) if phase else None}
    stage.events.append({**times, "phase": phase, **event.to_dict(), "result": result})


@singledispatch
def perform(event: Event, stage: Stage) -> dict[str, Any]:
    """Do what ``event`` says; returns what came of it, as plain data. ``register`` adds an event.

    Raises :class:`LabFault` when there is nothing to do it to.
    """
    raise LabFault(f"{event}: no function is registered for it with lab.trial.events.perform")


perform.register(Decree, stepping.take)
perform.register(KillBroker, failover.kill)
perform.register(StartBrokers, failover.start)
perform.register(Restart, rollout.restart)


@perform.register(Grow)
def _grow(event: Grow, stage: Stage) -> dict[str, Any]:
    stage.grow(event.partitions)
    stage.mark("repartitioned")
    return {}


@perform.register(Kill)
def _kill(event: Kill, stage: Stage) -> dict[str, Any]:
    victim = _busiest_process(stage)
    os.kill(victim["pid"], signal.SIGKILL)
    return victim


@perform.register(Pause)
def _pause(event: Pause, stage: Stage) -> dict[str, Any]:
    victim = _busiest_process(stage)
    os.kill(victim["pid"], signal.SIGSTOP)
    stage.paused[victim["pod"]] = victim["pid"]
    return victim


@perform.register(Resume)
def _resume(event: Resume, stage: Stage) -> dict[str, Any]:
    """A process that a liveness probe ended meanwhile is not there to go on: the result names those that are."""
    running = {pod: pid for pod, pid in stage.paused.items() if _processes(stage).get(pod) == pid}
    stage.paused.clear()
    for pod, pid in running.items():
        _verify(pod, pid)
        os.kill(pid, signal.SIGCONT)
    return {"pods": sorted(running)}


@perform.register(Delete)
def _delete(event: Delete, stage: Stage) -> dict[str, Any]:
    there = {pod["metadata"]["name"] for pod in stage.transitions.pods(CONSUMER) if _stays(pod)}
    pod, owned = _busiest(stage, there)
    client.CoreV1Api(stage.api).delete_namespaced_pod(pod, stage.namespace)
    return {"pod": pod, "owned": owned}


@perform.register(ScaleTo)
def _scale_to(event: ScaleTo, stage: Stage) -> dict[str, Any]:
    before = stage.field(CONSUMER, "spec", "replicas")
    stepping.scale(stage, CONSUMER, event.replicas)
    return {"before": before, "after": event.replicas}


@perform.register(PauseScaling)
def _pause_scaling(event: PauseScaling, stage: Stage) -> dict[str, Any]:
    resource = DynamicClient(stage.api).resources.get(api_version="keda.sh/v1alpha1", kind="ScaledObject")
    name = stage.inputs.policy.name
    body = {"metadata": {"name": name, "annotations": _PAUSED}}
    resource.patch(body=body, name=name, namespace=stage.namespace, content_type="application/merge-patch+json")
    return {"scaledobject": name}


def _busiest_process(stage: Stage) -> dict[str, Any]:
    """Pod, pid and partitions of the consumer that owns most, of those that run as processes of this machine."""
    running = _processes(stage)
    pod, owned = _busiest(stage, set(running))
    _verify(pod, running[pod])
    return {"pod": pod, "pid": running[pod], "owned": owned}


def _busiest(stage: Stage, among: set[str]) -> tuple[str, int]:
    owned = {name: owns for name, owns in stage.reports.owned().items() if name in among and owns}
    if not owned:
        raise LabFault("there is no consumer that owns a partition and that this event can be done to")
    busiest = max(sorted(owned), key=lambda name: owned[name])
    return busiest, owned[busiest]


def _processes(stage: Stage) -> dict[str, int]:
    """The process of each consumer's container that runs and is to go on running."""
    found = {}
    for pod in stage.transitions.pods(CONSUMER):
        status = (pod.get("status", {}).get("containerStatuses") or [{}])[0]
        container = status.get("containerID", "")
        if _stays(pod) and "running" in status.get("state", {}) and container.startswith(_PROCESS):
            found[pod["metadata"]["name"]] = int(container.removeprefix(_PROCESS))
    return found


def _stays(pod: dict[str, Any]) -> bool:
    return "deletionTimestamp" not in pod["metadata"]


def _verify(pod: str, pid: int) -> None:
    """Raise :class:`LabFault` for a process that is not the pod's: a number may be another process's by now."""
    try:
        name = psutil.Process(pid).environ().get("HOSTNAME")
    except psutil.Error:
        name = None
    if name != pod:
        raise LabFault(f"process {pid} is not the consumer {pod}")
