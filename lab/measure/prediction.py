"""Prediction: what the simulator says of a trial's inputs, set beside what the trial's record shows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lab import profile
from lab.autoscaling import scaledobject
from lab.autoscaling.hpa import DEFAULTS, Controller
from lab.autoscaling.simulate.curve import Curve
from lab.autoscaling.simulate.group import Floats, Ints
from lab.autoscaling.simulate.run import Situation, simulate
from lab.measure import curves
from lab.measure.agreement import syncs
from lab.measure.calibration import Calibration
from lab.producer.placement import shares
from lab.scale import Scale
from lab.trial.record import NoData, Record

STEP_S = 0.05  # replicas are compared at points so far apart


@dataclass(frozen=True)
class Figures:
    """Lag in messages; ``drain_s`` from the last burst's end until lag is at one lagThreshold, None if it never was."""

    peak_lag: float
    drain_s: float | None
    pod_minutes: float
    flips: int
    most_replicas: int


@dataclass(frozen=True)
class Comparison:
    """Predicted and recorded figures, and how far apart the curves of replicas are, in percent of the time."""

    predicted: Figures
    recorded: Figures
    within_one_pod: float
    equal: float

    @property
    def peak_error(self) -> float:
        """Predicted over recorded peak lag, as a deviation in percent."""
        return _error(self.predicted.peak_lag, self.recorded.peak_lag)

    @property
    def drain_error(self) -> float:
        """The same of the drain time. Raises :class:`NoData` where either never drained."""
        if self.predicted.drain_s is None or self.recorded.drain_s is None:
            raise NoData("lag never came back to one lagThreshold, predicted or recorded")
        return _error(self.predicted.drain_s, self.recorded.drain_s)


def situation(record: Record, known: Calibration) -> Situation:
    """The record's inputs as the simulator takes them. Of its outcome only the phase of the syncs goes in, which is luck."""
    inputs = record.trial["inputs"]
    scale = Scale(**inputs["scale"])
    traffic = profile.build(inputs["profile"], record.id)
    start = curves.profile_start(record)
    phase = next((sync.at - start for sync in syncs(record) if sync.at >= start), 0.0)
    return Situation(
        profile=traffic,
        shares=shares(traffic, int(inputs["seed"]), int(inputs["partitions"])),
        consumers=known.of(record),
        sync_s=scale.hpa_sync_s + known.sync_more_s,
        sync_each_s=known.sync_more_each_s,
        phase_s=phase,
        controller=Controller(downscale_stabilization_s=scale.seconds(DEFAULTS.downscale_stabilization_s)),
        tail_s=max(0.0, float(record.trial["times"]["ended"]) - start - traffic.duration),
    )


def predict(record: Record, known: Calibration) -> Curve:
    """The curve the simulator gives for the record's inputs. Raises :class:`NoData` for a trial that it doesn't know."""
    inputs = record.trial["inputs"]
    policy = inputs["policy"]
    if policy["kind"] != "ScaledObject":
        raise NoData(f"a {policy['kind']} is not simulated")
    if inputs["partitions_after"] is not None:
        raise NoData("new partitions are not simulated")
    if inputs["workload"]["drain"] != "on" or inputs["workload"]["grace_s"] <= inputs["workload"]["drain_timeout"]:
        raise NoData("consumers that die without leaving the group are not simulated")
    return simulate(situation(record, known), scaledobject.parse(policy, record.id))


def compare(record: Record, known: Calibration) -> Comparison:
    """Predicted against recorded, from the profile's start to the trial's end."""
    curve = predict(record, known)
    start = curves.profile_start(record)
    lag, replicas = curves.lag(record), curves.replicas(record)
    end = min(float(curve.t[-1]), float(lag["t"].iloc[-1]) - start)
    at = np.arange(0.0, end, STEP_S)
    changed = replicas["t"].to_numpy() - start
    real = _held(at, changed, replicas["desired"].to_numpy())
    model = _held(at, curve.t, curve.replicas)
    seen = lag[(lag["t"] >= start) & (lag["t"] <= start + end)]
    moments = seen["t"].to_numpy() - start
    asked, ready = (
        _held(moments, replicas["t"].to_numpy() - start, replicas[kind].to_numpy()) for kind in ("desired", "ready")
    )
    recorded = Curve(moments, seen["lag"].to_numpy(dtype=float), asked, ready)
    relief, threshold = curves.relief(record) - start, curves.policy(record).lag_threshold
    return Comparison(
        predicted=figures(curve, relief, threshold),
        recorded=figures(recorded, relief, threshold),
        within_one_pod=float((np.abs(real - model) <= 1).mean() * 100),
        equal=float((real == model).mean() * 100),
    )


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
    return 100 * (predicted / recorded - 1) if recorded else (0.0 if not predicted else float("inf"))
