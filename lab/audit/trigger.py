"""A trigger as KEDA reads it, wrong parts and all: what can't be read has its default. Pure.

Lag is in messages. Names and defaults are those of KEDA 2.21 (``pkg/scalers/kafka_scaler.go`` and ``scaletriggers_types.go``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from lab.audit.objects import Path, mapping, text
from lab.inputs.triggers.kafka import APACHE, KAFKA
from lab.inputs.triggers.metadata import MOST, TRUE

_WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,18})")  # as KEDA reads it, by way of JSON
_RANGE = re.compile(r"\s*(\d{1,7})\s*(?:-\s*(\d{1,7})\s*)?")


@dataclass(frozen=True, eq=False)
class Trigger:
    """One trigger of a ScaledObject."""

    index: int
    content: Mapping[str, Any]

    def path(self, *parts: str) -> Path:
        """The path of a field of it."""
        return ("spec", "triggers", self.index, *parts)

    @cached_property
    def type(self) -> str:
        """Its type; "" where none is written."""
        return text(self.content.get("type"))

    @cached_property
    def name(self) -> str:
        """Its name, by which a formula knows it."""
        return text(self.content.get("name"))

    @cached_property
    def written(self) -> Mapping[str, Any]:
        """Its metadata as it is written."""
        return {str(key): value for key, value in mapping(self.content.get("metadata")).items()}

    @cached_property
    def metadata(self) -> Mapping[str, str]:
        """The strings of its metadata; one that is blank counts as absent."""
        return {key: value.strip() for key, value in self.written.items() if isinstance(value, str) and value.strip()}

    @property
    def on_lag(self) -> bool:
        """Whether KEDA counts the lag of a consumer group for it."""
        return self.type in (KAFKA, APACHE)

    @property
    def of_group(self) -> bool:
        """Whether its author meant a consumer group."""
        return self.on_lag or (not self.type and "consumerGroup" in self.written)

    @property
    def capped(self) -> bool:
        """Whether its metric ends at the partitions that it counts. Source: ``kafkaScaler.getTotalLag``."""
        return self.on_lag and not (self.flag("allowIdleConsumers") and not self.limited and not self.even)

    @property
    def bounds_replicas(self) -> bool:
        """Whether that end is one of the replicas too. A Value's ratio multiplies the ready pods at each sync."""
        return self.capped and self.metric_type != "Value"

    @property
    def limited(self) -> bool:
        """Whether only partitions with lag count for the cap."""
        return self.flag("limitToPartitionsWithLag")

    @property
    def even(self) -> bool:
        """Whether it asks for factors of the partitions alone."""
        return self.flag("ensureEvenDistributionOfPartitions")

    @property
    def cached(self) -> bool:
        """Whether the HPA gets the value of the last poll."""
        return self.content.get("useCachedMetrics") is True

    @property
    def metric_type(self) -> str:
        """The type of its metric's target; "" where none is written."""
        return text(self.content.get("metricType"))

    @property
    def threshold(self) -> int:
        """The lag that the HPA wants per replica, messages."""
        found = self.number("lagThreshold", 10)
        return found if found > 0 else 10

    @property
    def activation(self) -> int:
        """The lag above which it is active, messages."""
        return self.number("activationLagThreshold", 0)

    def number(self, field: str, default: int) -> int:
        """The whole number in ``field``."""
        given = self.metadata.get(field, "")
        return int(given) if _WHOLE.fullmatch(given) and -MOST <= int(given) <= MOST else default

    def flag(self, field: str) -> bool:
        """Whether ``field`` says true."""
        return self.metadata.get(field) in TRUE

    def counted(self, partitions: int) -> int:
        """How many of a topic's ``partitions`` it counts: all without a topic, whatever its limitation says.

        Source: ``kafkaMetadata.Validate``, ``parsePartitionLimitation`` and ``isActivePartition``.
        """
        if not self.limitation:
            return partitions
        chosen: set[int] = set()
        for part in self.limitation.split(","):
            if found := _RANGE.fullmatch(part):
                chosen.update(range(int(found[1]), min(int(found[2] or found[1]), partitions - 1) + 1))
        return len(chosen)

    @property
    def limitation(self) -> str:
        """Its partitionLimitation; "" without a topic, where KEDA looks at none."""
        topic = self.metadata.get("topic") or self.metadata.get("topicFromEnv")
        return self.metadata.get("partitionLimitation", "") if topic else ""

    @property
    def limitation_fits(self) -> bool:
        """Whether partitionLimitation is a list of partitions and ranges."""
        return all(_RANGE.fullmatch(part) for part in self.metadata.get("partitionLimitation", "").split(","))
