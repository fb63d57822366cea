"""What was scraped of a live HPA, and what its syncs must have seen. Pure. Times are epoch s, lag is in messages.

Scrapes and syncs keep no step, and a sync that changes nothing leaves no trace. So where syncs were is inferred: one every
``sync_s``, counted back from a step that was seen.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise, takewhile

from lab.errors import InputError
from lab.inputs.hpa_spec import HpaSpec, Metric
from lab.inputs.scaledobject import ScaledObject
from lab.inputs.triggers.kafka import Kafka
from lab.inputs.triggers.resource import Resource
from lab.model import hpa, hpa_limits, lag
from lab.model.hpa import Controller, State

from . import sync

MORE_S = 0.03  # the next sync begins a period after the last one ended
EVENT_S = 1.0  # an event's time is a whole second
# Syncs between two scrapes, of the HPA's status and of metrics alone: told with more, 60 % is right (tests.explained --all).
MOST_SYNCS, MOST_OF_METRICS = 2, 1
LONGEST_PERIOD_S = 1_800  # of a policy, that the API allows
MESSAGES = "-kafka-"  # in the names of metrics that KEDA's kafka trigger makes: their totals are whole
NEARLY = 1e-6  # messages: a rounding of float64

Totals = tuple[float | None, ...]  # by metric of the HPA, None for one without a value


@dataclass(frozen=True, slots=True)
class Sample:
    """A scrape at ``t``: the replicas that the scale asks for, and the values of the HPA's metrics, in its order.

    Without ``current`` they are totals at ``t``. With it they are what the HPA's status shows, by pod where the target is: what
    the last sync saw, which found ``current`` replicas and asked for ``desired``. ``existing`` pods there are now. One that
    an event puts in has no values.
    """

    t: float
    replicas: int
    values: Totals
    current: int | None = None
    desired: int | None = None
    existing: int | None = None


@dataclass(frozen=True)
class Series:
    """Samples in order of time, at least two, of an HPA whose syncs begin ``sync_s`` after each other.

    By metric, ``names`` are those of the triggers, and ``caps`` the most that KEDA answers, None where nothing caps.
    """

    samples: Sequence[Sample]
    spec: HpaSpec
    sync_s: float
    names: tuple[str, ...]
    caps: Totals
    controller: Controller = hpa.DEFAULTS

    @cached_property
    def _times(self) -> list[float]:
        return [one.t for one in self.samples]

    @cached_property
    def existing(self) -> list[int]:
        """The replicas that each status averages over: those that existed, where two scrapes agree on them."""
        found = []
        for before, one in pairwise([None, *self.samples]):
            assert one is not None
            known = one.replicas if one.current is None else one.current
            found.append(one.existing if before and one.existing is not None and before.existing == one.existing else known)
        return found

    @cached_property
    def totals(self) -> list[Totals]:
        """The totals of each sample's metrics."""
        return [
            tuple(
                self._total(metric, value, pods if one.current is not None else None)
                for metric, value in zip(self.spec.metrics, one.values, strict=False)
            )
            for one, pods in zip(self.samples, self.existing, strict=True)
        ]

    def _total(self, metric: Metric, value: float | None, pods: int | None) -> float | None:
        if value is None or not math.isfinite(value):
            return None
        if pods is None or metric.target != "AverageValue":
            return value
        total = value * pods
        return math.floor(total + NEARLY) if MESSAGES in metric.name else total  # averages are rounded up to a thousandth

    @cached_property
    def changes(self) -> list[int]:
        """The places of the samples before which the replicas changed."""
        return [
            place for place in range(1, len(self.samples)) if self.samples[place].replicas != self.samples[place - 1].replicas
        ]

    @property
    def scrape_s(self) -> float:
        """The median time between two samples, s."""
        apart = sorted(other - one for one, other in pairwise(self._times))
        return apart[len(apart) // 2]

    @property
    def most_syncs(self) -> int:
        """The syncs between two scrapes that can be told apart."""
        return MOST_OF_METRICS if self.samples[-1].current is None else MOST_SYNCS

    @property
    def memory_s(self) -> float:
        """How far back the HPA looks: the longest of its windows, s."""
        rules, default = self.spec.behavior, self.controller.downscale_stabilization_s
        if rules is None:
            return default
        return max(rules.up.window_s or 0, default if rules.down.window_s is None else rules.down.window_s)

    def place(self, t: float) -> int:
        """The place of the first sample at or after ``t`` that has one before it. Raises :class:`InputError` outside of all.

        Where its status is still that of a step, no sync has been since: the place is the step's.
        """
        if not self._times[0] <= t <= self._times[-1]:
            allowed = f"{self._times[0]:.0f} to {self._times[-1]:.0f} (epoch s), from the first scrape to the last"
            raise InputError("command line", "--at", f"{t:.0f}", allowed)
        place = max(1, bisect_left(self._times, t))
        while place > 1 and self.samples[place].current != self.samples[place].desired and place not in self.changes:
            place -= 1
        return place

    def syncs(self, place: int) -> list[float]:
        """When the syncs between the sample before ``place`` and that at it were, at the latest where statuses were scraped."""
        before, after = self.samples[place - 1 : place + 1]
        begin, end = before.t, after.t
        if after.current is None and end - begin > EVENT_S:  # in the middle of where the last one can have been
            end -= min(end - begin, self.sync_s) / 2
        found = [end]
        while found[-1] - self.sync_s > begin:
            found.append(found[-1] - self.sync_s)
        if (
            len(found) == 1 and before.replicas != after.replicas == after.current
        ):  # the status is of a later sync than the step
            found.append((begin + end) / 2)
        return found[::-1]

    def shown(self, place: int) -> int | None:
        """The place of the status that shows what the last sync before the sample at ``place`` saw; None where none does."""
        before, after = self.samples[place - 1 : place + 1]
        if len(self.syncs(place)) > 1:
            return None if after.current is None else place
        for number in self._within(place, after.t):  # the scale is written before the status
            one = self.samples[number]
            if one.replicas != after.replicas:
                break
            if (one.current, one.desired) == (before.replicas, after.replicas):
                return number
        return None

    def _within(self, place: int, t: float) -> Iterator[int]:
        """The places from ``place`` on whose sample is less than a sync after ``t``."""
        return takewhile(lambda number: self._times[number] < t + self.sync_s, range(place, len(self._times)))

    def between(self, place: int, t: float, bend: float) -> Totals:
        """The totals at ``t``, on the way from the sample before ``place`` to that at it, or from and to the next with values.

        With a ``bend`` of 1 the way is straight, from 1 to infinity the change comes late, and from 1 to 0 early.
        """
        begin = place - 1
        while not self.samples[begin].values:
            begin -= 1
        while not self.samples[place].values:
            place += 1
        part = min(1.0, max(0.0, (t - self._times[begin]) / (self._times[place] - self._times[begin]))) ** bend
        ends = zip(self.totals[begin], self.totals[place], strict=True)
        return tuple(None if one is None or other is None else one + part * (other - one) for one, other in ends)

    def _seen(self, t: float) -> tuple[int, Totals]:
        """What a sync at ``t`` saw: the replicas that existed, and totals."""
        place = max(1, min(bisect_left(self._times, t), len(self._times) - 1))
        for number in self._within(place, t):
            if self.samples[number].current is not None:
                return self.existing[number], self.totals[number]
        return self.samples[place - 1].replicas, self.between(place, t, 1)

    def pinned(self, events: Iterable[tuple[float, int]]) -> Series:
        """This series with those of the HPA's ``events`` that scrapes don't tell of: the whole second, the new replicas."""
        added: list[Sample] = []
        for t, size in sorted(events):
            place = bisect_left(self._times, t)
            if 0 < place < len(self._times) and len(self.syncs(place)) > self.most_syncs:
                last = max([self.samples[place - 1], *added[-1:]], key=lambda one: one.t)
                if last.replicas != size:
                    added += [Sample(t, last.replicas, ()), Sample(t + EVENT_S, size, ())]
        return replace(self, samples=sorted([*self.samples, *added], key=lambda one: one.t))

    def fresh(self, at: float) -> bool:
        """Whether the windows of a sync at ``at`` reach back to before the first sample."""
        return at - self.memory_s < self._times[0]

    def memory(self, at: float, *, cold: bool) -> State:
        """What the HPA remembers in a sync at ``at``. A ``cold`` one was new with the first sample."""
        first = self.samples[0]
        kept = []
        if cold:
            kept.append(hpa_limits.Recommendation(first.replicas, hpa_limits.nanoseconds(first.t)))
        for back in range(math.ceil(self.memory_s / self.sync_s), 0, -1):
            t = at - back * self.sync_s
            if t >= first.t and (asked := self._asked(t)) is not None:
                kept.append(hpa_limits.Recommendation(asked, hpa_limits.nanoseconds(t)))
        ups: list[hpa_limits.ScaleEvent] = []
        downs: list[hpa_limits.ScaleEvent] = []
        begin, end = (bisect_left(self._times, t) for t in (at - LONGEST_PERIOD_S - self.sync_s, at))
        for place in self.changes[bisect_left(self.changes, begin) : bisect_left(self.changes, end)]:
            one, other = self.samples[place - 1].replicas, self.samples[place].replicas
            back = max(1, round((at - self._times[place]) / self.sync_s))
            if one and other:  # to and from 0 is KEDA's
                event = hpa_limits.ScaleEvent(abs(other - one), hpa_limits.nanoseconds(at - back * self.sync_s))
                (ups if other > one else downs).append(event)
        return State(tuple(kept), tuple(ups), tuple(downs))

    def _asked(self, t: float) -> int | None:
        """What the metrics asked for in a sync at ``t``, None where none did."""
        current, totals = self._seen(t)
        if not current:
            return None
        counts = hpa.proposals(self.spec, current, observed(totals), controller=self.controller)
        return max((max(0, count) for count in counts if count is not None), default=None)


def observed(totals: Totals) -> list[hpa.Observed]:
    """``totals`` as the HPA gets them."""
    return [None if one is None else hpa.external(one) for one in totals]


def series(
    scaled: ScaledObject,
    samples: Sequence[Sample],
    sync_s: float,
    partitions: int | None = None,
    controller: Controller = hpa.DEFAULTS,
) -> Series:
    """The series of the HPA that KEDA makes of ``scaled``; ``partitions`` are its topic's, None where that is not known.

    Raises :class:`InputError` for a trigger whose proposal no one number tells, and for fewer than two samples.
    """
    check(scaled)
    if len(samples) < 2:
        raise InputError("series", "samples", len(samples), "two at least, with the replicas of the scale target")
    if scaled.modifiers:
        return Series(samples, sync.hpa_of(scaled), sync_s, ("formula",), (None,), controller)
    counts = [counted(one, partitions) for one in scaled.triggers]
    caps = tuple(map(_cap, scaled.triggers, counts))
    answers = [
        replace(one, values=tuple(map(_answered, scaled.triggers, counts, one.values)))
        for one in samples
        if one.current is None
    ]
    return Series(answers or samples, sync.hpa_of(scaled), sync_s, tuple(sync.labels(scaled)), caps, controller)


def check(scaled: ScaledObject) -> None:
    """Raise :class:`InputError` for a trigger whose proposal no one number tells."""
    if any(isinstance(one, Resource) for one in scaled.triggers):
        allowed = "no cpu or memory: the proposal depends on each pod's use, which no series has"
        raise InputError(scaled.where, "spec.triggers", sync.kinds(scaled), allowed)


def capped(trigger: object) -> bool:
    """Whether KEDA caps the lag of ``trigger`` by a number of partitions."""
    return isinstance(trigger, Kafka) and not (trigger.allow_idle and not trigger.limit_to_lagging and not trigger.even)


def counted(trigger: object, partitions: int | None) -> int | None:
    """The partitions that ``trigger`` counts, None where that is not known."""
    chosen = trigger.partitions if isinstance(trigger, Kafka) else None
    return partitions if chosen is None else len([one for one in chosen if partitions is None or one < partitions])


def _cap(trigger: object, partitions: int | None) -> float | None:
    """The most lag that KEDA's kafka ``trigger`` answers, where it is always the same."""
    if partitions is None or not isinstance(trigger, Kafka) or not capped(trigger) or trigger.even or trigger.limit_to_lagging:
        return None
    return float(partitions * trigger.lag_threshold)


def _answered(trigger: object, partitions: int | None, value: float | None) -> float | None:
    """What KEDA answers for a lag of ``value``; for what it answered itself, the same."""
    if value is None or partitions is None or not isinstance(trigger, Kafka) or not math.isfinite(value):
        return value
    return float(lag.capped(trigger, round(value), partitions, partitions)[0])
