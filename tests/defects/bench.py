"""A bench for findings of the audit: the finding's own object on the real control plane, fed with lag.

The object is applied as it is written, but for names, addresses and logins; triggers on other sources than lag are left out.
Its times are divided as the cluster's are. Pods are never scheduled, and lag is made by commits.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from confluent_kafka import Consumer
from kubernetes.client.exceptions import ApiException

from lab import cluster as clusters
from lab.audit.findings import Finding
from lab.audit.objects import mapping
from lab.audit.scaledobject import RESOURCES, Scaled
from lab.audit.trigger import Trigger
from lab.cluster import Cluster, broker
from lab.cluster.broker import Broker
from lab.errors import LabFault
from lab.host import processes, runs
from lab.inputs import hpa_spec
from lab.inputs import scale as scales
from lab.inputs.triggers.kafka import APACHE, KAFKA
from lab.model.hpa_log import RESCALED
from lab.wait import until
from tests.defects.source import VALUE, Sources
from tests.defects.target import DEADLINE_S, PROMPT, Target
from tests.defects.topic import Topic, spread

SCALE = scales.load(scales.QUICK)
READY_S = 20.0
REST_S = 6.0  # several polls and syncs: long enough for what must not happen to happen
NEVER_S = 600  # longer than any demonstration
AT_ONCE = 90_000  # messages that librdkafka's queue holds
# What says where the messages are and who may read them: the bench's own takes its place.
ADDRESS = ("bootstrapServers", "consumerGroup", "topic", "version", "unsafeSsl")
LOGIN = ("sasl", "tls", "saslTokenProvider", "awsRegion")
STILL = ("excludePersistentLag",)  # the bench's lag stands still, which then counts as none
LIGHT = {"lagThreshold": "1", "activationLagThreshold": "0", "allowIdleConsumers": "true"}  # a pod for each message
# By it KEDA takes a cpu or a memory trigger, whose pods need requests.
LIMITS = {"limits": [{"type": "Container", "default": {"cpu": "1", "memory": "64Mi"}}]}
_NO_CAP = dict.fromkeys(("limitToPartitionsWithLag", "ensureEvenDistributionOfPartitions", "partitionLimitation"))


@dataclass
class Rig:
    """A cluster at :data:`SCALE`, a broker, and sources of other metrics."""

    cluster: Cluster
    kafka: Broker
    sources: Sources
    _made: list[Target] = field(default_factory=list)

    def target(self, *triggers: Mapping[str, Any], **settings: Any) -> Target:
        """A new group that is scaled by ``triggers``, until :meth:`clear`. Raises :class:`LabFault` where it is refused."""
        self._made.append(Target(self.cluster, *(dict(one) for one in triggers), **settings))
        return self._made[-1]

    def clear(self) -> None:
        """Delete all groups, and let the sources say what they say at first."""
        while self._made:
            with suppress(ApiException):
                self._made.pop().delete()
        self.sources.value = VALUE
        self.sources.recover()


@contextmanager
def started() -> Iterator[Rig]:
    """A rig within the block."""
    with ExitStack() as stack:
        cluster = clusters.up("binary", SCALE)
        stack.callback(cluster.down)
        kafka, run, guard = runs.start(broker.start)
        stack.callback(processes.dismiss, guard)
        stack.callback(processes.clear, run)
        sources = Sources()
        stack.callback(sources.close)
        yield Rig(cluster, kafka, sources)


@dataclass
class Fed:
    """A trigger on a topic whose messages are there, and the partitions that it counts."""

    topic: Topic
    counted: Sequence[int]
    trigger: dict[str, Any]

    def leave(self, lag: int) -> None:
        """Commit so that so many messages of lag are left, spread over what is counted."""
        offsets = [*self.topic.ends]
        for partition, part in zip(self.counted, spread(lag, len(self.counted)), strict=True):
            offsets[partition] -= part
        self.topic.commit(offsets)


@dataclass
class Case:
    """A finding, and the object that has it as the audit reads it; each topic has so many ``partitions``."""

    finding: Finding
    scaled: Scaled
    partitions: int

    @property
    def number(self) -> int:
        """The finding's number, a whole one."""
        return round(self.finding.number or 0)

    @cached_property
    def trigger(self) -> Trigger:
        """The trigger that the finding is of; the first on lag where it names none."""
        found = re.search(r"triggers\[(\d+)\]", self.finding.field) or re.search(r"trigger (\d+) counts", self.finding.sentence)
        return next(one for one in self.scaled.triggers if one.index == int(found[1])) if found else self.lag

    @property
    def lag(self) -> Trigger:
        """The first trigger on lag; a plain one where the object has none: for rules that hold of any metric."""
        return next(iter(self.scaled.lags), Trigger(0, {"type": KAFKA, "metadata": {}}))

    def said(self, pattern: str) -> list[int]:
        """The numbers that the sentence has where ``pattern`` has groups; none where it does not fit."""
        found = re.search(pattern, self.finding.sentence)
        return [int(text.replace(",", "")) for text in found.groups()] if found else []

    def feed(self, rig: Rig, one: Trigger | None = None, most: int = 0, lag: int = 0, **own: str | None) -> Fed:
        """``one`` on a new topic of at least ``most`` messages, of which ``lag`` are left; ``own`` takes a field's place."""
        one, topic = one or self.trigger, Topic(rig.kafka.bootstrap, self.partitions)
        others = ADDRESS + LOGIN + (() if self.finding.rule == "persistent-vs-commit" else STILL)
        written = {key: value for key, value in one.metadata.items() if key.removesuffix("FromEnv") not in others}
        metadata = {key: value for key, value in (written | own).items() if value is not None}
        counted: Sequence[int] = range(self.partitions)
        if limit := metadata.get("partitionLimitation"):
            ends = [part.split("-") for part in limit.split(",")]
            counted = [n for n in counted if any(int(end[0]) <= n <= int(end[-1]) for end in ends)] or counted
        left = -(-max(most, lag) // len(counted))
        while left > 0:
            each = min(left, AT_ONCE // self.partitions)
            topic.produce(each * self.partitions)
            left -= each
        beside = {key: value for key, value in one.content.items() if key not in ("metadata", "authenticationRef")}
        made = topic.trigger()
        fed = Fed(topic, counted, {**made, **beside, "metadata": made["metadata"] | metadata})
        fed.leave(lag)
        return fed

    def light(self, rig: Rig, most: int, lag: int) -> Fed:
        """The first trigger on lag with a pod for each message, up to ``most``, of which ``lag`` are left."""
        return self.feed(rig, self.lag, most, lag, **_NO_CAP, **LIGHT)

    def target(self, rig: Rig, *fed: Fed, **settings: Any) -> Target:
        """The object on what is ``fed``, with its bounds and its tolerance, and without a policy in the way."""
        given: dict[str, Any] = {"minReplicaCount": self.scaled.least, "maxReplicaCount": self.scaled.most}
        prompt: dict[str, Any] = {}
        for way, rules in PROMPT.items():
            tolerance = mapping(self.scaled.written_behavior.get(way)).get("tolerance")
            prompt[way] = dict(rules) if tolerance is None else {**rules, "tolerance": tolerance}
        return rig.target(*(one.trigger for one in fed), **(given | {"behavior": prompt} | settings))

    @property
    def divided(self) -> dict[str, Any]:
        """The behavior as it is written, with its times divided."""
        return hpa_spec.compressed_behavior(self.scaled.written_behavior, SCALE)


Shown = tuple[float, float] | None  # what was measured, and what the finding says; None for what can't be shown here


def so(holds: bool) -> Shown:
    """A sentence without a number, and whether it ``holds``."""
    return float(holds), 1.0


def open_all_day(replicas: int) -> dict[str, Any]:
    """A cron trigger that asks for so many ``replicas`` now. KEDA wants an end, so the day's last minute is left out."""
    window = {"timezone": "Etc/UTC", "start": "0 0 * * *", "end": "59 23 * * *"}
    return {"type": "cron", "metadata": window | {"desiredReplicas": str(replicas)}}


def rescales(target: Target) -> list[tuple[int, int]]:
    """The replicas before and after each step of the HPA, by its own log."""
    found = [one.outcome.replicas for one in target.syncs() if one.outcome.words == RESCALED]
    return [(one["currentReplicas"], one["desiredReplicas"]) for one in found]


def largest_share(rig: Rig, partitions: int, members: int) -> int:
    """The most partitions that one of so many ``members`` of a group owns, by real consumers."""
    topic = Topic(rig.kafka.bootstrap, partitions)
    own = {"bootstrap.servers": rig.kafka.bootstrap, "group.id": uuid.uuid4().hex}
    consumers = [Consumer(own) for _ in range(members)]
    try:
        for one in consumers:
            one.subscribe([topic.name])

        def shared() -> bool:
            for one in consumers:
                one.poll(0.05)
            owned = [len(one.assignment()) for one in consumers]
            return sum(owned) == partitions and min(owned) > 0

        until(shared, DEADLINE_S, f"{members} members that share {partitions} partitions")
        return max(len(one.assignment()) for one in consumers)
    finally:
        for one in consumers:
            one.close()


def right_trigger(rig: Rig, case: Case) -> dict[str, Any]:
    """A trigger of the finding's type in which nothing is wrong; one on lag where the bench has no source of that type."""
    kind = case.trigger.type
    if kind in RESOURCES:
        return {"type": kind, "metricType": "Utilization", "metadata": {"value": "60"}}
    return rig.sources.triggers().get(kind) or Topic(rig.kafka.bootstrap, case.partitions).trigger()


def trials(case: Case, right: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The trigger that is ``right``, but for the finding's field; then with all that the object has beside its addresses."""
    one, (name, *rest) = case.trigger, case.finding.field.partition("].")[2].split(".")
    if one.type and one.type not in (KAFKA, APACHE, right["type"]):
        yield {key: value for key, value in one.content.items() if key != "authenticationRef"}
        return
    made = dict(right) | ({"type": one.type} if one.type else {})
    place, key, written = (made, name, one.content) if not rest else ({**right["metadata"]}, ".".join(rest), one.written)
    if key in written:
        place[key] = written[key]
    else:
        place.pop(key, None)
    yield made if not rest else made | {"metadata": place}
    beside = {key: value for key, value in one.written.items() if key.removesuffix("FromEnv") not in ADDRESS}
    named = one.written.keys() & {"topic", "topicFromEnv"}
    ours = {key: value for key, value in right["metadata"].items() if key != "topic" or named}
    yield made | {"metadata": ours | beside}


def accepted(rig: Rig, trigger: Mapping[str, Any]) -> bool:
    """Whether the API server takes an object with this trigger, and KEDA makes an HPA of it. Raises :class:`LabFault` where
    KEDA says nothing of it."""
    try:
        limits = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "limits"}, "spec": LIMITS}
        target = rig.target(trigger, objects=[limits])
    except LabFault:
        return False
    target.wait(lambda: target.condition("Ready")[0] in ("True", "False"), "KEDA's word on a trigger", READY_S)
    return target.condition("Ready")[0] == "True" and target.hpa() is not None
