"""Consumer-group lag as KEDA's kafka trigger counts it, by partition and in total, and the cap on the total.

Offsets and lags are messages. ``excludePersistentLag`` compares with the offsets of the previous call, of the poll loop or of
the HPA: they go in and come out, and nothing is kept here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lab.inputs.triggers.common import Reading, ScalerError, exposed
from lab.inputs.triggers.kafka import Kafka

Offsets = Mapping[tuple[str, int], int]


@dataclass(frozen=True)
class Partition:
    """The brokers' answer for one partition; None is no answer, or nothing committed. ``error`` is the coordinator's."""

    end: int | None
    committed: int | None
    start: int | None = None
    error: str = ""


@dataclass(frozen=True)
class PartitionLag:
    """Lag that scales, lag that activates, the offset the next call compares with (None: unchanged), and why."""

    scaling: int
    activation: int
    remembered: int | None
    reason: str


@dataclass(frozen=True)
class LagReading(Reading):
    """A :class:`Reading` with its parts: the total before the cap, partitions, and the state for the next call."""

    lag: int
    partitions: int
    previous: Offsets


def of_partition(trigger: Kafka, partition: Partition, previous: int | None) -> PartitionLag:
    """The lag of one partition whose committed offset was ``previous`` at the previous call, None for no call. Raises
    :class:`ScalerError` for a partition the coordinator can't answer for. Source: ``kafkaScaler.getLagForPartition``."""
    if partition.error:
        raise ScalerError(partition.error)
    if partition.committed is None and trigger.zero_on_invalid:
        return PartitionLag(0, 0, None, "nothing committed, scaleToZeroOnInvalidOffset: 0")
    if partition.committed is None and trigger.offset_reset == "latest":
        return PartitionLag(1, 1, None, "nothing committed, offsetResetPolicy latest: 1")
    if partition.end is None:
        return PartitionLag(0, 0, None, "no log end in the answer: 0")
    if partition.committed is None:
        # Retention can move the start past an end that was read earlier.
        lag = partition.end if partition.start is None else max(0, partition.end - partition.start)
        log = f"log {'unknown' if partition.start is None else partition.start} to {partition.end}"
        return PartitionLag(lag, lag, None, f"nothing committed, offsetResetPolicy earliest, {log}: {lag}")
    lag = partition.end - partition.committed
    counted = f"{partition.end} - {partition.committed} = {lag}"
    if not trigger.exclude_persistent:
        return PartitionLag(lag, lag, None, counted)
    if previous == partition.committed:
        return PartitionLag(0, lag, None, f"committed {previous} as at the previous call: 0 of {lag}, which still activates")
    return PartitionLag(lag, lag, partition.committed, counted)


def read(trigger: Kafka, topics: Mapping[str, Mapping[int, Partition]], previous: Offsets) -> LagReading:
    """The answer of one call for ``topics``: those of the group, or the trigger's own.

    ``previous`` is the :attr:`LagReading.previous` of the call before, {} at first and after an error. Raises
    :class:`ScalerError` where KEDA's query fails. Partitions whose log end isn't answered count neither as lag nor in the cap.
    Source: ``kafkaScaler.getTopicPartitions``, ``getTotalLag`` and ``GetMetricsAndActivity``.
    """
    remembered = dict(previous)
    scaling = activation = partitions = lagging = held_back = 0
    for topic, every in topics.items():
        chosen = {number: one for number, one in every.items() if trigger.partitions is None or number in trigger.partitions}
        if not chosen:
            raise ScalerError(f"no partition of topic {topic} is within partitionLimitation")
        for number, partition in chosen.items():
            if partition.end is None:
                continue
            lag = of_partition(trigger, partition, previous.get((topic, number)))
            scaling, activation = scaling + lag.scaling, activation + lag.activation
            partitions, lagging = partitions + 1, lagging + (lag.scaling > 0)
            held_back += lag.activation - lag.scaling
            if lag.remembered is not None:
                remembered[topic, number] = lag.remembered
    metric, cap = capped(trigger, scaling, partitions, lagging)
    active = activation > trigger.activation
    persistent = f" (and {held_back} persistent)" if held_back else ""
    return LagReading(
        metric=exposed(float(metric)),
        active=active,
        reasons=(
            f"lag {scaling}{persistent} on {lagging} of {partitions} partitions",
            cap,
            f"{activation} is {'above' if active else 'not above'} activationLagThreshold {trigger.activation}",
        ),
        lag=scaling,
        partitions=partitions,
        previous=remembered,
    )


def capped(trigger: Kafka, lag: int, partitions: int, lagging: int) -> tuple[int, str]:
    """The metric for a total of ``lag``, and why; ``lagging`` of ``partitions`` have lag. Source: ``kafkaScaler.getTotalLag``.

    The division is of whole numbers: between bound * T and (bound + 1) * T no cap acts, and the HPA asks for bound + 1.
    """
    threshold = trigger.lag_threshold
    if trigger.allow_idle and not trigger.limit_to_lagging and not trigger.even:
        return lag, f"allowIdleConsumers: no cap, metric {lag}"
    notes: list[str] = []
    bound, of = partitions, "partitions"
    if trigger.even:
        factor = even_factor(lag, partitions, threshold)
        notes.append(f"{factor} consumers share {partitions} partitions evenly: lag {lag} becomes {factor * threshold}")
        lag = factor * threshold
    if trigger.limit_to_lagging:
        bound, of = lagging, "partitions with lag"
    # Go rounds a negative quotient up and Python down; neither is ever above a bound.
    if lag // threshold > bound:
        notes.append(f"cap: {lag} // {threshold} = {lag // threshold} is above {bound} {of}, metric {bound * threshold}")
        return bound * threshold, "; ".join(notes)
    notes.append(f"no cap: {lag} // {threshold} = {lag // threshold} is not above {bound} {of}, metric {lag}")
    return lag, "; ".join(notes)


def even_factor(lag: int, partitions: int, threshold: int) -> int:
    """The smallest factor f of ``partitions`` with f * ``threshold`` >= ``lag``, else ``partitions``; 1 without lag.

    Source: ``getNextFactorThatBalancesConsumersToTopicPartitions`` and ``FindFactors``.
    """
    factors = (factor for factor in range(1, partitions + 1) if partitions % factor == 0)
    return next((factor for factor in factors if factor * threshold >= lag), partitions)
