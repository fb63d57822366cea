"""KEDA and the HPA on a simulated group: one ScaledObject's metric, its decisions and its memory."""

from __future__ import annotations

from lab.errors import InputError
from lab.foresee import sources
from lab.foresee.group import Floats
from lab.model import hpa, keda
from lab.model.hpa import Controller
from lab.model.keda import Observation
from lab.spec.scaledobject import ScaledObject
from lab.spec.triggers.kafka import Kafka
from lab.spec.triggers.reading import Reading, ScalerError


class Scaler:
    """One ScaledObject on a simulated group; times in s from the start."""

    def __init__(self, scaled: ScaledObject, controller: Controller) -> None:
        """Raises :class:`InputError` for a trigger whose source is not simulated, and for a paused ScaledObject."""
        self.scaled, self._controller = scaled, controller
        only = sources.only(scaled)
        self._cache, self.source = only.common.cached, sources.source(only)
        if isinstance(only, Kafka):
            made = keda.hpa(scaled, _named(only))
        else:
            made = keda.hpa(scaled, external={0: (only.settings.metric, self.source.target)})
        if made is None:
            raise InputError(scaled.where, "metadata.annotations", "paused", "a ScaledObject that scales")
        self._spec = hpa.parse(made, scaled.where)
        self._state = hpa.State()
        self._last_active: float | None = None
        self._cached: Observation | None = None
        self._failures = 0
        self.replicas = scaled.start
        self.reasons: tuple[str, ...] = ()

    @property
    def polls_every_s(self) -> float | None:
        """The period of KEDA's own loop, s; None where its result changes nothing."""
        return float(self.scaled.polling_s) if keda.polls(self.scaled) else None

    def poll(self, now: float, lags: Floats, processed: Floats) -> int:
        """One pass of KEDA's loop: to 0 and from 0; the replicas asked for afterwards."""
        self._cached = self._observe(self._read(now, lags, processed))
        found = keda.state(self.scaled, [self._cached])
        decision = keda.scale(self.scaled, found, self.replicas, now, 0.0, self._last_active)
        self._last_active = decision.last_active_s
        if decision.replicas is not None and decision.replicas != self.replicas:
            self.replicas, self.reasons = decision.replicas, ("KEDA", *decision.reasons)
        return self.replicas

    def sync(self, now: float, lags: Floats, processed: Floats) -> int:
        """One sync of the HPA; the replicas asked for afterwards."""
        cached = self._cached if self._cache else None
        observed = self._observe(self._read(now, lags, processed) if cached is None else cached.outcome)
        metric = None if observed.metric is None else hpa.external(observed.metric)
        decision, self._state = hpa.decide(self._spec, self._state, self.replicas, [metric], now, controller=self._controller)
        self.replicas, self.reasons = decision.desired, decision.reasons
        return self.replicas

    def _read(self, now: float, lags: Floats, processed: Floats) -> Reading | ScalerError:
        try:
            return self.source.read(now, lags, processed)
        except ScalerError as error:
            return error

    def _observe(self, outcome: Reading | ScalerError) -> Observation:
        observed = keda.observe(self.scaled, outcome, self._failures, self.source.target, replicas=self.replicas)
        self._failures = observed.failures
        return observed


def _named(trigger: Kafka) -> dict[str, str]:
    """A value for every variable that the trigger's names come from. They change nothing but the metric's name."""
    return {named.variable: "simulated" for named in (trigger.servers, trigger.group, trigger.topic) if named.variable}
