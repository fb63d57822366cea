"""Runs a trial on a cluster and leaves its record: what is run and what is kept; nothing here judges."""

from __future__ import annotations

import itertools
import logging
import shutil
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from lab.autoscaling.steps import ReplicaSteps
from lab.cluster import Cluster
from lab.errors import LabFault
from lab.kafka import topics
from lab.ledger.ingest import Topics
from lab.ledger.settle import settle
from lab.progress import reporting
from lab.trial import faults, machine, samples, stepping
from lab.trial.inputs import DRAINED, REPARTITION, Inputs
from lab.trial.located import asks_scaler
from lab.trial.record import Record, lines_to_parquet, write_json
from lab.trial.stage import Stage
from lab.wait import until

log = logging.getLogger("lab.trial")

SETTLE_DEADLINE_S = 90  # 10 s on a quiet machine
END_DEADLINE_S = 120  # after the producer's last event: drain what is left, and the scale-down window
CONSUMER = "consumer"
HPA_LINE = " horizontal.go:"
GROUP_COLUMNS = ["t", "mono", "pod", "event", "partitions", "owned", "seconds", "created", "detail"]
Disturb = Callable[[Stage], None]


def run(
    cluster: Cluster, inputs: Inputs, results: Path, spark: Callable[[], SparkSession], disturb: Disturb | None = None
) -> Record:
    """Execute the trial and return its record, which is on disk even when this raises.

    ``spark`` is asked for a session only once the trial's last message is processed: on the trial's own two cores a JVM
    at work would be in the measurement (docs/decisions). ``disturb`` is called when the producer has started: a fault's hook.
    """
    folder = results / "records" / inputs.id
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "inputs").mkdir(parents=True)
    stage: Stage | None = None
    begun = time.time()
    head = {
        "id": inputs.id,
        "inputs": inputs.to_dict(),
        "baseline": asdict(inputs.baseline),
        "scale": str(inputs.scale),
        "versions": {**cluster.versions, **machine.packages()},
        "machine": machine.describe(),
        "begun": begun,
    }
    write_json(folder / "trial.json", head | {"ended": "running"})
    ended = "fault"
    try:
        stage = Stage(cluster, inputs, folder)
        with reporting(stage.line, every_s=5):
            ended = _drive(stage, disturb)
        _keep(stage, spark)
    except KeyboardInterrupt:
        ended = "interrupted"
        raise
    except Exception as error:
        ended = f"fault: {error}"
        raise
    finally:
        seen: dict[str, Any] = {"times": {}, "offsets": {}}
        if stage is not None:
            seen = {"times": stage.times, "offsets": stage.offsets, "steps": stage.steps, "faults": stage.faults}
        write_json(folder / "trial.json", head | {"ended": ended, **seen, "finished": time.time()})
        if stage is not None:
            stage.close()
    return Record(folder)


def _drive(stage: Stage, disturb: Disturb | None) -> str:
    """Settle the baseline, replay the profile, wait for the end; returns how it ended."""
    inputs, watched = stage.inputs, stage.transitions
    policy, replicas = inputs.policy, inputs.baseline.replicas
    stage.mark("settling")
    if replicas != policy.start:
        log.info("%s: baseline of %d, not the floor of %d: %s", inputs.id, replicas, policy.start, inputs.baseline.why)
    wanted = inputs.manifests(stage.names)
    beside = [
        item["metadata"]["name"] for item in wanted if item["kind"] == "Deployment" and item["metadata"]["name"] != CONSUMER
    ]
    stage.apply([item for item in wanted if not asks_scaler(item)])
    if asking := [item for item in wanted if asks_scaler(item)]:
        watched.wait(lambda: stage.ready("lag-scaler"), SETTLE_DEADLINE_S, "the lag scaler ready", stage.check)
        stage.apply(asking)

    def settled() -> bool:
        owned = stage.reports.owned()
        return (
            stage.ready(CONSUMER, replicas)
            and len(owned) == replicas
            and (sum(owned.values()) == inputs.partitions or replicas == 0)
            and all(stage.ready(name) for name in beside)
            and _decides(stage)
        )

    watched.wait(settled, SETTLE_DEADLINE_S, f"baseline of {replicas} consumers settled", stage.check)
    stage.mark("driving")
    stage.apply([inputs.producer()])
    watched.wait(lambda: stage.reports.last("profile") is not None, SETTLE_DEADLINE_S, "producer started", stage.check)
    if disturb is not None:
        disturb(stage)
    length = inputs.profile.duration
    if inputs.fault is not None:
        watched.wait(
            lambda: stage.reports.last("phase", phase=inputs.fault) is not None, length + 60, "time to strike", stage.check
        )
        stage.faults.append(faults.inflict(stage, inputs.fault))
        stage.mark(inputs.fault)
    if inputs.partitions_after is not None:
        watched.wait(
            lambda: stage.reports.last("phase", phase=REPARTITION) is not None, length + 60, "time to repartition", stage.check
        )
        topics.grow(stage.cluster.bootstrap, stage.names["TOPIC"], inputs.partitions_after)
        stage.mark("repartitioned")
    watched.wait(lambda: stage.reports.last("produced") is not None, length * 1.2 + 60, "profile replayed", stage.check)
    if isinstance(policy, ReplicaSteps):
        stage.mark("stepping")
        stage.steps = stepping.take(stage, policy)
    ended = "complete"
    if inputs.until == DRAINED:
        stage.mark("draining")
        ended = _drained(stage)
    stage.mark("ended")
    stage.offsets = {number: {"end": part.end, "committed": part.committed} for number, part in stage.lag.read().items()}
    return ended


def _decides(stage: Stage) -> bool:
    """Whether what decides the replicas has begun to: an HPA is inactive where there are none, and KEDA itself then says so."""
    policy, replicas = stage.inputs.policy, stage.inputs.baseline.replicas
    if policy.hpa is None:
        return True
    desired = stage.transitions.field("HorizontalPodAutoscaler", policy.hpa, "status", "desiredReplicas")
    if replicas not in (policy.start, desired):
        return False
    kind, name, condition = (
        ("HorizontalPodAutoscaler", policy.hpa, "ScalingActive") if replicas else ("ScaledObject", policy.name, "Ready")
    )
    conditions = stage.transitions.field(kind, name, "status", "conditions") or []
    return any(item["type"] == condition and item["status"] == "True" for item in conditions)


def _drained(stage: Stage) -> str:
    """Wait until the lag is gone and the replicas are back at the floor; returns how that ended."""
    floor, watched = stage.inputs.policy.min_replicas, stage.transitions

    def over() -> bool:
        return (
            all(part.lag == 0 for part in stage.lag.read().values())
            and watched.field("Deployment", "consumer", "spec", "replicas") == floor
            and len(watched.pods("consumer")) == floor
        )

    try:
        until(over, END_DEADLINE_S, "drained and back at the floor", stage.check, every_s=0.5)
    except LabFault as fault:
        stage.check()  # a dead component is a fault; a deadline that passed is a finding, and the record says so
        return f"deadline: {fault}"
    return "complete"


def _said(stage: Stage) -> str:
    """What the HPA controller logged since the trial's HPA was first synced: its errors don't name the namespace."""
    lines = (line for line in stage.cluster.controller_log().splitlines(keepends=True) if HPA_LINE in line)
    since = itertools.dropwhile(lambda line: stage.namespace not in line, lines)
    return "".join(line for line in since if stage.namespace in line or f" {stage.inputs.policy.hpa}:" in line)


def _keep(stage: Stage, spark: Callable[[], SparkSession]) -> None:
    """Close the record: samples, transitions and group events to Parquet, then Spark's ledger."""
    folder = stage.folder
    frame = samples.collect(stage.cluster.prometheus_url, stage.namespace, stage.times["settling"], time.time())
    frame.to_parquet(folder / "samples.parquet")
    stage.halt()
    (folder / "hpa.log").write_text(_said(stage))
    lines_to_parquet(
        folder / "transitions.jsonl",
        folder / "transitions.parquet",
        ["t", "kind", "name", "event", "object"],
        as_json=("object",),
    )
    lines_to_parquet(folder / "group_events.jsonl", folder / "group_events.parquet", GROUP_COLUMNS)
    begun = time.monotonic()
    with reporting(lambda: "Spark: ledger", every_s=10):
        letters = stage.names["DLQ_TOPIC"] if stage.inputs.workload.dead_letters else None
        topics_of = Topics(stage.names["TOPIC"], stage.names["RECEIPTS_TOPIC"], letters)
        settle(spark(), stage.cluster.bootstrap, topics_of, folder)
    stage.times["ledger_s"] = time.monotonic() - begun
    log.info("%s: ledger settled in %.1f s", stage.inputs.id, stage.times["ledger_s"])
