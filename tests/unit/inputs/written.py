"""Triggers and ScaledObjects as people write them, the inputs of a trial, and the line with which input is refused."""

import copy
import re

import pytest

from lab import yamlfile
from lab.errors import InputError
from lab.inputs import inputs
from lab.inputs import scale as scales
from lab.inputs.scaledobject import parse
from lab.inputs.triggers import parsing
from lab.inputs.workload import Workload

KAFKA = {"type": "kafka", "metadata": {"bootstrapServers": "b:9092", "consumerGroup": "enrich", "topic": "events"}}
PROMETHEUS = {"type": "prometheus", "metadata": {"serverAddress": "http://p:9090", "query": "sum(x)", "threshold": "100"}}
CRON = {
    "type": "cron",
    "metadata": {"timezone": "Europe/Berlin", "start": "0 8 * * 1-5", "end": "0 18 * * 1-5", "desiredReplicas": "10"},
}
CPU = {"type": "cpu", "metricType": "Utilization", "metadata": {"value": "75"}}
MEMORY = {"type": "memory", "metricType": "AverageValue", "metadata": {"value": "1536Mi"}}
APACHE = KAFKA | {"type": "apache-kafka"}
EXTERNAL = {"type": "external", "metadata": {"scalerAddress": "queue-scaler:6000", "queue": "jobs"}}
LASTING = {
    "type": "external",
    "metadata": {
        "scalerAddress": "lag-scaler:6000",
        "bootstrapServersFromEnv": "SERVERS",
        "consumerGroup": "enrich",
        "topic": "events",
        "lagThreshold": "500",
        "sustainSeconds": "120",
    },
}
EACH = {"kafka": KAFKA, "apache": APACHE, "prometheus": PROMETHEUS, "cron": CRON, "cpu": CPU, "memory": MEMORY}
EACH |= {"external": EXTERNAL, "lasting": LASTING}


def one(trigger, **changed):
    """The trigger with metadata changed (removed, for None), parsed."""
    content = copy.deepcopy(trigger)
    for field, value in changed.items():
        content["metadata"].pop(field, None)
        if value is not None:
            content["metadata"][field] = value
    return parsing.parse([content], "my.yaml")[0]


def scaled(content_triggers, annotations=None, **spec):
    """A ScaledObject of these triggers."""
    head = {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject"}
    metadata = {"name": "consumer", "annotations": annotations or {}}
    spec = {"scaleTargetRef": {"name": "consumer"}, "triggers": content_triggers} | spec
    return parse(head | {"metadata": metadata, "spec": spec}, "my.yaml")


def trial(profile="plateau", policy="lag-4500", workload=None, seed=1, scale="quick", runtime="binary", **how):
    """The inputs of a trial; ``workload`` of None is the default one."""
    chosen = Workload() if workload is None else workload
    return inputs.read(profile, policy, chosen, seed, scales.load(scale), runtime, **how)


def changed(file, *changes):
    """The content of a YAML file with each (path, value) set; None removes."""
    content = yamlfile.load(file.read_text())
    for path, value in changes:
        place = content
        for part in path[:-1]:
            place = place[part]
        place[path[-1]] = value
        if value is None:
            del place[path[-1]]
    return content


def refused(call, *given, **how):
    """The line with which ``call`` refuses what it is given, with | between what is wrong and what is allowed."""
    with pytest.raises(InputError) as error:
        call(*given, **how)
    assert "\n" not in str(error.value)
    said = str(error.value).replace(" is not allowed; allowed: ", " | ").replace(": missing; allowed: ", ": missing | ")
    said = said.replace(" is not allowed; did you mean ", " | did you mean ")
    return re.sub(r"(?m)^([^:\n]+):\d+: ", r"\1: ", said)  # without the line
