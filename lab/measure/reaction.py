"""Reaction: from the spike's start to the first receipt of the first new pod, in stamped parts that sum to the total."""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise

import numpy as np

from lab.errors import NoData
from lab.judge.measure import Measure, detail, measure, number
from lab.judge.quantity import Quantity
from lab.measure import curves
from lab.model.hpa import DEFAULTS
from lab.record.store import Record

# In order. The name says what ends with the stamp; ``POLICY`` parts wait for KEDA and the HPA and are compressed by a scale.
PARTS = (
    "lag crosses",
    "KEDA and HPA decide",
    "pod created",
    "process started",
    "pod Ready",
    "partitions assigned",
    "first receipt",
)
POLICY = "KEDA and HPA decide"


class Reaction(Measure):
    """The reaction of the first new pod to be both Ready and assigned, from the spike's start (epoch s) to its first receipt.

    ``parts`` maps each of PARTS to seconds; they sum to ``total_s``. ``real_s`` stretches the policy's wait back.
    """

    spike_start = detail(float, "start of the spike, epoch s")
    pod = detail(str, "name of the first new pod at work")
    parts = detail(dict[str, float], "seconds of each part of the reaction")
    total_s = number("s", "reaction")
    real_s = number("s", "reaction at real time")

    @property
    def dominant(self) -> str:
        """The part that took longest. Raises :class:`NoData` when there was no reaction."""
        return max(self.parts, key=lambda part: self.parts[part])

    def part(self, name: str) -> Quantity:
        """The time of one of PARTS, s."""
        return Quantity(f"reaction: {name}", "s", None if self.why else self.parts[name], self.why)


@measure
def reaction(record: Record) -> Reaction:
    """Decompose the reaction.

    No data names the first stamp that is missing: a group that never scaled has no reaction.
    """
    spike = curves.zero(record)
    crossed = _crossing(record, spike)
    decided = next((change.t for change in curves.scalings(record) if change.t > spike and change.after > change.before), None)
    if decided is None:
        raise NoData("the HPA never asked for more replicas after the spike began")
    pod, stamps = min(_pods(record, decided), key=lambda item: max(item[1]["pod Ready"], item[1]["partitions assigned"]))
    ordered = [spike]
    for part, stamp in {"lag crosses": crossed, POLICY: decided, **stamps}.items():
        assert part == PARTS[len(ordered) - 1]
        ordered.append(max(ordered[-1], stamp))  # what is over before its turn has cost nothing
    parts = {part: later - earlier for part, (earlier, later) in zip(PARTS, pairwise(ordered), strict=True)}
    total = sum(parts.values())
    factor = float(record.trial["inputs"]["scale"]["time"])
    real = total + parts[POLICY] * (factor - 1)
    return Reaction(spike_start=spike, pod=pod, parts=parts, total_s=total, real_s=real)


def _crossing(record: Record, spike: float) -> float:
    """When lag first asked for more than the replicas there were: lag > lagThreshold x replicas x (1 + tolerance)."""
    threshold = curves.policy(record).lag_threshold
    curve = curves.replicas(record)
    before = curve[curve["t"] <= spike]
    held = int(before["desired"].iloc[-1]) if not before.empty else int(curve["desired"].iloc[0])
    asks = threshold * held * (1 + DEFAULTS.tolerance)
    lag = curves.lag(record)
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


def _pods(record: Record, decided: float) -> list[tuple[str, dict[str, float]]]:
    """The stamps of every consumer pod created after ``decided`` that came as far as a receipt."""
    created: dict[str, float] = {}
    ready: dict[str, float] = {}
    for t, event, item in curves.objects(record, "Pod"):
        name = item["metadata"]["name"]
        if item["metadata"].get("labels", {}).get("app") != "consumer":
            continue
        if event == "ADDED" and _seconds(item["metadata"]["creationTimestamp"]) >= int(decided) - 1:
            created.setdefault(name, t)
        conditions = item.get("status", {}).get("conditions", [])
        if any(one["type"] == "Ready" and one["status"] == "True" for one in conditions):
            ready.setdefault(name, t)
    events = record.group_events
    started = events[events["event"] == "started"].groupby("pod")["created"].min()
    owning = events[(events["event"] == "assigned") & (events["owned"] > 0)].groupby("pod")["t"].min()
    receipts = record.receipts.groupby("pod")["end"].min()
    found = []
    for name, at in created.items():
        if at < decided - 1 or any(name not in stamps for stamps in (ready, started.index, owning.index, receipts.index)):
            continue
        found.append(
            (
                name,
                {
                    "pod created": at,
                    "process started": float(started[name]),
                    "pod Ready": ready[name],
                    "partitions assigned": float(owning[name]),
                    "first receipt": float(receipts[name]),
                },
            )
        )
    if not found:
        raise NoData("no pod created after the decision became Ready, was assigned a partition and wrote a receipt")
    return found


def _seconds(stamp: str) -> float:
    return datetime.fromisoformat(stamp).timestamp()
