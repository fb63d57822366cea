"""The pods that a command simulates: what flags, a workload and records say of them, and what is assumed."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from lab import yamlfile
from lab.errors import InputError
from lab.foresee.group import Consumers
from lab.foresee.in_flight import CLIENTS_COMMIT_S, InFlight
from lab.foresee.situation import START_S
from lab.foresee.usage import Footprint
from lab.inputs import scale as scales
from lab.inputs import topics
from lab.inputs import workload as workloads
from lab.inputs.keys import ENTITIES
from lab.inputs.scale import Scale
from lab.inputs.scaledobject import ScaledObject
from lab.inputs.triggers.resource import CPU, Resource
from lab.inputs.workload import PARTITIONS, Workload

if TYPE_CHECKING:  # pandas and pyarrow are most of what a command imports, and only a record needs them
    from lab.measure.calibration import Calibration
    from lab.record.store import Record

TIMES = tuple(field.name for field in fields(Consumers) if field.name.endswith("_s"))


@dataclass(frozen=True)
class Pods:
    """The ``consumers``; the partitions, topics and entities that events are spread over; why so much is in flight."""

    consumers: Consumers
    partitions: int
    topics: int
    entities: int
    in_flight: str


def read(options: argparse.Namespace, scale: Scale, records: Sequence[Record], measured: Calibration | None) -> Pods:
    """The pods of a trial at ``scale``, whose times are as seen there. Raises :class:`InputError` for what is missing.

    A flag wins over the workload, the workload over records and defaults. What records measure wins over a workload's times.
    """
    asked: dict[str, Any] = {}
    spread = {"partitions": PARTITIONS, "topics": 1, "entities": ENTITIES}
    flying, by = InFlight(CLIENTS_COMMIT_S), f"a commit every {CLIENTS_COMMIT_S:g} s, the default of Kafka's clients,"
    real = scale.name == scales.REAL

    def take(workload: Workload, rate: float, partitions: int, footprint: Footprint) -> None:
        asked.update(rate=rate, balancer=workload.balancer, footprint=footprint)
        spread.update(partitions=partitions, topics=workload.topics, entities=workload.entities)

    if records and len({record.inputs.pod_rate for record in records}) == 1:
        first = records[0].inputs
        take(first.workload, first.pod_rate, first.partitions, Footprint.of(first.workload))
    if options.workload is not None:
        workload, partitions = workloads.load(options.workload)
        if workload.store_slots:
            allowed = "0: a store that pods share is not simulated"
            raise InputError(options.workload, "store_slots", workload.store_slots, allowed)
        theirs = real and not records  # else it is a trial's pods that are simulated
        take(workload, workload.rate, partitions, Footprint.of_theirs(workload) if theirs else Footprint.of(workload))
        flying, by = InFlight.of(workload, scale.time), f"commit_interval_ms {workload.commit_interval_ms} and a poll's work"
        if workload.start_s and not measured:
            asked["start_s"] = workload.start_s if real else START_S + workload.start_s / scale.time
    for name, field in (("pod_rate", "rate"), ("balancer", "balancer"), *((field, field) for field in TIMES)):
        if (value := getattr(options, name)) is not None:
            asked[field] = value
    if "rate" not in asked:
        allowed = "messages/s a pod processes, or a --workload, or a --calibrate of one workload"
        raise InputError("command line", "--pod-rate", None, allowed)
    spread |= {name: value for name in ("partitions", "topics") if (value := getattr(options, name)) is not None}
    topics.check(spread["topics"], spread["partitions"], "command line")
    told = f"{by} leave {flying.least_s:.3g} to {flying.most_s:.3g} s"
    if measured or options.in_flight_s is not None:
        told = "as measured" if options.in_flight_s is None else "as given"
    if measured:
        return Pods(replace(measured.consumers, **asked), spread["partitions"], spread["topics"], spread["entities"], told)
    if "start_s" not in asked:
        allowed = "0 to 3600 s from a decision until a new pod joins the group, start_s in a --workload, or a --calibrate"
        raise InputError("command line", "--start-s", None, allowed)
    asked.setdefault("in_flight_s", flying.mean_s)
    return Pods(Consumers(**asked), spread["partitions"], spread["topics"], spread["entities"], told)


def require_cost(options: argparse.Namespace, scaled: ScaledObject) -> None:
    """Raise :class:`InputError` where a cpu trigger looks at pods whose ``--workload`` does not say what they use of what."""
    if options.workload is None or not any(isinstance(one, Resource) and one.resource == CPU for one in scaled.triggers):
        return
    written = yamlfile.read(options.workload)
    if missing := [name for name in ("cpu_request_m", "burn") if name not in written]:
        allowed = (
            "what the cpu trigger looks at: millicores that a pod requests, and the percent of process_ms that it computes"
        )
        raise InputError(options.workload, " and ".join(missing), None, allowed)
