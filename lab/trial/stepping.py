"""Takes a group through its decreed steps: scale, wait until it has settled, observe, go on."""

from __future__ import annotations

import time
from typing import Any

from kubernetes import client

from lab import clock
from lab.spec.steps import ReplicaSteps
from lab.trial.stage import Stage
from lab.wait import until

SETTLE_DEADLINE_S = 40  # the slowest seen is 9 s: KIP-848 with the broker's stock heartbeat
GROUP, BYSTANDER = "consumer", "bystander"


def take(stage: Stage, policy: ReplicaSteps) -> list[dict[str, Any]]:
    """Take every step; each as {t, kind: up | down | control, before, after, settled, until}, times in epoch s.

    A step begins when the Deployment is told, and has settled when exactly its replicas are Ready and share all partitions.
    A control step starts bystanders instead, and ends once they are Ready and were observed; they are stopped after it.
    """
    taken: list[dict[str, Any]] = []
    held = policy.start
    for number, step in enumerate(policy.steps, 1):
        after = held if step.replicas is None else step.replicas
        kind = "control" if step.replicas is None else "up" if after > held else "down"
        stage.phase = f"step {number} of {len(policy.steps)}, {kind} {held} to {after}"
        began = clock.now()
        if step.replicas is None:
            _scale(stage, BYSTANDER, step.bystanders)
            _wait(stage, lambda wanted=step.bystanders: _ready(stage, BYSTANDER) == wanted, "bystanders ready")
        else:
            _scale(stage, GROUP, after)
            _wait(stage, lambda wanted=after: _settled(stage, wanted), f"{after} members settled")
        settled = clock.now()
        _observe(stage, policy.hold_s)
        taken.append({"t": began, "kind": kind, "before": held, "after": after, "settled": settled, "until": clock.now()})
        if step.replicas is None:
            _scale(stage, BYSTANDER, 0)
            _wait(stage, lambda: not stage.transitions.pods(BYSTANDER), "bystanders gone")
        held = after
    return taken


def _observe(stage: Stage, seconds: float) -> None:
    """Let the group work on for ``seconds``: the measured window itself."""
    end = time.monotonic() + seconds
    until(lambda: time.monotonic() >= end, seconds + 5, "observed", stage.check)


def _scale(stage: Stage, name: str, replicas: int) -> None:
    body = {"spec": {"replicas": replicas}}
    client.AppsV1Api(stage.api).patch_namespaced_deployment_scale(name, stage.namespace, body)


def _wait(stage: Stage, condition: Any, what: str) -> None:
    stage.transitions.wait(condition, SETTLE_DEADLINE_S, what, stage.check)


def _ready(stage: Stage, name: str) -> int:
    return stage.transitions.field("Deployment", name, "status", "readyReplicas") or 0


def _settled(stage: Stage, members: int) -> bool:
    """Whether ``members`` live pods are Ready and hold all partitions between them."""
    alive = {pod["metadata"]["name"] for pod in stage.transitions.pods(GROUP)}
    holders = {pod: owned for pod, owned in stage.reports.owned().items() if owned}
    return (
        _ready(stage, GROUP) == members
        and len(holders) == min(members, stage.inputs.partitions)
        and sum(holders.values()) == stage.inputs.partitions
        and set(holders) <= alive
    )
