"""What a trial needs, before it runs: events, disk, memory, cores, time, and the peak of its backlog as simulated. Pure.

The constants are measured on one machine (docs/decisions/22): enough to tell a trial that fits from one that does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from lab.errors import InputError
from lab.foresee.curve import Curve
from lab.foresee.group import Consumers
from lab.foresee.in_flight import InFlight
from lab.foresee.simulate import simulate
from lab.foresee.situation import START_S, Situation, controller_of
from lab.foresee.usage import CONSUMED, MIB, PROGRAMS, Footprint
from lab.host.resources import LOG_BYTES, needed_bytes
from lab.inputs import anchor
from lab.inputs.inputs import DRAINED, Inputs
from lab.inputs.keys import shares
from lab.inputs.profile import Step
from lab.inputs.scale import METRIC_RESOLUTION_S
from lab.inputs.scaledobject import ScaledObject

SETTLE_S, CLOSE_S = 30.0, 60.0  # the baseline settles; a record is closed but for its ledger
LEDGER_RATE = 80_000.0  # events/s that Spark settles on two cores
# CPU of a message, s: in the producer (docs/decisions/21), and in the broker, which takes it or gives it (an estimate of
# large fetches: 0.4 cores at 97,000 messages/s in and 74,000 out).
PRODUCED, BROKERED = 5.4e-6, 2.3e-6
BASE_CORES = 0.5  # Kubernetes, KEDA, Prometheus and the recorder
SPARE = 0.8  # of a machine's cores: beyond it what is measured may be the queue for them
# Resident memory: control plane, KEDA, Prometheus, exporters and session; the broker with its heap; producer.
BASE_MEMORY, BROKER_MEMORY, PRODUCER_MEMORY = 1_400 * MIB, 900 * MIB, 350 * MIB
LEDGER_MEMORY = 2_500 * MIB  # the least with which Spark settles; the pods are gone by then
# A compressed event in a batch of n takes FIXED + what is random in it + (SHARED - that) / n: lz4 on batches of the producer's
# events with Zipf keys, n from 3 to 260, to 4 %. A receipt's share comes to it.
FIXED, SHARED, RECEIPT = 25.0, 330.0, 7.0
TICK_S = 0.005  # in which the producer hands over what is due
SCRATCH_BYTES = 24  # an event, while the ledger is settled: what Spark's batches hold on disk


@dataclass(frozen=True)
class Estimate:
    """What a trial needs at most: bytes, cores, s; simulated ``peak_lag`` (messages), ``drain_s`` of the last phase."""

    events: int
    log_bytes: int
    record_bytes: int
    scratch_bytes: int
    memory_bytes: int
    cores: float
    wall_s: float
    peak_rate: float  # events/s
    peak_lag: float | None
    drain_s: float | None

    @property
    def disk_bytes(self) -> int:
        """All that is on disk at the same time: the topics, the record, and what the ledger needs meanwhile."""
        return self.log_bytes + self.record_bytes + self.scratch_bytes


def estimate(inputs: Inputs) -> Estimate:
    """What a trial of ``inputs`` needs."""
    events, curve = inputs.profile.total, _curve(inputs)
    begin = inputs.profile.phases()[-1][0]
    back = None if curve is None else curve.back_at(0, begin)
    end = inputs.profile.duration if curve is None else _end(inputs, curve)
    wait = anchor.lead_s(inputs.scale) + anchor.MINUTE_S if inputs.windows else 0.0  # at most, for its time of day
    for_log, for_record = needed_bytes(events, log_bytes(inputs))
    pods = inputs.policy.max_replicas * PROGRAMS[inputs.workload.client].at_most
    running = BASE_MEMORY + BROKER_MEMORY + PRODUCER_MEMORY + pods
    return Estimate(
        events=events,
        log_bytes=for_log,
        record_bytes=for_record,
        scratch_bytes=SCRATCH_BYTES * events,
        memory_bytes=max(running, BASE_MEMORY + BROKER_MEMORY + LEDGER_MEMORY),
        cores=_cores(inputs, curve),
        wall_s=SETTLE_S + wait + inputs.workload.start_s / inputs.scale.time + end + CLOSE_S + events / LEDGER_RATE,
        peak_rate=max(step.rate for step in inputs.profile.steps),
        peak_lag=None if curve is None else curve.peak_lag,
        drain_s=None if back is None else back - begin,
    )


def log_bytes(inputs: Inputs) -> float:
    """The bytes that an event and its share of a receipt take in the broker's log, on average over the profile."""
    workload, profile = inputs.workload, inputs.profile
    if workload.compression == "none" or not profile.total:
        return LOG_BYTES
    own, each = workload.random_bytes, (TICK_S + workload.linger_ms / 1000) / inputs.partitions
    taken = 0.0
    for step, end in zip(profile.steps, [*(one.at for one in profile.steps[1:]), profile.duration], strict=True):
        taken += step.rate * (end - step.at) * (FIXED + own + RECEIPT + (SHARED - own) / max(1.0, step.rate * each))
    return taken / profile.total


def shortage(needed: Estimate, cores: int, memory: int, disk: Mapping[str, int]) -> str | None:
    """One line for the first that is short: bytes of ``disk`` by place, of ``memory``, or ``cores``; None if all fits."""
    for name, free in disk.items():
        if needed.disk_bytes > free:
            return f"disk {name}: {needed.disk_bytes:,} bytes are needed for {needed.events:,} events, {free:,} are free"
    if needed.memory_bytes > memory:
        return f"memory: {needed.memory_bytes / MIB:,.0f} MiB are needed, {memory / MIB:,.0f} MiB are available"
    if needed.cores > cores:
        return f"cores: {needed.cores:.2f} are needed at {needed.peak_rate:,.0f} events/s, there are {cores}"
    return None


def _curve(inputs: Inputs) -> Curve | None:
    """The trial simulated, with no traffic after its profile; None where its policy, or a shared store, can't be."""
    if not isinstance(inputs.policy, ScaledObject) or inputs.workload.store_slots:
        return None
    scale, workload = inputs.scale, inputs.workload
    policy, profile = anchor.as_trial(inputs.policy, inputs.profile, scale.time)
    after = Step(profile.duration, 0.0, "after") if inputs.until == DRAINED else None
    whole = replace(profile, steps=(*profile.steps, after), duration=2 * profile.duration) if after else profile
    start_s = START_S + workload.start_s / scale.time
    situation = Situation(
        whole,
        shares(profile, inputs.seed, inputs.partitions, workload.entities),
        Consumers(
            inputs.pod_rate,
            start_s,
            workload.balancer,
            in_flight_s=InFlight.of(workload, scale.time).mean_s,
            footprint=Footprint.of(workload),
        ),
        sync_s=scale.hpa_sync_s,
        controller=controller_of(scale),
        metrics_s=METRIC_RESOLUTION_S,
        topics=workload.topics,
    )
    try:
        return simulate(situation, policy)
    except InputError:
        return None


def _end(inputs: Inputs, curve: Curve) -> float:
    """When the trial ends: its profile is through and, where it waits for that, no lag is left and the floor is reached."""
    if inputs.until != DRAINED:
        return inputs.profile.duration
    over = (curve.t >= inputs.profile.duration) & (curve.lag <= 0) & (curve.replicas <= inputs.policy.min_replicas)
    return float(curve.t[over][0]) if over.any() else float(curve.t[-1])


def _cores(inputs: Inputs, curve: Curve | None) -> float:
    """The most cores that are busy at a time: a group serves what arrives and does not add to its lag. A policy that is not
    simulated has all its pods at work at the highest rate."""
    policy, work, steps = inputs.policy, inputs.workload, inputs.profile.steps
    pods = min(policy.max_replicas, inputs.partitions)
    rates = np.array([step.rate for step in steps])
    if curve is None:
        arriving, working = np.array([rates.max()]), np.array([policy.max_replicas])
        served = np.minimum(arriving, pods * inputs.pod_rate)
    else:
        length = np.diff(curve.t)
        there = (length > 0) & (curve.t[1:] <= inputs.profile.duration)
        working = curve.working[:-1][there]
        arriving = rates[np.searchsorted([step.at for step in steps], curve.t[:-1][there], side="right") - 1]
        more = np.diff(curve.lag)[there] / length[there]
        served = np.clip(arriving - more, 0, np.minimum(working, pods) * inputs.pod_rate)
    taken = arriving * (PRODUCED + BROKERED) + served * (CONSUMED + BROKERED) + working * PROGRAMS[work.client].at_work
    burnt = pods * min(1.0, work.concurrency * inputs.scale.rate * work.burn / 100)
    return BASE_CORES + float(taken.max(initial=0.0)) + burnt
