"""A user's own ScaledObject in a trial: what ties it to their cluster is replaced by what ties it to the lab's.

Replaced are the scale target, the trigger's servers, group and topic as far as it names them (plain or FromEnv), how it logs in
(authenticationRef, sasl, tls, unsafeSsl), the namespace, and what only an API server writes. Everything else stays as it was
written: bounds, intervals, behavior, fallback, thresholds, and KEDA's other switches are what is on trial.
"""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass
from typing import Any

from lab.autoscaling import scaledobject
from lab.autoscaling.scaledobject import ScaledObject
from lab.errors import InputError

TARGET = {"name": "consumer"}
_PAUSES = ("autoscaling.keda.sh/paused-replicas", "autoscaling.keda.sh/paused")
_LOGIN = ("sasl", "tls", "unsafeSsl")
_WRITTEN = (  # as `kubectl get -o yaml` prints them; an owner that is not there would have the object collected
    "creationTimestamp",
    "finalizers",
    "generation",
    "managedFields",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
)
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


@dataclass(frozen=True)
class Replaced:
    """A field of the user's file, what stood there, and what a trial has instead (None: nothing)."""

    field: str
    theirs: Any
    ours: Any

    def __str__(self) -> str:
        return f"{self.field}: {self.theirs!r} -> {'(nothing)' if self.ours is None else repr(self.ours)}"


def adopt(theirs: ScaledObject) -> tuple[ScaledObject, tuple[Replaced, ...]]:
    """The ScaledObject as the lab can run it, and what was replaced in it; ``theirs`` is left alone.

    Raises :class:`InputError` for one that no trial can begin with: another trigger than one kafka, no name, paused, or a
    floor of 0, whose group has gone before the traffic comes.
    """
    kafka = theirs.lag_trigger
    _check(theirs)
    content = copy.deepcopy(theirs.content)
    found: list[Replaced] = []

    def take(place: dict[str, Any], field: str, prefix: str, ours: Any = None) -> None:
        if field in place:
            found.append(Replaced(f"{prefix}{field}", place.pop(field), ours))

    take(content["metadata"], "namespace", "metadata.")
    for place, field, prefix in (*((content["metadata"], field, "metadata.") for field in _WRITTEN), (content, "status", "")):
        if place.pop(field, None) is not None:
            found.append(Replaced(f"{prefix}{field}", "what an API server wrote", None))
    spec = content["spec"]
    if spec["scaleTargetRef"] != TARGET:
        take(spec, "scaleTargetRef", "spec.", TARGET)
        spec["scaleTargetRef"] = dict(TARGET)
    trigger, prefix = spec["triggers"][0], "spec.triggers[0]."
    take(trigger, "authenticationRef", prefix)
    metadata, prefix = trigger["metadata"], f"{prefix}metadata."
    for field in _LOGIN:
        take(metadata, field, prefix)
    for field, named, variable in (
        ("bootstrapServers", kafka.servers, "BOOTSTRAP_SERVERS"),
        ("consumerGroup", kafka.group, "GROUP"),
        ("topic", kafka.topic, "TOPIC"),
    ):
        if named.given and (named.literal, named.variable) != ("", variable):
            take(metadata, field, prefix, f"{field}FromEnv: {variable}")
            take(metadata, f"{field}FromEnv", prefix, variable)
            metadata[f"{field}FromEnv"] = variable
    return scaledobject.parse(content, theirs.where), tuple(found)


def _check(theirs: ScaledObject) -> None:
    where = theirs.where
    if not _NAME.fullmatch(theirs.name):
        raise InputError(where, "metadata.name", theirs.content["metadata"].get("name"), "a name as Kubernetes takes it")
    if theirs.switches.paused:
        annotations = theirs.content["metadata"]["annotations"]
        field = next(key for key in _PAUSES if key in annotations)
        allowed = "none: a paused ScaledObject decides nothing"
        raise InputError(where, f"metadata.annotations.{field}", annotations[field], allowed)
    if theirs.idle_replicas is not None:
        raise InputError(where, "spec.idleReplicaCount", theirs.idle_replicas, "none: a trial begins at a floor of consumers")
    if theirs.min_replicas < 1:
        allowed = "from 1: a trial begins and ends at a floor of consumers"
        raise InputError(where, "spec.minReplicaCount", theirs.min_replicas, allowed)
