"""Acceptance: what any policy is held to on any profile, whatever its bounds and however small the backlog."""

from __future__ import annotations

from lab.errors import NoData
from lab.judge.measure import Measure, measure, number
from lab.judge.quantity import Quantity
from lab.measure.drain import caught_up, ideal
from lab.measure.flips import count_flips
from lab.record.store import Record

LEAST_S = 5.0  # what a new pod needs to be at work, which no scale divides: a shorter drain says nothing of the policy


class Kept(Measure):
    """What the policy wanted, from the first to the last replica count; the largest excess of each kind."""

    outside_bounds = number("pods", "replicas wanted outside of the policy's bounds")
    beyond_partitions = number("pods", "replicas wanted beyond the partitions")
    flips = number("flips", "flips")
    above_floor_at_end = number("pods", "replicas above the floor at the end")


@measure
def kept(record: Record) -> Kept:
    """Read the wanted replicas; needs no spike, and is no data without a Deployment."""
    policy = record.policy
    wanted = record.replicas["desired"]
    least, most = int(wanted.min()), int(wanted.max())
    return Kept(
        outside_bounds=max(0, most - policy.max_replicas, policy.min_replicas - least),
        beyond_partitions=max(0, most - record.inputs.partitions),
        flips=count_flips(record.scalings),
        above_floor_at_end=int(wanted.iloc[-1]) - policy.min_replicas,
    )


class CatchUp(Measure):
    """The time from the last burst's end to one lagThreshold of lag, and the best that skew and the policy's ceiling allow."""

    seconds = number("s", "drain time")
    best_s = number("s", "best drain time that the policy's ceiling and the hottest partition allow")

    @property
    def over_best(self) -> Quantity:
        """The drain time as a multiple of the best."""
        return (self.seconds / self.best_s).named(
            "drain time over the best the policy's ceiling and the hottest partition allow"
        )


@measure
def catch_up(record: Record) -> CatchUp:
    """Measure the drain against its best: the hottest partition on a pod of its own, or all pods the ceiling allows.

    best = max(ideal of :mod:`lab.measure.drain`, lag / (pods x rate - inflow), 5 s). No data when lag never came back, or when
    the traffic that follows is as much as the pods can take.
    """
    end = record.relief
    best = max(ideal(record, end), _together(record, end), LEAST_S)
    if best == float("inf"):
        raise NoData("after the last burst as much arrives as the pods, or one for the hottest partition, can take")
    return CatchUp(seconds=caught_up(record).number, best_s=best)


def _together(record: Record, end: float) -> float:
    """Seconds that all pods at the ceiling, or as many as there are partitions, need for the lag at ``end``."""
    pods = min(record.policy.max_replicas, record.inputs.partitions)
    spare = pods * record.inputs.pod_rate - record.profile.steps[-1].rate
    lag = record.lag
    before = lag[lag["t"] <= end]["lag"]
    backlog = float(before.iloc[-1]) if len(before) else 0.0
    if not backlog:
        return 0.0
    return backlog / spare if spare > 0 else float("inf")
