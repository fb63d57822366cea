"""What is scaled: a Deployment of pods that are never scheduled, its ScaledObject, and what KEDA and the HPA do with them."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kubernetes import client
from kubernetes.client.exceptions import ApiException
from prometheus_api_client import PrometheusConnect

from lab.cluster import Cluster, apply, keda
from lab.errors import LabFault
from lab.inputs import hpa_spec
from lab.model import hpa_log
from lab.wait import until

Trigger = dict[str, Any]
NAME = "consumer"
HPA = f"keda-hpa-{NAME}"
DEADLINE_S = 60
SAME = 4  # syncs of the HPA in a row that leave the replicas alone: it has decided
OUTCOMES = (*hpa_log.DECIDED, hpa_log.FAILED)
ALL_AT_ONCE = {"stabilizationWindowSeconds": 0, "policies": [{"type": "Pods", "value": 100, "periodSeconds": 1}]}
PROMPT = {"scaleUp": ALL_AT_ONCE, "scaleDown": ALL_AT_ONCE}  # no limit of the HPA's is in the way
_STEP = re.compile(r"from (\d+) to (\d+)")


def deployment(
    name: str, replicas: int, env: Mapping[str, str] | None = None, requests: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """A Deployment whose pods ask for a scheduler that does not exist: they are there, and they cost nothing."""
    variables = [{"name": variable, "value": value} for variable, value in (env or {}).items()]
    resources = {"requests": dict(requests or {})}
    container = {"name": name, "image": "elastic-lab/programs/consumer", "env": variables, "resources": resources}
    pod = {"metadata": {"labels": {"app": name}}, "spec": {"schedulerName": "none", "containers": [container]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": pod}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


class Target:
    """A Deployment with a ScaledObject in a namespace of its own.

    ``replicas`` is what the Deployment begins with, ``env`` its variables, ``behavior`` the HPA's, ``spec`` are more fields of
    the ScaledObject's. ``objects`` are there before it.
    """

    def __init__(
        self,
        cluster: Cluster,
        *triggers: Trigger,
        replicas: int = 1,
        env: Mapping[str, str] | None = None,
        behavior: Mapping[str, Any] | None = None,
        objects: Sequence[Mapping[str, Any]] = (),
        **spec: Any,
    ) -> None:
        self._cluster, self.namespace, self._begun = cluster, f"defects-{uuid.uuid4().hex[:8]}", time.time()
        self._api = cluster.api()
        self._scaled_objects = keda.scaled_objects(self._api)
        self.spec: dict[str, Any] = {
            "scaleTargetRef": {"name": NAME},
            "pollingInterval": 1,
            "cooldownPeriod": 2,
            "minReplicaCount": 1,
            "maxReplicaCount": 100,
            "advanced": {"horizontalPodAutoscalerConfig": {"behavior": PROMPT if behavior is None else behavior}},
            "triggers": list(triggers),
        } | spec
        apply.objects(self._api, [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}])
        apply.objects(self._api, [deployment(NAME, replicas, env), *objects], self.namespace)
        self.apply()

    def apply(self, annotations: Mapping[str, str] | None = None, **spec: Any) -> None:
        """Apply the ScaledObject with these fields of its spec changed."""
        self.spec |= spec
        metadata = {"name": NAME, "annotations": dict(annotations or {})}
        scaled = {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": metadata, "spec": self.spec}
        apply.objects(self._api, [scaled], self.namespace)

    def delete(self) -> None:
        """Delete the namespace, and with it everything."""
        client.CoreV1Api(self._api).delete_namespace(self.namespace)
        self._api.close()

    def replicas(self) -> int:
        """The replicas that the Deployment is asked to have; the API leaves a 0 out of a scale."""
        scale: Any = client.AppsV1Api(self._api).read_namespaced_deployment_scale(NAME, self.namespace)
        return scale.spec.replicas or 0

    def reference(self) -> dict[str, str]:
        """The Deployment, as an HPA names it."""
        return {"apiVersion": "apps/v1", "kind": "Deployment", "name": NAME}

    def generation(self) -> int:
        """How many times the Deployment's spec was changed, and 1."""
        found: Any = client.AppsV1Api(self._api).read_namespaced_deployment(NAME, self.namespace)
        return int(found.metadata.generation)

    def hpa(self) -> client.V2HorizontalPodAutoscaler | None:
        """The HPA that KEDA made; None while there is none."""
        try:
            return client.AutoscalingV2Api(self._api).read_namespaced_horizontal_pod_autoscaler(HPA, self.namespace)
        except ApiException as error:
            if error.status != 404:
                raise
            return None

    def scaled_object(self) -> dict[str, Any]:
        """The ScaledObject as the API server has it."""
        found: dict[str, Any] = self._scaled_objects.get(name=NAME, namespace=self.namespace).to_dict()
        return found

    def condition(self, kind: str) -> tuple[str | None, str | None]:
        """The status and the reason of a condition of the ScaledObject's ("Active"); Nones while it has none."""
        every = self.scaled_object().get("status", {}).get("conditions", [])
        found: dict[str, str] = next((one for one in every if one["type"] == kind), {})
        return found.get("status"), found.get("reason")

    def hpa_condition(self, kind: str) -> tuple[str | None, str | None]:
        """The status and the reason of a condition of the HPA's that KEDA made; Nones while it has none."""
        found: Any = self.hpa()
        every = (found and found.status and found.status.conditions) or []
        return next(((one.status, one.reason) for one in every if one.type == kind), (None, None))

    def metric(self) -> float:
        """The first trigger's metric, asked of KEDA now, as an HPA asks for it. Raises ApiException where KEDA has an error."""
        name = self.scaled_object()["status"]["externalMetricNames"][0]
        found: Any = client.CustomObjectsApi(self._api).list_namespaced_custom_object(
            "external.metrics.k8s.io", "v1beta1", self.namespace, name, label_selector=f"scaledobject.keda.sh/name={NAME}"
        )
        return float(hpa_spec.parse_quantity(found["items"][0]["value"]))

    def answer(self) -> None:
        """Wait until KEDA has an answer of the first trigger's source, and has nothing against the ScaledObject."""

        def there() -> bool:
            try:
                self.metric()
            except ApiException:
                return False
            return self.condition("Ready")[0] == self.condition("HPAActive")[0] == "True"

        self.wait(there, "an answer of the source")

    def events(self, reason: str) -> list[str]:
        """The messages of the namespace's events of this reason, the oldest first."""
        found: list[Any] = client.CoreV1Api(self._api).list_namespaced_event(self.namespace).items
        chosen = [one for one in found if one.reason == reason]
        return [str(one.message) for one in sorted(chosen, key=lambda one: one.metadata.creation_timestamp)]

    def deactivations(self) -> list[tuple[int, int]]:
        """The replicas before and after each step that KEDA took to its idle count or to zero, by its own events."""
        found = [_STEP.search(message) for message in self.events("KEDAScaleTargetDeactivated")]
        return [(int(one[1]), int(one[2])) for one in found if one]

    def counted(self, counter: str) -> float:
        """A counter of KEDA's for this namespace, as Prometheus last scraped it (every second); 0 while there is none."""
        return self._sum(f'{counter}{{namespace="{self.namespace}"}}')

    def rate(self, counter: str) -> float:
        """How much a counter rose a second in the last 10 s, in all namespaces; 0 while there is none."""
        return self._sum(f"rate({counter}[10s])")

    def _sum(self, query: str) -> float:
        found = PrometheusConnect(url=self._cluster.prometheus_url).custom_query(f"sum({query})")
        return float(found[0]["value"][1]) if found else 0.0

    def syncs(self) -> list[hpa_log.Logged]:
        """Every sync of the HPA so far, by the controller's log."""
        lines = [line for line in self._cluster.controller_log().splitlines() if self.namespace in line]
        return list(hpa_log.syncs(list(hpa_log.parse("\n".join(lines), self._begun)), OUTCOMES))

    def ready(self) -> None:
        """Wait until KEDA has polled for the first time, and the HPA that it made has decided."""
        self.wait(lambda: bool(self.scaled_object().get("status", {}).get("triggersActivity")), "KEDA's first poll")
        self.wait(lambda: bool(self.syncs()), "the HPA's first sync")

    def steady(self) -> int:
        """The replicas at which the HPA stands still: syncs in a row, all begun from now on, read the metric and keep them."""
        begun = time.time()

        def same() -> bool:
            last = [one for one in self.syncs() if one.before >= begun][-SAME:]
            kept = {one.outcome.replicas["desiredReplicas"] for one in last if one.outcome.words == hpa_log.KEPT}
            return len(last) == SAME and all(one.outcome.words == hpa_log.KEPT for one in last) and len(kept) == 1

        self.wait(same, "the HPA to stand still")
        return self.replicas()

    def reach(self, replicas: int) -> None:
        """Wait until the Deployment is asked to have ``replicas``."""
        self.wait(lambda: self.replicas() == replicas, f"{replicas} replicas")

    def rest(self, seconds: float) -> int:
        """The replicas after ``seconds``, or as soon as they differ from those of now: for what must not happen."""
        before = self.replicas()
        self.within(seconds, lambda: self.replicas() != before)
        return self.replicas()

    def within(self, seconds: float, condition: Callable[[], bool]) -> bool:
        """Whether ``condition`` comes to hold within ``seconds``."""
        try:
            until(condition, seconds, "a change", self._cluster.check, every_s=0.2)
        except LabFault:
            self._cluster.check()
            return False
        return True

    def wait(self, condition: Any, what: str, deadline_s: float = DEADLINE_S) -> None:
        """Ask until ``condition`` holds. Raises LabFault at the deadline, with the replicas of then."""
        try:
            until(condition, deadline_s, what, self._cluster.check, every_s=0.2)
        except LabFault as fault:
            raise LabFault(f"{fault}; {self.replicas()} replicas, conditions {self.scaled_object().get('status')}") from None
