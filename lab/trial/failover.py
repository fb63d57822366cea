"""Performs the events of a trial's own brokers: kills one by what it does, and starts those that were killed."""

from __future__ import annotations

import time
from typing import Any

from confluent_kafka import KafkaException

from lab.cluster.quorum import Quorum
from lab.errors import LabFault
from lab.inputs import topics
from lab.inputs.events import LEADER, LOST, KillBroker, StartBrokers
from lab.kafka.replicas import Replicas, whole
from lab.trial.stage import Stage
from lab.wait import until

ASK_S = 20.0
IN_SYNC_S = 120.0  # a start takes 3 s, and what was missed is copied in some more


def kill(event: KillBroker, stage: Stage) -> dict[str, Any]:
    """Kill the broker that ``event`` means; returns its number, its pid, and how many partitions it led."""
    quorum, replicas = _own(stage), _replicas(stage)
    group, on = stage.names["GROUP"], topics.numbering(stage.names).topics
    chosen: list[tuple[int, int]] = []

    def found() -> bool:
        try:
            number = replicas.leads_most(*on) if event.role == LEADER else replicas.coordinator(group)
            chosen.append((number, sum(one.leader == number for one in replicas.read(*on))))
        except (KafkaException, LabFault):
            return False
        return True

    until(found, ASK_S, f"the {event.role} known", stage.check)
    number, led = chosen[0]
    result = {"broker": number, "pid": quorum.kill(number), "led": led}
    return result | ({"copies_lost": quorum.lose(number, *on)} if event.disk == LOST else {})


def start(event: StartBrokers, stage: Stage) -> dict[str, Any]:
    """Start the brokers that are down; returns their numbers, and how many s it took until every copy was in sync."""
    quorum, replicas = _own(stage), _replicas(stage)
    numbers, begun = quorum.down, time.monotonic()
    quorum.start(numbers)

    def in_sync() -> bool:
        try:
            return whole(replicas.read(*topics.numbering(stage.names).topics))
        except KafkaException:
            return False

    until(in_sync, IN_SYNC_S, "every copy in sync", stage.check, every_s=0.2)
    return {"brokers": numbers, "in_sync_s": round(time.monotonic() - begun, 3)}


def _own(stage: Stage) -> Quorum:
    if stage.brokers is None:
        raise LabFault("the trial has no brokers of its own")
    return stage.brokers


def _replicas(stage: Stage) -> Replicas:
    return Replicas(stage.bootstrap, stage.cluster.kafka_settings)
