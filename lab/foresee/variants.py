"""The variants that tune tries: a grid over bounds, behavior, thresholds, persistent-lag settings and pre-scaled replicas.

Times in s, lag in messages. A cron window stays: it is what the user knows of the traffic.
"""

from __future__ import annotations

import copy
import itertools
import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from lab.foresee import queries
from lab.foresee.scaler import lag_trigger
from lab.foresee.situation import Situation
from lab.inputs import anchor, hpa_spec, policy, scaledobject
from lab.inputs.hpa_spec import Policy, Rules
from lab.inputs.profile import Profile
from lab.inputs.scaledobject import ScaledObject
from lab.inputs.triggers.cron import Cron
from lab.inputs.triggers.external import PersistentLag
from lab.inputs.triggers.kafka import Kafka
from lab.inputs.triggers.persistent_lag import SHORTEST_S
from lab.inputs.triggers.prometheus import Prometheus
from lab.model import hpa

THRESHOLD, SECONDS, MOST = "lagThreshold", "lagSeconds", "maxReplicaCount"
QUERY_THRESHOLD = "threshold"  # of a prometheus trigger
LEAST = "minReplicaCount"  # the floor is chosen by who pays for it, and not tuned
TARGET = "scalingModifiers.target"  # in place of a lagThreshold, where a formula composes the metric
DOWN_WINDOW, DOWN_POLICIES = "scaleDown.stabilizationWindowSeconds", "scaleDown.policies"
DOWN_TOLERANCE = "scaleDown.tolerance"  # varied by ``plane``, and not tuned
UP_WINDOW, UP_POLICIES = "scaleUp.stabilizationWindowSeconds", "scaleUp.policies"
SUSTAIN, LEAST_OF, GREATEST_OF = "sustainSeconds", "scaleUpStabilization", "scaleDownStabilization"
PRE_SCALED = "desiredReplicas"
_METADATA: dict[str, tuple[type, ...]] = {  # the triggers whose metadata has a field
    **dict.fromkeys((THRESHOLD, SECONDS, SUSTAIN, LEAST_OF, GREATEST_OF), (Kafka, PersistentLag)),
    QUERY_THRESHOLD: (Prometheus,),
    PRE_SCALED: (Cron,),
}

Value = float | tuple[Policy, ...]
Changes = Mapping[str, Value]


@dataclass(frozen=True)
class Variant:
    """A ScaledObject that differs from the given one in ``changes``, field by field."""

    changes: Changes
    scaled: ScaledObject


def in_force(scaled: ScaledObject) -> dict[str, Value]:
    """The value of each tuned field, defaults included. Raises :class:`InputError` for a trigger that is not simulated."""
    trigger, crons = None if scaled.modifiers else lag_trigger(scaled), anchor.crons(scaled)
    rule = trigger.settings.rule if isinstance(trigger, PersistentLag) else None
    up, down = rules_of(scaled)
    found: dict[str, Value] = {}
    if scaled.modifiers:
        target = scaled.modifiers.target
        found[TARGET] = int(target) if scaled.modifiers.whole else target
    if isinstance(trigger, Kafka):
        found[THRESHOLD] = trigger.lag_threshold
    elif rule:
        found |= {SECONDS: rule.target} if rule.ages else {THRESHOLD: int(rule.target)}
    if queried := _queried(scaled):
        found[QUERY_THRESHOLD] = queried.threshold
    window = hpa.DEFAULTS.downscale_stabilization_s if down.window_s is None else down.window_s
    found |= {MOST: scaled.max_replicas, DOWN_WINDOW: window, DOWN_POLICIES: down.policies}
    found |= {UP_WINDOW: up.window_s or 0, UP_POLICIES: up.policies}
    if rule:
        found |= {SUSTAIN: int(rule.sustain_s), LEAST_OF: int(rule.up_s), GREATEST_OF: int(rule.down_s)}
    if len(crons) == 1:  # a field's name does not tell several apart
        found[PRE_SCALED] = crons[0][1].replicas
    return found


def _queried(scaled: ScaledObject) -> Prometheus | None:
    """The one prometheus trigger, whose threshold is tuned; None for several, which a field's name does not tell apart.

    None too where a formula asks in its place, and beside the persistent-lag scaler, whose own fields make a grid that is full.
    """
    found = [one for one in scaled.triggers if isinstance(one, Prometheus)]
    full = any(isinstance(one, PersistentLag) for one in scaled.triggers)
    return found[0] if len(found) == 1 and not full and not scaled.modifiers else None


def rules_of(scaled: ScaledObject) -> tuple[Rules, Rules]:
    """The rules up and down; the API server's defaults where there is no ``behavior``."""
    behavior = policy.behavior(scaled)
    return (behavior.up, behavior.down) if behavior else (hpa_spec.UP, hpa_spec.DOWN)


def with_changes(scaled: ScaledObject, changes: Changes) -> Variant:
    """``scaled`` with ``changes`` and nothing else; the given object stays as it is."""
    content = copy.deepcopy(scaled.content)
    spec = content["spec"]
    for field, value in changes.items():
        if field in _METADATA:
            index = next(index for index, trigger in enumerate(scaled.triggers) if isinstance(trigger, _METADATA[field]))
            spec["triggers"][index]["metadata"][field] = text_of(value)
        elif field in (MOST, LEAST):
            spec[field] = value
        elif field == TARGET:
            spec["advanced"]["scalingModifiers"]["target"] = text_of(value)
        else:
            direction, name = field.split(".")
            written = [policy.to_dict() for policy in value] if isinstance(value, tuple) else value
            _direction(spec, direction)[name] = text_of(value) if isinstance(value, float) else written  # a quantity
    return Variant(dict(changes), scaledobject.parse(content, scaled.where) if changes else scaled)


def text_of(value: Value) -> str:
    """A value as people write it: policies as ``8 pods or 200 % / 30 s``."""
    if not isinstance(value, tuple):
        return f"{value:.0f}" if float(value).is_integer() else f"{value:g}"
    amounts = [f"{policy.value} {'pods' if policy.type == 'Pods' else '%'}" for policy in value]
    if len({policy.period_s for policy in value}) == 1:
        return f"{' or '.join(amounts)} / {value[0].period_s} s"
    return " or ".join(f"{amount} / {policy.period_s} s" for amount, policy in zip(amounts, value, strict=True))


def _direction(spec: dict[str, Any], direction: str) -> dict[str, Any]:
    """The block of one direction, made where it is not written. null counts as not written, as for the API server."""
    place = spec
    for name in ("advanced", "horizontalPodAutoscalerConfig", "behavior", direction):
        place[name] = place.get(name) or {}
        place = place[name]
    return place


HEADROOM = 0.75  # the share of the objective for lagThreshold / rate, the time by which a group at rest is behind
AROUND = (0.25, 0.35, 0.5, 0.71, 1, 1.41, 2, 2.83, 4)
WINDOWS_DOWN, WINDOWS_UP = (120, 300, 600, 900), (0, 60)
SUSTAINED = (0, 30, 60, 120, 300)  # sustainSeconds of the persistent-lag scaler, s, as far as its window reaches
LEAST_OVER_S, GREATEST_OVER_S = (0, 60), (0, 300)  # its stabilizations
WINDOW_STEP_S = 60  # a computed window is a multiple of it, and longer by it than the time that it must outlast
LONGEST_WINDOW = 1800  # s: a simulation goes on for so long after its profile, so that the cost of a window is seen
UP = ((Policy("Pods", 4, 15), Policy("Percent", 100, 15)), (Policy("Percent", 900, 30),))
DOWN = ((Policy("Percent", 50, 60),), (Policy("Percent", 10, 60),), (Policy("Percent", 100, 15),))
ALWAYS = 2  # a variant with as few changes as this is never left out
CANDIDATES = 1000


def variants(scaled: ScaledObject, situation: Situation, objective_s: float, most: int = CANDIDATES) -> list[Variant]:
    """The given ScaledObject first, then its variants, at most ``most`` in all: few changes first, then drawn by a fixed seed.
    Raises :class:`InputError` for a trigger that is not tuned."""
    given = in_force(scaled)
    values = _values(scaled, situation, objective_s)
    chosen = (dict(zip(values, combination, strict=True)) for combination in itertools.product(*values.values()))
    every = [{field: value for field, value in one.items() if value != given[field]} for one in chosen]
    every.sort(key=len)
    if len(every) > most:
        few = [one for one in every if len(one) <= ALWAYS][:most]
        every = few + random.Random(0).sample(every[len(few) :], most - len(few))
    return [with_changes(scaled, found) for found in every]


def computed_threshold(rate: float, objective_s: float) -> int:
    """lagThreshold = rate x objective x 0.75, in messages: the lag that a pod at rest may have, with a quarter spare."""
    return max(1, round(rate * objective_s * HEADROOM))


def _values(scaled: ScaledObject, situation: Situation, objective_s: float) -> dict[str, list[Value]]:
    """The values of each field, the current one first. A direction that is disabled has no other."""
    given, trigger = in_force(scaled), None if scaled.modifiers else lag_trigger(scaled)
    rule = trigger.settings.rule if isinstance(trigger, PersistentLag) else None
    rate, partitions = situation.consumers.rate, len(situation.shares)
    centre = rate * objective_s * HEADROOM
    queried = _queried(scaled)
    answered = rate if queried and not queries.on_lag(queried.query) else centre
    needed = math.ceil(max(step.rate for step in situation.profile.steps) / rate)
    least = max(1, scaled.min_replicas)
    target = given.get(TARGET, 0)
    assert isinstance(target, int | float), "a number"
    targets = [
        max(1, round(target * factor)) if isinstance(target, int) else float(f"{target * factor:.3g}") for factor in AROUND
    ]
    values: dict[str, list[Value]] = {
        TARGET: [one for one in targets if one >= 0.001],
        THRESHOLD: [max(1, round(centre * factor)) for factor in AROUND],
        SECONDS: [max(SHORTEST_S, round(objective_s * HEADROOM * factor, 2)) for factor in AROUND],
        QUERY_THRESHOLD: [max(0.001, float(f"{answered * factor:.3g}")) for factor in AROUND],
        MOST: [most for most in (partitions, min(needed, partitions)) if most >= least],
        DOWN_WINDOW: [*WINDOWS_DOWN, *_outlasting(situation.profile)],
        DOWN_POLICIES: list(DOWN),
        UP_WINDOW: list(WINDOWS_UP),
        UP_POLICIES: list(UP),
        SUSTAIN: [sustain for sustain in SUSTAINED if rule and sustain <= rule.size * rule.interval_s],
        LEAST_OF: list(LEAST_OVER_S),
        GREATEST_OF: list(GREATEST_OVER_S),
        PRE_SCALED: list(dict.fromkeys((min(needed, partitions), max(1, math.ceil(needed / 2))))),
    }
    for direction, rules in zip(("scaleUp", "scaleDown"), rules_of(scaled), strict=True):
        if rules.select == "Disabled":
            values |= {field: [] for field in given if field.startswith(f"{direction}.")}
    return {field: list(dict.fromkeys([value, *values[field]])) for field, value in given.items()}


def _outlasting(profile: Profile) -> list[int]:
    """A window that outlasts the longest lull and the burst after it, s: a burst without backlog does not renew it."""
    falls = [later.at for earlier, later in pairwise(profile.steps) if later.rate < earlier.rate]
    longest = max((later - earlier for earlier, later in pairwise(falls)), default=0.0)
    window = math.ceil(longest / WINDOW_STEP_S + 1) * WINDOW_STEP_S
    return [window] if longest > 0 and window <= LONGEST_WINDOW else []
