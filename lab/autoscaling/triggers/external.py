"""The external trigger: a gRPC service names the metric, its target and its value (``pkg/scalers/external_scaler.go``)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lab.autoscaling.triggers import common
from lab.autoscaling.triggers.common import Common
from lab.autoscaling.triggers.metadata import Metadata

_SCHEME = re.compile(r"[a-z]+://")
_GRPC_SCHEMES = ("dns:///", "passthrough:///", "unix://")


@dataclass(frozen=True)
class External:
    """A scaler at ``address``, and the metadata it is sent with each call."""

    common: Common
    address: str
    metadata: Mapping[str, str]

    def metric(self, index: int, name: str, target: float) -> dict[str, Any]:
        """The HPA's metric for what the scaler answered to GetMetricSpec. Source: ``externalScaler.buildMetricSpecs``."""
        return common.external(index, name, self.common.metric_type, target)


def parse(trigger: Mapping[str, Any], where: object, place: str) -> External:
    """The trigger at ``place``. Raises :class:`InputError` naming the field. Source: ``parseExternalScalerMetadata``.

    KEDA accepts an http URL for an address, and gRPC then resolves no such host: it is refused here.
    """
    shared = common.read(trigger, where, place)
    metadata = Metadata.read(trigger, where, place)
    address = metadata.text("scalerAddress", "HOST:PORT of a gRPC service")
    if _SCHEME.match(address) and not address.startswith(_GRPC_SCHEMES):
        raise metadata.error("scalerAddress", "HOST:PORT of a gRPC service, without http://")
    for field in ("enableTLS", "unsafeSsl"):
        metadata.flag(field)
    return External(shared, address, dict(metadata.content))
