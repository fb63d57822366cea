"""Idle: what replicas beyond the number of partitions do. A partition has one consumer, so they should do nothing."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from lab.errors import NoData
from lab.judge.measure import Measure, detail, measure, number
from lab.measure import churn
from lab.measure.dip import Processed
from lab.record.store import Record

LEAST_S = 1.0  # a mean over less says nothing: batches take 50 ms, and lag is sampled twice a second

Span = tuple[float, float]


class Idle(Measure):
    """The longest stretch with more Ready (and wanted) replicas than ``partitions`` and no scale-down, ``stretch_s`` s long.

    ``replicas`` is the most of them in it, ``surplus`` how many exceed the partitions. Its last ``settled_s`` s come after
    its last handover: in them ``idle_pods`` pods own no partition. The surplus are those, and if they are fewer than the
    members exceed the partitions by, then also those that own least: they own ``assigned_to_surplus`` partitions and began
    batches of ``messages_by_surplus`` messages, both 0 if a surplus is idle. ``pods`` names every member with its
    partitions and messages. Rates are the group's mean messages/s while it had lag, with as many Ready replicas as
    partitions and in the settled part; no data when that lasted under 1 s. ``rebalances_beyond`` are those from the first
    Ready replica too many to the stretch's end.
    """

    partitions = number("partitions", "partitions of the topic")
    replicas = number("pods", "replicas Ready and wanted at once")
    surplus = number("pods", "replicas beyond P")
    idle_pods = number("pods", "pods without a partition")
    assigned_to_surplus = number("partitions", "partitions owned by the surplus")
    messages_by_surplus = number("messages", "messages processed by the surplus")
    rate_at_p = number("messages/s", "throughput of the group with P replicas")
    rate_beyond = number("messages/s", "throughput of the group with more than P replicas")
    rebalances_beyond = number("rebalances", "rebalances with more than P replicas")
    stretch_s = number("s", "longest time with more than P replicas")
    settled_s = number("s", "time at rest with more than P replicas")
    pods = detail(tuple[tuple[str, int, int], ...], "each pod with its partitions and messages")


@measure
def idle(record: Record) -> Idle:
    """Measure the surplus; no data when there never was one, or the group never came to rest with it."""
    partitions = record.inputs.partitions_after or record.inputs.partitions
    beyond, at_p, most = _stretches(record, partitions)
    if not beyond:
        raise NoData(f"never more replicas than the {partitions} partitions were Ready and wanted: {most} at most")
    start, end = max(beyond, key=lambda span: span[1] - span[0])
    handovers = [change for change in record.handovers if start <= change.t <= end]
    rest = handovers[-1].t if handovers else start
    if end - rest < LEAST_S:
        raise NoData(f"the group never came to rest with more than {partitions} replicas: only for {end - rest:.1f} s")
    curve = record.replicas
    held = curve[(curve["t"] >= start) & (curve["t"] < end)]
    replicas = int(held[["desired", "ready"]].min(axis=1).max())
    members = _members(record, rest, end)
    spare = max(len(members) - partitions, sum(owned == 0 for _, owned, _ in members))
    surplus = sorted(members, key=lambda member: member[1])[:spare]
    done, lagged = Processed(record.receipts), lagging(record)
    return Idle(
        partitions=partitions,
        replicas=replicas,
        surplus=replicas - partitions,
        idle_pods=sum(owned == 0 for _, owned, _ in members),
        assigned_to_surplus=sum(owned for _, owned, _ in surplus),
        messages_by_surplus=sum(messages for _, _, messages in surplus),
        rate_at_p=mean_rate(done, [part for span in at_p for part in clipped(lagged, span)]),
        rate_beyond=mean_rate(done, clipped(lagged, (rest, end))),
        rebalances_beyond=len(churn.rebalances(record, beyond[0][0], end)),
        stretch_s=end - start,
        settled_s=end - rest,
        pods=tuple(members),
    )


def lagging(record: Record) -> list[Span]:
    """When the group had lag: from each sample above 0 to the next."""
    lag = record.lag
    times, behind = lag["t"].to_numpy(dtype=float), lag["lag"].to_numpy() > 0
    return [(float(a), float(b)) for a, b, some in zip(times[:-1], times[1:], behind[:-1], strict=True) if some]


def clipped(spans: Iterable[Span], within: Span) -> list[Span]:
    """What of ``spans`` lies within one."""
    cut = ((max(start, within[0]), min(end, within[1])) for start, end in spans)
    return [(start, end) for start, end in cut if start < end]


def mean_rate(done: Processed, spans: list[Span]) -> float | None:
    """Messages/s over all of ``spans`` together; None when they last under 1 s."""
    seconds = sum(end - start for start, end in spans)
    if seconds < LEAST_S:
        return None
    edges = done.by(np.array(spans, dtype=np.float64))
    return float((edges[:, 1] - edges[:, 0]).sum()) / seconds


def _stretches(record: Record, partitions: int) -> tuple[list[Span], list[Span], int]:
    """Stretches with more Ready and wanted replicas than partitions, those with as many Ready, and the most ever both."""
    curve = record.replicas
    times, desired, ready = (curve[name].tolist() for name in ("t", "desired", "ready"))
    ends = [*times[1:], max(times[-1], record.end)]
    beyond: list[Span] = []
    at_p: list[Span] = []
    for row, span in enumerate(zip(times, ends, strict=True)):
        if ready[row] == partitions:
            at_p.append(span)
        if min(desired[row], ready[row]) <= partitions:
            continue
        # Told to scale down, pods leave before they are seen to be gone: what follows is another stretch.
        kept = row > 0 and desired[row] >= desired[row - 1]
        if beyond and kept and beyond[-1][1] == span[0]:
            beyond[-1] = (beyond[-1][0], span[1])
        else:
            beyond.append(span)
    return beyond, at_p, max(map(min, desired, ready))


def _members(record: Record, start: float, end: float) -> list[tuple[str, int, int]]:
    """(pod, partitions it owns, messages of batches it began from ``start`` to ``end``) of every pod Ready at ``end``.

    A pod owns what it reported last or exported in that time, whichever is more; one that was never assigned owns none.
    """
    events = record.group_events
    told = events[(events["t"] <= end) & (events["owned"].notna() | (events["event"] == "started"))]
    last = told.sort_values("t", kind="stable").drop_duplicates("pod", keep="last").set_index("pod")["owned"]
    owned = last.astype(float).fillna(0).to_dict()  # a container that started anew owns nothing yet
    samples = record.samples
    exported = samples[(samples["metric"] == "assigned_partitions") & samples["t"].between(start, end)]
    shown = exported.groupby("pod")["value"].max().to_dict()
    begun = record.receipts[record.receipts["start"].between(start, end)]
    messages = begun.groupby("pod")["count"].sum().to_dict()
    alive = sorted(name for name, pod in record.pods.items() if pod.ready_before(end))
    return [(pod, int(max(owned.get(pod, 0), shown.get(pod, 0))), int(messages.get(pod, 0))) for pod in alive]
