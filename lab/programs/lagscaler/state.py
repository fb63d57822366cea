"""The scaler's memory of one trigger: its window, which one thread fills from Kafka's answers and another reads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from confluent_kafka import KafkaException

from lab.kafka.lag import Answer, PartitionLag
from lab.model.age import Ends
from lab.model.window import UNCOMMITTED, UNCOMMITTED_S, Lasting, Window
from lab.spec.triggers.persistent_lag import Settings
from lab.spec.triggers.reading import ScalerError

Told = TypeVar("Told")


class State:
    """One trigger of one ScaledObject. Times are monotonic s, so a step of the machine's clock changes nothing."""

    def __init__(self, settings: Settings, asked_at: float) -> None:
        self.settings = settings
        self.asked_at = asked_at  # when KEDA last asked
        self.streams = 0  # how many streams KEDA has open
        self.tried = False  # whether a first reading has been tried
        self.slot: int | None = None  # the sampling interval, counted from the epoch, of the last reading
        self._fault = ""
        self._window = Window(settings.rule)
        self._ends: dict[int, Ends] = {}
        self._end: dict[int, int] = {}  # where each partition's log ended when it last answered
        self._lock = threading.Lock()

    @property
    def samples(self) -> int:
        """How many samples are kept; each is 16 bytes."""
        with self._lock:
            return self._window.samples + sum(len(ends) for ends in self._ends.values())

    def due(self, wall: float) -> bool:
        """Whether the wall clock's current sampling interval has had no reading yet.

        The wall clock decides when replicas of the scaler read, so that they read together; it stamps nothing.
        """
        return self.slot != self._slot(wall)

    def next_in(self, wall: float) -> float:
        """Seconds until the next sampling interval begins."""
        return (self._slot(wall) + 1) * self.settings.rule.interval_s - wall

    def begin(self, wall: float) -> None:
        """Note that this interval's reading has begun."""
        self.slot = self._slot(wall)

    def _slot(self, wall: float) -> int:
        return int(wall // self.settings.rule.interval_s)

    def adopt(self, other: State) -> None:
        """Begin with the samples of ``other``, which has the same source."""
        with other._lock, self._lock:
            self._window.adopt(other._window)
            for number, ends in other._ends.items():
                self._of(number).adopt(ends)
            self._end |= other._end

    def take(self, at: float, answer: Answer) -> None:
        """Take Kafka's answer to a reading begun at ``at``."""
        chosen = self.settings.source.partitions
        kept = {number: lag for number, lag in answer.items() if chosen is None or number in chosen}
        if not kept:
            self.fail(f"no partition of topic {self.settings.source.topic} is within partitionLimitation")
            return
        faults = [f"partition {number}: {lag.args[0].str()}" for number, lag in kept.items() if isinstance(lag, KafkaException)]
        with self._lock:
            self._fault = faults[0] if faults else ""
            self._window.add(at, {number: self._value(number, lag, at) for number, lag in kept.items()})
            for gone in self._end.keys() - self._window.partitions:
                del self._end[gone]
                self._ends.pop(gone, None)
            self.tried = True

    def fail(self, reason: str) -> None:
        """Note that a reading failed. The state reports it when the last reading has grown too old."""
        with self._lock:
            self._fault, self.tried = reason, True

    def read(self, now: float) -> Lasting:
        """The answer to KEDA. Raises :class:`ScalerError` with the reason when the value is unknown: never 0 for an error."""
        with self._lock:
            return self._told(self._window.read, now)

    def is_active(self, now: float) -> bool:
        """Whether the group has work. Raises :class:`ScalerError` like :meth:`read`, but not while the window is short."""
        with self._lock:
            return self._told(self._window.active, now)

    def _told(self, ask: Callable[[float], Told], now: float) -> Told:
        """The result of ``ask``; where it fails, its reason and Kafka's."""
        try:
            return ask(now)
        except ScalerError as error:
            raise ScalerError(f"{error}{f' ({self._fault})' if self._fault else ''}") from None

    def stretch(self, now: float) -> float:
        """The longest current stretch above the target of any one partition, s."""
        with self._lock:
            return self._window.stretch(now, self.settings.rule.target)

    def _of(self, number: int) -> Ends:
        rule = self.settings.rule
        return self._ends.setdefault(number, Ends(rule.size * rule.interval_s))

    def _value(self, number: int, lag: PartitionLag | KafkaException, at: float) -> float | None:
        """The sample of one partition, in the threshold's unit; None without an answer, or with one that says too little."""
        if isinstance(lag, KafkaException):
            return None
        if lag.end < self._end.get(number, 0):  # another log under the same name: nothing has lasted across the two
            self._window.restart(number)
        self._end[number] = lag.end
        source = self.settings.source
        uncommitted = lag.committed is None and source.offset_reset == "latest"
        if not source.ages:
            return UNCOMMITTED if uncommitted else float(lag.lag)
        ends = self._of(number)
        ends.add(at, lag.end)
        if uncommitted:
            return UNCOMMITTED_S
        if lag.lag and len(ends) == 1:  # one sample of the end does not show when the record was written
            return None
        return ends.age((lag.start or 0) if lag.committed is None else lag.committed)
