"""The scaler's own metrics, and for each ScaledObject its answer and the reason."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import astuple
from typing import Any

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from lab.inputs.triggers.common import ScalerError
from lab.programs.lagscaler.registry import Registry, State


class Metrics:
    """The scaler's work: answers given, readings made."""

    def __init__(self, registry: CollectorRegistry = REGISTRY) -> None:
        self._requests = Histogram(
            "lagscaler_request_seconds",
            "From a question's arrival to its answer",
            ["method", "code"],
            buckets=(0.0001, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.1, 0.5, 1, 2.5),
            registry=registry,
        )
        self._readings = Histogram(
            "lagscaler_reading_seconds",
            "One reading of one Kafka cluster",
            buckets=(0.005, 0.01, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
            registry=registry,
        )
        self._samples = Counter("lagscaler_samples", "Triggers read, by outcome", ["outcome"], registry=registry)

    def answered(self, method: str, code: str, seconds: float) -> None:
        """Count an answer of ``method`` with the gRPC status ``code``."""
        self._requests.labels(method, code).observe(seconds)

    def read(self, seconds: float, triggers: int, failed: int) -> None:
        """Count a reading for ``triggers`` triggers, of which ``failed`` have no sample from it."""
        self._readings.observe(seconds)
        self._samples.labels("taken").inc(triggers - failed)
        self._samples.labels("failed").inc(failed)


class Triggers(Collector):
    """Each trigger's state at the scrape. An unknown value is left out: a gap is a gap and not a zero."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """One family a metric, in the unit of the trigger's threshold."""
        labels = ["namespace", "scaledobject", "metric", "group", "trigger"]
        metric = GaugeMetricFamily("lagscaler_metric", "What KEDA is handed", labels=labels)
        now_there = GaugeMetricFamily("lagscaler_lag", "Lag, or age of the oldest, at the last sample", labels=labels)
        lasting = GaugeMetricFamily("lagscaler_lasting", "What of it has lasted for sustainSeconds", labels=labels)
        stretch = GaugeMetricFamily(
            "lagscaler_stretch_seconds",
            "Longest stretch above the threshold still going on, of any one partition",
            labels=labels,
        )
        every = self._registry.all()
        for labelled, state in _labelled(every):
            now = self._registry.clock()
            stretch.add_metric(labelled, state.stretch(now))
            try:
                read = state.read(now)
            except ScalerError:
                continue
            for family, value in ((metric, read.metric), (now_there, read.now), (lasting, read.sustained)):
                family.add_metric(labelled, value)
        yield from (metric, now_there, lasting, stretch)
        yield GaugeMetricFamily("lagscaler_triggers", "Triggers served", value=len(every))
        yield GaugeMetricFamily("lagscaler_kept_samples", "Samples in memory", value=sum(state.samples for *_, state in every))


def _labelled(every: Iterable[tuple[str, str, State]]) -> Iterator[tuple[list[str], State]]:
    """Each trigger and its labels. KEDA tells no trigger's index, so those that are alike in the others are numbered.

    The least threshold comes first, in every replica of the scaler. What an edit replaced is left out.
    """
    alike: dict[tuple[str, str, str, str], list[State]] = {}
    for namespace, name, state in every:
        alike.setdefault((namespace, name, state.settings.metric, state.settings.source.group), []).append(state)
    for labels, states in alike.items():
        asked_at = max(state.asked_at for state in states)
        left = sorted((state for state in states if not state.replaced(asked_at)), key=_order)
        for number, state in enumerate(left):
            yield [*labels, str(number)], state


def _order(state: State) -> tuple[Any, ...]:
    """By the threshold, then by all else in which triggers that are alike may differ."""
    source = state.settings.source
    return *astuple(state.settings.rule), source.servers, source.offset_reset, sorted(source.partitions or ())
