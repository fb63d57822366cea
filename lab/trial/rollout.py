"""A rolling restart of the consumer's pods, as ``kubectl rollout restart`` and ``kubectl rollout status`` do it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from kubernetes.dynamic import DynamicClient

from lab import clock
from lab.inputs.events import Restart
from lab.trial.stage import CONSUMER, Stage

DEADLINE_S = 120  # a StatefulSet restarts one pod after another, each some seconds
_RESTARTED = "kubectl.kubernetes.io/restartedAt"


def restart(event: Restart, stage: Stage) -> dict[str, Any]:
    """Change the annotation of the pod template that asks for new pods, and wait until they are all there is.

    Returns the number of ``pods``. Raises :class:`lab.errors.LabFault` when they are not all Ready within DEADLINE_S.
    """
    at = datetime.fromtimestamp(clock.now(), UTC).isoformat()
    body = {"spec": {"template": {"metadata": {"annotations": {_RESTARTED: at}}}}}
    resource = DynamicClient(stage.api).resources.get(api_version="apps/v1", kind=stage.owner(CONSUMER))
    content_type = "application/merge-patch+json"
    patched = resource.patch(body=body, name=CONSUMER, namespace=stage.namespace, content_type=content_type)
    generation = int(patched.metadata.generation)
    stage.transitions.wait(lambda: through(stage, generation), DEADLINE_S, "every pod restarted", stage.check)
    return {"pods": stage.field(CONSUMER, "spec", "replicas")}


def through(stage: Stage, generation: int) -> bool:
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
