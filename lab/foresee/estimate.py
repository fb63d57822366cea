"""What a trial needs, before it runs: events, disk, memory, cores, time, and the peak of its backlog as simulated. Pure.

The constants are measured on one machine (docs/decisions/22): enough to tell a trial that fits from one that does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lab.errors import InputError
from lab.foresee.curve import Curve
from lab.foresee.group import Consumers
from lab.foresee.in_flight import InFlight
from lab.foresee.simulate import simulate
from lab.foresee.situation import START_S, Situation, controller_of
from lab.foresee.usage import BASE_CORES, BROKERED, CONSUMED, MIB, PRODUCED, SPARE, Footprint
from lab.host.resources import LOG_BYTES, needed_bytes
from lab.inputs import anchor
from lab.inputs.clients import DEMANDS, PYTHON, Demand
from lab.inputs.inputs import DRAINED, Inputs
from lab.inputs.keys import shares
from lab.inputs.profile import Step
from lab.inputs.scale import METRIC_RESOLUTION_S
from lab.inputs.scaledobject import ScaledObject
from lab.inputs.steps import ReplicaSteps

SETTLE_S, CLOSE_S = 30.0, 60.0  # the baseline settles; a record is closed but for its ledger
LEDGER_RATE = 80_000.0  # events/s that Spark settles on two cores
TOGETHER_S = 5.0  # of all cores, that the starts of one step may take: an objective gives a group so long to recover
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
    """What a trial needs at most: bytes, cores, s; simulated ``peak_lag`` (messages), ``drain_s`` of the last phase.

    All of it is of a trial at ``scale``; ``peak_rate`` is in events/s.
    """

    scale: str
    events: int
    log_bytes: int
    record_bytes: int
    scratch_bytes: int
    memory_bytes: int
    cores: float
    wall_s: float
    peak_rate: float
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
    pods = inputs.policy.max_replicas * DEMANDS[inputs.workload.client].at_most
    running = BASE_MEMORY + BROKER_MEMORY + PRODUCER_MEMORY + pods
    return Estimate(
        scale=inputs.scale.name,
        events=events,
        log_bytes=for_log,
        record_bytes=for_record,
        scratch_bytes=SCRATCH_BYTES * events,
        memory_bytes=max(running, BASE_MEMORY + BROKER_MEMORY + LEDGER_MEMORY),
        cores=_cores(inputs, curve),
        wall_s=SETTLE_S + wait + _start_s(inputs) + end + CLOSE_S + events / LEDGER_RATE,
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


@dataclass(frozen=True)
class Carried:
    """How many pods of a client a machine carries: ``at_work``, and ``together``, which start at the same moment."""

    at_work: int
    together: int


def carried(demand: Demand, cores: int, memory: int) -> Carried:
    """The pods of this ``demand`` that so many ``cores`` and bytes of ``memory`` carry beside a cluster and a broker."""
    held = memory - BASE_MEMORY - BROKER_MEMORY - PRODUCER_MEMORY
    at_work = min((SPARE * cores - BASE_CORES) / demand.at_work, held / demand.at_most)
    return Carried(max(0, int(at_work)), int(cores * TOGETHER_S / demand.start_cpu_s))


def capacity(demand: Demand, cores: int, memory: int) -> str:
    """How many pods of this ``demand`` so many ``cores`` and bytes of ``memory`` carry, in words."""
    most = carried(demand, cores, memory)
    return f"{cores} cores and {memory / MIB:,.0f} MiB carry {most.at_work} such pods, and {most.together} that start together"


def pods_note(inputs: Inputs, cores: int, memory: int) -> str:
    """How many pods of the trial's client so many ``cores`` and bytes of ``memory`` carry, and how many it may have."""
    client = inputs.workload.client
    asked = f"up to {inputs.policy.max_replicas} pods with client {client}, up to {starting(inputs)} of which start together"
    return f"{asked}: {capacity(DEMANDS[client], cores, memory)}"


def starting(inputs: Inputs) -> int:
    """The most pods that may start together: in a decreed step, or from the fewest replicas of a policy to the most."""
    policy = inputs.policy
    if isinstance(policy, ReplicaSteps):
        return max((max(one.after - one.before, one.bystanders) for one in policy.decrees), default=0)
    return policy.max_replicas - policy.min_replicas


def check_pods(sides: Sequence[Inputs], cores: int, memory: int) -> None:
    """Raise :class:`InputError` where ``sides`` have more pods of a client than ``cores`` and bytes of ``memory`` carry.

    The Python client's are not counted: the experiments are made for two cores with them.
    """
    for client in sorted({one.workload.client for one in sides} - {PYTHON}):
        own, most = [one for one in sides if one.workload.client == client], carried(DEMANDS[client], cores, memory)
        there, begun = sum(one.policy.max_replicas for one in own), sum(map(starting, own))
        if there > most.at_work:
            allowed = f"at most {most.at_work} on {cores} cores and {memory / MIB:,.0f} MiB"
            raise InputError("trial", f"pods with client {client}", there, allowed)
        if begun > most.together:
            each = f"each start takes {DEMANDS[client].start_cpu_s:g} s of CPU, and all of them are to take {TOGETHER_S:g} s"
            allowed = f"at most {most.together} on {cores} cores: {each}"
            raise InputError("trial", f"pods with client {client} that start together", begun, allowed)


def _start_s(inputs: Inputs) -> float:
    """What the start of a pod takes beside START_S: what its workload declares, and what no scale divides of its client."""
    return inputs.workload.start_at(inputs.scale.time) + DEMANDS[inputs.workload.client].start_more_s


def _curve(inputs: Inputs) -> Curve | None:
    """The trial simulated, with no traffic after its profile; None where its policy, or a shared store, can't be."""
    if not isinstance(inputs.policy, ScaledObject) or inputs.workload.store_slots:
        return None
    scale, workload = inputs.scale, inputs.workload
    policy, profile = anchor.as_trial(inputs.policy, inputs.profile, scale.time)
    after = Step(profile.duration, 0.0, "after") if inputs.until == DRAINED else None
    whole = replace(profile, steps=(*profile.steps, after), duration=2 * profile.duration) if after else profile
    start_s = START_S + _start_s(inputs)
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
    taken = arriving * (PRODUCED + BROKERED) + served * (CONSUMED + BROKERED) + working * DEMANDS[work.client].at_work
    burnt = pods * min(1.0, work.concurrency * inputs.scale.rate * work.burn / 100)
    return BASE_CORES + float(taken.max(initial=0.0)) + burnt
