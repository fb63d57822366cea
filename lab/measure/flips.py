"""Stability: how often the number of replicas changed, and how often it changed its mind."""

from __future__ import annotations

from collections.abc import Iterable

from lab.foresee.curve import flips
from lab.judge.measure import Measure, measure, number
from lab.record.replicas import Change
from lab.record.store import Record


class Stability(Measure):
    """Scale events of the whole trial, and replicas above the policy's floor. A flip is a scale-down followed by a scale-up."""

    scale_ups = number("steps", "scale-ups")
    scale_downs = number("steps", "scale-downs")
    flips = number("flips", "flips")
    above_floor_at_baseline = number("pods", "replicas above the floor at baseline")
    above_floor_at_end = number("pods", "replicas above the floor at the end")
    most_replicas = number("pods", "most replicas")


def count_flips(changes: Iterable[Change]) -> int:
    """A flip is a scale-down followed by a scale-up."""
    return flips(change.after > change.before for change in changes)


@measure
def stability(record: Record) -> Stability:
    """Count scale events and flips; no data when the Deployment or the spike was never seen."""
    floor = record.policy.min_replicas
    spike = record.zero
    changes = record.scalings
    curve = record.replicas
    baseline = curve[curve["t"] < spike]
    return Stability(
        scale_ups=sum(change.after > change.before for change in changes),
        scale_downs=sum(change.after < change.before for change in changes),
        flips=count_flips(changes),
        above_floor_at_baseline=int(baseline["desired"].max()) - floor,
        above_floor_at_end=int(curve["desired"].iloc[-1]) - floor,
        most_replicas=int(curve["desired"].max()),
    )
