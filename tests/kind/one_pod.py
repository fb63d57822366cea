"""A namespace with a Deployment of one pod, whose one container runs a given command."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from kubernetes import client

from lab.cluster import apply
from lab.trial import signals
from lab.wait import until

STARTS_S = 60  # 3 s on a quiet machine


@contextmanager
def one_pod(cluster: Any, namespace: str, command: Sequence[str], grace_s: int) -> Iterator[Any]:
    """A stage whose pod runs ``command`` in a container ``consumer``; its ``transitions`` read that pod."""
    container = {"name": "consumer", "image": "elastic-lab/consumer:1", "command": list(command)}
    pod = {"containers": [container], "terminationGracePeriodSeconds": grace_s}
    labels = {"app": "consumer"}
    spec = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "consumer"}, "spec": spec}
    api = cluster.api()
    core = client.CoreV1Api(api)
    apply.create_namespace(api, namespace)
    apply.objects(api, [cluster.fit(deployment)], namespace)

    def pods(app: str) -> list[Any]:
        found: Any = core.list_namespaced_pod(namespace, label_selector=f"app={app}")
        return [api.sanitize_for_serialization(pod) for pod in found.items]

    stage: Any = SimpleNamespace(cluster=cluster, namespace=namespace, transitions=SimpleNamespace(pods=pods))
    try:
        until(lambda: bool(signals.running(stage)), STARTS_S, "the container running", cluster.check)
        yield stage
    finally:
        core.delete_namespace(namespace)
        until_gone(cluster, core, namespace)


def until_gone(cluster: Any, core: client.CoreV1Api, namespace: str) -> None:
    """Wait until a namespace that was deleted is no more."""
    named = f"metadata.name={namespace}"
    until(lambda: not core.list_namespace(field_selector=named).items, STARTS_S, "the namespace gone", cluster.check)
