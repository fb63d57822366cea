"""Scaling: the number of replicas, its changes, and its place within the policy's bounds and the partitions."""

from __future__ import annotations

from lab.errors import NoData
from lab.judge.aggregate import count_flips
from lab.judge.measure import Measure, measure, number
from lab.measure.throughput import Throughput, clip, lagging_spans
from lab.record.store import Record


class ScaleEvents(Measure):
    """Scale events of the whole trial, and the replicas above the policy's floor.

    A flip is a scale-down that is followed by a scale-up.
    """

    scale_ups = number("steps", "scale-ups")
    scale_downs = number("steps", "scale-downs")
    flips = number("flips", "flips")
    above_floor_at_baseline = number("pods", "replicas above the floor at baseline")
    above_floor_at_end = number("pods", "replicas above the floor at the end")
    most_replicas = number("pods", "most replicas")


def flips(record: Record) -> int:
    """The number of scale-downs that are followed by a scale-up."""
    return count_flips(change.after > change.before for change in record.scalings)


@measure
def scale_events(record: Record) -> ScaleEvents:
    """Count scale events and flips. There is no data when the Deployment or the spike was never seen."""
    floor = record.policy.min_replicas
    spike = record.zero
    changes = record.scalings
    curve = record.replicas
    baseline = curve[curve["t"] < spike]
    return ScaleEvents(
        scale_ups=sum(change.after > change.before for change in changes),
        scale_downs=sum(change.after < change.before for change in changes),
        flips=flips(record),
        above_floor_at_baseline=int(baseline["desired"].max()) - floor,
        above_floor_at_end=int(curve["desired"].iloc[-1]) - floor,
        most_replicas=int(curve["desired"].max()),
    )


class PolicyExcess(Measure):
    """The largest excess of each kind over the policy's bounds and the partitions, from the first to the last replica count."""

    outside_bounds = number("pods", "replicas wanted outside of the policy's bounds")
    beyond_partitions = number("pods", "replicas wanted beyond the partitions")
    flips = number("flips", "flips")
    above_floor_at_end = number("pods", "replicas above the floor at the end")


@measure
def policy_excess(record: Record) -> PolicyExcess:
    """Read the wanted replicas. A spike is not needed. There is no data without a Deployment."""
    policy = record.policy
    wanted = record.replicas["desired"]
    least, most = int(wanted.min()), int(wanted.max())
    return PolicyExcess(
        outside_bounds=max(0, most - policy.max_replicas, policy.min_replicas - least),
        beyond_partitions=max(0, most - record.inputs.partitions),
        flips=flips(record),
        above_floor_at_end=int(wanted.iloc[-1]) - policy.min_replicas,
    )


class Plateau(Measure):
    """The longest time in which the wanted replicas did not change and all were Ready, while lag was above P x lagThreshold."""

    standing_at = number("pods", "replicas that the group stood at while lag was above P lagThresholds")
    standing_s = number("s", "time that the group stood still while lag was above P lagThresholds")
    lag = number("messages", "lag when the group came to its stand")
    rate = number("messages/s", "mean throughput of the group in its stand")


@measure
def plateau(record: Record) -> Plateau:
    """Measure the longest stand. There is no data when lag never was above P x lagThreshold."""
    threshold = record.lag_threshold * record.inputs.partitions
    lag = record.lag
    if not (lag["lag"] > threshold).any():
        raise NoData(f"lag never was above P x lagThreshold, {threshold}")
    above = lagging_spans(record, threshold)
    found = [(*part, count) for start, end, count in _stands(record) for part in clip(above, (start, end))]
    if not found:
        raise NoData("the group never stood still while lag was above the cap")
    begin, finish, count = max(found, key=lambda one: one[1] - one[0])
    before = lag[lag["t"] <= begin]["lag"]
    return Plateau(
        standing_at=count,
        standing_s=finish - begin,
        lag=int(before.iloc[-1] if not before.empty else lag["lag"].iloc[0]),
        rate=Throughput(record.receipts).rate(begin, finish),
    )


def _stands(record: Record) -> list[tuple[float, float, int]]:
    """(begin, end, replicas) of each time in which the wanted replicas did not change and all were Ready."""
    curve = record.replicas
    curve = curve.assign(over=curve["t"].shift(-1).fillna(float(record.lag["t"].iloc[-1])))
    still = curve[curve["ready"] == curve["desired"]]
    found: list[tuple[float, float, int]] = []
    for begin, over, count in still[["t", "over", "desired"]].itertuples(index=False, name=None):
        if found and found[-1][1:] == (begin, count):  # only what is neither wanted nor Ready changed
            found[-1] = (found[-1][0], over, count)
        else:
            found.append((begin, over, count))
    return found
