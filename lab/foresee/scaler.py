"""KEDA and the HPA on a simulated group: one ScaledObject's metric, its decisions and its memory.

A trigger's answers are those of KEDA's kafka trigger on the current lag, those of the lab's scaler on the lag that has lasted,
or those of KEDA's cron trigger by the time of day. Arrays are by partition; times in s from the start.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Protocol

import numpy as np

from lab.errors import InputError
from lab.foresee.group import Floats
from lab.foresee.part import Part
from lab.model import hpa, keda, lag
from lab.model.hpa import Controller
from lab.model.keda import Observation
from lab.model.window import Ends, Window
from lab.spec.anchor import NEEDED
from lab.spec.scaledobject import ScaledObject
from lab.spec.topics import MOST
from lab.spec.triggers import cron
from lab.spec.triggers.common import Reading, ScalerError, exposed
from lab.spec.triggers.cron import Cron
from lab.spec.triggers.external import PersistentLag
from lab.spec.triggers.kafka import Kafka
from lab.spec.triggers.parsing import Trigger
from lab.spec.triggers.topics import check, places

SIMULATED = (
    "at most one trigger of type kafka or apache-kafka, or external with the persistent-lag scaler's sustainSeconds, and cron: "
    "no other is simulated; several on lag only where no two count the same partitions"
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

    def __init__(self, trigger: Kafka, part: Part) -> None:
        self._trigger, self._part = trigger, part
        self._seen: Floats | None = None
        self.target = trigger.target

    def sample(self, now: float, lags: Floats, ends: Floats) -> None:
        """Do nothing: this source reads when it is asked."""

    def read(self, now: float, lags: Floats, processed: Floats) -> Reading:
        """KEDA's answer. ``processed`` shows which partitions have committed since the call before."""
        trigger = self._trigger
        scaling = lags = self._part.of(lags)
        if trigger.exclude_persistent:
            committed = np.floor(self._part.of(processed))
            if self._seen is not None:
                scaling = np.where(committed == self._seen, 0.0, lags)
            self._seen = committed
        total = int(scaling.sum())
        metric, reason = lag.capped(trigger, total, len(lags), int((scaling > 0).sum()))
        return Reading(exposed(float(metric)), float(lags.sum()) > trigger.activation, (f"lag {total}", reason))


class Lasting:
    """The persistent-lag scaler: its own window over its samples of a group that has committed everywhere."""

    def __init__(self, trigger: PersistentLag, part: Part) -> None:
        self._part, rule = part, trigger.settings.rule
        self._window = Window(rule)
        self._ends: dict[int, Ends] = {}
        self._horizon_s = rule.size * rule.interval_s
        self.target = rule.target
        self.samples_every_s = rule.interval_s

    def sample(self, now: float, lags: Floats, ends: Floats) -> None:
        """One reading of all partitions that count."""
        chosen = self._part.numbers(len(lags)).tolist()
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


class Scheduled:
    """The cron trigger: its replicas by the time of day, which is ``begins_at`` at 0 s."""

    samples_every_s = None

    def __init__(self, trigger: Cron, begins_at: datetime) -> None:
        self._trigger, self._begins_at = trigger, begins_at.astimezone(UTC)
        self._until = -math.inf  # an answer stays until the next start or end
        self._answer = Reading(0.0, False, ())
        self.target = trigger.target

    def sample(self, now: float, lags: Floats, ends: Floats) -> None:
        """Do nothing: this source reads the clock when it is asked."""

    def read(self, now: float, lags: Floats, processed: Floats) -> Reading:
        """KEDA's answer, which no lag changes."""
        if now >= self._until:
            at = self._begins_at + timedelta(seconds=now)
            self._answer = cron.read(self._trigger, at)
            coming = [when for when in cron.due(self._trigger, at) if when is not None]
            self._until = min(((when - self._begins_at).total_seconds() for when in coming), default=math.inf)
        return self._answer


def lag_triggers(scaled: ScaledObject, count: int = MOST) -> tuple[Kafka | PersistentLag, ...]:
    """The triggers on lag of a group with ``count`` topics, none where cron is all that ``scaled`` has.

    There may be several, each on partitions of its own: of another topic, or of another part of one. Raises
    :class:`InputError` for several otherwise, for one of a further topic, and for a trigger whose source is not simulated.
    """
    found = tuple(trigger for trigger in scaled.triggers if isinstance(trigger, Kafka | PersistentLag))
    others = len(scaled.triggers) - len(found) - sum(isinstance(trigger, Cron) for trigger in scaled.triggers)
    read = places(found)
    shared = [one for one, place in zip(found, read, strict=True) if place is None or read.count(place) > 1]
    if others or (len(found) > 1 and any(_only(one) is None for one in shared)):
        types = [trigger["type"] for trigger in scaled.content["spec"]["triggers"]]
        raise InputError(scaled.where, "spec.triggers", types, SIMULATED)
    intervals = sorted({one.settings.rule.interval_s for one in found if isinstance(one, PersistentLag)})
    if len(intervals) > 1:
        allowed = f"{intervals[0]:g} for all: a simulated group is sampled at one pace"
        raise InputError(scaled.where, "spec.triggers: samplingInterval", f"{intervals[-1]:g}", allowed)
    check(scaled.triggers, count, scaled.where)
    return found


def _only(trigger: Kafka | PersistentLag) -> frozenset[int] | None:
    """The partitions of its topic that a trigger counts, None for all."""
    return trigger.partitions if isinstance(trigger, Kafka) else trigger.settings.source.partitions


def lag_trigger(scaled: ScaledObject) -> Kafka | PersistentLag | None:
    """The one trigger of ``scaled`` on lag, None where cron is all that it has.

    Raises :class:`InputError` for a second one, and for a trigger whose source is not simulated.
    """
    found = lag_triggers(scaled)
    if len(found) > 1:
        types = [trigger["type"] for trigger in scaled.content["spec"]["triggers"]]
        raise InputError(scaled.where, "spec.triggers", types, "one trigger on lag, whose lagThreshold is tuned, and cron")
    return found[0] if found else None


def source_of(trigger: Trigger, part: Part, begins_at: datetime | None, where: object) -> Source:
    """The scaler of ``trigger``, which counts ``part`` of the group if it is one on lag.

    Raises :class:`InputError` for a time of day in a profile that begins at none.
    """
    if isinstance(trigger, Cron):
        if begins_at is None:
            raise InputError(where, "begins_at of the profile", None, NEEDED)
        return Scheduled(trigger, begins_at)
    assert isinstance(trigger, Kafka | PersistentLag), "lag_triggers refuses any other"
    return Instant(trigger, part) if isinstance(trigger, Kafka) else Lasting(trigger, part)


def _parts(triggers: Sequence[Trigger], count: int) -> list[Part]:
    """What each of ``triggers`` counts of a group with ``count`` topics."""
    only = (_only(one) if isinstance(one, Kafka | PersistentLag) else None for one in triggers)
    return [Part(place, count, own) for place, own in zip(places(triggers), only, strict=True)]


class Scaler:
    """One ScaledObject on a simulated group; times in s from the start."""

    def __init__(self, scaled: ScaledObject, controller: Controller, begins_at: datetime | None = None, count: int = 1) -> None:
        """``begins_at`` is the time of day of the start, which a cron trigger needs, ``count`` the number of topics.

        Raises :class:`InputError` for a trigger whose source is not simulated, and for a paused ScaledObject.
        """
        self.scaled, self._controller = scaled, controller
        on_lag = lag_triggers(scaled, count)
        pairs = zip(scaled.triggers, _parts(scaled.triggers, count), strict=True)
        self._sources = [source_of(trigger, part, begins_at, scaled.where) for trigger, part in pairs]
        external = {
            index: (one.settings.metric, self._sources[index].target)
            for index, one in enumerate(scaled.triggers)
            if isinstance(one, PersistentLag)
        }
        made = keda.hpa(scaled, _named(on_lag), external)
        if made is None:
            raise InputError(scaled.where, "metadata.annotations", "paused", "a ScaledObject that scales")
        self._spec = hpa.parse(made, scaled.where)
        self._state = hpa.State()
        self._last_active: float | None = None
        self._cached: list[Observation] = []
        self._failures = [0] * len(self._sources)
        self.replicas = scaled.start
        self.reasons: tuple[str, ...] = ()

    @property
    def polls_every_s(self) -> float | None:
        """The period of KEDA's own loop, s; None where its result changes nothing."""
        return float(self.scaled.polling_s) if keda.polls(self.scaled) else None

    @property
    def samples_every_s(self) -> float | None:
        """The period of the samples that a trigger's scaler takes by itself, s; None where none does."""
        return next((one.samples_every_s for one in self._sources if one.samples_every_s), None)

    def sample(self, now: float, lags: Floats, ends: Floats) -> None:
        """Take a sample: the lag and the log's end of each partition, messages."""
        for source in self._sources:
            source.sample(now, lags, ends)

    def poll(self, now: float, lags: Floats, processed: Floats) -> int:
        """One pass of KEDA's loop: to 0 and from 0; the replicas asked for afterwards."""
        self._cached = [self._observe(index, self._read(index, now, lags, processed)) for index, _ in enumerate(self._sources)]
        found = keda.state(self.scaled, self._cached)
        decision = keda.scale(self.scaled, found, self.replicas, now, 0.0, self._last_active)
        self._last_active = decision.last_active_s
        if decision.replicas is not None and decision.replicas != self.replicas:
            self.replicas, self.reasons = decision.replicas, ("KEDA", *decision.reasons)
        return self.replicas

    def sync(self, now: float, lags: Floats, processed: Floats) -> int:
        """One sync of the HPA; the replicas asked for afterwards."""
        metrics: list[hpa.Observed] = []
        for index, trigger in enumerate(self.scaled.triggers):
            cached = self._cached[index] if trigger.common.cached and self._cached else None
            observed = self._observe(index, self._read(index, now, lags, processed) if cached is None else cached.outcome)
            metrics.append(None if observed.metric is None else hpa.external(observed.metric))
        decision, self._state = hpa.decide(self._spec, self._state, self.replicas, metrics, now, controller=self._controller)
        self.replicas, self.reasons = decision.desired, decision.reasons
        return self.replicas

    def _read(self, index: int, now: float, lags: Floats, processed: Floats) -> Reading | ScalerError:
        try:
            return self._sources[index].read(now, lags, processed)
        except ScalerError as error:
            return error

    def _observe(self, index: int, outcome: Reading | ScalerError) -> Observation:
        target = self._sources[index].target
        observed = keda.observe(self.scaled, outcome, self._failures[index], target, replicas=self.replicas)
        self._failures[index] = observed.failures
        return observed


def _named(triggers: Iterable[Kafka | PersistentLag]) -> dict[str, str] | None:
    """A value for every variable that the triggers' names come from. They change nothing but the metric's name."""
    kafka = [trigger for trigger in triggers if isinstance(trigger, Kafka)]
    names = (named for trigger in kafka for named in (trigger.servers, trigger.group, trigger.topic))
    return {named.variable: "simulated" for named in names if named.variable} if kafka else None
