"""Casualties: containers that ended by themselves or by their liveness probe, as the pods' own status says."""

from __future__ import annotations

from lab.judge.measure import Measure, measure, number
from lab.judge.origin import UNSCALED
from lab.record.store import Record
from lab.record.views import CONSUMER

BACK_OFF = "CrashLoopBackOff"


class Casualties(Measure):
    """The restarts of the consumers' containers until the trial's end.

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
