"""The scalers of a simulated ScaledObject's triggers, and their answers. Times in s from the start; arrays by partition."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import numpy as np

from lab.foresee import whole
from lab.foresee.group import Floats, Part, Seen
from lab.foresee.queries import Answer
from lab.inputs.triggers import cron, prometheus
from lab.inputs.triggers.common import Reading, exposed
from lab.inputs.triggers.cron import Cron
from lab.inputs.triggers.external import PersistentLag
from lab.inputs.triggers.kafka import Kafka
from lab.inputs.triggers.prometheus import Prometheus
from lab.model import lag
from lab.model.window import Ends, Window


class Source(ABC):
    """A trigger's scaler on one group, whose HPA has the ``target`` per replica; this one reads only when it is asked."""

    target: float
    notes: Sequence[str] = ()  # what a reader should know of its answers

    @property
    def due(self) -> float:
        """The time of its own next sample; infinity for none."""
        return math.inf

    def sample(self, seen: Seen) -> None:
        """Take the sample that is due."""
        raise NotImplementedError

    @abstractmethod
    def read(self, seen: Seen) -> Reading:
        """The answer. Raises :class:`~lab.inputs.triggers.common.ScalerError` where there is none."""


class Instant(Source):
    """The kafka trigger: the lag at the moment of the question."""

    def __init__(self, trigger: Kafka, part: Part) -> None:
        self._trigger, self._part = trigger, part
        self._committed: Floats | None = None
        self.target = trigger.target

    def read(self, seen: Seen) -> Reading:
        """KEDA's answer. What is processed shows which partitions have committed since the call before."""
        trigger, lags = self._trigger, self._part.of(seen.lags)
        total = activating = whole.total(lags)
        lagging = 0
        if trigger.exclude_persistent or trigger.limit_to_lagging:  # no other needs to know where the messages are
            scaling = whole.by_partition(lags)
            if trigger.exclude_persistent:
                committed = whole.counts(self._part.of(seen.processed))
                if self._committed is not None:
                    scaling = np.where(committed == self._committed, 0.0, scaling)
                self._committed = committed
            total, lagging = int(scaling.sum()), int((scaling > 0).sum())
        metric, reason = lag.capped(trigger, total, len(lags), lagging)
        return Reading(exposed(float(metric)), activating > trigger.activation, (f"lag {total}", reason))


class Lasting(Source):
    """The persistent-lag scaler: its own window over its samples of a group that has committed everywhere."""

    def __init__(self, trigger: PersistentLag, part: Part) -> None:
        self._part, self._rule = part, trigger.settings.rule
        self._window = Window(self._rule)
        self._ends: dict[int, Ends] = {}
        self._samples = 0
        self.target = self._rule.target

    @property
    def due(self) -> float:
        """The time of the next sample."""
        return self._samples * self._rule.interval_s

    def sample(self, seen: Seen) -> None:
        """One reading of all partitions that count."""
        self._samples += 1
        chosen = self._part.numbers(len(seen.lags)).tolist()
        values = whole.by_partition(self._part.of(seen.lags)).tolist()
        if self._rule.ages:
            ends = whole.counts(self._part.of(seen.ends)).astype(int).tolist()
            values = [self._age(seen.now, *one) for one in zip(chosen, ends, map(int, values), strict=True)]
        self._window.add(seen.now, dict(zip(chosen, values, strict=True)))

    def read(self, seen: Seen) -> Reading:
        """The sampled lag that has lasted; it does not look at the lag of this moment."""
        return self._window.read(seen.now)

    def _age(self, now: float, number: int, end: int, behind: int) -> float:
        ends = self._ends.setdefault(number, Ends(self._rule.size * self._rule.interval_s))
        ends.add(now, end)
        return ends.age(max(0, end - behind))  # the two are rounded apart


class Scheduled(Source):
    """The cron trigger: its replicas by the time of day, which is ``begins_at`` at 0 s."""

    def __init__(self, trigger: Cron, begins_at: datetime) -> None:
        self._trigger, self._begins_at = trigger, begins_at.astimezone(UTC)
        self._until = -math.inf  # an answer stays until the next start or end
        self._answer = Reading(0.0, False, ())
        self.target = trigger.target

    def read(self, seen: Seen) -> Reading:
        """KEDA's answer, which no lag changes."""
        if seen.now >= self._until:
            at = self._begins_at + timedelta(seconds=seen.now)
            self._answer = cron.read(self._trigger, at)
            coming = [when for when in cron.due(self._trigger, at) if when is not None]
            self._until = min(((when - self._begins_at).total_seconds() for when in coming), default=math.inf)
        return self._answer


class Queried(Source):
    """The prometheus trigger on lag or the rate of arrivals, scraped when it is asked."""

    def __init__(self, trigger: Prometheus, answer: Answer) -> None:
        self._trigger, self._answer = trigger, answer
        self.target, self.notes = trigger.target, answer.notes

    def read(self, seen: Seen) -> Reading:
        """KEDA's answer to the query's elements."""
        return prometheus.read(self._trigger, self._answer(seen))
