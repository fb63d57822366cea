"""A typed, strict view of a ScaledObject's YAML. What KEDA or the HPA would refuse or ignore is refused here, by name.

Field names, defaults and refused pairs are those of KEDA 2.21 (``apis/keda/v1alpha1/scaledobject_types.go``,
``pkg/scalers/kafka_scaler.go``); the behavior block is autoscaling/v2's.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lab import yamlfile
from lab.autoscaling import behavior
from lab.errors import InputError
from lab.scale import Scale

_SPEC = (
    "scaleTargetRef",
    "pollingInterval",
    "cooldownPeriod",
    "initialCooldownPeriod",
    "minReplicaCount",
    "maxReplicaCount",
    "fallback",
    "advanced",
    "triggers",
)
_TRIGGER = ("type", "name", "metadata", "metricType", "useCachedMetrics", "authenticationRef")
_KAFKA = (
    "bootstrapServers",
    "bootstrapServersFromEnv",
    "consumerGroup",
    "consumerGroupFromEnv",
    "topic",
    "topicFromEnv",
    "lagThreshold",
    "activationLagThreshold",
    "offsetResetPolicy",
    "allowIdleConsumers",
    "excludePersistentLag",
    "scaleToZeroOnInvalidOffset",
    "limitToPartitionsWithLag",
    "ensureEvenDistributionOfPartitions",
    "partitionLimitation",
    "version",
    "tls",
    "sasl",
    "unsafeSsl",
)
_FLAGS = (
    "allowIdleConsumers",
    "excludePersistentLag",
    "scaleToZeroOnInvalidOffset",
    "limitToPartitionsWithLag",
    "ensureEvenDistributionOfPartitions",
)
_REFUSED_PAIRS = (
    ("allowIdleConsumers", "limitToPartitionsWithLag"),
    ("limitToPartitionsWithLag", "ensureEvenDistributionOfPartitions"),
)
_MISTAKEN = {"minReplicas": "minReplicaCount", "maxReplicas": "maxReplicaCount"}


@dataclass(frozen=True)
class ScaledObject:
    """What the measures and the runner need to know, and the object as it is applied. Times in s, lag in messages."""

    name: str
    target: str
    min_replicas: int
    max_replicas: int
    polling_s: int
    lag_threshold: int
    content: dict[str, Any]

    @property
    def start(self) -> int:
        """Replicas a trial begins with: a baseline begins at the floor."""
        return max(1, self.min_replicas)

    @property
    def hpa(self) -> str:
        """The name of the HPA that KEDA makes."""
        return f"keda-hpa-{self.name}"

    def compressed(self, scale: Scale) -> ScaledObject:
        """The same policy with its times divided and its lagThreshold multiplied as ``scale`` declares."""
        content = copy.deepcopy(self.content)
        spec = content["spec"]
        for field in ("pollingInterval", "cooldownPeriod", "initialCooldownPeriod"):
            if field in spec:
                spec[field] = scale.seconds(spec[field])
        rules = spec.setdefault("advanced", {}).setdefault("horizontalPodAutoscalerConfig", {}).setdefault("behavior", {})
        behavior.compress(rules, scale)
        metadata = spec["triggers"][0]["metadata"]
        metadata["lagThreshold"] = str(max(1, round(self.lag_threshold * scale.rate)))
        return parse(content, f"{self.name} at scale {scale.name}")


def parse(content: Mapping[str, Any], where: object) -> ScaledObject:
    """The ScaledObject in ``content``; ``where`` names its source in errors."""
    for field, wanted in (("apiVersion", "keda.sh/v1alpha1"), ("kind", "ScaledObject")):
        if content.get(field) != wanted:
            raise InputError(where, field, content.get(field), wanted)
    spec = yamlfile.mapping(content, "spec", where)
    for wrong, right in _MISTAKEN.items():
        if wrong in spec:
            raise InputError(where, f"spec.{wrong}", spec[wrong], f"{right}: KEDA ignores {wrong}")
    yamlfile.known(spec, _SPEC, where, "spec.")
    least = yamlfile.whole(spec, "minReplicaCount", where, 0, 100_000, 0, "spec.")
    most = yamlfile.whole(spec, "maxReplicaCount", where, 1, 100_000, 100, "spec.")
    if least > most:
        raise InputError(where, "spec.minReplicaCount", least, f"at most maxReplicaCount, {most}")
    polling = yamlfile.whole(spec, "pollingInterval", where, 1, 86_400, 30, "spec.")
    yamlfile.whole(spec, "cooldownPeriod", where, 0, 86_400, 300, "spec.")
    _advanced(spec, where)
    threshold = _kafka(spec, where)
    return ScaledObject(
        name=str(yamlfile.mapping(content, "metadata", where).get("name", "")),
        target=str(yamlfile.mapping(spec, "scaleTargetRef", where).get("name", "")),
        min_replicas=least,
        max_replicas=most,
        polling_s=polling,
        lag_threshold=threshold,
        content=copy.deepcopy(dict(content)),
    )


def _kafka(spec: Mapping[str, Any], where: object) -> int:
    """Check the one kafka trigger and return its lagThreshold."""
    triggers = spec.get("triggers")
    if not isinstance(triggers, list) or len(triggers) != 1 or not isinstance(triggers[0], dict):
        raise InputError(where, "spec.triggers", triggers, "a list of one trigger")
    yamlfile.known(triggers[0], _TRIGGER, where, "spec.triggers[0].")
    if not isinstance(triggers[0].get("useCachedMetrics", False), bool):
        raise InputError(where, "spec.triggers[0].useCachedMetrics", triggers[0]["useCachedMetrics"], "true or false")
    if triggers[0].get("type") != "kafka":
        raise InputError(where, "spec.triggers[0].type", triggers[0].get("type"), "kafka")
    prefix = "spec.triggers[0].metadata."
    metadata = yamlfile.mapping(triggers[0], "metadata", where)
    yamlfile.known(metadata, _KAFKA, where, prefix)
    for field, value in metadata.items():
        if not isinstance(value, str):
            raise InputError(where, f"{prefix}{field}", value, "a string: quote it")
    for field in ("bootstrapServers", "consumerGroup"):
        if not metadata.get(field) and not metadata.get(f"{field}FromEnv"):
            raise InputError(where, f"{prefix}{field}", metadata.get(field), f"an address or name, here or by {field}FromEnv")
    for field in _FLAGS:
        if metadata.get(field, "false") not in ("true", "false"):
            raise InputError(where, f"{prefix}{field}", metadata[field], '"true" or "false"')
    for one, other in _REFUSED_PAIRS:
        if metadata.get(one) == metadata.get(other) == "true":
            raise InputError(where, f"{prefix}{one}", "true", f'"false" where {other} is "true": KEDA refuses the pair')
    if metadata.get("offsetResetPolicy", "latest") not in ("latest", "earliest"):
        raise InputError(where, f"{prefix}offsetResetPolicy", metadata["offsetResetPolicy"], "latest or earliest")
    _text_number(metadata, "activationLagThreshold", where, prefix, 0, 0)
    return _text_number(metadata, "lagThreshold", where, prefix, 1, 10)


def _advanced(spec: Mapping[str, Any], where: object) -> None:
    advanced = spec.get("advanced") or {}
    yamlfile.known(advanced, ("restoreToOriginalReplicaCount", "horizontalPodAutoscalerConfig"), where, "spec.advanced.")
    settings = advanced.get("horizontalPodAutoscalerConfig") or {}
    base = "spec.advanced.horizontalPodAutoscalerConfig."
    yamlfile.known(settings, ("name", "behavior"), where, base)
    behavior.check(settings.get("behavior") or {}, where, f"{base}behavior.")


def _text_number(metadata: Mapping[str, Any], field: str, where: object, prefix: str, least: int, default: int) -> int:
    text = metadata.get(field, str(default))
    try:
        value = int(text)
    except ValueError:
        value = least - 1
    if value < least:
        raise InputError(where, f"{prefix}{field}", text, f"a whole number from {least}, as a string")
    return value
