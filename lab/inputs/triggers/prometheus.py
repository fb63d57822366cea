"""The prometheus trigger: one query whose only element is the metric (``pkg/scalers/prometheus_scaler.go``)."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from lab.inputs.scale import Scale
from lab.inputs.triggers import common
from lab.inputs.triggers.common import Common, Reading, ScalerError, Unscaled, exposed
from lab.inputs.triggers.metadata import Metadata

_PAIRS = ("queryParameters", "customHeaders")
FIELDS = (
    *("serverAddress", "query", "queryParameters", "namespace", "timeout", "unsafeSsl"),
    *("threshold", "activationThreshold", "ignoreNullValues"),
    *common.HTTP_LOGIN,
    *common.CLOUD_LOGIN,
)
_PASSWORDS = ("bearerToken", "token", "username", "password", "cert", "key", "ca", "customAuthHeader", "customAuthValue")
_OAUTH = ("oauthTokenURI", "scopes", "scope", "clientID", "clientSecret", "endpointParams")
REFUSALS = common.only_by_reference(*_PASSWORDS, *_OAUTH)
IGNORED = ("metricName",)  # until KEDA 2.9 the metric's name, and still in most public files
_MODES = ("apiKey", "basic", "tls", "bearer", "custom", "oauth")
_TIMEOUT = re.compile(r"\d{1,9}|(\d{1,6}(\.\d{1,6})?(ns|us|ms|s|m|h))+")


@dataclass(frozen=True)
class Prometheus(Unscaled):
    """The value of ``query``: the HPA wants ``threshold`` of it per replica; above ``activation`` the trigger is active."""

    common: Common
    server: str
    query: str
    threshold: float
    activation: float
    ignore_null: bool

    @property
    def target(self) -> float:
        """What the HPA wants per replica, in the query's unit."""
        return self.threshold

    def compressed(self, scale: Scale) -> Self:
        """Its threshold times the scale's rate alone: whether the query is a lag can't be known."""
        return replace(self, threshold=self.threshold * scale.rate)

    def written(self, metadata: Mapping[str, str]) -> dict[str, str]:
        """With the threshold."""
        return {**metadata, "threshold": f"{self.threshold:g}"}

    def metric(self, index: int, environment: Mapping[str, str]) -> dict[str, Any]:
        """The HPA's metric. Source: ``prometheusScaler.GetMetricSpecForScaling``."""
        return common.external(index, "prometheus", self.common.metric_type, self.threshold)


def parse(trigger: Mapping[str, Any], where: object, place: str) -> Prometheus:
    """The trigger at ``place``. Raises :class:`InputError` naming the field. Source: ``prometheusMetadata``. A threshold KEDA
    accepts and the HPA refuses (not above 0) is refused here."""
    shared = common.read(trigger, where, place)
    metadata = Metadata.read(trigger, where, place)
    metadata.check((*FIELDS, *IGNORED), REFUSALS)
    server = metadata.text("serverAddress", "the URL of a Prometheus server")
    if server and not server.startswith(("http://", "https://")):
        metadata.refuse("serverAddress", "a URL that begins with http:// or https://")
    for field in _PAIRS:
        value = metadata.content.get(field, "")
        if value and any(part.count("=") != 1 for part in value.split(",")):
            metadata.refuse(field, "pairs such as name=value,name=value")
    timeout = metadata.content.get("timeout", "")
    if timeout and not _TIMEOUT.fullmatch(timeout):
        metadata.refuse("timeout", "milliseconds, or a duration such as 5s")
    for field in ("authModes", "authMode"):
        modes = {mode.strip() for mode in metadata.content.get(field, "").split(",")} - {""}
        if not modes <= set(_MODES):
            metadata.refuse(field, f"some of {', '.join(_MODES)}")
        if modes - {"apiKey"} and not shared.authenticated:
            metadata.refuse(field, "none without an authenticationRef that has the secrets")
        if "apiKey" in modes and not shared.authenticated:
            metadata.text("apiKey", "a key, here or in the TriggerAuthentication of an authenticationRef")
    metadata.choice("method", "header", "query", default="header")
    metadata.flag("unsafeSsl")
    return Prometheus(
        common=shared,
        server=server,
        query=metadata.text("query", "a PromQL query that answers one element"),
        threshold=metadata.number("threshold", 0.001),
        activation=metadata.number("activationThreshold", default=0),
        ignore_null=metadata.flag("ignoreNullValues", default=True),
    )


def read(trigger: Prometheus, elements: Sequence[float]) -> Reading:
    """What KEDA makes of the query's elements. Source: ``prometheusScaler.ExecutePromQuery`` and ``GetMetricsAndActivity``.

    Raises :class:`ScalerError` for more than one element and, unless null values are ignored, for none, NaN and infinity.
    """
    if len(elements) > 1:
        raise ScalerError(f"the query answers {len(elements)} elements; KEDA takes one")
    missing = not elements or not math.isfinite(elements[0])
    if missing and not trigger.ignore_null:
        raise ScalerError("the query answers nothing" if not elements else f"the query answers {elements[0]:g}")
    value = 0.0 if missing else elements[0]
    active = value > trigger.activation
    why, above = "null ignored" if missing else "as answered", "above" if active else "not above"
    reason = f"query {value:g} ({why}), {above} activationThreshold {trigger.activation:g}"
    return Reading(exposed(value), active, (reason,))
