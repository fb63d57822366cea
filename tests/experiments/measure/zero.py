"""Zero: the first event after an idle time, from no pod to its receipt; and the way of a group back to no replica."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate, pairwise

import pandas as pd

from lab.errors import NoData
from lab.judge.measure import Measure, detail, measure, number, quantity
from lab.judge.origin import UNSCALED
from lab.judge.quantity import Quantity, repeated
from lab.measure.reaction.step import all_divided, member_stamps
from lab.record.store import Record

ARRIVAL = "arrival"  # the profile's phase that ends an idle time
CLOCK_S = 0.001  # an event is stamped so close to the begin of its phase

# In order. Each part ends with the event in its name. DECISION waits for KEDA or the HPA, and a scale compresses it.
DECISION = "replicas asked for"
PARTS = (DECISION, "pod created", "process started", "subscribed", "partitions owned", "receipt")


class FromZero(Measure):
    """The first event of each arrival that found no pod, from its own time to its receipt.

    An arrival is a phase "arrival" of the profile. It found no pod if no replica was asked for when it began, and no pod was
    left. ``parts`` maps each of PARTS to seconds, which sum to the event's age at its receipt. DECISION ends when the
    watch sees replicas asked for: it is the wait for KEDA's poll, or for the HPA's sync, with what that takes. The other
    parts follow the pod that processed the event: created, started, subscribed, its first partitions.

    A percentile is a nearest rank: for so many percent of these arrivals it took no longer. ``lag_before`` is the largest of
    the last samples of lag before them.
    """

    from_zero = number("arrivals", "arrivals that found no pod")
    lag_before = number("messages", "largest lag before an arrival")
    p50 = number("s", "age of the first event at its receipt, median")
    p95 = number("s", "age of the first event at its receipt, 95th percentile")
    divided_p95 = number("s", "age of the first event at its receipt, all of it divided by the scale, 95th percentile")
    least_start = number("s", "shortest part of a pod's start", UNSCALED)
    parts = detail(tuple[dict[str, float], ...], "seconds of each part, for each of these arrivals")

    def part(self, name: str, percent: int) -> Quantity:
        """The percentile ``percent`` of one of PARTS, s."""
        if self.runs:
            return repeated(one.part(name, percent) for one in self.runs)
        shown = f"first event after idle: {name}, {percent} %"
        if self.why:
            return Quantity(shown, "s", None, self.why)
        return Quantity(shown, "s", percentile([one[name] for one in self.parts], percent))


def percentile(values: Sequence[float], percent: float) -> float:
    """The nearest rank: the least of ``values`` that ``percent`` of them do not exceed."""
    return sorted(values)[max(0, math.ceil(len(values) * percent / 100) - 1)]


@measure
def from_zero(record: Record) -> FromZero:
    """Decompose each arrival that found no pod.

    There is no data where none did, and where an event or a stamp of one is missing; the reason names it.
    """
    phases = record.phases
    starts = phases[phases["label"] == ARRIVAL]["start"].tolist()
    events = record.events("partition", "offset", "ts")
    events = events.assign(t=events["ts"] / 1e9).sort_values("t", kind="stable")
    idle = [start for start in starts if _is_asleep(record, start)]
    if not idle:
        raise NoData(f"none of {len(starts)} arrivals found no pod")
    members = member_stamps(record)
    parts = tuple(_parts(record, events, members, start) for start in idle)
    totals = [sum(one.values()) for one in parts]
    divided = [all_divided(record, one[DECISION], total - one[DECISION]) for one, total in zip(parts, totals, strict=True)]
    lag = record.lag
    before = [float(seen.iloc[-1]) for start in idle if len(seen := lag[lag["t"] < start]["lag"])]
    return FromZero(
        from_zero=len(idle),
        lag_before=max(before, default=None),
        p50=percentile(totals, 50),
        p95=percentile(totals, 95),
        divided_p95=percentile(divided, 95),
        least_start=min(one[name] for one in parts for name in PARTS[2:]),
        parts=parts,
    )


def _is_asleep(record: Record, at: float) -> bool:
    """Whether no replica was asked for at ``at`` (epoch s), and no pod was there."""
    return not record.wanted_at(at) and all(
        pod.seen > at or (pod.gone is not None and pod.gone <= at) for pod in record.pods.values()
    )


def _parts(record: Record, events: pd.DataFrame, members: pd.DataFrame, start: float) -> dict[str, float]:
    """The parts of the first event of the arrival that began at ``start`` (epoch s)."""
    after = events[events["t"] >= start - CLOCK_S]
    if after.empty:
        raise NoData(f"no event came with the arrival at {start:.3f}")
    event = after.iloc[0]
    receipts = record.receipts
    covering = receipts[
        (receipts["partition"] == event["partition"])
        & (receipts["first"] <= event["offset"])
        & (receipts["last"] >= event["offset"])
    ]
    if covering.empty:
        raise NoData(f"the first event of the arrival at {start:.3f} was never processed")
    done = covering.loc[covering["end"].idxmin()]
    name, born = str(done["pod"]), float(event["t"])
    decided = next((one.t for one in record.scalings if one.t >= start and one.after > one.before), None)
    pod = record.pods.get(name)
    own = [float(members[one].get(name, math.nan)) for one in ("started", "subscribed", "owning")]
    if decided is None or pod is None or pod.added is None or any(map(math.isnan, own)):
        raise NoData(f"{name}, which processed the first event of the arrival at {start:.3f}, lacks a stamp")
    stamps = [born, decided, pod.added, *own, float(done["end"])]
    ordered = list(accumulate(stamps, max))  # a part that ends before its turn costs no time
    return {part: later - earlier for part, (earlier, later) in zip(PARTS, pairwise(ordered), strict=True)}


class ToZero(Measure):
    """The last way of the group down to zero: its steps since the last step up, to no replica."""

    most = number("pods", "replicas before the last way to zero")
    steps = number("steps", "steps of the last way to zero")
    largest_step = number("pods", "most pods that a step of the last way to zero took")
    last_step = number("pods", "pods that the last step to zero took")
    length = number("s", "time from the first step down to zero")


@measure
def to_zero(record: Record) -> ToZero:
    """Measure the last way; no data for a group that never went to zero."""
    changes = record.scalings
    ends = [place for place, one in enumerate(changes) if one.after == 0]
    if not ends:
        raise NoData("the group never went to zero")
    begin = ends[-1]
    while begin and changes[begin - 1].after < changes[begin - 1].before:
        begin -= 1
    way = changes[begin : ends[-1] + 1]
    taken = [one.before - one.after for one in way]
    return ToZero(most=way[0].before, steps=len(way), largest_step=max(taken), last_step=taken[-1], length=way[-1].t - way[0].t)


@quantity("pods", "most replicas asked for in the phase")
def most_replicas(record: Record, phase: str) -> int:
    """The most replicas asked for while the profile was in ``phase``. There is no data where it has no such phase."""
    start, end = record.span(phase)
    curve = record.replicas
    within = curve[(curve["t"] > start) & (curve["t"] < end)]["desired"]
    return int(max([record.wanted_at(start), *within]))
