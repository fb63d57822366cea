"""Stability: how often the number of replicas changed, and how often it changed its mind."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lab.foresee.curve import flips
from lab.record.replicas import Change
from lab.record.store import Record


@dataclass(frozen=True)
class Stability:
    """Counts of scale events; replicas above the floor at baseline and at the end."""

    scale_ups: int
    scale_downs: int
    flips: int
    above_floor_at_baseline: int
    above_floor_at_end: int
    most_replicas: int


def count_flips(changes: Iterable[Change]) -> int:
    """A flip is a scale-down followed by a scale-up."""
    return flips(change.after > change.before for change in changes)


def stability(record: Record) -> Stability:
    """Count scale events and flips. Raises :class:`NoData` when the Deployment or the spike was never seen."""
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
