"""Runs a trial on a cluster and leaves its record: what is run and what is kept; nothing here judges.

A duet is run like a trial: its two sides go through the same phases, driven by one producer, and leave a record each.
"""

from __future__ import annotations

import contextlib
import logging
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException
from pyspark.sql import SparkSession

from lab import clock
from lab.cluster import Cluster
from lab.errors import LabFault
from lab.host import machine
from lab.inputs import objects
from lab.inputs.inputs import DRAINED, Inputs
from lab.inputs.scaledobject import ScaledObject
from lab.model.baseline import baseline
from lab.record import rescue, store
from lab.record.store import Record
from lab.record.trial import Duet, Fault, Offsets, Step, Trial, Turn
from lab.trial import anchoring, closing, syncphase
from lab.trial.closing import Closing
from lab.trial.events import happen
from lab.trial.located import asks_scaler, asks_store
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
    here = machine.describe()  # takes a second: an interruption in it leaves no folder without a trial.json
    folders, wanted, heads = store.begin(results, [side.id for side in sides]), sides[0].brokers, []
    for inputs, folder, other in zip(sides, folders, reversed(folders), strict=True):
        head = Trial(
            id=inputs.id,
            inputs=inputs,
            baseline=baseline(inputs.policy, inputs.partitions, inputs.workload.topics),
            scale=str(inputs.scale),
            versions={**cluster.versions, **machine.packages()},
            machine=here,
            begun=clock.now(),
            policy_times=inputs.policy_times,
            policy_lags=inputs.policy_lags,
            turn=turn,
            duet=Duet(other.name, folder is folders[0]) if inputs.side else None,
        )
        head.write(folder)
        rescue.claim(folder)
        heads.append(head)
    stages: list[Stage] = []
    with contextlib.ExitStack() as own:  # brokers of the trial's own end when its record is closed
        try:
            brokers = own.enter_context(contextlib.closing(cluster.brokers(wanted.count))) if wanted else None
            for inputs, folder in zip(sides, folders, strict=True):
                stages.append(Stage(cluster, inputs, folder, stages[0] if stages else None, brokers))
            with reporting(partial(_progress, folders, heads, stages), every_s=5):
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


def _progress(folders: Sequence[Path], heads: Sequence[Trial], stages: Sequence[Stage]) -> str:
    """The live line. What is known so far is written too: a session that is killed has no other chance."""
    for folder, head, stage in zip(folders, heads, stages, strict=False):  # those that are put up
        try:
            offsets = {number: Offsets(part.end, part.committed) for number, part in stage.lag.read().items()}
            replace(_known(head, stage), offsets=offsets).write(folder)
        except (OSError, KafkaException) as error:
            log.debug("%s: its progress can't be written: %s", folder.name, error)
    return "  |  ".join(stage.line() for stage in stages)


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
    with contextlib.ExitStack() as takedown:
        for stage in stages:
            takedown.callback(closing.bounded, stage.close, CLOSE_S)
            stage.times.setdefault("ended", clock.now())
        try:
            records = zip(folders, heads, stages, ended, missing, strict=False)  # what could not be put up has nothing to close
            closing.close(
                *(
                    Closing(folder, parts(stage, spark, lacking), lacking, partial(_note, folder, head, stage, how, lacking))
                    for folder, head, stage, how, lacking in records
                )
            )
        finally:
            for folder, head, stage, how, lacking in zip_longest(folders, heads, stages, ended, missing):
                _seal(folder, head, stage, how, lacking)


def _known(head: Trial, stage: Stage) -> Trial:
    """What is known of the trial by now."""
    return replace(
        head,
        times=dict(stage.times),
        ledger_s=stage.ledger_s,
        offsets=stage.offsets,
        topic_ids=tuple(stage.topic_ids),
        events=tuple(stage.events),
        steps=tuple(Step(**one) for one in stage.steps),
        faults=tuple(Fault(**one) for one in stage.faults),
        deadlines=stage.deadlines,
        lag_unanswered=stage.lag_unanswered,
        watch_gaps=tuple(stage.transitions.gaps),
        anchor=stage.anchor,
    )


def _note(folder: Path, head: Trial, stage: Stage, ended: str, missing: Mapping[str, str]) -> None:
    """Write how the trial ended and what of its record is missing so far, while that is being closed."""
    replace(_known(head, stage), ended=ended, missing=dict(missing)).write(folder)


def _seal(folder: Path, head: Trial, stage: Stage | None, ended: str, missing: dict[str, str]) -> None:
    """Write what is known of the trial at its end, with the checksums of its record's files."""
    trial = head if stage is None else _known(head, stage)
    moved_s = round(clock.PROCESS.moved_s(), 3)
    trial = replace(trial, ended=ended, missing=missing, finished=clock.now(), clock_moved_s=moved_s)
    trial.sealed(folder).write(folder)
    rescue.release(folder)


def _drive(stages: Sequence[Stage]) -> list[str]:
    """Put each group up, let it settle, replay the profile once, with the events of each, and wait for its end.

    Returns how each ended. All are put up before one is waited for.
    """
    for stage in stages:
        stage.mark("settling")
    beside = [_put_up(stage) for stage in stages]
    anchoring.anchor(stages)
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
    """Apply the trial's objects in order, lag scaler and store before what asks them; returns the Deployments beside.

    A ScaledObject with a time of day is left for :func:`lab.trial.anchoring.anchor`.
    """
    wanted = [item for item in objects.applied(stage.inputs, stage.names) if not anchoring.waits(stage.inputs, item)]
    batch: list[dict[str, Any]] = []
    for item in wanted:
        for name, asks in (("store", asks_store), ("lag-scaler", asks_scaler)):
            if asks(item):
                stage.apply(batch)
                batch, deadline_s = [], stage.deadlines.settle_s
                stage.transitions.wait(partial(stage.ready, name), deadline_s, f"the {name} ready", stage.check)
        batch.append(item)
    stage.apply(batch)
    deployments = (item["metadata"]["name"] for item in wanted if item["kind"] == "Deployment")
    return [name for name in deployments if name != CONSUMER]


def _settle(stage: Stage, beside: list[str]) -> None:
    """Wait until the baseline's consumers share all partitions, ``beside`` is ready, and what decides has begun to."""
    inputs, replicas = stage.inputs, stage.baseline.replicas
    if replicas != inputs.policy.start:
        log.info("%s: baseline of %d, not of %d as applied: %s", inputs.id, replicas, inputs.policy.start, stage.baseline.why)

    def settled() -> bool:
        owned = stage.reports.owned()
        shared = len(owned) == replicas and sum(owned.values()) == inputs.partitions
        return (
            stage.ready(CONSUMER, replicas)
            and (shared if replicas else not stage.transitions.pods(CONSUMER))
            and all(stage.ready(name) for name in beside)
            and _decides(stage)
        )

    what = f"baseline of {replicas} consumers settled"
    stage.transitions.wait(settled, anchoring.settle_s(stage), what, stage.check)


def _start_traffic(stages: Sequence[Stage]) -> None:
    """Start the producer at the drawn point of a sync, and wait until each side has heard that it begins the profile."""
    lead, *others = stages
    syncphase.await_phase(stages)
    lead.produce()
    for stage in stages:
        stage.transitions.wait(partial(_heard, stage), stage.deadlines.settle_s, "producer started", stage.check)
    anchoring.await_start(stages)
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
    """Whether what decides the replicas has begun to: without any KEDA says so itself, or the HPA that took them to 0."""
    policy, replicas = stage.inputs.policy, stage.baseline.replicas
    if policy.hpa is None:
        return True
    desired = stage.transitions.field("HorizontalPodAutoscaler", policy.hpa, "status", "desiredReplicas")
    if replicas not in (policy.start, desired):
        return False
    if isinstance(policy, ScaledObject) and not replicas:
        kind, name, condition = "ScaledObject", policy.name, "Ready"
    else:
        kind, name, condition = "HorizontalPodAutoscaler", policy.hpa, "ScalingActive" if replicas else "ScaledToZero"
    conditions = stage.transitions.field(kind, name, "status", "conditions") or []
    return any(item["type"] == condition and item["status"] == "True" for item in conditions)


def _drained(stage: Stage) -> str:
    """Wait until the lag is gone and the replicas are back at the floor; returns how that ended."""
    floor, watched = stage.inputs.policy.min_replicas, stage.transitions

    def over() -> bool:
        return (
            (lags := stage.lags()) is not None
            and all(part.lag == 0 for part in lags.values())
            and stage.field(CONSUMER, "spec", "replicas") == floor
            and len(watched.pods(CONSUMER)) == floor
        )

    try:
        until(over, stage.deadlines.end_s, "drained and back at the floor", stage.check, every_s=0.5)
    except LabFault as fault:
        stage.check()  # a dead component is a fault; a deadline that passed is a finding, and the record says so
        return f"deadline: {fault}"
    return "complete"
