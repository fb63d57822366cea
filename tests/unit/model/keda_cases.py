"""Random cases for KEDA's code and for the model, and the model's answers in the same form."""

import logging
from datetime import UTC, datetime

from lab.errors import InputError
from lab.inputs import scaledobject
from lab.inputs.triggers import cron, parsing, prometheus
from lab.inputs.triggers.common import Reading, ScalerError, exposed
from lab.model import keda, lag
from lab.model.keda import State
from lab.model.lag import Partition
from tests.thoroughness import examples

log = logging.getLogger("lab.oracle")
SEED = "elastic-lab"
ZONES = [
    *("Etc/UTC", "Europe/Berlin", "Europe/London", "America/New_York"),
    *("America/Sao_Paulo", "Asia/Kolkata", "Australia/Lord_Howe"),
]
FLAGS = [
    *("allowIdleConsumers", "excludePersistentLag", "scaleToZeroOnInvalidOffset"),
    *("limitToPartitionsWithLag", "ensureEvenDistributionOfPartitions"),
]


def trigger_of(case):
    """The case's trigger as the model reads it."""
    written = {"type": case["kind"], "metadata": case["metadata"]}
    if case["metricType"]:
        written["metricType"] = case["metricType"]
    return parsing.parse([written], "case")[0]


# What a trigger is asked. Each pair: a case from randomness, and what the model answers to it.


def kafka_case(random, calls=5):
    """A trigger, and calls of one scaler between which offsets move or don't. Small draws are plain: a shrunk case is short."""
    metadata = {"bootstrapServers": "b:9092", "consumerGroup": "enrich"}
    metadata |= {name: random.choice(["true", "false", "false"]) for name in FLAGS if random.random() > 0.5}
    if random.random() > 0.2:
        metadata["lagThreshold"] = str(random.choice([1, 2, 3, 7, 10, 100, 1500, 10**6]))
    if random.random() > 0.5:
        metadata["activationLagThreshold"] = str(random.choice([0, 1, 5, 100]))
    if random.random() > 0.3:
        metadata["offsetResetPolicy"] = random.choice(["latest", "earliest"])
    topics = ["events"]
    if random.random() > 0.9:
        topics = ["events", "orders"]
    else:
        metadata["topic"] = "events"
        if random.random() > 0.9:
            metadata["partitionLimitation"] = random.choice(["0", "0-2", "1,3-4", "9"])
    ids = range(random.choice([1, 2, 3, 4, 6, 8, 8, 24] if random.random() < 0.2 else [1, 2, 3, 4, 6]))
    committed = {(topic, number): random.choice([-1, 0, 5, 100]) for topic in topics for number in ids}
    spread = random.choice([3, 20, 300, 10**7])
    made = []
    for _ in range(random.randint(1, calls)):
        answered = {}
        for topic in topics:
            answered[topic] = []
            for number in ids:
                offset = committed[topic, number]
                end = max(0, offset) + random.randint(-1, spread)
                partition = {"id": number, "start": random.randint(0, max(1, end)), "end": end, "committed": offset}
                for field in ("start", "end", "committed"):
                    if random.random() > (0.998 if field == "committed" else 0.98):
                        partition[field] = None
                answered[topic].append(partition)
                if random.random() < 0.5:
                    committed[topic, number] = max(0, offset) + random.randint(0, spread)
                elif random.random() < 0.1:
                    committed[topic, number] = random.choice([-1, 0, 5])  # expired, or reset
        made.append({"topics": answered})
    return {"kind": "kafka", "index": random.randint(0, 3), "metricType": "", "metadata": metadata, "calls": made}


def partition_of(answered):
    """A partition as the model takes it: -1 is nothing committed, None no answer."""
    committed = answered["committed"]
    error = "no offset" if committed is None else ""
    return Partition(answered["end"], None if committed == -1 else committed, answered["start"], error)


def kafka_model(case):
    """Call by call, with the state of one scaler."""
    trigger = trigger_of(case)
    previous, calls = {}, []
    for call in case["calls"]:
        topics = {name: {one["id"]: partition_of(one) for one in every} for name, every in call["topics"].items()}
        try:
            found = lag.read(trigger, topics, previous)
        except ScalerError:
            calls.append("failed")
            break  # KEDA builds the scaler anew, which the driver doesn't
        calls.append((found.metric, found.active))
        previous = found.previous
    return {"metrics": [trigger.metric(case["index"], {})], "calls": calls}


def apache_case(random):
    """The same of the apache-kafka scaler: on one topic that is written, whose every partition the brokers answer for."""
    case = kafka_case(random) | {"kind": "apache-kafka"}
    case["metadata"] = {"topic": "events"} | case["metadata"]
    if case["metadata"].get("partitionLimitation") == "9" or len(case["calls"][0]["topics"]["events"]) < 2:
        case["metadata"].pop("partitionLimitation", None)
    for call in case["calls"]:
        for partition in call["topics"]["events"]:
            partition["end"] = max(0, partition["committed"] or 0) if partition["end"] is None else partition["end"]
            partition["start"] = partition["start"] or 0
            partition["committed"] = -1 if partition["committed"] is None else partition["committed"]
        call["topics"] = {"events": call["topics"]["events"]}
    return case


def cron_case(random):
    """Two schedules, and instants around their days, weighted to changes of clocks."""

    def field(least, most):
        low, high, step = random.randint(least, most), random.randint(least, most), random.randint(1, 5)
        span = f"{min(low, high)}-{max(low, high)}"
        return random.choice(["*", "*", "?", str(low), span, f"*/{step}", f"{low}/2", f"{low},{least}"])

    def schedule():
        plain = f"{random.randint(0, 59)} {random.randint(0, 23)} * * {random.choice(['*', '1-5', 'mon', 'SUN,tue'])}"
        wild = f"{field(0, 59)} {field(0, 23)} {field(1, 31)} {field(1, 12)} {field(0, 6)}"
        return random.choice([plain, wild, "0 0 30 2 *" if random.random() < 0.1 else wild])

    metadata = {"timezone": random.choice(ZONES), "start": schedule(), "end": schedule()}
    metadata["desiredReplicas"] = str(random.randint(1, 50))
    changes = [1521766800, 1541300400, 1711846800, 1729990800, 1710054000, 1730610000, 1712412000]
    at = [random.choice(changes) + random.randint(-200_000, 200_000) for _ in range(3)]
    at += [random.randint(1_500_000_000, 1_900_000_000) // 60 * 60 + random.choice([0, 0, -1, 1]) for _ in range(3)]
    return {"kind": "cron", "index": 1, "metricType": "", "metadata": metadata, "at": at}


def cron_model(case):
    """Instant by instant."""
    trigger = trigger_of(case)
    found = [cron.read(trigger, datetime.fromtimestamp(at, UTC)) for at in case["at"]]
    return {"metrics": [trigger.metric(1, {})], "calls": [(one.metric, one.active) for one in found]}


def prometheus_case(random):
    """A query with no, one or two elements."""
    metadata = {
        "serverAddress": "http://p:9090",
        "query": "sum(x)",
        "threshold": random.choice(["100", "0.5", "0.001", "1e3", "12.3456"]),
        "activationThreshold": random.choice(["", "0", "10", "-1", "0.25"]),
        "ignoreNullValues": random.choice(["", "true", "false"]),
    }
    values = ["0", "-3", "10", "10.0001", "0.25", "NaN", "+Inf", "-Inf", "123456789.98765", "1e15"]
    elements = [random.choice(values) for _ in range(random.choice([0, 1, 1, 1, 1, 2]))]
    metric_type = random.choice(["", "AverageValue", "Value"])
    return {"kind": "prometheus", "index": 2, "metricType": metric_type, "metadata": metadata, "elements": elements}


def prometheus_model(case):
    """One query."""
    trigger = trigger_of(case)
    try:
        found = prometheus.read(trigger, [float(value) for value in case["elements"]])
        call = (found.metric, found.active)
    except ScalerError:
        call = "failed"
    return {"metrics": [trigger.metric(2, {})], "calls": [call]}


def object_of(case):
    """The ScaledObject of a case of the scale loop, as YAML would have it."""
    return scaledobject.parse({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject"} | case["scaled"]["object"], "case")


def scaled_case(random, kind, **more):
    """A ScaledObject with what its loop acts on."""
    spec = {"scaleTargetRef": {"name": "enricher"}}
    spec["triggers"] = [{"type": "kafka", "metadata": {"bootstrapServers": "b", "consumerGroup": "g", "topic": "t"}}]
    if random.random() > 0.8:
        spec["triggers"][0]["useCachedMetrics"] = True
    if composed := random.random() > 0.7:
        spec["triggers"][0]["name"] = "lag"
        made = {
            "formula": "lag ?? 1",
            "target": random.choice(["10", "7", "2.5"]),
            "metricType": random.choice(["AverageValue", "Value"]),
        }
        spec["advanced"] = {"scalingModifiers": made}
    waits = [0, 10, 300]
    for name, values in (("minReplicaCount", [0, 1, 4]), ("cooldownPeriod", waits), ("initialCooldownPeriod", waits)):
        if random.random() > 0.4:
            spec[name] = random.choice(values)
    if spec.get("minReplicaCount", -1) >= 0 and random.random() > 0.7:
        spec["idleReplicaCount"] = 0
    if random.random() > 0.5 or kind == "observe":
        behaviors = ["static", "currentReplicas", "currentReplicasIfHigher", "currentReplicasIfLower"]
        behavior = random.choice([*behaviors, *(["scalingModifiers"] if composed else [])])
        spec["fallback"] = {"failureThreshold": random.choice([0, 1, 3]), "replicas": random.choice([0, 1, 6])}
        spec["fallback"]["behavior"] = behavior
    annotations = {}
    for name in ("paused", "paused-scale-in", "paused-scale-out", "force-activation"):
        if random.random() > 0.9:
            annotations[f"autoscaling.keda.sh/{name}"] = random.choice(["true", "false"])
    if random.random() > 0.95:
        annotations["autoscaling.keda.sh/paused-replicas"] = "3"
    body = {"metadata": {"name": "consumer", "annotations": annotations}, "spec": spec}
    return {"kind": kind, "scaled": {"object": body, "replicas": random.choice([0, 1, 2, 4, 24])} | more}


def scale_case(random):
    """One pass of the scale loop."""
    ages = [0, 5, 9, 10, 11, 299, 300, 301]
    return scaled_case(
        random,
        "scale",
        active=random.random() < 0.5,
        error=random.random() < 0.3,
        createdAgo=random.choice(ages),
        lastActiveAgo=random.choice([None, *ages]),
    )


def scale_model(case):
    """On a clock whose now is 1000 s."""
    given = case["scaled"]
    last = None if given["lastActiveAgo"] is None else 1000.0 - given["lastActiveAgo"]
    state = State(given["active"], given["error"], ())
    policy = object_of(case)
    decision = keda.scale(policy, state, given["replicas"], 1000.0, 1000.0 - given["createdAgo"], last)
    stamped = None if last == 1000.0 else decision.last_active_s == 1000.0
    return {"scale": (decision.replicas, stamped, keda.polls(policy))}


def observe_case(random):
    """Some queries in a row, some of which fail."""
    return scaled_case(
        random,
        "observe",
        ready=random.choice([0, 1, 3]),
        metricType=random.choice(["AverageValue", "AverageValue", "Value"]),
        target=random.choice([1.0, 10.0, 1500.0, 0.5, 12.345]),
        outcomes=[random.choice([None, None, None, 7.0, 0.25]) for _ in range(random.randint(1, 6))],
    )


def observe_model(case):
    """Query by query, with the failures counted on."""
    given, failures, seen = case["scaled"], 0, []
    for outcome in given["outcomes"]:
        raw = ScalerError("failed") if outcome is None else Reading(exposed(outcome), False, ())
        found = keda.observe(
            object_of(case), raw, failures, given["target"], given["metricType"], given["replicas"], given["ready"]
        )
        failures = found.failures
        seen.append((found.metric, found.fallback, failures))
    return {"observe": seen}


def told(case, answer):
    """An answer of KEDA's in the form of the model's."""
    if "refused" in answer:
        return {"refused": True}
    if "scale" in answer:
        stamped = None if case["scaled"]["lastActiveAgo"] == 0 else answer["scale"]["active"]
        return {"scale": (answer["scale"]["replicas"], stamped, answer["scale"]["polls"])}
    if "observe" in answer:
        return {"observe": [(one["value"], one["fallback"], one["failures"]) for one in answer["observe"]]}
    calls = ["failed" if "error" in one else (one["value"], one["active"]) for one in answer["calls"]]
    if case["kind"] == "kafka" and "failed" in calls:
        calls = calls[: calls.index("failed") + 1]
    return {"metrics": answer["metrics"], "calls": calls}


KINDS = {
    "kafka": (kafka_case, kafka_model, examples(42_000)),
    "apache-kafka": (apache_case, kafka_model, examples(6_000)),
    "cron": (cron_case, cron_model, examples(1_500)),
    "prometheus": (prometheus_case, prometheus_model, examples(2_000)),
    "scale": (scale_case, scale_model, examples(10_000)),
    "observe": (observe_case, observe_model, examples(3_000)),
}


def modelled(case, model):
    """What the model answers, refusals included."""
    try:
        return model(case)
    except InputError:
        return {"refused": True}
