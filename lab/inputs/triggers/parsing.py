"""The triggers of a ScaledObject, of whichever types, and the topic of each among those that a group reads. Pure.

The lab's variables, TOPIC, TOPIC_2 and so on, are the first topic, the second and so on. Whatever else a trigger names is a
topic of the user's: these take the places that are left, in the order in which they appear.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lab.errors import InputError, closest, report, step, together
from lab.inputs.topics import MOST, variables
from lab.inputs.triggers import cron, external, kafka, prometheus, resource
from lab.inputs.triggers.metadata import Named

Trigger = kafka.Kafka | prometheus.Prometheus | cron.Cron | resource.Resource | external.External

TYPES: dict[str, Callable[[Mapping[str, Any], object, str], Trigger]] = {
    "kafka": kafka.parse,
    "apache-kafka": kafka.parse,
    "prometheus": prometheus.parse,
    "cron": cron.parse,
    "cpu": resource.parse,
    "memory": resource.parse,
    "external": external.parse,
}
_OTHERS = {"external-push": "external: the lab's scaler answers when it is asked, and pushes nothing"}


def parse(triggers: object, where: object) -> tuple[Trigger, ...]:
    """The triggers of a ScaledObject, in their order, which is their index in the metrics' names. Raises :class:`InputError`
    naming each field that can't be used."""
    if not isinstance(triggers, list) or not triggers or not all(isinstance(trigger, dict) for trigger in triggers):
        raise InputError(where, "spec.triggers", triggers, "a list of at least one trigger")
    parsed: list[Trigger] = []
    with together():
        for index, trigger in enumerate(triggers):
            with step():
                others = [one.get("type") for one in triggers if one is not trigger]
                read = _one(trigger, where, f"spec.triggers[{index}].", others)
                if read.common.name and read.common.name in {earlier.common.name for earlier in parsed}:
                    report(InputError(where, f"spec.triggers[{index}].name", read.common.name, "a name no other trigger has"))
                parsed.append(read)
    return tuple(parsed)


def _one(trigger: Mapping[str, Any], where: object, place: str, beside: Sequence[object]) -> Trigger:
    """The trigger at ``place``. One without a type that has a consumer group is read as kafka, so that all of it is told."""
    kind, metadata = trigger.get("type"), trigger.get("metadata")
    if isinstance(kind, str) and kind in TYPES:
        return TYPES[kind](trigger, where, place)
    allowed, meant = _OTHERS.get(str(kind), ""), ""
    if not allowed:
        rest = "; without it the others can be read" if any(isinstance(one, str) and one in TYPES for one in beside) else ""
        meant = closest(kind, TYPES)
        allowed = ", ".join(TYPES) + ("" if meant or kind is None else rest)
    error = InputError(where, f"{place}type", kind, allowed, meant)
    if kind is not None or not isinstance(metadata, dict) or "consumerGroup" not in metadata:
        raise error
    report(error)
    return kafka.parse({**trigger, "type": kafka.KAFKA}, where, place)


def topic_of(trigger: Trigger) -> Named:
    """The topic as ``trigger`` names it: not at all where it reads every topic of the group, and where it reads no lag."""
    if isinstance(trigger, kafka.Kafka):
        return trigger.topic
    if isinstance(trigger, external.PersistentLag):
        return Named(trigger.metadata.get("topic", ""), trigger.metadata.get("topicFromEnv", ""))
    return Named("", "")


def topic_places(triggers: Sequence[Trigger]) -> tuple[int | None, ...]:
    """By trigger, the place of its topic among those of the group, from 0; None for a trigger that names none."""
    words = [one.literal or f"${one.variable}" if one.given else "" for one in map(topic_of, triggers)]
    own = {f"${variable}": place for place, variable in enumerate(variables(MOST))}
    taken = {own[word] for word in words if word in own}
    left = (place for place in itertools.count() if place not in taken)
    theirs = {word: next(left) for word in dict.fromkeys(words) if word and word not in own}
    return tuple((own | theirs)[word] if word else None for word in words)


def check_partitions(triggers: Sequence[Trigger], partitions: int, where: object) -> None:
    """Raise :class:`InputError` for the first of ``triggers`` that counts none of a topic's ``partitions``: KEDA fails then."""
    for index, one in enumerate(triggers):
        only = one.partitions if isinstance(one, kafka.Kafka | external.PersistentLag) else None
        if only is not None and only.isdisjoint(range(partitions)):
            chosen, field = ",".join(map(str, sorted(only))), f"spec.triggers[{index}].metadata.partitionLimitation"
            raise InputError(where, field, chosen, f"some of the topic's partitions, 0 to {partitions - 1}")


def check_topics(triggers: Sequence[Trigger], topics: int, where: object) -> None:
    """Raise :class:`InputError` for the first of ``triggers`` that reads a further topic than the ``topics`` of the group."""
    read = topic_places(triggers)
    needed = 1 + max((place for place in read if place is not None), default=0)
    for index, (trigger, place) in enumerate(zip(triggers, read, strict=True)):
        if place is not None and place >= topics:
            topic = topic_of(trigger)
            field, value = ("topic", topic.literal) if topic.literal else ("topicFromEnv", topic.variable)
            others = [topic_of(one) for one, its in zip(triggers, read, strict=True) if its is not None and its < topics]
            there = dict.fromkeys(one.literal or one.variable for one in others) or variables(topics)
            allowed = f"{', '.join(there)}, or topics: {needed} in the workload (at most {MOST})"
            raise InputError(where, f"spec.triggers[{index}].metadata.{field}", value, allowed)
