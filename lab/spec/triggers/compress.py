"""What a scale does to a trigger: its times are divided, and the lag it wants per replica is multiplied. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from lab.errors import InputError
from lab.spec.scale import Scale
from lab.spec.triggers.cron import Cron
from lab.spec.triggers.external import External
from lab.spec.triggers.kafka import Kafka
from lab.spec.triggers.parsing import Trigger
from lab.spec.triggers.prometheus import Prometheus
from lab.spec.triggers.resource import Resource

INTERVAL_S = 10  # the persistent-lag scaler's own default of samplingInterval
_WHOLE_S = ("sustainSeconds", "scaleUpStabilization", "scaleDownStabilization")
_DECIMAL_S = ("samplingInterval", "lagSeconds", "activationLagSeconds")


def compressed(content: Mapping[str, Any], trigger: Trigger, scale: Scale, where: object) -> dict[str, Any]:
    """The trigger ``content``, which was read as ``trigger``, at ``scale``; cpu and memory stay as they are.

    Raises :class:`InputError` for cron: a time of day is no length.
    """
    metadata = dict(content["metadata"])
    match trigger:
        case Kafka():
            metadata["lagThreshold"] = _times(trigger.lag_threshold, scale)
        case Prometheus():
            metadata["threshold"] = f"{trigger.threshold * scale.rate:g}"
        case External():
            metadata["samplingInterval"] = metadata.get("samplingInterval") or str(INTERVAL_S)
            for field in _WHOLE_S:
                if metadata.get(field):
                    metadata[field] = str(scale.seconds(float(metadata[field])))
            for field in _DECIMAL_S:
                if metadata.get(field):
                    # Rounded up: a window of so many intervals must still hold sustainSeconds.
                    metadata[field] = f"{math.ceil(float(metadata[field]) / scale.time * 1000) / 1000:g}"
            if metadata.get("lagThreshold"):
                metadata["lagThreshold"] = _times(int(metadata["lagThreshold"]), scale)
        case Cron():
            raise InputError(where, "spec.triggers", "cron", "any other trigger: a trial compresses no time of day")
        case Resource():
            pass
    return dict(content) | {"metadata": metadata}


def _times(threshold: int, scale: Scale) -> str:
    return str(max(1, round(threshold * scale.rate)))
