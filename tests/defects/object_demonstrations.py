"""Rules of the audit on the real control plane, each by its name: objects that are refused, ignored, or beside one another."""

from __future__ import annotations

from typing import Any

from lab.cluster import apply
from lab.errors import LabFault
from tests.defects.bench import (
    NEVER_S,
    READY_S,
    REST_S,
    SCALE,
    Case,
    Fed,
    Rig,
    Shown,
    accepted,
    open_all_day,
    rescales,
    right_trigger,
    so,
    trials,
)
from tests.defects.target import NAME, deployment
from tests.defects.topic import Topic

SLOW_S = 90.0  # of five sources that fell silent each was at zero within 17 s


def paused(rig: Rig, case: Case) -> Shown:
    """It stands where it is, or where the annotation says, though its lag asks for the other bound."""
    name = case.finding.field.rpartition("autoscaling.keda.sh/")[2]
    most, floor = case.scaled.most, case.scaled.floor
    upwards = name == "paused-scale-out" or "scaleUp" in name
    held = floor if upwards else most
    fed = case.light(rig, most, held)
    behavior = {"behavior": case.divided} if name.endswith("selectPolicy") else {}
    target = case.target(rig, fed, replicas=held, minReplicaCount=floor, **behavior)
    target.steady()
    if not behavior:
        target.apply({f"autoscaling.keda.sh/{key}": value for key, value in case.scaled.annotations.items()})
        target.wait(lambda: target.condition("Paused")[0] == "True", "the pause")
    if name == "paused-replicas":
        held = case.number
        target.reach(held)
    fed.leave(most if upwards else 0)
    return so(target.rest(REST_S + SCALE.seconds(case.scaled.down_window_s)) == held)


def two_owners(rig: Rig, case: Case) -> Shown:
    """A second object on the same target is refused, or ends the work of both."""
    target = rig.target(Topic(rig.kafka.bootstrap, case.partitions).trigger())
    target.ready()
    kinds = ("keda.sh/v1alpha1", "ScaledObject")
    spec: dict[str, Any] = target.spec
    if "HorizontalPodAutoscaler" in case.finding.object + case.finding.sentence:
        kinds = ("autoscaling/v2", "HorizontalPodAutoscaler")
        resource = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}
        spec = {"scaleTargetRef": target.reference(), "maxReplicas": 3, "metrics": [{"type": "Resource", "resource": resource}]}
    try:
        with rig.cluster.api() as api:
            twin = {"apiVersion": kinds[0], "kind": kinds[1], "metadata": {"name": "twin"}, "spec": spec}
            apply.objects(api, [twin], target.namespace)
    except LabFault:
        return so(True)
    return so(target.within(READY_S, lambda: target.hpa_condition("ScalingActive")[1] == "AmbiguousSelector"))


def trigger_refused(rig: Rig, case: Case) -> Shown:
    """The field alone in a trigger that is right otherwise, or beside the others. The right one is taken."""
    right = right_trigger(rig, case)
    return so(accepted(rig, right) and any(not accepted(rig, one) for one in trials(case, right)))


def ignored_metadata(rig: Rig, case: Case) -> Shown:
    """KEDA takes the trigger with it, and says nothing."""
    return so(accepted(rig, next(trials(case, right_trigger(rig, case)))))


def zero_on_slow_source(rig: Rig, case: Case) -> Shown:
    """The source says that there is work, and then nothing for longer than KEDA waits."""
    one = rig.sources.triggers()[case.trigger.type]
    target = rig.target(one, minReplicaCount=0, maxReplicaCount=3)
    target.wait(lambda: target.replicas() == 3, "the bound")
    rig.sources.fail()
    return so(target.within(SLOW_S, lambda: target.replicas() == 0))


def cron_no_effect(rig: Rig, case: Case) -> Shown:
    """The window is open; where a group stands within the tolerance it stays."""
    wanted, most, owned = case.trigger.number("desiredReplicas", 0), case.scaled.most, case.scaled.owned or 0
    kept = case.said(r"stands at ([\d,]+) pods stays")
    fed = Fed(Topic(rig.kafka.bootstrap, 1), (), open_all_day(wanted))
    stood = case.target(rig, fed, replicas=kept[0] if kept else case.scaled.floor, cooldownPeriod=NEVER_S).steady()
    if kept:
        return min(wanted, most) - stood, case.number
    if "own no partition" in case.finding.sentence:
        return stood - owned, case.number
    return (stood, most) if wanted > most else (stood, case.scaled.floor)


def manifest_replicas(rig: Rig, case: Case) -> Shown:
    """At most pods, the Deployment's manifest is applied again."""
    most = case.scaled.most
    target = case.target(rig, case.light(rig, most, most), replicas=most)
    target.steady()
    with rig.cluster.api() as api:
        apply.objects(api, [deployment(NAME, case.number)], target.namespace)
    return min(before for before, _ in [*rescales(target), (target.replicas(), 0)]), case.number
