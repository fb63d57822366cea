"""The triggers of a ScaledObject, of whichever types. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lab.errors import InputError
from lab.inputs.triggers import cron, external, kafka, prometheus, resource

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
    """The triggers of a ScaledObject, in their order, which is their index in the metrics' names.

    Raises :class:`InputError` naming the first field that can't be used.
    """
    if not isinstance(triggers, list) or not triggers or not all(isinstance(trigger, dict) for trigger in triggers):
        raise InputError(where, "spec.triggers", triggers, "a list of at least one trigger")
    parsed: list[Trigger] = []
    for index, trigger in enumerate(triggers):
        place = f"spec.triggers[{index}]."
        kind = trigger.get("type")
        if not isinstance(kind, str) or kind not in TYPES:
            raise InputError(where, f"{place}type", kind, _OTHERS.get(str(kind), ", ".join(TYPES)))
        read = TYPES[kind](trigger, where, place)
        if read.common.name and read.common.name in {earlier.common.name for earlier in parsed}:
            raise InputError(where, f"{place}name", read.common.name, "a name no other trigger has")
        parsed.append(read)
    return tuple(parsed)
