"""A plain autoscaling/v2 HPA on a group's lag, as the ScaledObject whose HPA decides alike. Pure.

Its External metric is a series of Prometheus, as an adapter serves it: the HPA adds up what it is given, so it is a sum, and
the selector's labels are those of the query.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from lab.errors import InputError, together
from lab.inputs import hpa_spec
from lab.inputs.hpa_spec import Metric
from lab.yamlfile import Fields
from lab.yamltext import Source

KIND = "HorizontalPodAutoscaler"
_KEDAS = re.compile(r"s\d+-kafka-.*")  # the name that KEDA gives a kafka trigger's metric
_SERIES = re.compile(r"[A-Za-z_:][A-Za-z0-9_:]*")
_QUERY = re.compile(r"spec\.triggers\[(\d+)\]\.metadata\.query")
_SERVER = "http://prometheus"  # nobody asks it


class Written(Source):
    """The source of a plain HPA, in errors of the ScaledObject that is made of it: their fields are those of the HPA."""

    def field(self, field: str) -> str:
        """The field of the HPA that ``field`` of the ScaledObject was made of."""
        return _QUERY.sub(r"spec.metrics[\1].external.metric.name", field)

    def line(self, field: str) -> int | None:
        """The line of the HPA's field."""
        return super().line(self.field(field))


def scaledobject_of(hpa: Mapping[str, Any], where: object) -> dict[str, Any]:
    """The content of a ScaledObject with a trigger for each metric of ``hpa``. Raises :class:`InputError` naming the field of
    the HPA that can't be used."""
    given = Fields(hpa, where)
    with together():
        name = given.under("metadata").text("name", "the name of the HPA")
        spec = given.under("spec")
        queries = [_query(one) for one in spec.each("metrics")]
        target = spec.under("scaleTargetRef")
        target.text("kind", "the kind of what is scaled, which an HPA names")
        read = hpa_spec.parse(hpa, where)
    made: dict[str, Any] = {
        "scaleTargetRef": dict(target.content),
        "minReplicaCount": read.min_replicas,
        "maxReplicaCount": read.max_replicas,
        "triggers": [_trigger(metric, query) for metric, query in zip(read.metrics, queries or [""], strict=True)],
    }
    if not read.min_replicas:
        raise InputError(where, "spec.minReplicas", 0, "from 1: what wakes a group from 0 is not simulated without KEDA")
    if "behavior" in spec.content:
        made["advanced"] = {"horizontalPodAutoscalerConfig": {"behavior": _behavior(spec.content["behavior"])}}
    head = {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject"}
    return head | {"metadata": {"name": name}, "spec": made}


def _behavior(written: Mapping[str, Any]) -> dict[str, Any]:
    """``written`` as a ScaledObject has it, whose tolerance is no bare number."""
    return {
        direction: rules and {name: str(value) if name == "tolerance" else value for name, value in rules.items()}
        for direction, rules in written.items()
    }


def _trigger(metric: Metric, query: str) -> dict[str, Any]:
    if metric.source == "Resource":
        percent = metric.target == "Utilization"
        value = f"{metric.amount}" if percent else f"{metric.amount}m" if metric.name == "cpu" else f"{metric.amount // 1000}"
        return {"type": metric.name, "metricType": metric.target, "metadata": {"value": value}}
    threshold = f"{metric.amount // 1000}" if metric.amount % 1000 == 0 else f"{metric.amount / 1000:.3f}"
    metadata = {"serverAddress": _SERVER, "query": query, "threshold": threshold}
    return {"type": "prometheus", "metricType": metric.target, "metadata": metadata}


def _query(metric: Fields) -> str:
    """The sum of the series that an External ``metric`` selects; "" of another, and of one without a name."""
    given = metric.under("external", optional=True).under("metric", optional=True)
    name = given.content.get("name")
    if metric.content.get("type") != "External" or not isinstance(name, str):
        return ""
    if _KEDAS.fullmatch(name):
        return "sum(kafka_consumergroup_lag)"
    if not _SERIES.fullmatch(name):
        given.refuse("name", "the name of a series of Prometheus such as kafka_consumergroup_lag")
    labels = given.under("selector", "matchLabels", optional=True).under("matchLabels", optional=True).content
    return f"sum({name}{{{','.join(f'{label}={json.dumps(str(value))}' for label, value in labels.items())}}})"
