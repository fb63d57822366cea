"""The replicas with which a trial begins: where KEDA and the HPA take a group without traffic and without a commit. Pure.

That is the floor, except under offsetResetPolicy latest. There each partition without a commit counts as one message, which
wakes a group at 0 and, under a small lagThreshold, asks for more than one pod.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace

from lab.inputs import scaledobject
from lab.inputs.policy import PlainHpa, Policy
from lab.inputs.scaledobject import ScaledObject
from lab.inputs.topics import variables
from lab.inputs.triggers import external
from lab.inputs.triggers.common import Reading, ScalerError
from lab.inputs.triggers.external import PersistentLag
from lab.inputs.triggers.kafka import Kafka
from lab.inputs.triggers.parsing import Trigger
from lab.model import hpa, keda, lag
from lab.model.lag import Partition
from lab.model.window import UNCOMMITTED, UNCOMMITTED_S, Window

LATER_S = 10_000.0  # more than any window, policy's period or cooldown, so every wait of one decision is over at the next
MOST_DECISIONS = 1_000
FLOOR = "the floor of the policy"
ASLEEP = "the HPA takes the group to 0 by itself: it wakes no other"


@dataclass(frozen=True)
class Baseline:
    """The ``replicas`` that nothing changes until there is traffic, and the reason for their number."""

    replicas: int
    why: str


def baseline(policy: Policy, partitions: int, topics: int = 1) -> Baseline:
    """The replicas that ``policy`` gives a new group on empty ``topics``; of a ScaledObject only triggers on lag count."""
    if isinstance(policy, PlainHpa) and not policy.min_replicas:
        return Baseline(0, ASLEEP)
    floor = Baseline(policy.start, FLOOR)
    if not isinstance(policy, ScaledObject):
        return floor
    if policy.modifiers and not all(isinstance(trigger, Kafka | PersistentLag) for trigger in policy.triggers):
        return floor  # what the formula gives is not known from the lag alone
    on_lag = _of_lag(policy)
    if not on_lag.triggers or policy.switches.paused:
        return floor
    names = {"BOOTSTRAP_SERVERS": "b", "GROUP": "g"} | dict.fromkeys(variables(topics), "t")
    its_hpa = keda.hpa(on_lag, names, external.answers(on_lag.triggers))
    assert its_hpa is not None, "not paused, and each trigger names its metric"
    spec, state = hpa.parse(its_hpa, policy.where), hpa.State()
    replicas, now, why = policy.start, 0.0, FLOOR
    for _ in range(MOST_DECISIONS):
        now += LATER_S
        try:
            readings = [_reading(trigger, partitions, topics, replicas) for trigger in on_lag.triggers]
        except ScalerError as error:
            return Baseline(replicas, str(error))
        before = replicas
        observations = [keda.Observation(one.metric, one.active, False, 0, one.reasons) for one in readings]
        if not replicas:
            decision = keda.scale(on_lag, keda.state(on_lag, observations), replicas, now, 0.0, None)
            replicas = replicas if decision.replicas is None else decision.replicas
        else:
            composed = [keda.compose(on_lag, observations)] if on_lag.modifiers else observations
            metrics = [None if one.metric is None else hpa.external(one.metric) for one in composed]
            sync, state = hpa.decide(spec, state, replicas, metrics, now)
            replicas = sync.desired
        if replicas == before:
            break
        why = "; ".join(("no commit yet", *(reason for one in readings for reason in one.reasons)))
    return Baseline(replicas, why)


def _of_lag(policy: ScaledObject) -> ScaledObject:
    """``policy`` with its triggers on lag alone, in their order."""
    content = copy.deepcopy(policy.content)
    written = zip(content["spec"]["triggers"], policy.triggers, strict=True)
    chosen = [trigger for trigger, read in written if isinstance(read, Kafka | PersistentLag)]
    if not chosen:
        return replace(policy, triggers=())
    content["spec"]["triggers"] = chosen
    return scaledobject.parse(content, policy.where)


def _reading(trigger: Trigger, partitions: int, topics: int, replicas: int) -> Reading:
    """The trigger's answer for its part of ``partitions``, which are empty and without a commit, once that has lasted."""
    if isinstance(trigger, Kafka):
        if not trigger.topic.given and not replicas:
            return Reading(0.0, False, ("no topic is written, and no one has subscribed to any",))
        read = partitions // topics if trigger.topic.given else partitions
        return lag.read(trigger, {"t": {number: Partition(0, None, 0) for number in range(read)}}, {})
    assert isinstance(trigger, PersistentLag)
    rule, source = trigger.settings.rule, trigger.settings.source
    value = 0.0 if source.offset_reset != "latest" else UNCOMMITTED_S if rule.ages else UNCOMMITTED
    window = Window(rule)
    of_topic = range(partitions // topics)
    chosen = [number for number in of_topic if source.partitions is None or number in source.partitions]
    samples = rule.size + round((rule.up_s + rule.sustain_s) / rule.interval_s) + 2
    for number in range(samples):
        window.add(number * rule.interval_s, dict.fromkeys(chosen, value))
    return window.read((samples - 1) * rule.interval_s)
