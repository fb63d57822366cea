"""What every trigger has besides its metadata: its common fields, those of a login, and the answer of one query."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Self
from urllib.parse import urlsplit, urlunsplit

from lab.inputs.scale import Scale
from lab.yamlfile import Fields


class ScalerError(Exception):
    """The query failed. KEDA counts it for fallback and builds the scaler anew, which forgets what the old one remembered."""


@dataclass(frozen=True)
class Reading:
    """One answered query: the metric the HPA is given, whether the trigger is active, and why, in sentences."""

    metric: float
    active: bool
    reasons: tuple[str, ...]


def exposed(value: float) -> float:
    """The metric as it leaves KEDA: thousandths, not below 0. Source: ``quantityFromFloat64`` in ``pkg/scalers/scaler.go``."""
    if math.isnan(value) or math.isinf(value) or value < 0:
        return 0.0
    return float(f"{value:.3f}")


class Unscaled:
    """A trigger that a scale leaves as it is: no time or lag is in it. A time of day is moved by :mod:`lab.inputs.anchor`."""

    def compressed(self, scale: Scale) -> Self:
        """The trigger at ``scale``."""
        return self

    def written(self, metadata: Mapping[str, str]) -> dict[str, str]:
        """The trigger's ``metadata``, with this trigger's own values of what a scale compresses."""
        return dict(metadata)


_FIELDS = ("type", "name", "metadata", "metricType", "useCachedMetrics", "authenticationRef")
_SECRETS = ("TriggerAuthentication", "ClusterTriggerAuthentication")
_SUFFIXES = ("", "k", "M", "G", "T", "P", "E")


@dataclass(frozen=True)
class Common:
    """Name ("" for none), whether the HPA is given the poll's value, the HPA's target type, and whether secrets are named."""

    name: str
    cached: bool
    metric_type: str
    authenticated: bool


def read(trigger: Mapping[str, Any], where: object, place: str, *, resource: bool = False, cacheable: bool = True) -> Common:
    """The common fields of ``trigger``; ``resource`` for a metric the HPA reads itself, which has target types of its own.

    Raises :class:`InputError` naming the field. Source: ``ValidateTriggers`` in ``apis/keda/v1alpha1/scaletriggers_types.go``,
    ``GetMetricTargetType`` in ``pkg/scalers/scaler.go`` and ``parseResourceMetadata`` in ``pkg/scalers/cpu_memory_scaler.go``.
    """
    given = Fields(trigger, where, place)
    given.known(*_FIELDS)
    cached = given.flag("useCachedMetrics")
    if cached and not cacheable:
        given.refuse("useCachedMetrics", f"false: KEDA has none for {trigger['type']}")
    name = trigger.get("name", "")
    if not isinstance(name, str):
        given.refuse("name", "a string")
        name = ""
    allowed = ("Utilization", "AverageValue") if resource else ("AverageValue", "Value")
    metric_type = trigger.get("metricType") or ("" if resource else "AverageValue")
    if metric_type not in allowed:
        given.refuse("metricType", " or ".join(allowed))
        metric_type = allowed[0]
    authenticated = trigger.get("authenticationRef") is not None
    if authenticated:
        reference = given.under("authenticationRef", "name", "kind")
        if not reference.content.get("name"):
            given.refuse("authenticationRef", "a mapping with a name")
        elif not isinstance(reference.content["name"], str):
            reference.refuse("name", "a string: quote it")
        reference.choice("kind", *_SECRETS, default=_SECRETS[0])
    return Common(name, cached, metric_type, authenticated)


def quantity(value: float) -> str:
    """``value`` as Kubernetes writes a decimal quantity: thousandths, in the largest unit that leaves a whole number."""
    thousandths = int(Decimal(f"{value:.3f}" if isinstance(value, float) else value) * 1000)
    if thousandths % 1000:
        return f"{thousandths}m"
    whole, unit = thousandths // 1000, 0
    while whole and whole % 1000 == 0 and unit < len(_SUFFIXES) - 1:
        whole, unit = whole // 1000, unit + 1
    return f"{whole}{_SUFFIXES[unit]}"


def external(index: int, name: str, metric_type: str, target: float) -> dict[str, Any]:
    """The HPA's metric for the trigger at ``index``. Source: ``GenerateMetricNameWithIndex``, ``GetMetricTarget`` and
    ``GetMetricTargetMili`` in ``pkg/scalers/scaler.go``."""
    field = "averageValue" if metric_type == "AverageValue" else "value"
    return {
        "type": "External",
        "external": {"metric": {"name": f"s{index}-{name}"}, "target": {"type": metric_type, field: quantity(target)}},
    }


def normalized(name: str) -> str:
    """``name`` without the characters a metric can't have. Source: ``NormalizeString`` in ``pkg/util/normalize_string.go``."""
    return name.translate(str.maketrans("/.:%()", "------"))


AWS_LOGIN = ("awsRegion", "identityOwner", "awsAccessKeyID", "awsAccessKeyIDFromEnv", "awsSecretAccessKeyFromEnv")
CLOUD_LOGIN = (*AWS_LOGIN, "cloud", "azureManagedPrometheusResourceURL", "credentialsFromEnv", "credentialsFromEnvFile")
HTTP_LOGIN = ("authModes", "authMode", "apiKey", "method", "keyParamName", "customHeaders")
KAFKA_LOGIN = ("sasl", "tls", "unsafeSsl", "saslTokenProvider")
GRPC_LOGIN = ("enableTLS", "unsafeSsl")
LOGIN_FIELDS = tuple(dict.fromkeys((*KAFKA_LOGIN, *GRPC_LOGIN, *HTTP_LOGIN, *CLOUD_LOGIN)))
FROM_REFERENCE = "nothing: KEDA takes it from the TriggerAuthentication of an authenticationRef, and not from here"
MASK = "(not shown)"
_SECRET_FIELDS = ("apiKey", "awsAccessKeyID", "customHeaders")


def only_by_reference(*fields: str) -> dict[str, str]:
    """Why each of ``fields`` is refused in metadata: only a TriggerAuthentication has it."""
    return dict.fromkeys(fields, FROM_REFERENCE)


def printable(field: str, value: object, secrets: Iterable[str] = _SECRET_FIELDS) -> object:
    """``value`` as it may be printed and kept; what may be a secret is neither."""
    return MASK if value is not None and field in secrets else value


def without_login(url: str) -> str:
    """``url`` without user, password, query and fragment, any of which may be a secret; one that has none as it is. What can't
    be taken apart is cut before its last "@", so that nothing of a login is left."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises ValueError for one that is no number
    except ValueError:
        return url.rpartition("@")[2].partition("?")[0].partition("#")[0]
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
