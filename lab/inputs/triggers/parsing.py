"""The triggers of a ScaledObject, of whichever types: read, and compressed as a scale declares. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from lab.errors import InputError
from lab.inputs.scale import Scale
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

INTERVAL_S = 10  # the persistent-lag scaler's own default of samplingInterval
_WHOLE_S = ("sustainSeconds", "scaleUpStabilization", "scaleDownStabilization")
_DECIMAL_S = ("samplingInterval", "lagSeconds", "activationLagSeconds")


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


def compressed(content: Mapping[str, Any], trigger: Trigger, scale: Scale) -> dict[str, Any]:
    """The trigger ``content``, which was read as ``trigger``, at ``scale``; cpu, memory and cron stay as they are.

    A prometheus trigger's threshold is multiplied by the scale's rate alone: whether its query is a lag can't be known. A time
    of day is no length: :mod:`lab.inputs.anchor` moves a trial's own.
    """
    metadata = dict(content["metadata"])
    match trigger:
        case kafka.Kafka():
            metadata["lagThreshold"] = str(scale.messages(trigger.lag_threshold))
            if metadata.get("activationLagThreshold"):
                metadata["activationLagThreshold"] = str(scale.most_messages(trigger.activation))
        case prometheus.Prometheus():
            metadata["threshold"] = f"{trigger.threshold * scale.rate:g}"
        case external.External():
            metadata["samplingInterval"] = metadata.get("samplingInterval") or str(INTERVAL_S)
            for field in _WHOLE_S:
                if metadata.get(field):
                    metadata[field] = str(scale.seconds(float(metadata[field])))
            for field in _DECIMAL_S:
                if metadata.get(field):
                    # Rounded up: a window of so many intervals must still hold sustainSeconds.
                    metadata[field] = f"{math.ceil(float(metadata[field]) / scale.time * 1000) / 1000:g}"
            for field, compress in (("lagThreshold", scale.messages), ("activationLagThreshold", scale.most_messages)):
                if metadata.get(field):
                    metadata[field] = str(compress(int(metadata[field])))
        case cron.Cron() | resource.Resource():
            pass
    return dict(content) | {"metadata": metadata}
