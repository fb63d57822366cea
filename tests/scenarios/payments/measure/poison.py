"""What a poison does: the stall of its partition and the pods that this buys, and the containers that it ends."""

from __future__ import annotations

from lab.errors import NoData
from lab.inputs.failures import Place
from lab.judge.measure import Measure, measure, number
from lab.judge.origin import UNSCALED
from lab.measure.cost import cost
from lab.record.store import Record
from lab.record.views import CONSUMER

BACK_OFF = "CrashLoopBackOff"


class PoisonStall(Measure):
    """The partition whose message never succeeds, at the end. A ``progress`` of 0 is a stall at that message, or before it."""

    progress = number("messages", "messages of the poisoned partition committed past the poison")
    short = number("messages", "messages of the poisoned partition not committed before the poison")
    waiting = number("messages", "messages waiting on the poisoned partition")
    others = number("messages", "messages waiting on all other partitions")
    most = number("pods", "most replicas")
    scale_ups = number("steps", "scale-ups")
    pod_minutes = number("pod-minutes", "pod-minutes")
    useless = number("pod-minutes", "pod-minutes above the policy's floor")


@measure
def poison_stall(record: Record) -> PoisonStall:
    """Measure the poisoned partition. There is no data without a poison, and without offsets."""
    place = Place.parse(record.inputs.workload.poison)
    if place is None:
        raise NoData("the workload has no poison")
    partition, offset = place.partition, place.offset
    offsets = record.trial.offsets
    if partition not in offsets:
        raise NoData(f"no offsets of partition {partition} at the end of the trial")
    committed = offsets[partition].committed or 0
    waiting, changes = {number: one.lag for number, one in offsets.items()}, record.scalings
    curve, start, end = record.replicas, record.profile_start, record.end
    begun, until = curve["t"].clip(start, end), curve["t"].shift(-1).fillna(end).clip(start, end)
    above_floor = (curve["desired"] - record.policy.min_replicas).clip(lower=0)
    return PoisonStall(
        progress=max(0, committed - offset),
        short=max(0, offset - committed),
        waiting=waiting[partition],
        others=sum(waiting.values()) - waiting[partition],
        most=int(curve["desired"].max()),
        scale_ups=sum(change.after > change.before and change.t >= start for change in changes),
        pod_minutes=float(cost(record).pod_minutes),
        useless=float(((until - begun) * above_floor).sum()) / 60,
    )


class Casualties(Measure):
    """The restarts of the consumers' containers until the trial's end, as the pods' own status says.

    ``first_s`` is from the profile's start to the first restart that was seen; it is missing where there was none.
    """

    restarts = number("restarts", "restarts of consumers' containers")
    pods = number("pods", "pods whose container was restarted")
    backed_off = number("pods", f"pods that were in {BACK_OFF}")
    first_s = number("s", "first restart after the profile's start", UNSCALED)


@measure
def casualties(record: Record) -> Casualties:
    """Count them; no data where the trial never came to its profile."""
    start, end = record.profile_start, record.end
    counts: dict[str, int] = {}
    backed_off: set[str] = set()
    first: float | None = None
    for one in record.watched("Pod"):
        if one.t > end or one.object["metadata"].get("labels", {}).get("app") != CONSUMER:
            continue
        for status in (one.object.get("status") or {}).get("containerStatuses") or ():
            if (status.get("state") or {}).get("waiting", {}).get("reason") == BACK_OFF:
                backed_off.add(one.name)
            if (count := int(status.get("restartCount", 0))) > counts.get(one.name, 0):
                counts[one.name] = count
                first = one.t if first is None else first
    return Casualties(
        restarts=sum(counts.values()),
        pods=len(counts),
        backed_off=len(backed_off),
        first_s=None if first is None else first - start,
    )
