"""KEDA and the HPA on a simulated group: one ScaledObject's metric, its decisions and its memory.

A trigger's answers are those of KEDA's kafka trigger on the current lag, or those of the lab's scaler on the lag that has
lasted. Arrays are by partition; times in s from the start.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from lab.errors import InputError
from lab.foresee.group import Floats
from lab.model import hpa, keda, lag
from lab.model.hpa import Controller
from lab.model.keda import Observation
from lab.model.window import Ends, Window
from lab.spec.scaledobject import ScaledObject
from lab.spec.triggers.common import Reading, ScalerError, exposed
from lab.spec.triggers.external import PersistentLag
from lab.spec.triggers.kafka import Kafka

SIMULATED = (
    "exactly one trigger, of type kafka or apache-kafka, or external with the persistent-lag scaler's sustainSeconds: "
    "no other is simulated"
)


class Source(Protocol):
    """A trigger's scaler on one group."""

    @property
    def target(self) -> float:
        """The target per replica in the HPA."""

    @property
    def samples_every_s(self) -> float | None:
        """The period of its own samples; None for a source that reads only when it is asked."""

    def sample(self, now: float, lags: Floats, ends: Floats) -> None:
        """Take a sample: the lag and the log's end of each partition, messages."""

    def read(self, now: float, lags: Floats, processed: Floats) -> Reading:
        """The answer, given the ``processed`` messages by partition so far. Raises :class:`ScalerError` where there is none."""


class Instant:
    """The kafka trigger: the lag at the moment of the question."""

    samples_every_s = None

    def __init__(self, trigger: Kafka) -> None:
        self._trigger = trigger
        self._seen: Floats | None = None
        self.target = trigger.target

    def sample(self, now: float, lags: Floats, ends: Floats) -> None:
        """Do nothing: this source reads when it is asked."""

    def read(self, now: float, lags: Floats, processed: Floats) -> Reading:
        """KEDA's answer. ``processed`` shows which partitions have committed since the call before."""
        trigger = self._trigger
        if trigger.partitions is not None:
            chosen = _chosen(trigger.partitions, len(lags))
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


class Lasting:
    """The persistent-lag scaler: its own window over its samples of a group that has committed everywhere."""

    def __init__(self, trigger: PersistentLag) -> None:
        self._partitions, rule = trigger.settings.source.partitions, trigger.settings.rule
        self._window = Window(rule)
        self._ends: dict[int, Ends] = {}
        self._horizon_s = rule.size * rule.interval_s
        self.target = rule.target
        self.samples_every_s = rule.interval_s

    def sample(self, now: float, lags: Floats, ends: Floats) -> None:
        """One reading of all partitions that count."""
        chosen = list(range(len(lags))) if self._partitions is None else _chosen(self._partitions, len(lags))
        values = lags[chosen].tolist()
        if self._window.rule.ages:
            values = [
                self._age(now, *one) for one in zip(chosen, ends[chosen].astype(int).tolist(), map(int, values), strict=True)
            ]
        self._window.add(now, dict(zip(chosen, values, strict=True)))

    def read(self, now: float, lags: Floats, processed: Floats) -> Reading:
        """The sampled lag that has lasted; it does not look at the lag of this moment."""
        return self._window.read(now)

    def _age(self, now: float, number: int, end: int, behind: int) -> float:
        ends = self._ends.setdefault(number, Ends(self._horizon_s))
        ends.add(now, end)
        return ends.age(end - behind)


def only_trigger(scaled: ScaledObject) -> Kafka | PersistentLag:
    """The trigger of ``scaled``. Raises :class:`InputError` for several triggers, or for one whose source is not simulated."""
    first = scaled.triggers[0]
    if len(scaled.triggers) > 1 or not isinstance(first, Kafka | PersistentLag):
        types = [trigger["type"] for trigger in scaled.content["spec"]["triggers"]]
        raise InputError(scaled.where, "spec.triggers", types, SIMULATED)
    return first


def source_of(trigger: Kafka | PersistentLag) -> Source:
    """The scaler of ``trigger``."""
    return Instant(trigger) if isinstance(trigger, Kafka) else Lasting(trigger)


def _chosen(partitions: frozenset[int], there: int) -> list[int]:
    return [number for number in sorted(partitions) if number < there]


class Scaler:
    """One ScaledObject on a simulated group; times in s from the start."""

    def __init__(self, scaled: ScaledObject, controller: Controller) -> None:
        """Raises :class:`InputError` for a trigger whose source is not simulated, and for a paused ScaledObject."""
        self.scaled, self._controller = scaled, controller
        only = only_trigger(scaled)
        self._cache, self.source = only.common.cached, source_of(only)
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
