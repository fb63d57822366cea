"""Reaction: from the spike's start to the first receipt of the first new pod, in stamped parts that sum to the total."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from lab.errors import NoData
from lab.judge.measure import Measure, detail, measure, number
from lab.judge.quantity import Quantity
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
    spike = record.zero
    crossed = _crossing(record, spike)
    decided = next((change.t for change in record.scalings if change.t > spike and change.after > change.before), None)
    if decided is None:
        raise NoData("the HPA never asked for more replicas after the spike began")
    pod, stamps = min(_pods(record, decided), key=lambda item: max(item[1]["pod Ready"], item[1]["partitions assigned"]))
    ordered = [spike]
    for part, stamp in {"lag crosses": crossed, POLICY: decided, **stamps}.items():
        assert part == PARTS[len(ordered) - 1]
        ordered.append(max(ordered[-1], stamp))  # what is over before its turn has cost nothing
    parts = {part: later - earlier for part, (earlier, later) in zip(PARTS, pairwise(ordered), strict=True)}
    total = sum(parts.values())
    real = total + parts[POLICY] * (record.scale.time - 1)
    return Reaction(spike_start=spike, pod=pod, parts=parts, total_s=total, real_s=real)


def _crossing(record: Record, spike: float) -> float:
    """When lag first asked for more than the replicas there were: lag > lagThreshold x replicas x (1 + tolerance)."""
    threshold = record.lag_threshold
    curve = record.replicas
    before = curve[curve["t"] <= spike]
    held = int(before["desired"].iloc[-1]) if not before.empty else int(curve["desired"].iloc[0])
    asks = threshold * held * (1 + DEFAULTS.tolerance)
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


def _pods(record: Record, decided: float) -> list[tuple[str, dict[str, float]]]:
    """The stamps of every consumer pod created after ``decided`` that came as far as a receipt."""
    events = record.group_events
    started = events[events["event"] == "started"].groupby("pod")["created"].min()
    owning = events[(events["event"] == "assigned") & (events["owned"] > 0)].groupby("pod")["t"].min()
    receipts = record.receipts.groupby("pod")["end"].min()
    found = []
    for name, pod in record.pods.items():
        if pod.added is None or pod.ready is None or pod.added < decided - 1 or (pod.created or 0) < int(decided) - 1:
            continue
        if any(name not in stamps.index for stamps in (started, owning, receipts)):
            continue
        found.append(
            (
                name,
                {
                    "pod created": pod.added,
                    "process started": float(started[name]),
                    "pod Ready": pod.ready,
                    "partitions assigned": float(owning[name]),
                    "first receipt": float(receipts[name]),
                },
            )
        )
    if not found:
        raise NoData("no pod created after the decision became Ready, was assigned a partition and wrote a receipt")
    return found
