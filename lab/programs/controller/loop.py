"""One sync after the other: read lag, read replicas, decide, patch. On an error nothing is changed."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from confluent_kafka import KafkaException

from lab.errors import LabFault
from lab.kafka.lag import PartitionLag
from lab.model.controller import decide
from lab.model.hpa import Decision, State
from lab.programs.controller.metrics import Metrics
from lab.spec.controller import LagController

log = logging.getLogger("lab.programs.controller")

HEALTHY_S = 60.0  # a sync waits 40 s at most: three requests to Kafka, two to the API


class Scale(Protocol):
    """The replicas of what is scaled; both raise :class:`LabFault` when they can't be asked for."""

    def read(self) -> int:
        """The replicas asked for."""

    def write(self, replicas: int) -> None:
        """Ask for ``replicas``."""


@dataclass(frozen=True)
class Outside:
    """What a sync asks and tells: lag by partition, the scale, the recorder (event, fields) and the metrics."""

    lag: Callable[[], dict[int, PartitionLag]]
    scale: Scale
    say: Callable[..., None]
    metrics: Metrics


class Loop:
    """The controller of one Deployment; what it remembers between syncs is the decision's state."""

    def __init__(self, policy: LagController, outside: Outside) -> None:
        self._policy, self._outside = policy, outside
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
        """One sync at ``now`` (s, monotonic); None when something could not be asked: then nothing is changed.

        A decision that could not be carried out is forgotten too: the windows and policies count only what has happened. A
        patch whose answer got lost may have been carried out; then the next sync finds it in the scale.
        """
        outside = self._outside
        try:
            lag = sum(part.lag for part in outside.lag().values())
            current = outside.scale.read()
            decision, state = decide(self._policy, self._state, current, lag, now)
            if decision.desired != current:
                outside.scale.write(decision.desired)
        except (LabFault, KafkaException) as error:
            self._synced = False
            log.warning("nothing is changed: %s", error)
            outside.metrics.failed()
            self._tell("sync_failed", error=str(error))
            return None
        self._state, self._synced = state, True
        log.info("lag %d, replicas %d -> %d: %s", lag, current, decision.desired, "; ".join(decision.reasons))
        outside.metrics.synced(lag, current, decision.desired)
        self._tell("sync", lag=lag, replicas=current, desired=decision.desired, reasons=decision.reasons)
        return decision

    def _tell(self, event: str, **fields: Any) -> None:
        """Tell the recorder, unless Kafka has been away for so long that no more can be queued: the log has it all."""
        try:
            self._outside.say(event, **fields)
        except (BufferError, KafkaException) as error:
            log.warning("not told to the recorder: %s", error)
