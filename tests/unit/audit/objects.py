"""A ScaledObject for the audit's tests, changed by short names of its fields, and the objects that may stand beside it."""

import yaml

from lab.audit import cure, findings
from lab.audit.rules import REMOVED
from lab.audit.scaledobject import Facts

BASE = """
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata:
  name: orders
spec:
  scaleTargetRef: {name: orders}
  minReplicaCount: 1
  maxReplicaCount: 24
  triggers:
  - type: kafka
    metadata: {bootstrapServers: "kafka:9092", consumerGroup: orders, topic: orders, lagThreshold: "10"}
"""
ADVANCED = ("spec", "advanced")
BEHAVIOR = (*ADVANCED, "horizontalPodAutoscalerConfig", "behavior")
SHORT = {
    "name": ("metadata", "name"),
    "paused": ("metadata", "annotations", "autoscaling.keda.sh/paused"),
    "paused-replicas": ("metadata", "annotations", "autoscaling.keda.sh/paused-replicas"),
    "target": ("spec", "scaleTargetRef"),
    "least": ("spec", "minReplicaCount"),
    "most": ("spec", "maxReplicaCount"),
    "idle": ("spec", "idleReplicaCount"),
    "poll": ("spec", "pollingInterval"),
    "cool": ("spec", "cooldownPeriod"),
    "fallback": ("spec", "fallback"),
    "modifiers": (*ADVANCED, "scalingModifiers"),
    "up": (*BEHAVIOR, "scaleUp"),
    "down": (*BEHAVIOR, "scaleDown"),
}
CONTENT = yaml.safe_load(BASE)
KAFKA = CONTENT["spec"]["triggers"][0]
EVEN, INVALID = "ensureEvenDistributionOfPartitions", "scaleToZeroOnInvalidOffset"
PROMETHEUS = {"type": "prometheus", "metadata": {"serverAddress": "http://p", "query": "q", "threshold": "1"}}
CPU = {"type": "cpu", "metricType": "Utilization", "metadata": {"value": "60"}}
REQUEST, FALLBACK = {"resources": {"requests": {"cpu": "1"}}}, {"failureThreshold": 3, "replicas": 3}
LOGGED = {"containers": [{"name": "app", **REQUEST}, {"name": "log"}]}


def path(field):
    """The path of a short ``field``: "k." is of the first trigger's metadata, "t." of the trigger."""
    head, _, rest = field.partition(".")
    return SHORT.get(field, ("spec", "triggers", 0, *(["metadata"] if head == "k" else []), rest))


def policies(*each, **others):
    """Rules of one direction, of policies such as "Pods/1/60"."""
    parts = (one.split("/") for one in each)
    return {"policies": [{"type": t, "value": int(v), "periodSeconds": int(p)} for t, v, p in parts], **others}


def cron(start, end, replicas=8, zone="Europe/Berlin"):
    """A cron trigger."""
    return {"type": "cron", "metadata": {"timezone": zone, "start": start, "end": end, "desiredReplicas": str(replicas)}}


def workload(spec=None, pod=None, kind="Deployment", **metadata):
    """A Deployment of the target's name."""
    template = {"metadata": {"labels": {"app": "orders"}}, "spec": {"containers": [{"name": "app", **REQUEST}], **(pod or {})}}
    spec = {"selector": {"matchLabels": {"app": "orders"}}, "template": template, **(spec or {})}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "orders", **metadata}, "spec": spec}


def other(kind, name="other", **spec):
    """Another object."""
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def budget(**spec):
    """A PodDisruptionBudget of the target's pods."""
    return other("PodDisruptionBudget", selector={"matchLabels": {"app": "orders"}}, **spec)


def scaled(changes):
    """The base object with ``changes`` by short field; "also" are triggers beside its own, "only" all there are."""
    rest = {path(key): REMOVED if value is None else value for key, value in changes.items() if key not in ("also", "only")}
    made = cure.apply(CONTENT, rest)
    made["spec"]["triggers"] = changes.get("only", [*made["spec"]["triggers"], *changes.get("also", [])])
    return made


def audit(text, facts):
    """The audit of a file with ``text``, 24 partitions unless ``facts`` say otherwise."""
    return findings.audit({"a.yaml": text}, Facts(**({"partitions": {"": 24}} | facts)))


def text_of(changes, beside):
    """The file of the base object with ``changes`` and what stands ``beside`` it."""
    return yaml.safe_dump_all([scaled(changes), *beside], sort_keys=False)
