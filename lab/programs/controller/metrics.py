"""The controller's metrics; those of a sync that failed are not a number, so a gap is a gap and not an old value."""

from __future__ import annotations

import math

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge


class Metrics:
    """What the last sync saw and asked for, and how many there were."""

    def __init__(self, registry: CollectorRegistry = REGISTRY) -> None:
        self._lag = Gauge("controller_lag", "Total lag that the last sync read, messages", registry=registry)
        self._replicas = Gauge("controller_current_replicas", "Replicas that the last sync found", registry=registry)
        self._desired = Gauge("controller_desired_replicas", "Replicas that the last sync asked for", registry=registry)
        self._syncs = Counter("controller_syncs", "Syncs by what became of them", ["outcome"], registry=registry)

    def synced(self, lag: int, current: int, desired: int) -> None:
        """Show a sync that was carried out."""
        self._show(lag, current, desired)
        self._syncs.labels("kept" if desired == current else "scaled").inc()

    def failed(self) -> None:
        """Show a sync that changed nothing because something could not be asked."""
        self._show(math.nan, math.nan, math.nan)
        self._syncs.labels("failed").inc()

    def _show(self, lag: float, current: float, desired: float) -> None:
        self._lag.set(lag)
        self._replicas.set(current)
        self._desired.set(desired)
