"""Runs a trial on a cluster and leaves its record: what is run and what is kept; nothing here judges."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession

from lab import clock
from lab.cluster import Cluster
from lab.errors import LabFault
from lab.host import machine
from lab.kafka import topics
from lab.model.baseline import baseline
from lab.progress import reporting
from lab.record.store import Record
from lab.record.trial import Fault, Step, Trial
from lab.spec.inputs import DRAINED, REPARTITION, Inputs
from lab.spec.steps import ReplicaSteps
from lab.trial import closing, faults, stepping
from lab.trial.located import asks_scaler
from lab.trial.parts import parts
from lab.trial.stage import Stage
from lab.wait import until

log = logging.getLogger("lab.trial")

CLOSE_S = 180  # the pods of a record that was interrupted while it was closed are still to go
CONSUMER = "consumer"
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
    head = Trial(
        id=inputs.id,
        inputs=inputs,
        baseline=baseline(inputs.policy, inputs.partitions),
        scale=str(inputs.scale),
        versions={**cluster.versions, **machine.packages()},
        machine=machine.describe(),
        begun=clock.now(),
    )
    head.write(folder)
    try:
        stage = Stage(cluster, inputs, folder)
        with reporting(stage.line, every_s=5):
            ended = _drive(stage, disturb)
    except BaseException as error:
        ended = "interrupted" if isinstance(error, KeyboardInterrupt) else f"fault: {closing.reason(error)}"
        log.warning("%s: %s; its record is closed with what there is (Ctrl-C gives that up)", inputs.id, ended)
        try:
            _close(folder, head, stage, ended, spark)
        except Exception as second:
            log.warning("%s: %s", inputs.id, second)  # the first one is raised
        raise
    _close(folder, head, stage, ended, spark)
    return Record(folder)


def _close(folder: Path, head: Trial, stage: Stage | None, ended: str, spark: Callable[[], SparkSession]) -> None:
    """Leave the record with what can be had of it, sealed; then take down what the trial put up."""
    missing: dict[str, str] = {}
    trial = head
    try:
        if stage is not None:
            stage.times.setdefault("ended", clock.now())
            closing.close(folder, parts(stage, spark, missing), missing)
    finally:
        if stage is not None:
            trial = replace(
                head,
                times=stage.times,
                ledger_s=stage.ledger_s,
                offsets=stage.offsets,
                steps=tuple(Step(**one) for one in stage.steps),
                faults=tuple(Fault(**one) for one in stage.faults),
                deadlines=stage.deadlines,
                lag_unanswered=stage.lag_unanswered,
                watch_gaps=tuple(stage.transitions.gaps),
            )
        moved_s = round(clock.PROCESS.moved_s(), 3)
        trial = replace(trial, ended=ended, missing=missing, finished=clock.now(), clock_moved_s=moved_s)
        trial.sealed(folder).write(folder)
        if stage is not None:
            closing.bounded(stage.close, CLOSE_S)


def _drive(stage: Stage, disturb: Disturb | None) -> str:
    """Settle the baseline, replay the profile, wait for the end; returns how it ended."""
    inputs, watched = stage.inputs, stage.transitions
    policy, replicas, settle_s = inputs.policy, stage.baseline.replicas, stage.deadlines.settle_s
    stage.mark("settling")
    if replicas != policy.start:
        log.info("%s: baseline of %d, not the floor of %d: %s", inputs.id, replicas, policy.start, stage.baseline.why)
    wanted = inputs.manifests(stage.names)
    beside = [
        item["metadata"]["name"] for item in wanted if item["kind"] == "Deployment" and item["metadata"]["name"] != CONSUMER
    ]
    stage.apply([item for item in wanted if not asks_scaler(item)])
    if asking := [item for item in wanted if asks_scaler(item)]:
        watched.wait(lambda: stage.ready("lag-scaler"), settle_s, "the lag scaler ready", stage.check)
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

    watched.wait(settled, settle_s, f"baseline of {replicas} consumers settled", stage.check)
    stage.mark("driving")
    stage.apply([inputs.producer()])
    watched.wait(lambda: stage.reports.last("profile") is not None, settle_s, "producer started", stage.check)
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
    watched.wait(lambda: stage.reports.last("produced") is not None, stage.deadlines.replay_s, "profile replayed", stage.check)
    if isinstance(policy, ReplicaSteps):
        stage.mark("stepping")
        stage.steps = stepping.take(stage, policy)
    ended = "complete"
    if inputs.until == DRAINED:
        stage.mark("draining")
        ended = _drained(stage)
    stage.mark("ended")
    return ended


def _decides(stage: Stage) -> bool:
    """Whether what decides the replicas has begun to: an HPA is inactive where there are none, and KEDA itself then says so."""
    policy, replicas = stage.inputs.policy, stage.baseline.replicas
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
            (lags := stage.lags()) is not None
            and all(part.lag == 0 for part in lags.values())
            and watched.field("Deployment", "consumer", "spec", "replicas") == floor
            and len(watched.pods("consumer")) == floor
        )

    try:
        until(over, stage.deadlines.end_s, "drained and back at the floor", stage.check, every_s=0.5)
    except LabFault as fault:
        stage.check()  # a dead component is a fault; a deadline that passed is a finding, and the record says so
        return f"deadline: {fault}"
    return "complete"
