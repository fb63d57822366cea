"""A typed, strict view of a ScaledObject's YAML. What KEDA or the HPA would refuse or ignore is refused here, by name.

Field names, defaults and refused pairs are those of KEDA 2.21 (``apis/keda/v1alpha1/scaledobject_types.go`` and
``scaledobject_webhook.go``); the behavior block is autoscaling/v2's, and each trigger has its own module in
:mod:`lab.inputs.triggers`.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from lab.errors import InputError, closest, report, step, together
from lab.inputs import hpa_spec, modifiers
from lab.inputs.modifiers import ScalingModifiers
from lab.inputs.scale import Scale
from lab.inputs.triggers import parsing
from lab.inputs.triggers.external import External
from lab.inputs.triggers.kafka import Kafka
from lab.inputs.triggers.metadata import FALSE
from lab.inputs.triggers.parsing import Trigger
from lab.inputs.triggers.resource import Resource
from lab.yamlfile import Fields
from lab.yamltext import TEMPLATE

SPEC = (
    *("scaleTargetRef", "triggers", "fallback", "advanced"),
    *("pollingInterval", "cooldownPeriod", "initialCooldownPeriod"),
    *("idleReplicaCount", "minReplicaCount", "maxReplicaCount"),
)
_ADVANCED = ("restoreToOriginalReplicaCount", "horizontalPodAutoscalerConfig", "scalingModifiers")
_TOP = ("apiVersion", "kind", "metadata", "spec", "status")
_METADATA = (
    *("name", "namespace", "labels", "annotations", "generateName", "creationTimestamp", "deletionTimestamp", "generation"),
    *("deletionGracePeriodSeconds", "finalizers", "managedFields", "ownerReferences", "resourceVersion", "selfLink", "uid"),
)
_TARGET = ("name", "kind", "apiVersion", "envSourceContainerName")
_HPA = "horizontalPodAutoscalerConfig"
MISTAKEN = {"minReplicas": "minReplicaCount", "maxReplicas": "maxReplicaCount", "behavior": f"advanced.{_HPA}.behavior"}
MISTAKEN |= {name: f"advanced.{name}" for name in (_HPA, "scalingModifiers", "restoreToOriginalReplicaCount")}
_KINDS = ("Deployment", "StatefulSet", "ReplicaSet", "DaemonSet", "Job", "CronJob", "Service", "Pod", "Rollout")
_FALLBACKS = ("static", "currentReplicas", "currentReplicasIfHigher", "currentReplicasIfLower", modifiers.FALLBACK)
_ANNOTATIONS = "autoscaling.keda.sh/"
_SWITCHES = ("paused", "paused-scale-in", "paused-scale-out", "force-activation")
_PAUSES = (f"{_ANNOTATIONS}paused-replicas", f"{_ANNOTATIONS}paused")
_NEVER_ZERO = "from 1, where every trigger is cpu or memory: they can't scale from 0"
_PART = "[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
NAME = re.compile(rf"(?=.{{1,253}}$){_PART}(?:\.{_PART})*")
_LABEL = re.compile(r"(?=.{0,63}$)(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)?")
_LONGEST_NAME = 63  # of what becomes a label
_LONGEST_S = 2**31 - 1
FORMULA = "spec.advanced.scalingModifiers.formula"
UNDIVIDED = "it divides lag, and not the numbers in a formula"
_MOST = 100_000


@dataclass(frozen=True)
class Fallback:
    """Replicas while a trigger's source fails: after more than ``threshold`` failed queries in a row, as ``behavior`` says."""

    threshold: int
    replicas: int
    behavior: str


@dataclass(frozen=True)
class Switches:
    """What annotations override: a pause (at ``replicas``, None as it stands) or one of one direction, forced activation."""

    paused: bool
    replicas: int | None
    scale_in_paused: bool
    scale_out_paused: bool
    forced: bool


@dataclass(frozen=True)
class ScaledObject:
    """What model, measures and runner need to know, and the object as it is applied. Times in s, lag in messages."""

    name: str
    target: str
    hpa: str
    min_replicas: int
    max_replicas: int
    idle_replicas: int | None
    polling_s: int
    cooldown_s: int
    initial_cooldown_s: int
    fallback: Fallback | None
    modifiers: ScalingModifiers | None
    switches: Switches
    triggers: tuple[Trigger, ...]
    where: str
    content: dict[str, Any]

    @property
    def start(self) -> int:
        """Replicas a trial begins with: a baseline begins at the floor."""
        return self.min_replicas

    @property
    def pause(self) -> tuple[str, str] | None:
        """The field of the annotation that pauses it, and its value; None where none does."""
        given = (self.content["metadata"].get("annotations") or {}) if self.switches.paused else {}
        field = next((name for name in _PAUSES if name in given), None)
        return None if field is None else (f"metadata.annotations.{field}", given[field])

    @property
    def lag_threshold(self) -> int | None:
        """The lag the HPA wants per replica, messages, of the first trigger that scales on it; None where none does."""
        for trigger in self.triggers:
            if isinstance(trigger, Kafka):
                return trigger.lag_threshold
            if isinstance(trigger, External) and trigger.metadata.get("lagThreshold"):
                return int(trigger.metadata["lagThreshold"])
        return None

    def compressed(self, scale: Scale) -> ScaledObject:
        """The same policy with its times and its thresholds of lag, also those by default, compressed as ``scale`` declares.

        Raises :class:`InputError` where a formula compares lag with numbers of its own, which no scale divides.
        """
        if self.modifiers and (scale.time, scale.rate) != (1, 1):
            raise InputError(self.where, FORMULA, self.modifiers.formula, f"none at scale {scale.name}: {UNDIVIDED}")
        made = replace(
            self,
            polling_s=scale.seconds(self.polling_s),
            cooldown_s=scale.seconds(self.cooldown_s),
            initial_cooldown_s=scale.seconds(self.initial_cooldown_s),
            triggers=tuple(trigger.compressed(scale) for trigger in self.triggers),
            where=f"{self.name} at scale {scale.name}",
        )
        spec = self.content["spec"] | {"pollingInterval": made.polling_s, "cooldownPeriod": made.cooldown_s}
        if made.initial_cooldown_s:
            spec["initialCooldownPeriod"] = made.initial_cooldown_s
        advanced = spec.get("advanced") or {}
        settings = advanced.get("horizontalPodAutoscalerConfig") or {}
        behavior = hpa_spec.compressed_behavior(settings.get("behavior"), scale)
        spec["advanced"] = advanced | {"horizontalPodAutoscalerConfig": settings | {"behavior": behavior}}
        pairs = zip(spec["triggers"], made.triggers, strict=True)
        spec["triggers"] = [one | {"metadata": trigger.written(one["metadata"])} for one, trigger in pairs]
        return replace(made, content=self.content | {"spec": spec})


def parse(content: Mapping[str, Any], where: object) -> ScaledObject:
    """The ScaledObject in ``content``, whose source ``where`` names; an empty block is none. Raises :class:`InputError`
    for all fields that it can't use."""
    with together():
        return _parse(Fields(content, where), where)


def check_type(given: Fields) -> None:
    """Refuse another apiVersion or kind than a ScaledObject's."""
    given.choice("apiVersion", "keda.sh/v1alpha1")
    given.choice("kind", "ScaledObject")


def _parse(given: Fields, where: object) -> ScaledObject:
    given.known(*_TOP)
    check_type(given)
    spec = given.under("spec")
    spec.known(*SPEC, mistaken=MISTAKEN)
    least, most = spec.whole("minReplicaCount", 0, _MOST, 0, "pods"), spec.whole("maxReplicaCount", 1, _MOST, 100, "pods")
    if least > most and spec.sound("minReplicaCount", "maxReplicaCount"):
        spec.refuse("minReplicaCount", f"at most maxReplicaCount, {most}")
    metadata = given.under("metadata")
    metadata.known(*_METADATA)
    name = _name(metadata, "the name of the ScaledObject")
    if len(name) > _LONGEST_NAME:
        metadata.refuse("name", f"at most {_LONGEST_NAME} characters: KEDA makes it a label")
    parsed: tuple[Trigger, ...] = ()
    written = spec.content.get("triggers")
    with step():
        parsed = parsing.parse(written, where)
    if parsed and not least and all(isinstance(trigger, Resource) for trigger in parsed):
        report(InputError(where, "spec.minReplicaCount", least, _NEVER_ZERO))
    composed = modifiers.parse(spec.under("advanced", optional=True), written) if isinstance(written, list) else None
    return ScaledObject(
        name=name,
        target=_target(spec),
        hpa=_advanced(spec, name),
        min_replicas=least,
        max_replicas=most,
        idle_replicas=_idle(spec),
        polling_s=spec.whole("pollingInterval", 1, _LONGEST_S, 30, "s"),
        cooldown_s=spec.whole("cooldownPeriod", 0, _LONGEST_S, 300, "s"),
        initial_cooldown_s=spec.whole("initialCooldownPeriod", 0, _LONGEST_S, 0, "s"),
        fallback=_fallback(spec, parsed, composed),
        modifiers=composed,
        switches=_switches(metadata),
        triggers=parsed,
        where=where if isinstance(where, str) else str(where),
        content=copy.deepcopy(dict(given.content)),
    )


def _name(given: Fields, what: str) -> str:
    """The name in ``given``, which says ``what`` it is of."""
    name = given.text("name", what)
    if name and not NAME.fullmatch(name):
        left = TEMPLATE.search(name)
        words = f"; {left[0]} is left of a template: render it first" if left else ""
        given.refuse("name", f"{what} in small letters, digits, - and .{words}")
    return name


def _target(spec: Fields) -> str:
    """The name of what is scaled."""
    target = spec.under("scaleTargetRef")
    target.known(*_TARGET, mistaken={"deploymentName": "name"})
    kind = target.content.get("kind", _KINDS[0])
    if not isinstance(kind, str) or served(kind) != kind:
        target.refuse("kind", "a kind as the API server writes it", closest(kind, _KINDS))
    target.texts("apiVersion", "envSourceContainerName")
    return _name(target, "the name of what is scaled")


def served(kind: str) -> str:
    """``kind`` as the API server writes it: the same for one that is not known here."""
    return next((one for one in _KINDS if one.lower() == kind.lower()), kind)


def _idle(spec: Fields) -> int | None:
    """The idleReplicaCount. Source: ``CheckReplicaCountBoundsAreValid``."""
    count = spec.content.get("idleReplicaCount")
    if count is None:
        return None
    if "minReplicaCount" not in spec.content:
        spec.refuse("idleReplicaCount", "none without a minReplicaCount above it")
    if count != 0 or isinstance(count, bool):
        spec.refuse("idleReplicaCount", "0: the HPA raises any other to minReplicaCount again")
    return 0


def _fallback(spec: Fields, parsed: tuple[Trigger, ...], composed: ScalingModifiers | None) -> Fallback | None:
    """The fallback. Source: ``CheckFallbackValid``."""
    if "fallback" not in spec.content:
        return None
    fallback = spec.under("fallback", "failureThreshold", "replicas", "behavior")
    chosen = fallback.content.get("behavior", "static")
    if chosen not in _FALLBACKS:
        fallback.refuse("behavior", f"one of {', '.join(_FALLBACKS)}")
    if parsed and chosen == modifiers.FALLBACK and composed is None and spec.sound("advanced"):
        allowed = (
            "another without a scalingModifiers.formula: after failures KEDA tells the HPA -1, which asks for maxReplicaCount"
        )
        fallback.refuse("behavior", allowed)
    if parsed and composed is None and all(isinstance(trigger, Resource) for trigger in parsed):
        spec.refuse("fallback", "none, where every trigger is cpu or memory: KEDA refuses it")
    return Fallback(fallback.whole("failureThreshold", 0, _MOST), fallback.whole("replicas", 0, _MOST), chosen)


def _advanced(spec: Fields, name: str) -> str:
    """Check the advanced block; the name of the HPA that KEDA makes. Source: ``getHPAName`` and ``verifyName``."""
    advanced = spec.under("advanced", optional=True)
    advanced.known(*_ADVANCED, mistaken={"behavior": f"{_HPA}.behavior"})
    advanced.flag("restoreToOriginalReplicaCount")
    settings = advanced.under("horizontalPodAutoscalerConfig", "name", "behavior", optional=True)
    hpa_spec.behavior_of(settings, keda=True)
    made = _name(settings, "the name of the HPA") if settings.content.get("name") else f"keda-hpa-{name}"
    if len(made) > _LONGEST_NAME:
        settings.refuse("name", f"at most {_LONGEST_NAME} characters: KEDA makes it a label")
    return made


def _switches(metadata: Fields) -> Switches:
    """The annotations KEDA acts on. Source: ``NeedToBePausedByAnnotation``, ``getBoolAnnotation`` (scaledobject_types.go)."""
    annotations = _strings(metadata, "annotations")
    for key, value in _strings(metadata, "labels").items():
        if not _LABEL.fullmatch(value):
            allowed = "at most 63 letters, digits, -, _ and ., the first and the last a letter or digit"
            report(InputError(metadata.where, f"metadata.labels.{key}", value, allowed))
    own = {key.removeprefix(_ANNOTATIONS): value for key, value in annotations.items() if key.startswith(_ANNOTATIONS)}
    given = Fields(own, metadata.where, f"metadata.annotations.{_ANNOTATIONS}")
    given.known(*_SWITCHES, "paused-replicas")
    count = own.get("paused-replicas")
    if count is not None and not (len(count) < 7 and count.isascii() and count.isdecimal() and int(count) <= _MOST):
        given.refuse("paused-replicas", f"a whole number from 0 to {_MOST}, as a string")
        count = None
    on = {field: own.get(field, FALSE[0]) not in FALSE for field in _SWITCHES}  # any other word counts as true
    return Switches(
        paused=on["paused"] or count is not None,
        replicas=None if count is None else int(count),
        scale_in_paused=on["paused-scale-in"],
        scale_out_paused=on["paused-scale-out"],
        forced=on["force-activation"],
    )


def _strings(metadata: Fields, field: str) -> Mapping[str, str]:
    """The labels or annotations in ``field``."""
    words = metadata.value(field, dict) if field in metadata.content else {}
    for key, value in words.items():
        if not isinstance(key, str) or not isinstance(value, str):
            report(InputError(metadata.where, f"metadata.{field}.{key}", value, "a string: quote it"))
    return {key: value for key, value in words.items() if isinstance(key, str) and isinstance(value, str)}
