"""The triggers that the scaler knows: one state each, found by KEDA's request, sampled by one thread per Kafka cluster."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from lab.errors import InputError
from lab.programs.lagscaler.state import State
from lab.spec.triggers.persistent_lag import parse

Key = tuple[str, str, frozenset[tuple[str, str]]]


class Full(Exception):
    """The request is for one more ScaledObject than this process may serve."""


class Sampling(Protocol):
    """A thread that samples one cluster."""

    def wake(self) -> None:
        """Check at once whether a reading is due."""

    def stop(self) -> None:
        """End after the reading in progress."""

    def alive(self) -> bool:
        """Whether the thread still runs."""


class Registry:
    """States by namespace, name and metadata; bounded by ``limit``, and forgotten ``forget_s`` after KEDA's last question.

    Only the clusters in ``clusters`` are allowed; if it is empty, every cluster is.
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
            if len(self._states) >= self._limit:
                raise Full(f"{self._limit} triggers are served already, which is the limit")
            for (space, other, _), state in self._states.items():
                if (space, other) == (namespace, name) and state.settings.source == made.settings.source:
                    made.adopt(state)
            self._states[key] = made
            if self._start is not None:
                sampler = self._samplers.get(servers)
                if sampler is None or not sampler.alive():
                    self._samplers[servers] = self._start(servers)
                else:
                    sampler.wake()
        return made

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
            return all(sampler.alive() for sampler in self._samplers.values())

    def stop(self) -> None:
        """End all sampling."""
        with self._lock:
            for sampler in self._samplers.values():
                sampler.stop()
