"""What KEDA and the HPA make of a simulated group: one ScaledObject's metric, decisions and what it remembers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lab.autoscaling import hpa, keda
from lab.autoscaling.hpa import Controller
from lab.autoscaling.scaledobject import ScaledObject
from lab.autoscaling.triggers import lag
from lab.autoscaling.triggers.kafka import Kafka
from lab.autoscaling.triggers.reading import Reading, exposed
from lab.errors import InputError

Floats = npt.NDArray[np.float64]


class Scaler:
    """One ScaledObject on a simulated group of which nothing fails; times in s from the start."""

    def __init__(self, scaled: ScaledObject, controller: Controller) -> None:
        """Raises :class:`InputError` for a trigger whose source is not simulated, and for a paused ScaledObject."""
        self.scaled, self._controller = scaled, controller
        only = scaled.triggers[0]
        if len(scaled.triggers) > 1 or not isinstance(only, Kafka):
            types = [trigger["type"] for trigger in scaled.content["spec"]["triggers"]]
            raise InputError(scaled.where, "spec.triggers", types, "exactly one trigger, of type kafka: no other is simulated")
        made = keda.hpa(scaled, _named(only))
        if made is None:
            raise InputError(scaled.where, "metadata.annotations", "paused", "a ScaledObject that scales")
        self._trigger, self._spec = only, hpa.parse(made, scaled.where)
        self._state = hpa.State()
        self._last_active: float | None = None
        self._cached: float | None = None
        self._seen: Floats | None = None
        self.replicas = scaled.start if scaled.min_replicas else 0
        self.reasons: tuple[str, ...] = ()

    @property
    def polls_every_s(self) -> float | None:
        """How often KEDA's own loop asks; None where what it finds moves nothing."""
        return float(self.scaled.polling_s) if keda.polls(self.scaled) else None

    def poll(self, now: float, lags: Floats, processed: Floats) -> int:
        """One pass of KEDA's loop: to 0 and from 0; the replicas asked for afterwards."""
        reading = self._read(lags, processed)
        self._cached = reading.metric
        observed = keda.observe(self.scaled, reading, 0, self._trigger.target)
        found = keda.state(self.scaled, [observed])
        decision = keda.scale(self.scaled, found, self.replicas, now, 0.0, self._last_active)
        self._last_active = decision.last_active_s
        if decision.replicas is not None and decision.replicas != self.replicas:
            self.replicas, self.reasons = decision.replicas, ("KEDA", *decision.reasons)
        return self.replicas

    def sync(self, now: float, lags: Floats, processed: Floats) -> int:
        """One sync of the HPA; the replicas asked for afterwards."""
        if self._cached is None or not self._trigger.common.cached:
            metric = self._read(lags, processed).metric
        else:
            metric = self._cached
        decision, self._state = hpa.decide(
            self._spec, self._state, self.replicas, [hpa.external(metric)], now, controller=self._controller
        )
        self.replicas, self.reasons = decision.desired, decision.reasons
        return self.replicas

    def _read(self, lags: Floats, processed: Floats) -> Reading:
        """The kafka trigger's answer for ``lags`` by partition; ``processed`` tells which partitions have committed since."""
        trigger = self._trigger
        if trigger.partitions is not None:
            chosen = [number for number in sorted(trigger.partitions) if number < len(lags)]
            lags, processed = lags[chosen], processed[chosen]
        scaling = lags
        if trigger.exclude_persistent:
            committed = np.floor(processed)
            if self._seen is not None:
                scaling = np.where(committed == self._seen, 0.0, lags)
            self._seen = committed
        total = int(scaling.sum())
        metric, reason = lag.capped(trigger, total, len(lags), int((scaling > 0).sum()))
        return Reading(exposed(float(metric)), float(lags.sum()) > trigger.activation, (f"lag {total}", reason))


def _named(trigger: Kafka) -> dict[str, str]:
    """A value for every variable the trigger takes its names from: they change nothing but the metric's name."""
    return {named.variable: "simulated" for named in (trigger.servers, trigger.group, trigger.topic) if named.variable}
