"""The pods that a command simulates: what flags, a workload and records say of them, and what is assumed."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lab import yamlfile
from lab.errors import InputError, report, together
from lab.flags import Kind
from lab.foresee.group import Consumers, Floats
from lab.foresee.in_flight import CLIENTS_COMMIT_S, InFlight
from lab.foresee.situation import START_S
from lab.foresee.usage import Footprint
from lab.inputs import scale as scales
from lab.inputs import topics
from lab.inputs import workload as workloads
from lab.inputs.keys import ENTITIES, shares
from lab.inputs.profile import Profile
from lab.inputs.scale import Scale
from lab.inputs.scaledobject import ScaledObject
from lab.inputs.triggers.resource import CPU, Resource
from lab.inputs.workload import PACE, PARTITIONS, Workload
from lab.yamltext import Document

if TYPE_CHECKING:  # pandas and pyarrow are most of what a command imports, and only a record needs them
    from lab.measure.calibration import Calibration
    from lab.record.store import Record

MOST_PARTITIONS = 100_000
COST = {"cpu_request_m": "millicores that a pod requests", "burn": "percent of process_ms that it computes"}
TIMES = tuple(field.name for field in fields(Consumers) if field.name.endswith("_s"))


@dataclass(frozen=True)
class Pods:
    """The ``consumers``; the partitions, topics and entities that events are spread over; why so much is in flight.

    ``sizes`` are the partitions of each topic, () for as many on each. ``traffic`` is each topic's part of the traffic, () for
    as much on each partition. ``swing`` is what is in flight at least and at most, s; None where no commit interval tells it.
    ``assumed`` has a line where partitions or pace are a default.
    """

    consumers: Consumers
    partitions: int
    topics: int
    entities: int
    in_flight: str
    sizes: tuple[int, ...] = ()
    traffic: tuple[float, ...] = ()
    swing: tuple[float, float] | None = None
    assumed: tuple[str, ...] = ()

    def shares(self, profile: Profile, seed: int) -> Floats:
        """The part of each partition of the traffic of ``profile``."""
        if not self.sizes and not self.traffic:
            return shares(profile, seed, self.partitions, self.entities)
        sizes = self.sizes or (self.partitions // self.topics,) * self.topics
        parts = self.traffic or sizes
        each = [part * shares(profile, seed, size, self.entities) for part, size in zip(parts, sizes, strict=True)]
        return np.concatenate(each) / sum(parts)


def by_topic(one: Kind) -> Kind:
    """A value of the kind ``one``, or a value for each topic."""

    def convert(text: str) -> tuple[Any, ...]:
        values = tuple(one(part) for part in text.split(","))
        if len(values) > topics.MOST:
            raise ValueError(text)
        return values

    return Kind(convert, f"{one.allowed}, or for each topic, as 12,4,4")


def read(
    options: argparse.Namespace, scaled: ScaledObject, scale: Scale, records: Sequence[Record], measured: Calibration | None
) -> Pods:
    """The pods of ``scaled`` in a trial at ``scale``, whose times are as seen there. Raises :class:`InputError` for what is
    missing.

    A flag wins over the workload, the workload over records and defaults. What records measure wins over a workload's times;
    but what a scale divides, they tell for their own scale alone: at another one pods start and commit as is declared.
    """
    asked: dict[str, Any] = {}
    spread = {"partitions": PARTITIONS, "topics": 1, "entities": ENTITIES}
    defaults: dict[str, object] = {"partitions": PARTITIONS}
    flying = InFlight(CLIENTS_COMMIT_S / scale.time)
    by = f"a commit every {CLIENTS_COMMIT_S:g} s, the default of Kafka's clients"
    alike = all(record.scale.time == scale.time for record in records)
    real = scale.name == scales.REAL

    def take(workload: Workload, rate: float, partitions: int, footprint: Footprint) -> None:
        nonlocal flying, by
        flying, by = InFlight.of(workload, scale.time), f"commit_interval_ms {workload.commit_interval_ms} and a poll's work"
        asked.update(rate=rate, balancer=workload.balancer, footprint=footprint)
        spread.update(partitions=partitions, topics=workload.topics, entities=workload.entities)

    if records and len({record.inputs.pod_rate for record in records}) == 1:
        first = records[0].inputs
        defaults = {}
        take(first.workload, first.pod_rate, first.partitions, Footprint.of(first.workload))
    if options.workload is not None:
        written = yamlfile.document(options.workload)
        file = workloads.parse(written)
        workload, partitions = file.workload, file.partitions
        values = {"partitions": partitions} | {name: getattr(workload, name) for name in PACE}
        defaults = {name: value for name, value in values.items() if name not in written.content}
        _require_cost(written, scaled)
        if workload.store_slots:
            allowed = "0: a store that pods share is not simulated"
            raise InputError(written.where, "store_slots", workload.store_slots, allowed)
        theirs = real and not records  # else it is a trial's pods that are simulated
        take(workload, workload.rate, partitions, Footprint.of_theirs(workload) if theirs else Footprint.of(workload))
        before = 0.0 if real else START_S
        if (workload.start_s or file.starts) and not measured:
            asked["start_s"] = before + workload.start_at(scale.time)
            asked["starts"] = file.starts and file.starts.compressed(scale.time, before)
        asked["nodes"] = file.nodes and file.nodes.compressed(scale.time)
    for name, field in (("pod_rate", "rate"), ("balancer", "balancer"), *((field, field) for field in TIMES)):
        if (value := getattr(options, name)) is not None:
            asked[field] = value
    if options.start_s is not None:
        asked["starts"] = None
    if "rate" not in asked:
        allowed = "messages/s a pod processes, or a --workload, or a --calibrate of one workload"
        report(InputError("command line", "--pod-rate", None, allowed))
        asked["rate"] = 1.0
    sizes = _spread(options, spread)
    weights: tuple[float, ...] = options.topic_traffic or ()
    if weights and (len(weights) != spread["topics"] or not sum(weights)):
        allowed = f"one number for each of {spread['topics']} topics, not all 0"
        raise InputError("command line", "--topic-traffic", weights, allowed)
    spread_over = (spread["partitions"], spread["topics"], spread["entities"])
    swing: tuple[float, float] | None = None
    if options.in_flight_s is not None:
        told = "as given"
    elif measured and alike:
        told = "as measured"
    else:
        told, swing = f"{flying.least_s:.3g} to {flying.most_s:.3g} s by {by}", (flying.least_s, flying.most_s)
        asked["in_flight_s"] = flying.mean_s
    if measured and not alike and "start_s" not in asked:
        work = records[0].inputs.workload
        more = work.start_at(scale.time) - work.start_at(records[0].scale.time)
        asked["start_s"] = max(0.0, measured.consumers.start_s + more)
    assumed = _assumed(options, defaults)
    if measured:
        return Pods(replace(measured.consumers, **asked), *spread_over, told, sizes, weights, swing, assumed)
    if "start_s" not in asked:
        allowed = "0 to 3600 s from a decision until a new pod joins the group, start_s in a --workload, or a --calibrate"
        raise InputError("command line", "--start-s", None, allowed)
    return Pods(Consumers(**asked), *spread_over, told, sizes, weights, swing, assumed)


def _assumed(options: argparse.Namespace, defaults: dict[str, object]) -> tuple[str, ...]:
    """A line on the ``defaults`` that no flag replaces; none where all are replaced."""
    replaced = {"partitions": options.partitions, **dict.fromkeys(PACE, options.pod_rate)}
    left = [f"{name} {value}" for name, value in defaults.items() if replaced[name] is None]
    return (f"assumed, as neither a flag nor a file says otherwise: {', '.join(left)}",) if left else ()


def _spread(options: argparse.Namespace, spread: dict[str, int]) -> tuple[int, ...]:
    """Put the flags' partitions and topics into ``spread``. Returns the partitions of each topic, () for as many on each."""
    sizes: tuple[int, ...] = options.partitions or ()
    if sizes:
        spread["partitions"] = sum(sizes)
    if sum(sizes) > MOST_PARTITIONS:
        raise InputError("command line", "--partitions", sum(sizes), f"at most {MOST_PARTITIONS:,} on all topics")
    if len(sizes) > 1:
        spread["topics"] = len(sizes)
    if options.topics is not None:
        spread["topics"] = options.topics
    if len(sizes) > 1 and spread["topics"] != len(sizes):
        raise InputError("command line", "--topics", options.topics, f"{len(sizes)}, for as many --partitions are told")
    if len(sizes) > 1:
        return sizes
    topics.check(spread["topics"], spread["partitions"], "command line")
    return ()


def _require_cost(written: Document, scaled: ScaledObject) -> None:
    """Raise :class:`InputError` where a cpu trigger looks at pods of which the workload does not say what they use of what."""
    if any(isinstance(one, Resource) and one.resource == CPU for one in scaled.triggers):
        with together():
            for name, meaning in COST.items():
                if name not in written.content:
                    report(InputError(written.where, name, None, f"{meaning}, which the cpu trigger looks at"))
