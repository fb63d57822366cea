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
from lab.model.baseline import baseline
from lab.record.store import Record
from lab.record.trial import Fault, Step, Trial
from lab.spec.inputs import DRAINED, Inputs
from lab.trial import closing
from lab.trial.events import happen
from lab.trial.located import asks_scaler
from lab.trial.parts import parts
from lab.trial.stage import CONSUMER, Stage
from lab.wait import reporting, until

log = logging.getLogger("lab.trial")

CLOSE_S = 180  # the pods of a record that was interrupted while it was closed are still to go
PHASE_SLACK_S = 60  # a phase may begin so much after the profile's length


def run(cluster: Cluster, inputs: Inputs, results: Path, spark: Callable[[], SparkSession]) -> Record:
    """Execute the trial and return its record, which is on disk even when this raises.

    ``spark`` is asked for a session only once the trial's last message is processed: on the trial's own two cores a JVM
    at work would be in the measurement (docs/decisions).
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
        policy_times=inputs.policy_times,
    )
    head.write(folder)
    try:
        stage = Stage(cluster, inputs, folder)
        with reporting(stage.line, every_s=5):
            ended = _drive(stage)
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
                topic_ids=tuple(stage.topic_ids),
                events=tuple(stage.events),
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


def _drive(stage: Stage) -> str:
    """Put the group up, let it settle, replay the profile with its events, and wait for the end; returns how it ended."""
    stage.mark("settling")
    beside = _put_up(stage)
    _settle(stage, beside)
    stage.mark("driving")
    _start_traffic(stage)
    for phase, event in stage.inputs.schedule:
        _await(stage, phase)
        happen(stage, phase, event)
    _await(stage, None)
    ended = "complete"
    if stage.inputs.until == DRAINED:
        stage.mark("draining")
        ended = _drained(stage)
    stage.mark("ended")
    return ended


def _put_up(stage: Stage) -> list[str]:
    """Apply the trial's objects, the lag scaler before what asks it; returns the Deployments beside the consumer's."""
    wanted = stage.inputs.manifests(stage.names)
    stage.apply([item for item in wanted if not asks_scaler(item)])
    if asking := [item for item in wanted if asks_scaler(item)]:
        deadline_s = stage.deadlines.settle_s
        stage.transitions.wait(lambda: stage.ready("lag-scaler"), deadline_s, "the lag scaler ready", stage.check)
        stage.apply(asking)
    deployments = (item["metadata"]["name"] for item in wanted if item["kind"] == "Deployment")
    return [name for name in deployments if name != CONSUMER]


def _settle(stage: Stage, beside: list[str]) -> None:
    """Wait until the baseline's consumers share all partitions, ``beside`` is ready, and what decides has begun to."""
    inputs, replicas = stage.inputs, stage.baseline.replicas
    if replicas != inputs.policy.start:
        log.info("%s: baseline of %d, not the floor of %d: %s", inputs.id, replicas, inputs.policy.start, stage.baseline.why)

    def settled() -> bool:
        owned = stage.reports.owned()
        return (
            stage.ready(CONSUMER, replicas)
            and len(owned) == replicas
            and (sum(owned.values()) == inputs.partitions or replicas == 0)
            and all(stage.ready(name) for name in beside)
            and _decides(stage)
        )

    what = f"baseline of {replicas} consumers settled"
    stage.transitions.wait(settled, stage.deadlines.settle_s, what, stage.check)


def _start_traffic(stage: Stage) -> None:
    """Start the producer, and wait until it begins the profile."""
    stage.apply([stage.inputs.producer()])
    stage.transitions.wait(
        lambda: stage.reports.last("profile") is not None, stage.deadlines.settle_s, "producer started", stage.check
    )


def _await(stage: Stage, phase: str | None) -> None:
    """Wait until the profile's ``phase`` has begun; None: until the profile is replayed."""
    reports, wait = stage.reports, stage.transitions.wait
    if phase is None:
        wait(lambda: reports.last("produced") is not None, stage.deadlines.replay_s, "profile replayed", stage.check)
    else:
        deadline_s = stage.inputs.profile.duration + PHASE_SLACK_S
        wait(lambda: reports.begun(phase) is not None, deadline_s, f"phase {phase} began", stage.check)


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
            and watched.field("Deployment", CONSUMER, "spec", "replicas") == floor
            and len(watched.pods(CONSUMER)) == floor
        )

    try:
        until(over, stage.deadlines.end_s, "drained and back at the floor", stage.check, every_s=0.5)
    except LabFault as fault:
        stage.check()  # a dead component is a fault; a deadline that passed is a finding, and the record says so
        return f"deadline: {fault}"
    return "complete"
