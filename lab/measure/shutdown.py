"""Shutdown: what a consumer did between being told to go and being gone, step by step."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from lab.errors import NoData
from lab.judge.measure import Measure, measure, number, quantity
from lab.measure import curves
from lab.record.store import Record

# In the order they must come; the name says what is done at its time.
STEPS = ("signal received", "work in flight finished", "consumption stopped", "offsets committed", "left the group", "exited")


@dataclass(frozen=True)
class Shutdown:
    """One pod's way out: seconds after the API server took its deletion, by step; a step that never came is absent.

    ``exit_code`` is the container's as the kubelet's part reported it, None when no one saw it; ``grace_s`` its
    terminationGracePeriodSeconds; ``gone_s`` when the pod's object went, None when it never did. ``joined``: it had come as
    far as subscribing; one that had not has no work to finish and may have no handler for the signal yet.
    """

    pod: str
    steps: dict[str, float]
    exit_code: int | None
    grace_s: int
    gone_s: float | None
    joined: bool

    @property
    def in_order(self) -> bool:
        """Whether every step came, and none before the one it has to follow."""
        if any(step not in self.steps for step in STEPS):
            return False
        return all(self.steps[earlier] <= self.steps[later] for earlier, later in pairwise(STEPS))

    @property
    def total_s(self) -> float:
        """From the signal to having left the group, s. Raises :class:`NoData` when one of them was never seen."""
        try:
            return self.steps["left the group"] - self.steps["signal received"]
        except KeyError as missing:
            raise NoData(f"{self.pod}: no {missing.args[0]}") from None


def shutdowns(record: Record) -> list[Shutdown]:
    """Every consumer pod that was deleted while the trial ran, in order of time. Raises :class:`NoData` when none was."""
    end = float(record.trial["times"]["ended"])
    told: dict[str, tuple[float, int]] = {}
    gone: dict[str, float] = {}
    codes: dict[str, tuple[int, float]] = {}
    for t, event, item in curves.objects(record, "Pod"):
        metadata = item["metadata"]
        if metadata.get("labels", {}).get("app") != "consumer" or t > end:
            continue
        name = metadata["name"]
        if "deletionTimestamp" in metadata:
            grace = int(metadata.get("deletionGracePeriodSeconds") or 0)
            told.setdefault(name, (t, grace))
        for one in (item.get("status") or {}).get("containerStatuses") or ():
            if over := (one.get("state") or {}).get("terminated"):
                codes.setdefault(name, (int(over["exitCode"]), t))
        if event == "DELETED":
            gone[name] = t
    found = [_way_out(record, name, *told[name], codes.get(name), gone.get(name)) for name in told]
    if not found:
        raise NoData("no consumer pod was deleted during the trial")
    return found


class Departures(Measure):
    """How the pods left that a scale-down took from their work, that is those that had joined the group."""

    pods = number("pods", "pods that a scale-down took from their work")
    out_of_order = number("pods", "pods that left out of order")
    failed = number("pods", "pods that exited with another code than 0")


@measure
def departures(record: Record) -> Departures:
    """Count the pods by how they left; no data when no pod was deleted while the trial ran."""
    joined = [one for one in shutdowns(record) if one.joined]
    return Departures(
        pods=len(joined),
        out_of_order=sum(not one.in_order for one in joined),
        failed=sum(one.exit_code != 0 for one in joined),
    )


@quantity("s", "longest shutdown")
def longest_shutdown(record: Record) -> float:
    """The longest time from the signal to having left the group; no data when a pod that had joined lacks one of the two."""
    seconds = [one.total_s for one in shutdowns(record) if one.joined]
    if not seconds:
        raise NoData("no pod that had joined the group was deleted during the trial")
    return max(seconds)


def _way_out(
    record: Record, pod: str, told: float, grace_s: int, code: tuple[int, float] | None, gone: float | None
) -> Shutdown:
    events = record.group_events
    own = events[(events["pod"] == pod) & events["event"].isin(["subscribed", "draining", "committed", "left"])]
    said: dict[str, tuple[float, dict[str, Any]]] = {
        event: (float(t), json.loads(detail)) for t, event, detail in own[["t", "event", "detail"]].itertuples(index=False)
    }
    stamps: dict[str, float] = {}
    if "draining" in said:
        t, detail = said["draining"]
        stamps["consumption stopped"] = t
        if detail.get("signalled"):
            stamps["signal received"] = float(detail["signalled"])
            receipts = record.receipts[record.receipts["pod"] == pod]["end"]
            # A pod that had nothing in flight finished it when it was told to.
            last = float(receipts.max()) if len(receipts) else stamps["signal received"]
            stamps["work in flight finished"] = max(stamps["signal received"], last)
    for event, step in (("committed", "offsets committed"), ("left", "left the group")):
        if event in said:
            stamps[step] = said[event][0]
    if code is not None:
        stamps["exited"] = code[1]
    steps = {step: stamps[step] - told for step in STEPS if step in stamps}
    return Shutdown(pod, steps, code[0] if code else None, grace_s, None if gone is None else gone - told, "subscribed" in said)
