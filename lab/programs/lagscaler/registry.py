"""The triggers that the scaler knows: one state each, found by KEDA's request, sampled by one thread per Kafka cluster."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping
from typing import Protocol, TypeVar

from confluent_kafka import KafkaException

from lab.errors import InputError
from lab.inputs.triggers.common import ScalerError
from lab.inputs.triggers.persistent_lag import Settings, parse
from lab.kafka.lag import Answer, PartitionLag
from lab.model.window import UNCOMMITTED, UNCOMMITTED_S, Ends, Lasting, Window

Value = TypeVar("Value")
REPLACED_S = 60.0  # without a question, while there are others of the same ScaledObject: two pollingIntervals of KEDA's default


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
        """Whether the wall clock's current sampling interval, in which all replicas read together, has had no reading yet."""
        return self.slot != self._slot(wall)

    def next_in(self, wall: float) -> float:
        """Seconds until the next sampling interval begins."""
        return (self._slot(wall) + 1) * self.settings.rule.interval_s - wall

    def begin(self, wall: float) -> None:
        """Note that this interval's reading has begun."""
        self.slot = self._slot(wall)

    def _slot(self, wall: float) -> int:
        return int(wall // self.settings.rule.interval_s)

    def replaced(self, asked_at: float) -> bool:
        """Whether KEDA no longer asks for it, as after an edit: it has asked for what stands in its place at ``asked_at``."""
        return not self.streams and asked_at - self.asked_at > REPLACED_S

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
            return self._answer(self._window.read, now)

    def is_active(self, now: float) -> bool:
        """Whether the group has work. Raises :class:`ScalerError` like :meth:`read`, but not while the window is short."""
        with self._lock:
            return self._answer(self._window.active, now)

    def _answer(self, ask: Callable[[float], Value], now: float) -> Value:
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


Key = tuple[str, str, frozenset[tuple[str, str]]]


class Full(Exception):
    """The request is for one more ScaledObject than this process may serve."""


class Sampling(Protocol):
    """A thread that samples one cluster."""

    def wake(self) -> None:
        """Check at once whether a reading is due."""

    def stop(self) -> None:
        """End after the reading in progress."""

    def is_alive(self) -> bool:
        """Whether the thread still runs."""


class Registry:
    """States by namespace, name and metadata: ``limit`` at most, forgotten ``forget_s`` after KEDA asked for the last time.

    Only ``clusters`` may be named; any may where there are none.
    """

    def __init__(
        self, limit: int, forget_s: float, clock: Callable[[], float] = time.monotonic, clusters: Collection[str] = ()
    ) -> None:
        self.clock = clock
        self._limit, self._forget_s, self._clusters = limit, forget_s, clusters
        self._states: dict[Key, State] = {}
        self._samplers: dict[str, Sampling] = {}
        self._start: Callable[[str], Sampling] | None = None
        self._lock = threading.Lock()

    def sampled_by(self, start: Callable[[str], Sampling]) -> None:
        """Have ``start`` begin the sampling of a cluster when its first trigger becomes known."""
        self._start = start

    def state(self, namespace: str, name: str, metadata: Mapping[str, str]) -> State:
        """The state of a trigger, new when it is not known. Raises :class:`InputError` for bad metadata, or :class:`Full`."""
        key = namespace, name, frozenset(metadata.items())
        found = self._states.get(key)
        if found is not None:
            found.asked_at = self.clock()
            return found
        where = f"ScaledObject {namespace}/{name}"
        made = State(parse(metadata, where, resolved=True), self.clock())
        servers = made.settings.source.servers
        if self._clusters and servers not in self._clusters:
            raise InputError(where, "metadata.bootstrapServers", servers, f"of --clusters: {' '.join(sorted(self._clusters))}")
        with self._lock:
            for (space, other, _), state in self._states.items():
                if (space, other) == (namespace, name) and state.settings.source == made.settings.source:
                    made.adopt(state)
            self._make_room(namespace, name)
            self._states[key] = made
            if self._start is not None:
                sampler = self._samplers.get(servers)
                if sampler is None or not sampler.is_alive():
                    self._samplers[servers] = self._start(servers)
                else:
                    sampler.wake()
        return made

    def _make_room(self, space: str, name: str) -> None:
        """At the limit drop a trigger that another of its ScaledObject replaced, the one asked longest ago.

        No other is dropped: it may be asked again, and would have to be seen anew. Raises :class:`Full` where there is none.
        """
        if len(self._states) < self._limit:
            return
        asked = {(space, name): self.clock()}
        for key, state in self._states.items():
            asked[key[:2]] = max(asked.get(key[:2], state.asked_at), state.asked_at)
        replaced = [key for key, state in self._states.items() if state.replaced(asked[key[:2]])]
        if not replaced:
            raise Full(f"{self._limit} triggers are served already, which is the limit")
        del self._states[min(replaced, key=lambda key: self._states[key].asked_at)]

    def of(self, servers: str) -> list[State]:
        """The states of a cluster, without those that KEDA no longer asks for. With none left its sampler ends."""
        now = self.clock()
        with self._lock:
            for key, state in list(self._states.items()):
                if not state.streams and now - state.asked_at > self._forget_s:
                    del self._states[key]
            left = [state for state in self._states.values() if state.settings.source.servers == servers]
            if not left:
                self._samplers.pop(servers, None)
            return left

    def all(self) -> list[tuple[str, str, State]]:
        """Every state with its ScaledObject's namespace and name."""
        with self._lock:
            return [(namespace, name, state) for (namespace, name, _), state in self._states.items()]

    def healthy(self) -> bool:
        """Whether every cluster in use is being sampled. A Kafka that can't be reached is no fault of the scaler."""
        with self._lock:
            return all(sampler.is_alive() for sampler in self._samplers.values())

    def stop(self) -> None:
        """End all sampling."""
        with self._lock:
            for sampler in self._samplers.values():
                sampler.stop()
