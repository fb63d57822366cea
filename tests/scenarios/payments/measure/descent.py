"""Descent: how an HPA went down by its own log: how fast, and how long it had asked for no more before."""

from __future__ import annotations

from collections.abc import Sequence

from lab.errors import NoData
from lab.judge.measure import Measure, measure, number
from lab.model.hpa_log import Sync
from lab.record.store import Record

EDGE_S = 0.05  # between a decision and its line in the log: what is at a window's edge by less is on either side of it


class Descent(Measure):
    """The steps down of a trial's HPA under a window and one policy of pods.

    ``early`` counts the steps down at which a proposal within the window before still asked for as many pods as there were, or
    more. ``least_low_s`` is the shortest time for which all proposals before a step had asked for fewer; it is missing where
    none ever asked for more. ``most_pods`` is the most that went within one period of the policy.
    """

    steps = number("steps", "steps down")
    window_s = number("s", "window down")
    early = number("steps", "steps down before the window was over")
    least_low_s = number("s", "shortest time of low proposals before a step down")
    period_s = number("s", "period of the policy down")
    allowed = number("pods", "pods that the policy lets go in a period")
    most_pods = number("pods", "most pods that went in a period")


@measure
def descent(record: Record) -> Descent:
    """Measure the trial's syncs; no data without an HPA that went down under a window and one policy of pods."""
    return descended(record.hpa_syncs)


def descended(found: Sequence[Sync]) -> Descent:
    """Measure the syncs ``found``, in order of time. Raises :class:`NoData` like :func:`descent`."""
    rules = found[0].spec.behavior.down if found and found[0].spec.behavior else None
    policies = [one for one in rules.policies if one.type == "Pods"] if rules else []
    if rules is None or rules.window_s is None or len(policies) != 1 or len(rules.policies) != 1:
        raise NoData("no HPA with a window down and one policy of pods")
    downs = [(number, one) for number, one in enumerate(found) if one.desired < one.current]
    if not downs:
        raise NoData("the HPA never went down")
    window_s, (policy,) = rules.window_s, policies
    low = [_low_s(found[: number + 1]) for number, _ in downs]
    known = [seconds for seconds in low if seconds is not None]
    times = [(one.at if one.scaled_at is None else one.scaled_at, one.current - one.desired) for _, one in downs]
    return Descent(
        steps=len(downs),
        window_s=window_s,
        early=sum(seconds < window_s - EDGE_S for seconds in known),
        least_low_s=min(known, default=None),
        period_s=policy.period_s,
        allowed=policy.value,
        most_pods=max(
            sum(count for at, count in times if begin <= at < begin + policy.period_s - EDGE_S) for begin, _ in times
        ),
    )


def _low_s(until: Sequence[Sync]) -> float | None:
    """How long before the last of ``until`` a proposal asked for as many pods as it had; None where none did."""
    last = until[-1]
    asked = [one.at for one in until if one.proposed is not None and one.proposed >= last.current]
    return last.at - asked[-1] if asked else None
