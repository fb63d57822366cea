"""Cost: pod-minutes, the idle part of them, and the replicas beyond the number of partitions."""

from __future__ import annotations

import numpy as np
import pandas as pd

from lab.errors import NoData
from lab.inputs.consumer import SLACK_S
from lab.judge.measure import Measure, detail, measure, number
from lab.judge.origin import UNSCALED
from lab.measure.rebalance import rebalance_spans
from lab.measure.throughput import LEAST_S, Span, Throughput, clip, lagging_spans, mean_rate
from lab.record.store import Record


class Cost(Measure):
    """The cost of the consumer pods from the profile's start to the trial's end, with ``pod_minutes`` in compressed time.

    A pod is idle while it has no work: from the end of a batch to the begin of the next one, unless that follows within 20 ms.
    In so short a time a saturated pod makes its receipts durable and fetches what it does next.
    """

    pod_minutes = number("pod-minutes", "pod-minutes")
    real_pod_minutes = number("pod-minutes", "pod-minutes at real time", UNSCALED)
    idle_ratio = number("of pod time", "idle share of pod time")
    pods = number("pods", "pods that ever were")


@measure
def cost(record: Record) -> Cost:
    """Sum the lives of all consumer pods. There is no data when there was no pod."""
    lives = record.lives()
    seconds = sum(lives.values())
    busy = busy_seconds(record.receipts, record.profile_start, record.end)
    return Cost(
        pod_minutes=seconds / 60,
        real_pod_minutes=seconds / 60 * record.scale.time,
        idle_ratio=1 - busy / seconds,
        pods=len(lives),
    )


def busy_seconds(receipts: pd.DataFrame, start: float, end: float) -> float:
    """Seconds from ``start`` to ``end`` in which a pod had work, over all pods together."""
    batches = receipts[["pod", "start", "end"]].drop_duplicates().sort_values(["pod", "start"], ignore_index=True)
    same_pod = (batches["pod"] == batches["pod"].shift(-1)).to_numpy()
    begins, ends = batches["start"].to_numpy(dtype=float), batches["end"].to_numpy(dtype=float)
    following = np.where(same_pod, np.append(begins[1:], np.inf), np.inf)
    until = np.where(following - ends <= SLACK_S, following, ends)
    return float(np.maximum(0.0, np.clip(until, start, end) - np.clip(begins, start, end)).sum())


class SurplusReplicas(Measure):
    """Replicas beyond the number of partitions, which should do nothing: a partition has one consumer.

    The measured stretch is the longest one with more Ready and wanted replicas than ``partitions`` and no scale-down. It lasts
    ``stretch_s`` seconds. ``replicas`` is its largest number of replicas, and ``surplus`` is that number less the partitions.
    Its last ``settled_s`` seconds come after its last handover, and in them ``idle_pods`` pods own no partition.

    The surplus pods are those without a partition. If these are fewer than the members exceed the partitions by, the pods
    that own least count too. The surplus pods own ``assigned_to_surplus`` partitions and began batches of
    ``messages_by_surplus`` messages. Both are 0 if the surplus is idle. ``pods`` names every member with its partitions and
    messages.

    Both rates are the group's mean messages/s while it had lag: one with as many Ready replicas as partitions, one in the
    settled part. A rate is missing when its time is under 1 s. ``rebalances_beyond`` counts the rebalances from the first
    surplus Ready replica to the stretch's end.
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
def surplus_replicas(record: Record) -> SurplusReplicas:
    """Measure the surplus. There is no data when there never was one, or when the group never came to rest with it."""
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
    done, lagged = Throughput(record.receipts), lagging_spans(record)
    return SurplusReplicas(
        partitions=partitions,
        replicas=replicas,
        surplus=replicas - partitions,
        idle_pods=sum(owned == 0 for _, owned, _ in members),
        assigned_to_surplus=sum(owned for _, owned, _ in surplus),
        messages_by_surplus=sum(messages for _, _, messages in surplus),
        rate_at_p=mean_rate(done, [part for span in at_p for part in clip(lagged, span)]),
        rate_beyond=mean_rate(done, clip(lagged, (rest, end))),
        rebalances_beyond=len(rebalance_spans(record, beyond[0][0], end)),
        stretch_s=end - start,
        settled_s=end - rest,
        pods=tuple(members),
    )


def _stretches(record: Record, partitions: int) -> tuple[list[Span], list[Span], int]:
    """(spans with more Ready and wanted replicas than partitions, spans with as many Ready, most Ready and wanted at once)."""
    curve = record.replicas
    times, desired, ready = (curve[name].tolist() for name in ("t", "desired", "ready"))
    spans = list(zip(times, [*times[1:], max(times[-1], record.end)], strict=True))
    at_p = [span for span, count in zip(spans, ready, strict=True) if count == partitions]
    beyond: list[Span] = []
    for row, span in enumerate(spans):
        if min(desired[row], ready[row]) <= partitions:
            continue
        # Pods that scale down leave the group before the watch shows it, so another stretch begins here.
        stays = row > 0 and desired[row] >= desired[row - 1]
        if beyond and stays and beyond[-1][1] == span[0]:
            beyond[-1] = (beyond[-1][0], span[1])
        else:
            beyond.append(span)
    return beyond, at_p, max(map(min, desired, ready))


def _members(record: Record, start: float, end: float) -> list[tuple[str, int, int]]:
    """(pod, its partitions, messages of the batches that it began from ``start`` to ``end``) of every pod Ready at ``end``.

    A pod's partitions are the larger of two numbers: its last report, and its exported metric in that time. A pod that was
    never assigned a partition owns none.
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
