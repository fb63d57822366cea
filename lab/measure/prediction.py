"""What the model says beside a trial's record: the simulator of the trial, and the HPA's rule of each of its syncs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lab.errors import InputError, NoData, known
from lab.foresee.curve import Curve
from lab.foresee.group import Floats, Ints
from lab.foresee.scaler import lag_triggers
from lab.foresee.simulate import simulate
from lab.foresee.situation import Situation, controller_of
from lab.inputs import anchor
from lab.inputs.inputs import DRAINED
from lab.inputs.keys import shares
from lab.inputs.scale import METRIC_RESOLUTION_S
from lab.inputs.scaledobject import ScaledObject
from lab.judge.measure import Measure, detail, measure, number
from lab.measure.calibration import Calibration
from lab.model import hpa
from lab.model.hpa import Controller
from lab.model.hpa_log import Disagreement, replay
from lab.record.store import Record

STEP_S = 0.05  # replicas are compared at points so far apart


@dataclass(frozen=True)
class Figures:
    """Lag in messages; ``drain_s`` from the last burst's end until lag is at one lagThreshold, None if it never was."""

    peak_lag: float
    drain_s: float | None
    pod_minutes: float
    flips: int
    most_replicas: int


class Comparison(Measure):
    """Predicted and recorded figures, and how far apart the curves of replicas are.

    A deviation is positive where more was predicted than recorded. That of the drain time is missing where lag never came back
    to one lagThreshold, predicted or recorded.
    """

    predicted = detail(Figures, "the figures of the predicted curve")
    recorded = detail(Figures, "the figures of the recorded curve")
    within_one_pod = number("% of time", "time within one pod of the recorded replicas")
    equal = number("% of time", "time at the recorded replicas")
    peak_error = number("%", "deviation of the predicted peak lag")
    drain_error = number("%", "deviation of the predicted drain time")


def situation(record: Record, calibration: Calibration) -> Situation:
    """The record's inputs as the simulator takes them. Of its outcome only the phase of the syncs goes in, which is luck.

    Of a trial that was to drain, the simulation goes on for as long as the trial may take by its deadline.
    """
    inputs, scale, traffic = record.inputs, record.scale, record.profile
    start = record.profile_start
    phase = next((sync.at - start for sync in record.hpa_syncs if sync.at >= start), 0.0)
    return Situation(
        profile=traffic,
        shares=shares(traffic, inputs.seed, inputs.partitions, inputs.workload.entities),
        consumers=calibration.of(record),
        sync_s=scale.hpa_sync_s + calibration.sync_more_s,
        sync_each_s=calibration.sync_more_each_s,
        phase_s=phase,
        controller=controller_of(scale),
        metrics_s=METRIC_RESOLUTION_S,
        tail_s=known(record.trial.deadlines, "deadline").end_s if inputs.until == DRAINED else 0.0,
        topics=inputs.workload.topics,
    )


def predict(record: Record, known: Calibration) -> Curve:
    """The curve the simulator gives for the record's inputs. Raises :class:`NoData` for a trial that it doesn't know."""
    policy, workload = record.policy, record.inputs.workload
    if not isinstance(policy, ScaledObject):
        raise NoData(f"a {policy.content['kind']} is not simulated")
    if record.inputs.partitions_after is not None:
        raise NoData("new partitions are not simulated")
    if record.inputs.during:
        raise NoData("events of a trial are not simulated")
    if record.inputs.faults:
        raise NoData("faults are not simulated")
    if workload.store_slots:
        raise NoData("a store that pods share is not simulated")
    if workload.drain != "on" or workload.grace_s <= workload.drain_timeout:
        raise NoData("consumers that die without leaving the group are not simulated")
    scaled = replace(policy, where=record.id)
    try:
        lag_triggers(scaled, workload.topics)
        here = situation(record, known)
        scaled, traffic = anchor.as_trial(scaled, here.profile, record.scale.time)
        curve = simulate(replace(here, profile=traffic), scaled)
    except InputError as refused:
        raise NoData(f"not simulated: {refused}") from None
    return at_rest(curve, record.profile.duration, policy.min_replicas) if record.inputs.until == DRAINED else curve


def at_rest(curve: Curve, end: float, floor: int) -> Curve:
    """``curve`` until the group is back at its ``floor`` after the profile's ``end`` (s), where a trial that drains is over."""
    over = np.flatnonzero((curve.t >= end) & (curve.replicas <= floor) & (curve.working <= floor))
    if not len(over):
        return curve
    points = slice(int(over[0]) + 1)
    log = tuple(change for change in curve.log if change.at <= curve.t[over[0]])
    return Curve(curve.t[points], curve.lag[points], curve.replicas[points], curve.working[points], log)


@measure
def compare(record: Record, known: Calibration) -> Comparison:
    """Predicted against recorded, from the profile's start to the trial's end; no data for a trial that is not simulated."""
    return _compared(record, predict(record, known))


@measure
def compare_runs(record: Record, other: Record) -> Comparison:
    """Another run of the same trial in the place of the prediction: how far apart two runs are."""
    return _compared(record, recorded(other))


class Agreement(Measure):
    """The syncs of a trial's HPA, decided by the model on the inputs that the controller saw.

    The terms are those of :class:`lab.model.hpa_log.Replay`.
    """

    syncs = number("syncs", "syncs replayed")
    computed = number("syncs", "syncs whose proposal was worked out too")
    rescaled = number("syncs", "syncs that rescaled")
    at_an_edge = number("syncs", "syncs that agree at an edge of the clock")
    alternatives = number("syncs", "syncs that agree on an input that is possible and not the likeliest")
    agreement = number("%", "HPA decisions that the model takes too")
    disagreements = detail(tuple[Disagreement, ...], "the syncs that the model decides otherwise")


@measure
def agreement(record: Record) -> Agreement:
    """Replay the trial's syncs. There is no data for a trial without an HPA and for one whose log was not kept."""
    found = record.hpa_syncs
    if not found:
        raise NoData("no sync of an HPA in the record")
    stabilization_s = record.scale.seconds(hpa.DEFAULTS.downscale_stabilization_s)
    again = replay(found, Controller(downscale_stabilization_s=stabilization_s))
    return Agreement(**{name: getattr(again, name) for name in Agreement.declared()})


def _compared(record: Record, curve: Curve) -> Comparison:
    seen = recorded(record)
    at = np.arange(0.0, min(curve.t[-1], seen.t[-1]), STEP_S)
    apart = np.abs(_held(at, seen.t, seen.replicas) - _held(at, curve.t, curve.replicas))
    relief, threshold = record.relief - record.profile_start, record.lag_threshold
    was, foreseen = figures(seen, relief, threshold), figures(curve, relief, threshold)
    return Comparison(
        predicted=foreseen,
        recorded=was,
        within_one_pod=float((apart <= 1).mean() * 100),
        equal=float((apart == 0).mean() * 100),
        peak_error=_error(foreseen.peak_lag, was.peak_lag),
        drain_error=None if foreseen.drain_s is None or was.drain_s is None else _error(foreseen.drain_s, was.drain_s),
    )


def recorded(record: Record) -> Curve:
    """The record as a curve from the profile's start to the trial's end: at its samples of lag and its changes of replicas."""
    start, lag, replicas = record.profile_start, record.lag, record.replicas
    sampled, changed = lag["t"].to_numpy() - start, replicas["t"].to_numpy() - start
    moments = np.union1d(sampled, changed)
    moments = moments[(moments >= max(0.0, sampled[0])) & (moments <= record.end - start)]
    asked, ready = (_held(moments, changed, replicas[kind].to_numpy()) for kind in ("desired", "ready"))
    return Curve(moments, np.interp(moments, sampled, lag["lag"].to_numpy(dtype=float)), asked, ready)


def figures(curve: Curve, relief: float, threshold: float) -> Figures:
    """The figures of a curve whose last burst ends at ``relief`` (s)."""
    back = curve.back_at(threshold, relief)
    return Figures(
        peak_lag=curve.peak_lag,
        drain_s=None if back is None else back - relief,
        pod_minutes=curve.pod_minutes,
        flips=curve.flips,
        most_replicas=int(curve.replicas.max()),
    )


def _held(at: Floats, times: Floats, values: Ints) -> Ints:
    """The value that holds at each of ``at``: the last one at or before it."""
    return values[np.maximum(np.searchsorted(times, at, side="right") - 1, 0)]


def _error(predicted: float, recorded: float) -> float:
    """How far ``predicted`` is off, in percent of ``recorded``."""
    return 100 * (predicted / recorded - 1) if recorded else (0.0 if not predicted else float("inf"))
