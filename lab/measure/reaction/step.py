"""Reaction: from the spike's start to the first receipt of the first new pod, in stamped parts that sum to the total."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate, pairwise

import numpy as np
import pandas as pd

from lab.errors import NoData
from lab.inputs.own_consumer import RECEIPTS
from lab.inputs.policy import behavior
from lab.inputs.scaledobject import ScaledObject
from lab.judge.measure import Measure, detail, measure, number
from lab.judge.origin import UNSCALED
from lab.judge.quantity import Quantity, repeated
from lab.measure.progress import first_commit
from lab.model.hpa import DEFAULTS
from lab.record.store import Record

# In order. Each part ends with the event in its name. POLICY waits for KEDA and the HPA, and a scale compresses it.
PARTS = (
    "lag crosses",
    "KEDA and HPA decide",
    "pod created",
    "process started",
    "subscribed",
    "partitions owned",
    "first receipt",
)
POLICY = "KEDA and HPA decide"
IN_TIME = "the first new pod is at work in time, with all of its start divided like the wait for it"
COMMIT = "first commit"  # the last part of a consumer that writes no receipts
WATCH_S = 1.0  # a watch may see a step after the pod that it made


class Reaction(Measure):
    """The reaction: from the spike's start to the first receipt of a pod that was created since the first step up.

    ``parts`` maps each of PARTS to seconds, which sum to ``total_s``. They follow the pod whose receipt was the first: created,
    subscribed, its first partitions, that receipt. Whether the pod was Ready by then is no part of it. ``decided_s`` ends when
    the watch sees the first step up. In ``divided_s`` what the scale left of the pod's start whole is divided like the rest.
    Of a consumer that writes no receipts it ends with the first commit, and the parts that it does not tell are in the next.
    """

    spike_start = detail(float, "start of the spike, epoch s")
    pod = detail(str, "name of the first new pod at work")
    parts = detail(dict[str, float], "seconds of each part of the reaction")
    total_s = number("s", "reaction")
    decided_s = number("s", "time from the spike's start to the first step up")
    divided_s = number("s", "reaction, all of it divided by the scale")

    def part(self, name: str) -> Quantity:
        """The time of one of PARTS, s."""
        if self.runs:
            return repeated(one.part(name) for one in self.runs)
        return Quantity(f"reaction: {name}", "s", None if self.why else self.parts[name], self.why)


@measure
def reaction(record: Record) -> Reaction:
    """Decompose the reaction.

    There is no data where a stamp is missing, and the reason names the first such stamp. A group that never scaled has no
    reaction.
    """
    spike = record.zero
    decided = first_step(record)
    crossed = _crossed(record, spike, decided)
    pod, receipt = first_work(record, decided)
    stamps = {"lag crosses": crossed, POLICY: decided, **_stamps(record, pod, receipt)}
    ended = (min(stamp, receipt) for stamp in stamps.values())  # what comes after the receipt is no part of it
    ordered = accumulate((spike, *ended), max)  # a part that ends before its turn costs no time
    parts = {part: later - earlier for part, (earlier, later) in zip(stamps, pairwise(ordered), strict=True)}
    wait, start = decided - spike, receipt - decided
    divided = all_divided(record, wait, start)
    return Reaction(spike_start=spike, pod=pod, parts=parts, total_s=wait + start, decided_s=wait, divided_s=divided)


def all_divided(record: Record, wait: float, start: float) -> float:
    """A ``wait`` for pods and the ``start`` of one, s as seen, if the scale divided the whole.

    It divides the wait, and of the start what the workload declares. Where it left D / time + U of D + U, this is
    (D + U) / time: below a bound over time where D + U is below the bound. At real time it is the whole as seen.
    """
    time, work = record.scale.time, record.inputs.workload
    declared = min(start, work.start_at(time)) if work.divides("start_s") else 0.0
    return wait + declared + (start - declared) / time


def first_step(record: Record) -> float:
    """When the watch saw the first step up after the spike began, epoch s. Raises :class:`NoData` without one."""
    ups = (change.t for change in record.scalings if change.t > record.zero and change.after > change.before)
    if (first := next(ups, None)) is None:
        raise NoData("the HPA never asked for more replicas after the spike began")
    return first


def _crossed(record: Record, spike: float, decided: float) -> float:
    """When lag asked for more replicas. Where another trigger did so before, all of the wait for the decision is KEDA's and
    the HPA's: lag has no part of it."""
    others = isinstance(record.policy, ScaledObject) and len(record.policy.triggers) > 1
    try:
        crossed = crossing(record, spike)
    except NoData:
        if others:
            return spike
        raise
    return spike if others and crossed > decided else crossed


def crossing(record: Record, spike: float) -> float:
    """The time (epoch s) from which lag asks for more replicas: lag > lagThreshold x replicas x (1 + tolerance).

    The tolerance is the policy's own for scaling up, else the controller's. Raises :class:`NoData` when it never does.
    """
    own = behavior(record.policy)
    tolerance = DEFAULTS.tolerance if own is None or own.up.tolerance is None else own.up.tolerance
    asks = record.lag_threshold * record.wanted_at(spike) * (1 + tolerance)
    lag = record.lag
    times, values = lag["t"].to_numpy(), lag["lag"].to_numpy()
    over = np.flatnonzero((times >= spike) & (values > asks))
    if not len(over):
        raise NoData(f"lag never crossed {asks:g} after the spike began")
    at = int(over[0])
    if at == 0 or values[at - 1] >= asks:
        return float(times[at])
    # Samples are half a second apart and lag grows by thousands in between: the crossing lies on the line between two.
    within = (asks - values[at - 1]) / (values[at] - values[at - 1])
    return float(times[at - 1] + within * (times[at] - times[at - 1]))


def member_stamps(record: Record) -> pd.DataFrame:
    """By pod, epoch s: when it ``started``, ``subscribed`` and first was ``owning`` a partition; NaN where it never was."""
    events = record.group_events
    owning = events[(events["event"] == "assigned") & (events["owned"] > 0)]
    return pd.DataFrame(
        {
            "started": events[events["event"] == "started"].groupby("pod")["created"].min(),
            "subscribed": events[events["event"] == "subscribed"].groupby("pod")["t"].min(),
            "owning": owning.groupby("pod")["t"].min(),
        }
    ).astype(float)


def first_work(record: Record, step: float, until: float = math.inf) -> tuple[str, float]:
    """The pod created since the ``step`` up whose first receipt was the earliest, and when that was, epoch s.

    Of a consumer that writes no receipts it is the first commit of a partition that such a pod owned. Raises :class:`NoData`
    where there was none before ``until``, and for a record without receipts or commits.
    """
    pods = [name for name, pod in record.pods.items() if pod.added is not None and pod.added >= step - WATCH_S]
    receipts = record.inputs.workload.rung == RECEIPTS
    found = _first_receipt(record, pods) if receipts else first_commit(record.handovers, record.commits, pods)
    if found is None or found[1] >= until:
        at = pd.Timestamp(step, unit="s", tz="UTC").strftime("%H:%M:%S")
        before = "" if math.isinf(until) else " before the next burst"
        raise NoData(f"no pod created since the step up at {at} has a {'receipt' if receipts else 'commit'}{before}")
    return found


def _first_receipt(record: Record, pods: Sequence[str]) -> tuple[str, float] | None:
    first = record.receipts.groupby("pod")["end"].min()
    times = {name: float(first[name]) for name in pods if name in first.index}
    name = min(times, key=lambda pod: times[pod], default="")
    return (name, times[name]) if name else None


def _stamps(record: Record, name: str, at_work: float) -> dict[str, float]:
    """When each part of the pod's own ended, epoch s. Raises :class:`NoData` naming the first that is missing.

    A user's own consumer need not tell when its process started and when it subscribed.
    """
    pod, members, work = record.pods[name], member_stamps(record), record.inputs.workload
    stamps = {
        "pod created": pod.added,
        "process started": members["started"].get(name),
        "subscribed": members["subscribed"].get(name),
        "partitions owned": members["owning"].get(name),
        "first receipt" if work.rung == RECEIPTS else COMMIT: at_work,
    }
    found = {part: float(stamp) for part, stamp in stamps.items() if stamp is not None and not math.isnan(stamp)}
    untold = ("process started", "subscribed") if work.own else ()
    if missing := [part for part in stamps if part not in found and part not in untold]:
        raise NoData(f"{name}, the first new pod at work, has no stamp of: {missing[0]}")
    return found


class ColdStart(Measure):
    """The start of the pods that were created since traffic left its baseline and have a receipt.

    ``start``, ``join`` and ``total`` are medians over the pods. ``slowest`` is the largest total.
    """

    pods = number("pods", "new pods that came to work")
    start = number("s", "time from created to subscribed", UNSCALED)
    join = number("s", "time from subscribed to the first partition", UNSCALED)
    total = number("s", "time from created to the first receipt", UNSCALED)
    slowest = number("s", "time from created to the first receipt, slowest pod", UNSCALED)


@measure
def cold_start(record: Record) -> ColdStart:
    """Measure every new pod. There is no data when none has a receipt."""
    zero = record.zero
    created = {name: pod.added for name, pod in record.pods.items() if pod.added is not None and pod.added > zero}
    receipt = record.receipts.groupby("pod")["end"].min()
    stamps = member_stamps(record)[["subscribed", "owning"]]
    pods = pd.concat([pd.Series(created, dtype=float, name="created"), stamps, receipt.rename("receipt")], axis=1).dropna()
    if pods.empty:
        raise NoData("no pod created after the baseline came to a receipt")
    total = pods["receipt"] - pods["created"]
    return ColdStart(
        pods=len(pods),
        start=float((pods["subscribed"] - pods["created"]).median()),
        join=float((pods["owning"] - pods["subscribed"]).median()),
        total=float(total.median()),
        slowest=float(total.max()),
    )
