"""Samples one Kafka cluster: one thread, one process with an admin connection, and all that is due in one reading."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence

from confluent_kafka import KafkaException

from lab.kafka.lag import BATCH, Answer, GroupsProcess
from lab.programs.lagscaler.registry import Registry, State

log = logging.getLogger("lab.programs.lagscaler")
LONGEST_WAIT_S = 60.0
SPREAD, LONGEST_PAUSE_S = 0.5, 0.1  # the pauses of a reading: at most this share of the interval in all, and each this long


class Sampler(threading.Thread):
    """Reads all that is due until it is stopped, or until KEDA asks for nothing of its cluster any more.

    ``sampled`` gets after every reading its length without pauses (s), and how many triggers were read, failed, and were new.
    """

    def __init__(
        self,
        servers: str,
        registry: Registry,
        connect: Callable[[str], GroupsProcess],
        sampled: Callable[[float, int, int, int], None],
        wall: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(name=f"sampler {servers}", daemon=True)
        self._servers, self._registry, self._connect = servers, registry, connect
        self._sampled, self._wall = sampled, wall
        self._reader: GroupsProcess | None = None
        self._ending = False
        self._woken = threading.Event()
        self._said = ""

    def wake(self) -> None:
        """Check at once whether a reading is due."""
        self._woken.set()

    def stop(self) -> None:
        """End after the reading in progress."""
        self._ending = True
        self._woken.set()

    def run(self) -> None:
        """Read what is due now, and then whenever something is due."""
        try:
            self._read_what_is_due()
        finally:
            self._disconnect()

    def _read_what_is_due(self) -> None:
        while not self._ending:
            states = self._registry.of(self._servers)
            if not states:
                return
            due = [state for state in states if state.due(self._wall())]
            if due:
                self.sample(due, min(state.settings.rule.interval_s for state in states))
            wall = self._wall()
            self._woken.wait(min(LONGEST_WAIT_S, *(state.next_in(wall) for state in states)))
            self._woken.clear()

    def sample(self, due: Sequence[State], interval_s: float) -> None:
        """One reading for all of ``due``, spread over a part of ``interval_s`` unless one is new. A state keeps its failure.

        It is the shortest interval on the cluster: a state that is due before the end waits until then.
        """
        begun, wall = self._registry.clock(), self._wall()
        waiting: dict[tuple[str, str], list[State]] = {}
        starts = set()
        for state in due:
            state.begin(wall)
            source = state.settings.source
            waiting.setdefault((source.group, source.topic), []).append(state)
            if source.offset_reset == "earliest":
                starts.add((source.group, source.topic))
        pause = min(LONGEST_PAUSE_S, SPREAD * interval_s * BATCH / len(waiting))
        new = sum(not state.tried for state in due)
        hurried = new > 0
        failed, took = 0, 0.0
        try:
            if self._reader is None:
                self._reader = self._connect(self._servers)
            answers = self._reader.read(list(waiting), starts)
            while waiting:
                begun = self._registry.clock()
                for pair, answer in next(answers).items():
                    failed += self._give(waiting[pair], answer, begun)
                    del waiting[pair]
                took += self._registry.clock() - begun
                if waiting and not hurried:
                    hurried = self._woken.wait(pause)
        except KafkaException as error:
            took += self._registry.clock() - begun
            failed += self._fault(f"Kafka at {self._servers}: {error.args[0].str()}", waiting)
        except Exception as error:  # an unforeseen error costs this reading, and never the next ones
            self._disconnect()
            failed += self._fault(f"the reading of Kafka at {self._servers} failed: {error!r}", waiting, error)
        else:
            self._say("")
        self._sampled(took, len(due), failed, new)

    def _disconnect(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    @staticmethod
    def _give(states: Sequence[State], answer: Answer | KafkaException, at: float) -> int:
        """Give the states the answer to the question of ``at``; returns how many have no sample from it."""
        for state in states:
            if isinstance(answer, KafkaException):
                state.fail(answer.args[0].str())
            else:
                state.take(at, answer)
        return len(states) if isinstance(answer, KafkaException) else 0

    def _fault(self, reason: str, waiting: Mapping[tuple[str, str], Sequence[State]], bug: Exception | None = None) -> int:
        """Give the waiting states the reason; returns how many they are."""
        left = [state for states in waiting.values() for state in states]
        for state in left:
            state.fail(reason)
        self._say(reason, bug)
        return len(left)

    def _say(self, fault: str, bug: Exception | None = None) -> None:
        """Log a fault of the whole cluster when it begins and when it ends; for a ``bug`` log its traceback too."""
        if fault != self._said:
            log.warning("%s", fault or f"Kafka at {self._servers} answers again", exc_info=bug)
            self._said = fault
