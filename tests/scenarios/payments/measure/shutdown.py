"""Shutdown: what a consumer did between being told to go and being gone, step by step."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise, product

from lab.errors import NoData, known
from lab.judge.measure import Measure, measure, number, quantity
from lab.judge.origin import UNSCALED
from lab.record.pods import Pod
from lab.record.store import Record

# In the order they must come; the name says what is done at its time.
STEPS = ("signal received", "work in flight finished", "consumption stopped", "offsets committed", "left the group", "exited")


@dataclass(frozen=True)
class Shutdown:
    """One pod's way out: seconds after the API server took its deletion, by step; a step that never came is absent.

    ``exit_code`` is the container's as the kubelet's part reported it, None when no one saw it; ``grace_s`` its
    terminationGracePeriodSeconds; ``gone_s`` when the pod's object went, None when it never did. ``refused`` are the commits
    that failed since its drain began. ``joined``: it had come as far as subscribing; one that had not has no work to finish
    and may have no handler for the signal yet.
    """

    pod: str
    steps: dict[str, float]
    exit_code: int | None
    grace_s: int
    gone_s: float | None
    refused: int
    joined: bool

    @property
    def in_order(self) -> bool:
        """Whether every step came, and none before the one it has to follow."""
        if any(step not in self.steps for step in STEPS):
            return False
        return all(self.steps[earlier] <= self.steps[later] for earlier, later in pairwise(STEPS))


def shutdowns(record: Record) -> list[Shutdown]:
    """Every consumer pod that was deleted while the trial ran, in order of time. Raises :class:`NoData` when none was."""
    end = record.end
    leaving = [pod for pod in record.pods.values() if pod.deleted is not None and pod.deleted <= end]
    found = [_way_out(record, pod, end) for pod in sorted(leaving, key=lambda pod: known(pod.deleted, "deletion"))]
    if not found:
        raise NoData("no consumer pod was deleted during the trial")
    return found


class Departures(Measure):
    """How the pods left that a scale-down took from their work, that is those that had joined the group."""

    pods = number("pods", "pods that a scale-down took from their work")
    out_of_order = number("pods", "pods that left out of order")
    failed = number("pods", "pods that exited with another code than 0")
    refused = number("pods", "pods whose last commit the group refused at first")


@measure
def departures(record: Record) -> Departures:
    """Count the pods by how they left; no data when no pod was deleted while the trial ran."""
    joined = [one for one in shutdowns(record) if one.joined]
    return Departures(
        pods=len(joined),
        out_of_order=sum(not one.in_order for one in joined),
        failed=sum(one.exit_code != 0 for one in joined),
        refused=sum(one.refused > 0 for one in joined),
    )


@quantity("s", "longest shutdown", UNSCALED)
def longest_shutdown(record: Record) -> float:
    """The longest time from the signal to having left the group; no data when a pod that had joined lacks one of the two."""
    joined = [one for one in shutdowns(record) if one.joined]
    if not joined:
        raise NoData("no pod that had joined the group was deleted during the trial")
    for pod, step in product(joined, ("left the group", "signal received")):
        if step not in pod.steps:
            raise NoData(f"{pod.pod}: no {step}")
    return max(one.steps["left the group"] - one.steps["signal received"] for one in joined)


def _way_out(record: Record, pod: Pod, end: float) -> Shutdown:
    """The way out of ``pod``; what the watch saw of it after ``end`` is not the trial's."""
    told = known(pod.deleted, "deletion")
    own = [one for one in record.reports("subscribed", "draining", "commit_failed", "committed", "left") if one.pod == pod.name]
    said = {one.event: one for one in own}
    stamps: dict[str, float] = {}
    refused = 0
    if "draining" in said:
        refused = sum(one.event == "commit_failed" and one.t >= said["draining"].t for one in own)
        stamps["consumption stopped"] = said["draining"].t
        if signalled := said["draining"].detail.get("signalled"):
            stamps["signal received"] = float(signalled)
            receipts = record.receipts[record.receipts["pod"] == pod.name]["end"]
            # A pod that had nothing in flight finished it when it was told to.
            last = float(receipts.max()) if len(receipts) else stamps["signal received"]
            stamps["work in flight finished"] = max(stamps["signal received"], last)
    for event, step in (("committed", "offsets committed"), ("left", "left the group")):
        if event in said:
            stamps[step] = said[event].t
    seen = pod.exited is not None and pod.exited <= end
    if pod.exited is not None and seen:
        stamps["exited"] = pod.exited
    gone_s = pod.gone - told if pod.gone is not None and pod.gone <= end else None
    steps = {step: stamps[step] - told for step in STEPS if step in stamps}
    return Shutdown(pod.name, steps, pod.exit_code if seen else None, pod.grace_s, gone_s, refused, "subscribed" in said)
