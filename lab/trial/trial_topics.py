"""The topics of a trial: created, identified, grown and deleted."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import suppress

from lab.cluster.broker import COPIES
from lab.errors import LabFault
from lab.inputs.events import Brokers
from lab.kafka import topics
from lab.kafka.numbering import Numbering
from lab.wait import until

ANSWER_S = 20.0


class TrialTopics:
    """Topics on the brokers at ``bootstrap``, of which those of ``numbering`` have the trial's events; see :meth:`create`.

    ``partitions`` has the number of each topic to create. On brokers of the trial's own, ``brokers``, only its events
    have the replication that the trial declares.
    """

    def __init__(
        self,
        bootstrap: str,
        settings: Mapping[str, str],
        numbering: Numbering,
        partitions: Mapping[str, int],
        brokers: Brokers | None = None,
    ) -> None:
        self._bootstrap, self._settings, self._numbering, self._partitions = bootstrap, settings, numbering, dict(partitions)
        self._growing, self._brokers = threading.Lock(), brokers

    def create(self) -> None:
        """Create them. Raises :class:`LabFault` when Kafka refuses, which may be after some of them."""
        brokers = self._brokers
        if brokers is None:
            topics.create(self._bootstrap, self._partitions, self._settings)
            return
        for name, count in self._partitions.items():
            declared = name in self._numbering.topics
            copies, least = (brokers.replication, brokers.min_insync) if declared else (COPIES, None)
            topics.create(self._bootstrap, {name: count}, self._settings, copies=copies, min_insync=least)

    def first_id(self) -> str:
        """The :meth:`id` right after the creation: of several brokers, one that is asked may not know of it yet."""
        found: list[str] = []

        def known() -> bool:
            with suppress(LabFault):
                found.append(self.id())
            return bool(found)

        until(known, ANSWER_S, "the topic's id", every_s=0.05)
        return found[0]

    def id(self) -> str:
        """The id of the topic of events, or those of several. Raises :class:`LabFault` where Kafka does not know it."""
        return ",".join(topics.identity(self._bootstrap, name, self._settings) for name in self._numbering.topics)

    def grow(self, partitions: int) -> None:
        """Give the topic of events ``partitions`` partitions in all, once. Raises :class:`LabFault` when Kafka refuses."""
        name = self._numbering.topics[0]
        with self._growing:
            if partitions > self._partitions[name]:
                topics.grow(self._bootstrap, name, partitions, self._settings)
                self._partitions[name] = partitions

    def delete(self) -> None:
        """Delete them all."""
        topics.delete(self._bootstrap, list(self._partitions), self._settings)
