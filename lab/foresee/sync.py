"""One sync of the HPA that KEDA makes of a ScaledObject, and KEDA's own part beside it: what they decide, and why. Pure.

Lag is in messages, times are in s. The arithmetic is that of :mod:`lab.model`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction

from lab.errors import InputError
from lab.inputs import hpa_spec
from lab.inputs.hpa_spec import DOWNSCALE_STABILIZATION_S, HpaSpec, Metric
from lab.inputs.scaledobject import ScaledObject
from lab.inputs.triggers import cron, external, prometheus, resource
from lab.inputs.triggers.common import Reading, ScalerError
from lab.inputs.triggers.cron import Cron
from lab.inputs.triggers.external import PersistentLag
from lab.inputs.triggers.kafka import Kafka
from lab.inputs.triggers.parsing import Trigger
from lab.inputs.triggers.prometheus import Prometheus
from lab.inputs.triggers.resource import Resource
from lab.model import hpa, hpa_limits, keda, lag
from lab.model.hpa import Decision, State
from lab.model.keda import Observation
from lab.model.lag import Partition
from lab.model.window import Window

NOW_S = 86_400.0  # later than every window, period and start of a pod
JUST_BEFORE = hpa_limits.nanoseconds(NOW_S) - 1

Lags = Sequence[int]  # by partition, from 0
Given = Lags | Fraction | datetime  # what is known of a trigger: its lag, its query's answer or its pods' use, or the time
FORMULA = -1  # in place of a trigger's index


@dataclass(frozen=True)
class Asked:
    """What a trigger asks for: ``ratio`` is its metric by target and replicas, ``proposal`` the replicas before any limit.

    ``metric``, and the ``target`` that is wanted of it, are in messages of lag (s with lagSeconds), replicas (cron), percent of
    a request, cores or bytes (cpu, memory), or in the unit of a query's or formula's answer. ``why`` says how the metric came,
    ``arithmetic`` what the HPA makes of it. Where the HPA asks no metric, three are None.
    """

    trigger: str
    type: str
    metric: float
    target: float
    ratio: float | None
    proposal: int | None
    arithmetic: str | None
    why: tuple[str, ...]


@dataclass(frozen=True)
class Sync:
    """One sync at ``replicas``. ``decided`` are the replicas after it, by ``decided_by``, HPA or KEDA.

    The largest proposal wins. The HPA's tolerance keeps ratios from ``tolerance_low`` to ``tolerance_high``; ``limits`` says
    what window, policies and bounds did then. ``steady`` is the decision where every sync of the windows asked for the same,
    ``window_s`` the window that keeps it back, None where none does. ``keda`` says what KEDA does besides,
    ``remarks`` what about the file deserves a line.
    """

    scaledobject: str
    replicas: int
    min_replicas: int
    max_replicas: int
    tolerance_low: float
    tolerance_high: float
    triggers: tuple[Asked, ...]
    limits: tuple[str, ...]
    limited: str | None
    decided: int
    decided_by: str
    steady: int
    window_s: int | None
    keda: str
    remarks: tuple[str, ...] = ()


def memory(recommended: Sequence[int], changed: int) -> State:
    """An HPA's memory: what syncs within its windows ``recommended``, and by how much the replicas ``changed`` just now.

    Without a recommendation it is that of a new HPA, whose first sync recommends the current replicas.
    """
    events = (hpa_limits.ScaleEvent(abs(changed), JUST_BEFORE),) if changed else ()
    return State(
        recommendations=tuple(hpa_limits.Recommendation(count, JUST_BEFORE) for count in recommended),
        ups=events if changed > 0 else (),
        downs=events if changed < 0 else (),
    )


def sync(scaled: ScaledObject, given: Sequence[Given], replicas: int, remembered: State) -> Sync:
    """The sync of ``scaled`` at ``replicas``, with one ``given`` for each trigger.

    Raises :class:`InputError` for a ScaledObject that is paused, and for a trigger whose metric can't be known from here.
    """
    spec = hpa_of(scaled)
    readings = _readings(scaled, given)
    order, answers = _answers(scaled, readings)
    observed: list[hpa.Observed] = []
    for index, metric in zip(order, spec.metrics, strict=True):
        if answer := answers.get(index):
            observed.append(None if answer.metric is None else hpa.external(answer.metric))
        else:
            value = given[index]
            assert isinstance(value, Fraction)
            observed.append(_usage(metric, value, replicas))
    decision = _decide(spec, remembered, replicas, observed)
    keda_says, woken = _keda(scaled, readings, replicas)
    asked = _asked(scaled, spec, order, answers, given, replicas, decision)
    steady = decision.desired
    if decision.proposals:
        most = max(count or 0 for count in decision.proposals)
        same = State((hpa_limits.Recommendation(most, JUST_BEFORE),), remembered.ups, remembered.downs)
        steady = _decide(spec, same, replicas, observed).desired
    low, high = _tolerance(spec)
    return Sync(
        scaledobject=scaled.name,
        replicas=replicas,
        min_replicas=scaled.min_replicas,
        max_replicas=scaled.max_replicas,
        tolerance_low=low,
        tolerance_high=high,
        triggers=tuple(asked[index] for index in sorted(asked)),
        limits=decision.reasons[len(decision.proposals) : -1] if decision.proposals else decision.reasons,
        limited=decision.limited,
        decided=decision.desired if replicas else woken,
        decided_by="HPA" if replicas else "KEDA",
        steady=steady if replicas else woken,
        window_s=None if steady == decision.desired else _window(spec, upward=steady > decision.desired),
        keda=keda_says,
    )


def _readings(scaled: ScaledObject, given: Sequence[Given]) -> dict[int, Reading]:
    """The answer of each trigger that KEDA asks."""
    found = {}
    for index, (trigger, value) in enumerate(zip(scaled.triggers, given, strict=True)):
        if not isinstance(trigger, Resource):
            try:
                found[index] = reading(trigger, value, scaled.where)
            except ScalerError as failed:
                raise InputError(scaled.where, f"spec.triggers[{index}]", str(failed), "what KEDA can count") from None
    return found


def _answers(scaled: ScaledObject, readings: Mapping[int, Reading]) -> tuple[list[int], Mapping[int, Reading | Observation]]:
    """The triggers in the order of the HPA's metrics, and the answers: the ``readings``, or the one that a formula gives."""
    resources = [index for index, one in enumerate(scaled.triggers) if isinstance(one, Resource)]
    if scaled.modifiers is None:
        return [*readings, *resources], readings
    composed, names = keda.compose(scaled, _observations(scaled, readings)), labels(scaled)
    why = (*(f"{names[index]}: {'; '.join(one.reasons)}" for index, one in readings.items()), *composed.reasons)
    whole = [index for index in resources if "containerName" not in scaled.content["spec"]["triggers"][index]["metadata"]]
    return [*whole, FORMULA], {FORMULA: replace(composed, reasons=why)}


def _observations(scaled: ScaledObject, readings: Mapping[int, Reading]) -> list[Observation | None]:
    """What KEDA holds of each trigger; None for cpu and memory."""
    return [keda.observe(scaled, readings[n], 0, 0.0) if n in readings else None for n in range(len(scaled.triggers))]


def reading(trigger: Trigger, given: Given, where: object) -> Reading:
    """The answer of the scaler of ``trigger`` to one query. Raises :class:`InputError` for one that nobody here can give."""
    match trigger, given:
        case Kafka(), [*lags]:
            partitions = {number: Partition(count, 0) for number, count in enumerate(lags)}
            return lag.read(trigger, {trigger.topic.literal: partitions}, {})
        case PersistentLag(), [*lags]:
            return _lasting(trigger, lags)
        case Prometheus(), Fraction():
            return prometheus.read(trigger, [float(given)])
        case Cron(), datetime():
            return cron.read(trigger, given)
    kind = trigger.common.name or "external"
    raise InputError(where, "spec.triggers", kind, "triggers whose scaler is known: what another service answers is not")


def hpa_of(scaled: ScaledObject) -> HpaSpec:
    """The HPA. Names that come from a pod's environment change nothing but the metrics' names."""
    names = [name for one in scaled.triggers if isinstance(one, Kafka) for name in (one.servers, one.group, one.topic)]
    if scaled.modifiers is None:
        resource.check_whole_pods(scaled.triggers, scaled.where)
    made = keda.hpa(scaled, {name.variable: name.variable for name in names}, external.answers(scaled.triggers))
    if made is None or (scaled.modifiers is None and len(made["spec"]["metrics"]) < len(scaled.triggers)):
        allowed = "a ScaledObject that scales" if scaled.pause else "no external trigger but the persistent-lag scaler's"
        raise InputError(scaled.where, *(scaled.pause or ("spec.triggers", "external")), allowed)
    return hpa_spec.parse(made, scaled.where)


def _decide(spec: HpaSpec, state: State, replicas: int, observed: Sequence[hpa.Observed]) -> Decision:
    requests = {metric.name: 1000 for metric in spec.metrics if metric.source == "Resource"}
    pods = [hpa.Pod(str(number), requests=requests) for number in range(replicas)]
    return hpa.decide(spec, state, replicas, observed, NOW_S, pods=pods)[0]


def _usage(metric: Metric, value: Fraction, replicas: int) -> hpa.PodUsage:
    """The use of pods that all use ``value``: percent of a request of 1000 milli-units, or the amount itself."""
    milli = math.ceil(value * 10) if metric.target == "Utilization" else hpa_spec.milli(value)
    return {str(number): hpa.Usage(milli, NOW_S) for number in range(replicas)}


def _lasting(trigger: PersistentLag, lags: Lags) -> Reading:
    """The answer of the persistent-lag scaler to a lag that has lasted for its windows."""
    rule = trigger.settings.rule
    window, counted = Window(rule), trigger.partitions
    values = {number: float(count) for number, count in enumerate(lags) if counted is None or number in counted}
    last = math.ceil((rule.sustain_s + rule.up_s + rule.down_s) / rule.interval_s) + 1
    for sample in range(last + 1):
        window.add(sample * rule.interval_s, values)
    return window.read(last * rule.interval_s)


def _asked(
    scaled: ScaledObject,
    spec: HpaSpec,
    order: Sequence[int],
    answers: Mapping[int, Reading | Observation],
    given: Sequence[Given],
    replicas: int,
    decision: Decision,
) -> dict[int, Asked]:
    found = {}
    names = {FORMULA: "formula", **dict(enumerate(labels(scaled)))}
    types = {FORMULA: "scalingModifiers", **dict(enumerate(kinds(scaled)))}
    for place, index in enumerate(order):
        metric, answer = spec.metrics[place], answers.get(index)
        value = None if answer else given[index]
        amount = (answer.metric or 0.0) if answer else float(value) if isinstance(value, Fraction) else 0.0
        target = metric.amount if metric.target == "Utilization" else metric.amount / 1000
        divisor = target * (replicas if metric.target == "AverageValue" and metric.source == "External" else 1)
        computed = bool(decision.proposals)
        arithmetic = decision.reasons[place].partition(": ")[2] if computed else None
        found[index] = Asked(
            trigger=names[index],
            type=types[index],
            metric=amount,
            target=target,
            ratio=amount / divisor if computed else None,
            proposal=decision.proposals[place] if computed else None,
            arithmetic=arithmetic,
            why=answer.reasons if answer else (f"each pod uses {amount:g}",),
        )
    return found


def kinds(scaled: ScaledObject) -> list[str]:
    """The type of each trigger, as it is written."""
    return [str(trigger["type"]) for trigger in scaled.content["spec"]["triggers"]]


def labels(scaled: ScaledObject) -> list[str]:
    """A name for each trigger: its own, else its topic, else its type; where two would have the same, its index."""
    own = []
    for trigger, kind in zip(scaled.triggers, kinds(scaled), strict=True):
        topic = trigger.topic.literal if isinstance(trigger, Kafka) else ""
        if isinstance(trigger, PersistentLag):
            topic = trigger.metadata.get("topic", "")
        own.append(trigger.common.name or topic or kind)
    return [name if own.count(name) == 1 else str(index) for index, name in enumerate(own)]


def _tolerance(spec: HpaSpec) -> tuple[float, float]:
    up, down = (spec.behavior.up.tolerance, spec.behavior.down.tolerance) if spec.behavior else (None, None)
    default = hpa.DEFAULTS.tolerance
    return 1 - (default if down is None else down), 1 + (default if up is None else up)


def _window(spec: HpaSpec, *, upward: bool) -> int:
    """The stabilization window of a direction, s."""
    if spec.behavior is None:
        return DOWNSCALE_STABILIZATION_S
    own = (spec.behavior.up if upward else spec.behavior.down).window_s
    return DOWNSCALE_STABILIZATION_S if own is None else own


def _keda(scaled: ScaledObject, readings: Mapping[int, Reading], replicas: int) -> tuple[str, int]:
    """What KEDA's own loop does, and the replicas after it."""
    found = keda.state(scaled, _observations(scaled, readings))
    # What is inactive has been so for longer than cooldownPeriod: until then it stays.
    last_active = NOW_S if found.active else NOW_S - scaled.cooldown_s - 1
    decision = keda.scale(scaled, found, replicas, NOW_S, 0.0, last_active)
    after = replicas if decision.replicas is None else decision.replicas
    said = "active" if found.active else "not active"
    if after != replicas:
        when = f", once it has been so for cooldownPeriod {scaled.cooldown_s} s" if after < replicas else ""
        return f"{said}: {replicas} -> {after}{when}", after
    return f"{said}: changes nothing", after
