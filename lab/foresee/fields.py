"""The fields of a ScaledObject that tune changes: their values, and the object with other values. Times in s, lag in messages.

They are the fields of its bounds and behavior, the threshold of its trigger, and the persistent-lag scaler's sustain and
stabilizations.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lab.foresee.sources import only
from lab.model import hpa
from lab.spec import hpa_spec, scaledobject
from lab.spec.hpa_spec import Policy, Rules
from lab.spec.scaledobject import ScaledObject
from lab.spec.triggers.external import PersistentLag
from lab.spec.triggers.kafka import Kafka

THRESHOLD, SECONDS, MOST = "lagThreshold", "lagSeconds", "maxReplicaCount"
DOWN_WINDOW, DOWN_POLICIES = "scaleDown.stabilizationWindowSeconds", "scaleDown.policies"
UP_WINDOW, UP_POLICIES = "scaleUp.stabilizationWindowSeconds", "scaleUp.policies"
SUSTAIN, LEAST_OF, GREATEST_OF = "sustainSeconds", "scaleUpStabilization", "scaleDownStabilization"
_METADATA = (THRESHOLD, SECONDS, SUSTAIN, LEAST_OF, GREATEST_OF)

Value = float | tuple[Policy, ...]
Changes = Mapping[str, Value]


@dataclass(frozen=True)
class Variant:
    """A ScaledObject that differs from the given one in ``changes``, field by field."""

    changes: Changes
    scaled: ScaledObject


def in_force(scaled: ScaledObject) -> dict[str, Value]:
    """The value of each tuned field, with the API server's and the controller's defaults where nothing is written.

    Raises :class:`InputError` for a trigger that is not simulated.
    """
    trigger = only(scaled)
    up, down = rules(scaled)
    window = hpa.DEFAULTS.downscale_stabilization_s if down.window_s is None else down.window_s
    return {
        **_threshold(trigger),
        MOST: scaled.max_replicas,
        DOWN_WINDOW: window,
        DOWN_POLICIES: down.policies,
        UP_WINDOW: up.window_s or 0,
        UP_POLICIES: up.policies,
        **_lasting(trigger),
    }


def _threshold(trigger: Kafka | PersistentLag) -> dict[str, Value]:
    if isinstance(trigger, Kafka):
        return {THRESHOLD: trigger.lag_threshold}
    rule = trigger.settings.rule
    return {SECONDS: rule.target} if rule.ages else {THRESHOLD: int(rule.target)}


def _lasting(trigger: Kafka | PersistentLag) -> dict[str, Value]:
    if isinstance(trigger, Kafka):
        return {}
    rule = trigger.settings.rule
    return {SUSTAIN: int(rule.sustain_s), LEAST_OF: int(rule.up_s), GREATEST_OF: int(rule.down_s)}


def rules(scaled: ScaledObject) -> tuple[Rules, Rules]:
    """The rules up and down; the API server's defaults where there is no ``behavior``."""
    advanced = scaled.content["spec"].get("advanced") or {}
    settings = advanced.get("horizontalPodAutoscalerConfig") or {}
    behavior = hpa_spec.behavior_of(settings, scaled.where, "spec.advanced.horizontalPodAutoscalerConfig.")
    return (behavior.up, behavior.down) if behavior else (hpa_spec.UP, hpa_spec.DOWN)


def changed(scaled: ScaledObject, changes: Changes) -> Variant:
    """``scaled`` with ``changes`` and nothing else; the given object stays as it is."""
    content = copy.deepcopy(scaled.content)
    spec = content["spec"]
    for field, value in changes.items():
        if field in _METADATA:
            spec["triggers"][0]["metadata"][field] = said(value)
        elif field == MOST:
            spec["maxReplicaCount"] = value
        else:
            direction, name = field.split(".")
            written = [_written(policy) for policy in value] if isinstance(value, tuple) else value
            _direction(spec, direction)[name] = written
    return Variant(dict(changes), scaledobject.parse(content, scaled.where) if changes else scaled)


def said(value: Value) -> str:
    """A value as people write it: policies as ``8 pods or 200 % / 30 s``."""
    if not isinstance(value, tuple):
        return str(value) if isinstance(value, int) else f"{value:g}"
    periods = {policy.period_s for policy in value}
    if len(periods) == 1:
        return f"{' or '.join(map(_amount, value))} / {periods.pop()} s"
    return " or ".join(f"{_amount(one)} / {one.period_s} s" for one in value)


def _amount(policy: Policy) -> str:
    return f"{policy.value} {'pods' if policy.type == 'Pods' else '%'}"


def _direction(spec: dict[str, Any], direction: str) -> dict[str, Any]:
    """The block of one direction, made where it is not written. null counts as not written, as for the API server."""
    place = spec
    for name in ("advanced", "horizontalPodAutoscalerConfig", "behavior", direction):
        place[name] = place.get(name) or {}
        place = place[name]
    return place


def _written(policy: Policy) -> dict[str, Any]:
    return {"type": policy.type, "value": policy.value, "periodSeconds": policy.period_s}
