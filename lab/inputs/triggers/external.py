"""The external trigger (``pkg/scalers/external_scaler.go``): a gRPC service names metric, target and value."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from lab.inputs.scale import Scale
from lab.inputs.triggers import common, persistent_lag
from lab.inputs.triggers.common import Common, Unscaled
from lab.inputs.triggers.metadata import Metadata
from lab.inputs.triggers.persistent_lag import Settings

MARK = "sustainSeconds"
FIELDS = ("scalerAddress", *common.GRPC_LOGIN)  # KEDA's own; whatever else is written is for the service
REFUSALS = common.only_by_reference("caCert", "tlsClientCert", "tlsClientKey")
INTERVAL_S = 10  # the persistent-lag scaler's own default of samplingInterval


_COMPRESS: dict[str, Callable[[Scale, str], str]] = {
    **dict.fromkeys(  # rounded up: a window of so many intervals must still hold sustainSeconds
        ("samplingInterval", "lagSeconds", "activationLagSeconds"),
        lambda scale, value: f"{math.ceil(float(value) / scale.time * 1000) / 1000:g}",
    ),
    **dict.fromkeys(
        ("sustainSeconds", "scaleUpStabilization", "scaleDownStabilization"),
        lambda scale, value: str(scale.seconds(float(value))),
    ),
    "lagThreshold": lambda scale, value: str(scale.messages(int(value))),
    "activationLagThreshold": lambda scale, value: str(scale.most_messages(int(value))),
}
_SCHEME = re.compile(r"[a-z]+://")
_GRPC_SCHEMES = ("dns:///", "passthrough:///", "unix://")


@dataclass(frozen=True)
class External(Unscaled):
    """A scaler at ``address``, and the metadata it is sent with each call."""

    common: Common
    address: str
    metadata: Mapping[str, str]

    def compressed(self, scale: Scale) -> Self:
        """What a scaler is sent, with the persistent-lag scaler's times and lags at ``scale``."""
        sent = dict(self.metadata) | {"samplingInterval": self.metadata.get("samplingInterval") or str(INTERVAL_S)}
        for field, value in sent.items():
            if value and field in _COMPRESS:
                sent[field] = _COMPRESS[field](scale, value)
        return replace(self, metadata=sent)

    def written(self, metadata: Mapping[str, str]) -> dict[str, str]:
        """As it is sent."""
        return {**metadata, **self.metadata}

    def metric(self, index: int, name: str, target: float) -> dict[str, Any]:
        """The HPA's metric for what the scaler answered to GetMetricSpec. Source: ``externalScaler.buildMetricSpecs``."""
        return common.external(index, name, self.common.metric_type, target)


@dataclass(frozen=True)
class PersistentLag(External):
    """The lab's persistent-lag scaler, and what it makes of the metadata. A variable's name stands there for its value."""

    settings: Settings

    @property
    def partitions(self) -> frozenset[int] | None:
        """The partitions of its topic that it counts, None for all."""
        return self.settings.source.partitions

    def compressed(self, scale: Scale) -> Self:
        """With the settings that follow from what is sent."""
        made = super().compressed(scale)
        return replace(made, settings=persistent_lag.parse(made.metadata, f"{self.settings.metric} at scale {scale.name}"))


def answers(triggers: Iterable[object]) -> dict[int, tuple[str, float]]:
    """By the index of each trigger on the persistent-lag scaler: the metric's name and target, as it answers KEDA."""
    found = ((index, one.settings) for index, one in enumerate(triggers) if isinstance(one, PersistentLag))
    return {index: (settings.metric, settings.rule.target) for index, settings in found}


def parse(trigger: Mapping[str, Any], where: object, place: str) -> External:
    """The trigger at ``place``, a :class:`PersistentLag` where it says what only that scaler knows: sustainSeconds.

    Raises :class:`InputError` naming the field, also for an http URL, whose host gRPC can't resolve. Source:
    ``parseExternalScalerMetadata``.
    """
    shared = common.read(trigger, where, place)
    metadata = Metadata.read(trigger, where, place)
    metadata.check((*FIELDS, *metadata.content), REFUSALS)
    address = metadata.text("scalerAddress", "HOST:PORT of a gRPC service")
    if _SCHEME.match(address) and not address.startswith(_GRPC_SCHEMES):
        metadata.refuse("scalerAddress", "HOST:PORT of a gRPC service, without http://")
    for field in common.GRPC_LOGIN:
        metadata.flag(field)
    sent = dict(metadata.content)
    if MARK in sent:
        return PersistentLag(shared, address, sent, persistent_lag.parse(sent, where, place))
    return External(shared, address, sent)
