"""One sync after the other: read lag, read replicas, decide, patch. On an error nothing is changed.

It asks the API by two plain requests: the Kubernetes client would make up most of the image and of the pod's start.
"""

from __future__ import annotations

import http.client
import json
import logging
import math
import ssl
import threading
import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import KafkaException
from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge

from lab.errors import LabFault
from lab.inputs.controller import LagController
from lab.kafka.lag import PartitionLag
from lab.model.hpa import Decision, State, decide_on_lag

PATCH = "application/merge-patch+json"
TIMEOUT_S = 5.0  # 5 ms on a quiet machine
IDLE_S = 60.0  # kube-apiserver closes a connection that was idle for 90 s


class DeploymentScale:
    """The replicas of Deployment ``name``. Raises ``ValueError`` or ``SSLError`` where ``ca`` holds no certificates in PEM."""

    def __init__(self, host: str, port: int, token: str, ca: str, namespace: str, name: str) -> None:
        self._path = f"/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale"
        self._token = token
        trusted = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # and no one of the machine's own, as a default context would
        trusted.load_verify_locations(cadata=ca)
        self._connection = http.client.HTTPSConnection(host, port, timeout=TIMEOUT_S, context=trusted)
        self._asked_at = time.monotonic()

    def read(self) -> int:
        """The replicas asked for. Raises :class:`LabFault` when the API can't be asked or refuses."""
        return int((self._ask("GET").get("spec") or {}).get("replicas", 0))  # a Scale leaves a 0 out

    def write(self, replicas: int) -> None:
        """Ask for ``replicas``. Raises :class:`LabFault` like :meth:`read`."""
        self._ask("PATCH", {"spec": {"replicas": replicas}})

    def _ask(self, method: str, body: dict[str, Any] | None = None) -> Any:
        headers = {"Authorization": f"Bearer {self._token}", "Accept": "application/json", "Content-Type": PATCH}
        now = time.monotonic()
        if now - self._asked_at > IDLE_S:
            self._connection.close()  # the next request opens it again
        self._asked_at = now
        try:
            self._connection.request(method, self._path, None if body is None else json.dumps(body), headers)
            answer = self._connection.getresponse()
            text = answer.read()
            content = json.loads(text)
        except (OSError, http.client.HTTPException, ValueError) as error:
            self._connection.close()
            raise LabFault(f"{method} {self._path}: no answer: {str(error) or type(error).__name__}") from None
        if answer.status != http.client.OK:
            raise LabFault(f"{method} {self._path}: {answer.status}: {content.get('message', text)}")
        return content


class Metrics:
    """What the last sync saw and asked for, and how many there were."""

    def __init__(self, registry: CollectorRegistry = REGISTRY) -> None:
        self._lag = Gauge("controller_lag", "Total lag that the last sync read, messages", registry=registry)
        self._replicas = Gauge("controller_current_replicas", "Replicas that the last sync found", registry=registry)
        self._desired = Gauge("controller_desired_replicas", "Replicas that the last sync asked for", registry=registry)
        self._syncs = Counter("controller_syncs", "Syncs by what became of them", ["outcome"], registry=registry)

    def show(self, outcome: str, lag: float = math.nan, current: float = math.nan, desired: float = math.nan) -> None:
        """Show a sync; one that failed changed nothing, because something could not be asked."""
        self._lag.set(lag)
        self._replicas.set(current)
        self._desired.set(desired)
        self._syncs.labels(outcome).inc()


log = logging.getLogger("lab.programs.controller")

HEALTHY_S = 60.0  # a sync waits 50 s at most: four requests to Kafka, two to the API


class Loop:
    """The controller of one Deployment; what it remembers between syncs is the decision's state.

    A sync asks for the ``lag`` by partition and for the ``scale``.
    It tells ``metrics`` and, by ``say(event, **fields)``, the recorder.
    """

    def __init__(
        self,
        policy: LagController,
        lag: Callable[[], dict[int, PartitionLag]],
        scale: DeploymentScale,
        say: Callable[..., None],
        metrics: Metrics,
    ) -> None:
        self._policy, self._lag, self._scale, self._say, self._metrics = policy, lag, scale, say, metrics
        self._state = State()
        self._alive_at = time.monotonic()
        self._synced = False

    def healthy(self) -> bool:
        """Whether a sync has begun within the last minute, or the period if that is longer."""
        return time.monotonic() - self._alive_at < HEALTHY_S + self._policy.sync_s

    def ready(self) -> bool:
        """Whether the last sync could be carried out."""
        return self._synced

    def run(self, stop: threading.Event) -> None:
        """Sync every ``sync_s`` seconds until ``stop`` is set; a sync that took longer is followed by the next one at once."""
        due = time.monotonic()
        while not stop.wait(max(0.0, due - time.monotonic())):
            self._alive_at = time.monotonic()
            due = max(due + self._policy.sync_s, self._alive_at)
            self.sync(self._alive_at)

    def sync(self, now: float) -> Decision | None:
        """One sync at ``now`` (s, monotonic); None when something could not be asked: then nothing is changed or remembered."""
        try:
            lag = sum(part.lag for part in self._lag().values())
            current = self._scale.read()
            decision, state = decide_on_lag(self._policy, self._state, current, lag, now)
            if decision.desired != current:
                self._scale.write(decision.desired)
        except (LabFault, KafkaException) as error:
            self._synced = False
            log.warning("nothing is changed: %s", error)
            self._metrics.show("failed")
            self._tell("sync_failed", error=str(error))
            return None
        self._state, self._synced = state, True
        log.info("lag %d, replicas %d -> %d: %s", lag, current, decision.desired, "; ".join(decision.reasons))
        self._metrics.show("kept" if decision.desired == current else "scaled", lag, current, decision.desired)
        self._tell("sync", lag=lag, replicas=current, desired=decision.desired, reasons=decision.reasons)
        return decision

    def _tell(self, event: str, **fields: Any) -> None:
        """Tell the recorder, unless Kafka has been away for so long that no more can be queued: the log has it all."""
        try:
            self._say(event, **fields)
        except (BufferError, KafkaException) as error:
            log.warning("not told to the recorder: %s", error)
