"""A user's own ScaledObject in a trial: what ties it to their cluster is replaced by what ties it to the lab's.

Replaced are the scale target, the triggers' servers, group and topic, also in a query, how they log in, the namespace, and
what only an API server, kubectl or KEDA writes. All else is on trial and stays. Addresses and the login come when the object
is applied (:mod:`lab.trial.addresses`).
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lab.errors import InputError, report, together
from lab.inputs import scaledobject
from lab.inputs.scaledobject import ScaledObject
from lab.inputs.topics import TOPIC, variables
from lab.inputs.triggers import common, parsing, resource
from lab.inputs.triggers.common import without_login
from lab.inputs.triggers.external import External, PersistentLag
from lab.inputs.triggers.kafka import Kafka
from lab.inputs.triggers.prometheus import Prometheus

TARGET = {"name": "consumer"}
LOGIN = "a TriggerAuthentication of its own, where the brokers of the trial ask for a login"
_NAMES = {"bootstrapServers": "BOOTSTRAP_SERVERS", "consumerGroup": "GROUP"}
_SELECTED = re.compile(r"""\b(consumergroup|topic)(\s*=\s*)(["'`])([^"'`]*)\3""")  # kafka_exporter's labels, in a selector
LAG = ("kafka", "apache-kafka", "external")
_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"  # the whole object again, as it was
_OWNER = "scaledobject.keda.sh/name"  # KEDA's own label
_WRITTEN = (  # as `kubectl get -o yaml` prints them; an owner that is not there would have the object collected
    *("creationTimestamp", "finalizers", "generation", "managedFields"),
    *("ownerReferences", "resourceVersion", "selfLink", "uid"),
)


@dataclass(frozen=True)
class Replaced:
    """A field of the user's file, what stood there, and what a trial has instead (None: nothing)."""

    field: str
    theirs: Any
    ours: Any

    def __str__(self) -> str:
        return f"{self.field}: {self.theirs!r} -> {'(nothing)' if self.ours is None else repr(self.ours)}"


def adopt(theirs: ScaledObject, count: int = 1) -> tuple[ScaledObject, tuple[Replaced, ...]]:
    """The ScaledObject as the lab can run it with ``count`` topics, and what was replaced in it; ``theirs`` is left alone.
    Raises :class:`InputError` for one without a trigger on a group's lag, without a name, with more topics, or paused."""
    with together():
        _check(theirs, count)
    content = copy.deepcopy(theirs.content)
    found: list[Replaced] = []

    def take(place: dict[str, Any], field: str, prefix: str, ours: Any = None) -> None:
        if field in place:
            found.append(Replaced(f"{prefix}{field}", common.printable(field, place.pop(field)), ours))

    metadata = content["metadata"]
    take(metadata, "namespace", "metadata.")
    for place, field, prefix in (*((metadata, field, "metadata.") for field in _WRITTEN), (content, "status", "")):
        if place.pop(field, None) is not None:
            found.append(Replaced(f"{prefix}{field}", "what an API server wrote", None))
    for block, field in (("annotations", _APPLIED), ("labels", _OWNER)):
        if (metadata.get(block) or {}).pop(field, None) is not None:
            found.append(Replaced(f"metadata.{block}.{field}", "what kubectl or KEDA wrote", None))
            if not metadata[block]:
                del metadata[block]
    spec = content["spec"]
    advanced = spec.get("advanced") or {}
    if not advanced.get("scalingModifiers"):
        advanced.pop("scalingModifiers", None)  # KEDA writes an empty one again
    if spec["scaleTargetRef"] != TARGET:
        take(spec, "scaleTargetRef", "spec.", TARGET)
        spec["scaleTargetRef"] = dict(TARGET)
    topic_places = parsing.topic_places(theirs.triggers)
    topics = {
        read.topic.literal: variables(count)[place]
        for read, place in zip(theirs.triggers, topic_places, strict=True)
        if isinstance(read, Kafka) and place is not None
    }
    for index, (trigger, read, topic) in enumerate(zip(spec["triggers"], theirs.triggers, topic_places, strict=True)):
        prefix = f"spec.triggers[{index}]."
        take(trigger, "authenticationRef", prefix, LOGIN if isinstance(read, Kafka) else None)
        metadata, prefix = trigger["metadata"], f"{prefix}metadata."
        for field in common.LOGIN_FIELDS:
            take(metadata, field, prefix, LOGIN if isinstance(read, Kafka) else None)
        address = metadata.get("serverAddress", "")
        if (bare := without_login(address)) != address:  # it may hold a password, which no record may keep
            take(metadata | {"serverAddress": "an address with a login"}, "serverAddress", prefix, bare)
            metadata["serverAddress"] = bare
        if isinstance(read, Prometheus) and (query := _asked(metadata["query"], topics, count)) != metadata["query"]:
            take(metadata, "query", prefix, query)
            metadata["query"] = query
        if not isinstance(read, Kafka | External):
            continue
        names = _NAMES if topic is None else _NAMES | {"topic": variables(count)[topic]}
        for field, variable in names.items():
            literal, named = metadata.get(field, ""), metadata.get(f"{field}FromEnv", "")
            if (literal or named) and (literal, named) != ("", variable):
                take(metadata, field, prefix, f"{field}FromEnv: {variable}")
                take(metadata, f"{field}FromEnv", prefix, variable)
                metadata[f"{field}FromEnv"] = variable
    return scaledobject.parse(content, theirs.where), tuple(found)


def _asked(query: str, topics: Mapping[str, str], count: int) -> str:
    """``query`` of the trial's group and topics, by variables that the object's application fills in.

    ``topics`` has the variables by the names of the user's topics. Another name stands for the only topic, if there is one.
    """

    def ours(found: re.Match[str]) -> str:
        label, equals, quote, name = found.groups()
        variable = _NAMES["consumerGroup"] if label == "consumergroup" else topics.get(name, TOPIC if count == 1 else "")
        return f"{label}{equals}{quote}$({variable}){quote}" if variable else found[0]

    return _SELECTED.sub(ours, query)


def _check(theirs: ScaledObject, count: int) -> None:
    where = theirs.where
    if theirs.pause:
        report(InputError(where, *theirs.pause, "none: a paused ScaledObject decides nothing"))
    if theirs.idle_replicas is not None:
        allowed = "none: a trial begins at a floor of consumers; simulate takes it"
        report(InputError(where, "spec.idleReplicaCount", theirs.idle_replicas, allowed))
    for index, trigger in enumerate(theirs.triggers):
        if isinstance(trigger, External) and not isinstance(trigger, PersistentLag):
            allowed = "the persistent-lag scaler's metadata, with sustainSeconds: the lab runs no other service"
            report(InputError(where, f"spec.triggers[{index}].metadata", "another service's", allowed))
    if not any(isinstance(trigger, Kafka | External) for trigger in theirs.triggers):
        types = [trigger["type"] for trigger in theirs.content["spec"]["triggers"]]
        report(InputError(where, "spec.triggers", types, f"one at least on a group's lag: {', '.join(LAG)}"))
    resource.check_whole_pods(theirs.triggers, where)
    check_one_group(theirs)
    parsing.check_topics(theirs.triggers, count, where)


def check_one_group(theirs: ScaledObject) -> None:
    """Raise :class:`InputError` for a trigger on lag that names a second Kafka cluster or consumer group."""
    for field, what in (("bootstrapServers", "Kafka cluster"), ("consumerGroup", "consumer group")):
        _same(theirs, field, what)


def _same(theirs: ScaledObject, field: str, what: str) -> None:
    """Refuse a second of them: a trial or a simulated group has one of each, so both triggers would read the same lag."""
    first: tuple[int, frozenset[str]] | None = None
    for index, trigger in enumerate(theirs.content["spec"]["triggers"]):
        metadata = trigger["metadata"]
        literal, variable = (metadata.get(key, "").strip() for key in (field, f"{field}FromEnv"))
        names = frozenset(part.strip() for part in literal.split(",")) if literal else frozenset({f"${variable}"})
        if trigger["type"] not in LAG or not (literal or variable):
            continue
        if first is None:
            first = index, names
        elif names.isdisjoint(first[1]):
            written = field if literal else f"{field}FromEnv"
            allowed = f"the one of spec.triggers[{first[0]}], {', '.join(sorted(first[1]))}: a trial has one {what}"
            report(InputError(theirs.where, f"spec.triggers[{index}].metadata.{written}", literal or variable, allowed))
