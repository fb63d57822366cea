"""Policies, traffic and pods that the tests of the simulator share."""

from datetime import UTC, datetime

import numpy as np

from lab import paths
from lab.foresee.group import Consumers
from lab.foresee.situation import Situation
from lab.foresee.usage import Footprint
from lab.inputs import policy, scaledobject
from lab.inputs.profile import Profile, Step

P = 24
EVEN = np.full(P, 1 / P)


def lag_150(**metadata):
    """The committed policy lag-4500 with a lagThreshold of 150, other metadata of its trigger, and bounds."""
    content = policy.load(paths.MANIFESTS / "scaledobjects" / "lag-4500.yaml").content
    for field, value in ({"lagThreshold": "150"} | metadata).items():
        place = content["spec"] if field.startswith(("min", "max")) else content["spec"]["triggers"][0]["metadata"]
        place[field] = value
    return scaledobject.parse(content, "test")


def lasting(**metadata):
    """lag_150 with the persistent-lag scaler in place of the kafka trigger, of the same threshold; None leaves a field out."""
    bounds = {field: value for field, value in metadata.items() if field.startswith(("min", "max"))}
    given = {"scalerAddress": "lag-scaler:6000", "bootstrapServers": "b:9092", "consumerGroup": "enrich", "topic": "events"}
    given |= {"lagThreshold": "150", "sustainSeconds": "120", "allowIdleConsumers": "true"} | metadata
    own = {field: value for field, value in given.items() if value is not None and field not in bounds}
    content = lag_150(**bounds).content
    content["spec"]["triggers"] = [{"type": "external", "metadata": own}]
    return scaledobject.parse(content, "test")


def step(rate, spike, baseline=150.0, hold=600.0, duration=960.0):
    """A step from ``rate`` to ``spike`` events/s and back."""
    steps = (Step(0, rate, "baseline"), Step(baseline, spike, "spike"), Step(baseline + hold, rate, "drain"))
    return Profile(steps, duration)


CPU = {"type": "cpu", "metricType": "Utilization", "metadata": {"value": "70"}}
BUSY = Footprint(request_m=500, each_ms=5.0)  # at 100 messages/s a pod takes what it requests, and 18 millicores


def lag_150_with(*others, alone=False):
    """lag_150 with more triggers after its own; ``alone``: in its place."""
    content = lag_150().content
    content["spec"]["triggers"] = [*([] if alone else content["spec"]["triggers"]), *others]
    return scaledobject.parse(content, "so.yaml")


def asking(query, threshold):
    """A prometheus trigger."""
    return {"type": "prometheus", "metadata": {"serverAddress": "http://p:9090", "query": query, "threshold": str(threshold)}}


PODS = Consumers(100.0, 3.0)
UNEVEN = np.concatenate([np.full(P // 2, 1.5 / P), np.full(P // 2, 0.5 / P)])
TWO, ONE = (Situation(step(180, 1800), UNEVEN, PODS, topics=count) for count in (2, 1))
SEVEN = datetime(2026, 1, 15, 7, 54, tzinfo=UTC)


def of_topics(threshold, *named, kind="kafka", **more):
    """A trigger of this lagThreshold for each topic that is named; "" is none."""
    content = (lag_150() if kind == "kafka" else lasting()).content
    (trigger,) = content["spec"]["triggers"]
    own = {name: value for name, value in trigger["metadata"].items() if name not in ("topic", "topicFromEnv")}
    own |= {"lagThreshold": str(threshold)} | more
    content["spec"]["triggers"] = [{"type": kind, "metadata": own | ({"topic": one} if one else {})} for one in named]
    return scaledobject.parse(content, "my.yaml")


def timed(start="57 7 * * *", end="27 8 * * *", replicas=24, *, alone=False):
    """lag_150 with 24 pods from 180 s to 1,980 s after SEVEN; ``alone``: without its trigger on lag."""
    metadata = {"timezone": "Etc/UTC", "start": start, "end": end, "desiredReplicas": str(replicas)}
    return lag_150_with({"type": "cron", "metadata": metadata}, alone=alone)
