"""Executes the events of a trial: one function an event, all in the registry :func:`perform`, and one row for what happened."""

from __future__ import annotations

import signal
import time
from contextlib import suppress
from functools import singledispatch
from typing import Any

from confluent_kafka import KafkaException
from kubernetes import client

from lab import clock
from lab.cluster import apply
from lab.cluster.quorum import Quorum
from lab.errors import LabFault
from lab.inputs import events, topics
from lab.inputs.events import Event
from lab.inputs.steps import Decree
from lab.kafka.replicas import Replicas, whole
from lab.kafka.topics import configure_group
from lab.trial import scaling, signals
from lab.trial.stage import CONSUMER, Stage
from lab.wait import until

ASK_S = 20.0
IN_SYNC_S = 120.0  # a start takes 3 s, and what was missed is copied in some more
_PAUSED = {"autoscaling.keda.sh/paused": "true"}


def happen(stage: Stage, phase: str | None, event: Event) -> None:
    """Perform ``event`` and keep what happened as a row of the journal.

    The row has ``t`` and ``until``, when the event began and was through, ``due``, when its ``phase`` began (None after the
    profile; all in epoch s), the event's name and fields, and its result. Raises :class:`LabFault` when it can't be performed.
    """
    stage.journal.phase = f"event {len(stage.journal.trial.events) + 1} of {len(stage.inputs.schedule)}, {event}"
    began = clock.now()
    result = perform(event, stage)
    times = {"t": began, "until": clock.now(), "due": stage.reports.begun(phase) if phase else None}
    stage.journal.add_event({**times, "phase": phase, **event.to_dict(), "result": result})


@singledispatch
def perform(event: Event, stage: Stage) -> dict[str, Any]:
    """Do what ``event`` says; returns what came of it, as plain data. Raises :class:`LabFault` where there is nothing to do."""
    raise LabFault(f"{event}: no function is registered for it with lab.trial.events.perform")


perform.register(Decree, scaling.take)
perform.register(events.Restart, scaling.restart)


@perform.register
def _grow(event: events.Grow, stage: Stage) -> dict[str, Any]:
    stage.lead.topics.grow(event.partitions)
    stage.journal.mark("repartitioned")
    return {}


@perform.register
def _set_assignment_interval(event: events.SetAssignmentInterval, stage: Stage) -> dict[str, Any]:
    settings = {"consumer.assignment.interval.ms": str(event.interval_ms)}
    configure_group(stage.bootstrap, stage.names["GROUP"], settings, stage.cluster.kafka_settings)
    return {}


@perform.register
def _kill(event: events.Kill, stage: Stage) -> dict[str, Any]:
    return _signal_busiest(stage, signal.SIGKILL)[1]


@perform.register
def _pause(event: events.Pause, stage: Stage) -> dict[str, Any]:
    container, victim = _signal_busiest(stage, signal.SIGSTOP)
    stage.paused[victim["pod"]] = container
    return victim


@perform.register
def _resume(event: events.Resume, stage: Stage) -> dict[str, Any]:
    """A process that a liveness probe ended meanwhile is not there to go on: the result names those that are."""
    there = signals.running(stage)
    paused = {pod: container for pod, container in stage.paused.items() if there.get(pod) == container}
    stage.paused.clear()
    for pod, container in paused.items():
        signals.send(stage, pod, container, signal.SIGCONT)
    return {"pods": sorted(paused)}


@perform.register
def _delete(event: events.Delete, stage: Stage) -> dict[str, Any]:
    pods = stage.transitions.pods(CONSUMER)
    there = {pod["metadata"]["name"] for pod in pods if "deletionTimestamp" not in pod["metadata"]}
    pod, owned = _busiest(stage, there)
    client.CoreV1Api(stage.api).delete_namespaced_pod(pod, stage.namespace)
    return {"pod": pod, "owned": owned}


@perform.register
def _scale_to(event: events.ScaleTo, stage: Stage) -> dict[str, Any]:
    before = stage.field(CONSUMER, "spec", "replicas")
    scaling.scale(stage, CONSUMER, event.replicas)
    return {"before": before, "after": event.replicas}


@perform.register
def _pause_scaling(event: events.PauseScaling, stage: Stage) -> dict[str, Any]:
    resource = apply.dynamic_client(stage.api).resources.get(api_version="keda.sh/v1alpha1", kind="ScaledObject")
    name = stage.inputs.policy.name
    body = {"metadata": {"name": name, "annotations": _PAUSED}}
    resource.patch(body=body, name=name, namespace=stage.namespace, content_type="application/merge-patch+json")
    return {"scaledobject": name}


@perform.register
def _kill_broker(event: events.KillBroker, stage: Stage) -> dict[str, Any]:
    """Kill the broker that ``event`` means; returns its number, its pid, and how many partitions it led."""
    quorum, replicas = own_brokers(stage)
    on = topics.numbering(stage.names).topics
    chosen: list[tuple[int, int]] = []

    def found() -> bool:
        with suppress(KafkaException, LabFault):
            number = broker_of(event.role, stage, replicas)
            chosen.append((number, sum(one.leader == number for one in replicas.read(*on))))
        return bool(chosen)

    until(found, ASK_S, f"the {event.role} known", stage.check)
    number, led = chosen[0]
    result = {"broker": number, "pid": quorum.kill(number), "led": led}
    return result | ({"copies_lost": quorum.lose(number, *on)} if event.disk == events.LOST else {})


@perform.register
def _start_brokers(event: events.StartBrokers, stage: Stage) -> dict[str, Any]:
    """Start the brokers that are down; returns their numbers, and how many s it took until every copy was in sync."""
    quorum, replicas = own_brokers(stage)
    numbers, begun = quorum.down, time.monotonic()
    quorum.start(numbers)

    def in_sync() -> bool:
        with suppress(KafkaException):
            return whole(replicas.read(*topics.numbering(stage.names).topics))
        return False

    until(in_sync, IN_SYNC_S, "every copy in sync", stage.check, every_s=0.2)
    return {"brokers": numbers, "in_sync_s": round(time.monotonic() - begun, 3)}


def broker_of(role: str, stage: Stage, replicas: Replicas) -> int:
    """The broker that leads most of the trial's partitions, or coordinates its group; raises like :class:`Replicas`."""
    if role == events.LEADER:
        return replicas.leads_most(*topics.numbering(stage.names).topics)
    return replicas.coordinator(stage.names["GROUP"])


def own_brokers(stage: Stage) -> tuple[Quorum, Replicas]:
    """The trial's own brokers, and the copies on them."""
    if stage.brokers is None:
        raise LabFault("the trial has no brokers of its own")
    return stage.brokers, Replicas(stage.bootstrap, stage.cluster.kafka_settings)


def _signal_busiest(stage: Stage, sent: signal.Signals) -> tuple[str, dict[str, Any]]:
    """Signal the consumer that owns most partitions; returns its container, and its pod, process and number of partitions."""
    containers = signals.running(stage)
    pod, owned = _busiest(stage, set(containers))
    return containers[pod], {"pod": pod, **signals.send(stage, pod, containers[pod], sent), "owned": owned}


def _busiest(stage: Stage, among: set[str]) -> tuple[str, int]:
    owned = {name: owns for name, owns in stage.reports.owned().items() if name in among and owns}
    if not owned:
        raise LabFault("there is no consumer that owns a partition and that this event can be done to")
    busiest = max(sorted(owned), key=lambda name: owned[name])
    return busiest, owned[busiest]
