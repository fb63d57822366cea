"""Changes the pods of a group: by a decreed step, which is scaled, settled and observed, or by a rolling restart."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

from kubernetes import client

from lab import clock
from lab.cluster import apply
from lab.inputs.events import Restart
from lab.inputs.own_consumer import BLACK_BOX
from lab.inputs.steps import Decree
from lab.inputs.workload import STATEFUL_SET
from lab.trial.stage import CONSUMER, Stage
from lab.wait import until

SETTLE_DEADLINE_S = 90  # the slowest seen is 9 s: KIP-848 with the broker's stock heartbeat; a busy machine takes longer
RESTART_DEADLINE_S = 120  # a StatefulSet restarts one pod after another, each some seconds
BYSTANDER = "bystander"
_RESTARTED = "kubectl.kubernetes.io/restartedAt"


def take(decree: Decree, stage: Stage) -> dict[str, Any]:
    """Take one step; its kind (up, down or control), and when it had ``settled`` and was ``observed``, epoch s.

    A step has settled when exactly its replicas are Ready and share all partitions. A control step starts bystanders instead,
    and has settled when they are Ready; they are stopped after it.
    """
    control = decree.bystanders > 0
    if control:
        scale(stage, BYSTANDER, decree.bystanders)
        _wait(stage, lambda: stage.ready(BYSTANDER, decree.bystanders), "bystanders ready")
    else:
        scale(stage, CONSUMER, decree.after)
        _wait(stage, lambda: _settled(stage, decree.after), f"{decree.after} members settled")
    settled = clock.now()
    end = time.monotonic() + decree.hold_s  # the measured window itself
    until(lambda: time.monotonic() >= end, decree.hold_s + 5, "observed", stage.check)
    observed = clock.now()
    if control:
        scale(stage, BYSTANDER, 0)
        _wait(stage, lambda: not stage.transitions.pods(BYSTANDER), "bystanders gone")
    return {"kind": decree.kind, "settled": settled, "observed": observed}


def scale(stage: Stage, name: str, replicas: int) -> None:
    """Set the replicas of Deployment or StatefulSet ``name``, as ``kubectl scale`` does."""
    apps = client.AppsV1Api(stage.api)
    stateful = stage.owner(name) == STATEFUL_SET
    patch = apps.patch_namespaced_stateful_set_scale if stateful else apps.patch_namespaced_deployment_scale
    patch(name, stage.namespace, {"spec": {"replicas": replicas}})


def _wait(stage: Stage, condition: Any, what: str) -> None:
    stage.transitions.wait(condition, SETTLE_DEADLINE_S, what, stage.check)


def _settled(stage: Stage, members: int) -> bool:
    """Whether ``members`` live pods are Ready and hold all partitions; what a killed pod held last counts for nothing."""
    alive = {pod["metadata"]["name"] for pod in stage.transitions.pods(CONSUMER)}
    if stage.inputs.workload.rung == BLACK_BOX:  # its members may go by other names, and one that died is seen to be gone
        alive = set(stage.reports.owned())
    holders = {pod: owned for pod, owned in stage.reports.owned().items() if owned and pod in alive}
    partitions = stage.inputs.partitions_after or stage.inputs.partitions
    shared = len(holders) == min(members, partitions) and sum(holders.values()) == partitions
    return shared and stage.ready(CONSUMER, members)


def restart(event: Restart, stage: Stage) -> dict[str, Any]:
    """Restart as ``kubectl rollout restart``; returns the number of pods. Raises :class:`LabFault` after RESTART_DEADLINE_S."""
    generation = roll(stage)
    stage.transitions.wait(lambda: is_through(stage, generation), RESTART_DEADLINE_S, "every pod restarted", stage.check)
    return {"pods": stage.field(CONSUMER, "spec", "replicas")}


def roll(stage: Stage) -> int:
    """Begin a rolling restart; returns the generation of the template with which it is through."""
    at = datetime.fromtimestamp(clock.now(), UTC).isoformat()
    body = {"spec": {"template": {"metadata": {"annotations": {_RESTARTED: at}}}}}
    resource = apply.dynamic_client(stage.api).resources.get(api_version="apps/v1", kind=stage.owner(CONSUMER))
    content_type = "application/merge-patch+json"
    patched = resource.patch(body=body, name=CONSUMER, namespace=stage.namespace, content_type=content_type)
    return int(patched.metadata.generation)


def is_through(stage: Stage, generation: int) -> bool:
    """Whether all pods are of the template of ``generation`` or a later one, and Ready, and none of an earlier one is left."""
    status = stage.field(CONSUMER, "status") or {}
    wanted = stage.field(CONSUMER, "spec", "replicas")
    counts = [status.get(name) or 0 for name in ("replicas", "updatedReplicas", "readyReplicas")]
    pods = stage.transitions.pods(CONSUMER)
    return (
        (status.get("observedGeneration") or 0) >= generation
        and counts == [wanted] * len(counts)
        and len(pods) == wanted
        and all("deletionTimestamp" not in pod["metadata"] for pod in pods)
    )
