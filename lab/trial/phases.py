"""Takes the stages of a trial through it: put up, settled, driven by the profile with its events, and drained."""

from __future__ import annotations

import logging
import shutil
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from lab.errors import LabFault
from lab.inputs import objects
from lab.inputs.inputs import DRAINED
from lab.inputs.scaledobject import ScaledObject
from lab.trial import traffic_start
from lab.trial.addresses import asks_scaler, asks_store
from lab.trial.events import happen
from lab.trial.nemesis import injected
from lab.trial.stage import CONSUMER, Stage
from lab.wait import until

log = logging.getLogger("lab.trial")

T = TypeVar("T")
Meet = Callable[[], None]
MEET_S = 180.0  # by which a side may come later to an event: a step may take 90 s to settle, and is then observed
GIVEN_UP_S = 30.0  # a wait asks each second whether it is to end
LOOK_S = 0.5
PHASE_SLACK_S = 60  # a phase may begin so much after the profile's length


def drive(stages: Sequence[Stage]) -> list[str]:
    """Put each group up, let it settle, replay the profile once, with the events of each, and wait for its end.

    Returns how each ended. All are put up before one is waited for.
    """
    for stage in stages:
        stage.journal.mark("settling")
    beside = [put_up(stage) for stage in stages]
    traffic_start.anchor(stages)
    for stage, names in zip(stages, beside, strict=True):
        _settle(stage, names)
    for stage in stages:
        stage.journal.mark("driving")
    _start_traffic(stages)
    return together(follow, stages)


def together(follow: Callable[[Stage, Meet], T], stages: Sequence[Stage]) -> list[T]:
    """What ``follow`` returns for each of ``stages``, in their order. A single one is followed in this thread.

    ``follow`` is given a function that returns when every side has called it, and raises :class:`LabFault` when one has not
    within MEET_S. When one side raises, or at Ctrl-C, the others are told to end, and it is raised.
    """
    if len(stages) == 1:
        return [follow(stages[0], lambda: None)]
    barrier, failed = threading.Barrier(len(stages)), list[BaseException]()
    results: dict[int, T] = {}

    def meet() -> None:
        try:
            barrier.wait(MEET_S)
        except threading.BrokenBarrierError:
            raise LabFault(f"the sides of the duet did not come to their event together: not within {MEET_S:g} s") from None

    def give_up() -> None:
        for stage in stages:
            stage.stop.set()
        barrier.abort()

    def side(number: int) -> None:
        try:
            results[number] = follow(stages[number], meet)
        except BaseException as error:
            failed.append(error)
            give_up()

    threads = [threading.Thread(target=side, args=(n,), name=f"side-{n}", daemon=True) for n in range(len(stages))]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            while thread.is_alive():
                thread.join(LOOK_S)
    except KeyboardInterrupt:
        give_up()
        for thread in threads:
            thread.join(GIVEN_UP_S)
        raise
    if failed:
        raise failed[0]
    return [results[number] for number in range(len(stages))]


def follow(stage: Stage, meet: Meet) -> str:
    """Let the events of ``stage`` happen, each when the other side has come to its own, and wait for the end; returns how.

    The faults of its schedule are injected meanwhile, and are all taken back when the profile is replayed.
    """
    with injected(stage):
        for phase, event in stage.inputs.schedule:
            _await(stage, phase)
            meet()
            happen(stage, phase, event)
        _await(stage, None)
    ended = "complete"
    if stage.inputs.until == DRAINED:
        stage.journal.mark("draining")
        ended = drain(stage)
    stage.journal.mark("ended")
    return ended


def put_up(stage: Stage) -> list[str]:
    """Apply the trial's objects in order, lag scaler and store before what asks them; returns the Deployments beside.

    A ScaledObject with a time of day is left for :func:`lab.trial.traffic_start.anchor`.
    """
    wanted = [item for item in objects.applied(stage.inputs, stage.names) if not traffic_start.waits(stage.inputs, item)]
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
    """Wait until the baseline's consumers share all partitions, ``beside`` is ready, and the autoscaler is active."""
    inputs, replicas = stage.inputs, stage.baseline.replicas
    if replicas != inputs.policy.start:
        log.info("%s: baseline of %d, not of %d as applied: %s", inputs.id, replicas, inputs.policy.start, stage.baseline.why)

    def settled() -> bool:
        owned = stage.reports.owned()
        members = {len(owned), sum(map(bool, owned.values()))}  # one that was there before a restart owns nothing now
        shared = replicas in members and sum(owned.values()) == inputs.partitions
        return (
            stage.ready(CONSUMER, replicas)
            and (shared if replicas else not stage.transitions.pods(CONSUMER))
            and all(stage.ready(name) for name in beside)
            and is_active(stage)
        )

    what = f"baseline of {replicas} consumers settled"
    try:
        stage.transitions.wait(settled, traffic_start.settle_s(stage), what, stage.check)
    except LabFault as fault:
        if str(fault).startswith(what) and (why := stage.why_not_at_work()):
            raise LabFault(f"{fault}: {why}") from None
        raise


def _start_traffic(stages: Sequence[Stage]) -> None:
    """Start the producer at the drawn point of a sync, and wait until each side has heard that it begins the profile."""
    lead, *others = stages
    traffic_start.await_sync_point(stages)
    lead.produce()
    for stage in stages:
        began = partial(stage.reports.last, "profile")
        stage.transitions.wait(began, stage.deadlines.settle_s, "producer started", stage.check)
    traffic_start.await_start(stages)
    for other in others:  # a record is whole by itself: the producer is an input of each side
        shutil.copy(lead.folder / "inputs" / "job-producer.yaml", other.folder / "inputs")


def _await(stage: Stage, phase: str | None) -> None:
    """Wait until the profile's ``phase`` has begun; None: until the profile is replayed."""
    reports, wait = stage.reports, stage.transitions.wait
    if phase is None:
        wait(lambda: reports.last("produced") is not None, stage.deadlines.replay_s, "profile replayed", stage.check)
    else:
        deadline_s = stage.inputs.profile.duration + PHASE_SLACK_S
        wait(lambda: reports.begun(phase) is not None, deadline_s, f"phase {phase} began", stage.check)


def is_active(stage: Stage) -> bool:
    """True once the autoscaler is active. At 0 replicas KEDA says so itself, or the HPA that took them there."""
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


def drain(stage: Stage) -> str:
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
        if (why := stage.why_not_at_work()) and watched.pods(CONSUMER) and not stage.joined():
            raise LabFault(f"{fault}: {why}") from None
        return f"deadline: {fault}"
    return "complete"
