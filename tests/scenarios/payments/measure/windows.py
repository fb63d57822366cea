"""The windows of an HPA: which recommendation of the one up it followed, and how it went down by its own log.

``scaleUp.stabilizationWindowSeconds`` keeps the recommendations of so many seconds. A widespread explanation says that the
*highest* of them decides. ``stabilizeRecommendationWithBehaviors`` in ``horizontal.go`` of Kubernetes 1.36 takes the
*smallest*. The rules differ at a sync with a recommendation in the window that is no more than the current replicas. By the
first rule the HPA scales up at once, by the second it stays.
"""

from __future__ import annotations

from collections.abc import Sequence

from lab.errors import NoData
from lab.judge.measure import Measure, detail, measure, number, quantity
from lab.model.hpa_log import Sync
from lab.record.store import Record

STABILIZED = "ScaleUpStabilized"
EDGE_S = 0.05  # between a decision and its line in the log: what is at a window's edge by less is on either side of it


class UpWindow(Measure):
    """Syncs that propose more than the current replicas, by their outcome.

    The two rules differ at ``told_apart`` syncs. Of these ``stayed`` follow the smallest recommendation and ``raised`` the
    highest. At ``beyond`` steps up every recommendation of the window asked for more. Of these ``followed`` went no further
    than the smallest. ``said`` is the controller's own reason in the HPA's status.
    """

    asking = number("syncs", "syncs that asked for more replicas")
    told_apart = number("syncs", "syncs at which the highest recommendation would have scaled up")
    stayed = number("syncs", "syncs that stayed although the highest recommendation asked for more")
    raised = number("syncs", "syncs that scaled up although a recommendation in the window did not")
    beyond = number("syncs", "steps up where all of the window asked for more")
    followed = number("syncs", "steps up no further than the smallest recommendation of the window")
    share = number("%", "share of steps up within the smallest recommendation of the window")
    said = detail(str, "the controller's own reason in the HPA's status, empty if it never gave one")


@measure
def up_window(record: Record) -> UpWindow:
    """Sort the trial's syncs. There is no data without an HPA, and where its window up is 0."""
    found = record.hpa_syncs
    behavior = found[0].spec.behavior if found else None
    window = behavior.up.window_s if behavior else None
    if not window:
        raise NoData("no HPA with a window up")
    conditions = (one for status in record.hpa_statuses for one in status.conditions)
    said = next((one.message for one in conditions if one.reason == STABILIZED), "")
    return count_syncs(found, window, said)


def count_syncs(found: Sequence[Sync], window_s: int, said: str = "") -> UpWindow:
    """The counts of the syncs ``found``, in order of time. The edge of the window of ``window_s`` seconds is not in it."""
    recent: list[tuple[float, int]] = [(found[0].at, found[0].current)] if found else []  # as the controller begins
    asking = told_apart = stayed = raised = beyond = followed = 0
    for sync in found:
        if sync.proposed is None:
            continue
        within = [count for at, count in recent if at > sync.at - window_s]
        recent.append((sync.at, sync.proposed))
        if sync.proposed <= sync.current:
            continue
        asking += 1
        smallest = min([sync.proposed, *within])
        if smallest <= sync.current:
            told_apart += 1
            stayed += sync.desired == sync.current
            raised += sync.desired > sync.current
        elif sync.desired > sync.current:  # otherwise the policies held it: a period had its pods
            beyond += 1
            followed += sync.desired <= smallest
    return UpWindow(
        asking=asking,
        told_apart=told_apart,
        stayed=stayed,
        raised=raised,
        beyond=beyond,
        followed=followed,
        share=100 * followed / beyond if beyond else None,
        said=said,
    )


@quantity("steps", "steps up on a spike shorter than the window")
def steps_in_burst(record: Record) -> int:
    """Steps up from the phase "burst" to the phase "spike". There is no data when the producer did not come to both."""
    begun = {phase: at for at, phase in reversed(record.phases_begun)}
    if not {"burst", "spike"} <= begun.keys():
        raise NoData("the profile has no burst before a spike")
    ups = (change for change in record.scalings if change.after > change.before)
    return sum(begun["burst"] <= change.t < begun["spike"] for change in ups)


@quantity("x", "replicas after a period of the policies up, over those before")
def first_period_factor(record: Record) -> float:
    """Replicas after over replicas before the first period in which the metric asked for more than the policies up allowed.

    Times are the controller's own. There is no data when the policies never held back a metric.
    """
    found = record.hpa_syncs
    behavior = found[0].spec.behavior if found else None
    if behavior is None:
        raise NoData("no HPA with a behavior")
    return period_factor(found, max(policy.period_s for policy in behavior.up.policies))


def period_factor(found: Sequence[Sync], period_s: float) -> float:
    """:func:`first_period_factor` of syncs, with policies of ``period_s`` seconds. Raises :class:`NoData` when it has none."""
    quiet_since = float("-inf")  # a step within the period of another step begins no period
    for first in found:
        start = first.scaled_at or first.at
        if first.desired <= first.current:
            continue
        begins, quiet_since = start - quiet_since >= period_s, start
        within = [sync for sync in found if start <= (sync.scaled_at or sync.at) < start + period_s]
        reached = max(sync.desired for sync in within)
        if begins and any((sync.proposed or 0) > reached for sync in within):
            return reached / first.current
    raise NoData("the policies up were never in the way of a metric")


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
