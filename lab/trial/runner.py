"""Runs a trial on a cluster and leaves its record: what is run and what is kept; nothing here judges.

A duet is run like a trial: its two sides go through the same phases, driven by one producer, and leave a record each.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from pathlib import Path

from pyspark.sql import SparkSession

from lab import clock
from lab.cluster import Cluster
from lab.errors import LabFault
from lab.host import machine
from lab.model.baseline import baseline
from lab.record import store
from lab.record.store import Record
from lab.record.trial import Duet, Fault, Step, Trial, Turn
from lab.spec.inputs import DRAINED, Inputs
from lab.trial import closing
from lab.trial.closing import Closing
from lab.trial.events import happen
from lab.trial.located import asks_scaler
from lab.trial.parts import parts
from lab.trial.stage import CONSUMER, Stage
from lab.trial.together import Meet, together
from lab.wait import reporting, until

log = logging.getLogger("lab.trial")

CLOSE_S = 180  # the pods of a record that was interrupted while it was closed are still to go
PHASE_SLACK_S = 60  # a phase may begin so much after the profile's length


def run(
    cluster: Cluster,
    sides: Sequence[Inputs],
    results: Path,
    spark: Callable[[], SparkSession],
    turn: Turn | None = None,
) -> list[Record]:
    """Execute a trial, or the two ``sides`` of a duet, the first of which is put up first, and return the records.

    They are on disk even when this raises; no earlier one is touched. ``turn`` is the trial's in its session. ``spark`` is
    asked for a session only once the last message is processed: on the trial's own two cores a JVM at work would be in the
    measurement (docs/decisions).
    """
    folders = store.begin(results, [side.id for side in sides])
    heads = []
    for inputs, folder, other in zip(sides, folders, reversed(folders), strict=True):
        head = Trial(
            id=inputs.id,
            inputs=inputs,
            baseline=baseline(inputs.policy, inputs.partitions),
            scale=str(inputs.scale),
            versions={**cluster.versions, **machine.packages()},
            machine=machine.describe(),
            begun=clock.now(),
            policy_times=inputs.policy_times,
            policy_lags=inputs.policy_lags,
            turn=turn,
            duet=Duet(other.name, folder is folders[0]) if inputs.side else None,
        )
        head.write(folder)
        heads.append(head)
    stages: list[Stage] = []
    try:
        for inputs, folder in zip(sides, folders, strict=True):
            stages.append(Stage(cluster, inputs, folder, stages[0] if stages else None))
        with reporting(lambda: "  |  ".join(stage.line() for stage in stages), every_s=5):
            ended = _drive(stages)
    except BaseException as error:
        why = "interrupted" if isinstance(error, KeyboardInterrupt) else f"fault: {closing.reason(error)}"
        log.warning("%s: %s; its record is closed with what there is (Ctrl-C gives that up)", _names(sides), why)
        try:
            _close(folders, heads, stages, [why] * len(sides), spark)
        except Exception as second:
            log.warning("%s: %s", _names(sides), second)  # the first one is raised
        raise
    _close(folders, heads, stages, ended, spark)
    return [Record(folder) for folder in folders]


def _names(sides: Sequence[Inputs]) -> str:
    return " and ".join(side.id for side in sides)


def _close(
    folders: Sequence[Path],
    heads: Sequence[Trial],
    stages: Sequence[Stage],
    ended: Sequence[str],
    spark: Callable[[], SparkSession],
) -> None:
    """Leave each record with what can be had of it, sealed; then take down what the trial put up, the lead of a duet last."""
    missing: list[dict[str, str]] = [{} for _ in heads]
    with ExitStack() as takedown:
        for stage in stages:
            takedown.callback(closing.bounded, stage.close, CLOSE_S)
            stage.times.setdefault("ended", clock.now())
        try:
            records = zip(stages, missing, strict=False)  # what could not be put up has nothing to close
            closing.close(*(Closing(stage.folder, parts(stage, spark, lacking), lacking) for stage, lacking in records))
        finally:
            for folder, head, stage, how, lacking in zip_longest(folders, heads, stages, ended, missing):
                _seal(folder, head, stage, how, lacking)


def _seal(folder: Path, head: Trial, stage: Stage | None, ended: str, missing: dict[str, str]) -> None:
    """Write what is known of the trial at its end, with the checksums of its record's files."""
    trial = head
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


def _drive(stages: Sequence[Stage]) -> list[str]:
    """Put each group up, let it settle, replay the profile once, with the events of each, and wait for its end.

    Returns how each ended. All are put up before one is waited for.
    """
    for stage in stages:
        stage.mark("settling")
    beside = [_put_up(stage) for stage in stages]
    for stage, names in zip(stages, beside, strict=True):
        _settle(stage, names)
    for stage in stages:
        stage.mark("driving")
    _start_traffic(stages)
    return together(_follow, stages)


def _follow(stage: Stage, meet: Meet) -> str:
    """Let the events of ``stage`` happen, each when the other side has come to its own, and wait for the end; returns how."""
    for phase, event in stage.inputs.schedule:
        _await(stage, phase)
        meet()
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


def _start_traffic(stages: Sequence[Stage]) -> None:
    """Start the producer, and wait until each side has heard that it begins the profile."""
    lead, *others = stages
    lead.produce()
    for stage in stages:
        stage.transitions.wait(partial(_heard, stage), stage.deadlines.settle_s, "producer started", stage.check)
    for other in others:  # a record is whole by itself: the producer is an input of each side
        shutil.copy(lead.folder / "inputs" / "job-producer.yaml", other.folder / "inputs")


def _heard(stage: Stage) -> bool:
    return stage.reports.last("profile") is not None


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
