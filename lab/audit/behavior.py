"""Rules on how replicas move: to and from zero by KEDA, and by the HPA's windows, policies and tolerance. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from lab.audit.bounds import LEAST
from lab.audit.objects import Path, at, mapping, whole
from lab.audit.rules import ERROR, INFORMATION, OUTAGE, WARNING, ZERO, Hit, rule
from lab.audit.scaledobject import BEHAVIOR, Scaled
from lab.inputs.hpa_spec import Behavior, HpaSpec, Metric, Policy, Rules
from lab.model import hpa
from lab.model.hpa import Controller, State
from lab.model.hpa_limits import Recommendation

RAMP_S = 300.0  # that nobody complains of
_DAY_S = 86_400.0
_ENOUGH = 1000  # counts of pods at which policies are compared
_SLOW_SOURCES = ("prometheus", "metrics-api", "external")
_METRIC = Metric("External", "lag", "AverageValue", 1000)
COOLDOWN: Path = ("spec", "cooldownPeriod")


@dataclass(frozen=True)
class Ramp:
    """The way from one count of replicas to another: each step as (s, replicas). ``ends`` says whether it gets there."""

    steps: tuple[tuple[float, int], ...]
    ends: bool

    @property
    def seconds(self) -> float:
        """From the first step to the last."""
        return self.steps[-1][0] if self.steps else 0.0

    def after(self, seconds: float, first: int) -> int:
        """The replicas after so many ``seconds``."""
        return next((count for moment, count in reversed(self.steps) if moment <= seconds), first)


@lru_cache(maxsize=4096)
def ramp(behavior: Behavior | None, first: int, last: int, sync_s: float) -> Ramp:
    """The way from ``first`` to ``last`` replicas that are wanted from now on, by the policies without their windows."""
    if behavior:
        behavior = Behavior(replace(behavior.up, window_s=0), replace(behavior.down, window_s=0))
    spec = HpaSpec(min(first, last), max(first, last), (_METRIC,), behavior)
    state = State((Recommendation(first, -(10**9)),))  # an older one, so that the first sync decides
    steps: list[tuple[float, int]] = []
    now, replicas = 0.0, first
    while replicas != last and now <= _DAY_S:
        decision, state = hpa.settle(spec, state, replicas, [last], now, controller=Controller(downscale_stabilization_s=0))
        if decision.desired != replicas:
            replicas = decision.desired
            steps.append((now, replicas))
        now += sync_s
    return Ramp(tuple(steps), replicas == last)


@rule(
    "activation-holds",
    WARNING,
    "activationLagThreshold above 0",
    '`activationLagThreshold: "0"`',
    "keda#2800",
    "keda-docs#863",
    test=ZERO,
)
def activation_holds(here: Scaled) -> Iterator[Hit]:
    """A group is active above it alone."""
    for trigger in here.lags:
        most = trigger.activation
        if most <= 0:
            continue
        path = trigger.path("metadata", "activationLagThreshold")
        if here.formula:
            yield Hit(path, "unused: with a formula activationTarget alone counts", most, {}, INFORMATION, "activationTarget")
        elif here.least and here.idle is None:
            yield Hit(
                path, f"unused: with minReplicaCount {here.least:,} nothing is activated", most, {}, INFORMATION, "remove it"
            )
        else:
            worth = math.ceil(most / trigger.threshold)
            words = f"up to {most:,} messages wake nothing, and wait for ever: the work of {worth:,} pods"
            yield Hit(path, words, most, {path: "0"}, ERROR if most >= trigger.threshold else WARNING)


@rule(
    "uncommitted-group",
    WARNING,
    "to 0 with latest, or with scaleToZeroOnInvalidOffset; latest that is written",
    "earliest, here and in the client",
    "keda#2033",
    "keda#7414",
    test=ZERO,
)
def uncommitted_group(here: Scaled) -> Iterator[Hit]:
    """Above 0 latest must be written: it is the default, and most groups have committed. Source: ``getLagForPartition``."""
    for trigger in here.lags:
        flag, policy = (trigger.path("metadata", one) for one in ("scaleToZeroOnInvalidOffset", "offsetResetPolicy"))
        flagged = trigger.flag("scaleToZeroOnInvalidOffset")
        if flagged and here.to_zero:
            words = "a group that has committed nothing, or whose offsets expired, has no lag: it never starts"
            yield Hit(flag, words, 0, {flag: "false", policy: "earliest"}, ERROR)
        if flagged or trigger.metadata.get("offsetResetPolicy", "latest" if here.to_zero else "") != "latest":
            continue
        count = here.counted(trigger)
        if here.to_zero and count is not None and trigger.activation >= count:
            continue
        pods = None if count is None or here.formula else min(here.most, max(here.floor, math.ceil(count / trigger.threshold)))
        rest, place = ("and never goes to 0", "on an empty topic") if here.to_zero else ("whatever is in it", "at any lag")
        words = f"a group that has committed nothing has a lag of 1 for each partition, {rest}"
        words += "" if pods is None else f": {pods:,} pods {place}"
        yield Hit(policy, words, pods, {policy: "earliest"}, "" if here.to_zero else INFORMATION)


@rule(
    "jump-to-zero",
    WARNING,
    "to 0 before scaleDown is done",
    "a longer `cooldownPeriod`",
    "keda#7770",
    "keda#7204",
    test=ZERO,
)
def jump_to_zero(here: Scaled) -> Iterator[Hit]:
    """KEDA ignores the HPA's policies. An object without a scaleDown of its own says nothing that could be broken."""
    if not here.to_zero or not here.triggers or not here.written_behavior.get("scaleDown"):
        return
    way = ramp(here.behavior, here.most, here.floor, here.facts.sync_s)
    left, window_s = here.most, here.down_window_s
    if here.cooldown_s >= window_s:
        left = way.after(here.cooldown_s - window_s, here.most)
    if left > here.floor:
        words = (
            f"{left:,} of {here.most:,} pods stop at once after cooldownPeriod {here.cooldown_s:,} s: KEDA ignores scaleDown"
        )
        enough = math.ceil(window_s + way.seconds + here.facts.sync_s)
        yield Hit(COOLDOWN, words, left, {COOLDOWN: enough} if way.ends else {})


@rule(
    "one-poll-to-zero",
    WARNING,
    "to 0 by one poll, or without initialCooldownPeriod",
    "a longer `cooldownPeriod`; `initialCooldownPeriod`",
    "keda#5008",
)
def one_poll_to_zero(here: Scaled) -> Iterator[Hit]:
    """A new object has never been active, so that its cooldownPeriod does not count (``scaleToZeroOrIdle``)."""
    if not here.to_zero or not here.triggers:
        return
    polls = math.ceil(here.cooldown_s / here.polling_s)
    if polls <= 1:
        words = (
            f"a single poll without lag takes it to 0: cooldownPeriod {here.cooldown_s:,} s, a poll every {here.polling_s:,} s"
        )
        yield Hit(COOLDOWN, words, polls, {COOLDOWN: max(300, 2 * here.polling_s)})
    workload = here.workload
    pods = whole(workload.spec.get("replicas"), 1) if workload and not here.item.live else 0
    if pods > 0 and not here.least and not here.initial_cooldown_s and here.facts.keda >= (2, 14):
        field: Path = ("spec", "initialCooldownPeriod")
        words = f"its first poll without lag takes {pods:,} running pods to 0: cooldownPeriod does not count yet"
        yield Hit(field, words, pods, {field: 300})


@rule(
    "zero-on-slow-source",
    ERROR,
    "to 0, KEDA 2.20 or 2.21, a prometheus, metrics-api or external trigger",
    "`minReplicaCount: 1`",
    "keda#1850",
    test=OUTAGE,
)
def zero_on_slow_source(here: Scaled) -> Iterator[Hit]:
    """A source that fails by a time-out counts as inactive without an error (docs/upstream/keda-zero-on-error)."""
    slow = [one for one in here.triggers if one.type in _SLOW_SOURCES]
    if slow and not here.least and here.facts.keda in ((2, 20), (2, 21)):
        words = f"a source that stops answering lets it go to 0 after cooldownPeriod, {here.cooldown_s:,} s (4 of 10 did)"
        yield Hit(slow[0].path("type"), words, here.cooldown_s, {LEAST: 1})


@rule(
    "slow-ramp",
    WARNING,
    "more than 5 minutes between the bounds",
    "a larger `value`",
    "kubernetes/kubernetes#97473",
)
def slow_ramp(here: Scaled) -> Iterator[Hit]:
    """Simulated sync by sync: a period acts in whole syncs."""
    if not here.triggers or here.most <= here.floor:
        return
    for direction, rules in (("scaleUp", here.up), ("scaleDown", here.down)):
        if rules.select == "Disabled":
            continue
        upward = direction == "scaleUp"
        first, last = (here.floor, here.most) if upward else (here.most, here.floor)
        way = ramp(here.behavior, first, last, here.facts.sync_s)
        window_s = (rules.window_s or 0) if upward else 0
        minutes = (way.seconds + window_s) / 60
        if way.ends and minutes * 60 <= RAMP_S:
            continue
        taken = f"{minutes:.4g} minutes" if way.ends else "more than a day"
        words = f"from {first:,} to {last:,} pods in {len(way.steps):,} steps and {taken}"
        words += f", of which the window is {window_s:,} s" if window_s else ""
        yield Hit((*BEHAVIOR, direction), words, minutes if way.ends else None, _larger(here, direction, rules, last - first))


def _larger(here: Scaled, direction: str, rules: Rules, pods: int) -> dict[Path, object]:
    """A single policy of pods that gets there in time."""
    if len(rules.policies) != 1 or rules.policies[0].type != "Pods":
        return {}
    period = math.ceil(rules.policies[0].period_s / here.facts.sync_s) * here.facts.sync_s
    steps = math.floor(RAMP_S / period) + 1
    return {(*BEHAVIOR, direction, "policies", 0, "value"): math.ceil(abs(pods) / steps)}


@rule(
    "policy-arithmetic",
    INFORMATION,
    "a policy that never binds, or a percentage that moves twice as much",
    "`selectPolicy: Min`; Pods",
    "kubernetes/kubernetes#97473",
)
def policy_arithmetic(here: Scaled) -> Iterator[Hit]:
    """By default the policy that moves most counts. Source: ``calculateScaleUpLimitWithScalingRules``."""
    for direction, rules in (("scaleUp", here.up), ("scaleDown", here.down)):
        path: Path = (*BEHAVIOR, direction, "policies")
        if not at(here.item.content, *path):
            continue
        for number, one in enumerate(rules.policies) if rules.select == "Max" else ():
            other = next((each for each in rules.policies if each != one and _outdoes(each, one, here, direction)), None)
            if other is not None:
                words = f"{one.type} {one.value:,} in {one.period_s:,} s never binds"
                words += f": {other.type} {other.value:,} in {other.period_s:,} s moves more"
                yield Hit((*path, number), f"{words} from {here.floor:,} to {here.most:,} pods", number)
        few = max(2, here.floor)
        for number, one in enumerate(rules.policies):
            moved = _moved(one, few, direction)
            if one.type == "Percent" and len(rules.policies) == 1 and moved * 100 >= 2 * one.value * few and few < here.most:
                words = f"{one.value:,} percent of {few:,} pods are {moved:,}, {moved / few:.0%}: one pod at least moves"
                yield Hit((*path, number), words, moved / few * 100)


def _moved(policy: Policy, pods: int, direction: str) -> int:
    """The pods that one step of ``policy`` moves from ``pods``."""
    if policy.type == "Pods":
        return policy.value
    part = pods * (1 + policy.value / 100) if direction == "scaleUp" else pods * (1 - policy.value / 100)
    return math.ceil(part) - pods if direction == "scaleUp" else pods - int(part)


def _outdoes(other: Policy, one: Policy, here: Scaled, direction: str) -> bool:
    """Whether ``other`` moves as much as ``one`` at every count of pods, and more at some, in no more time."""
    counts = range(here.floor, min(here.most, here.floor + _ENOUGH) + 1)
    pairs = [(_moved(other, pods, direction), _moved(one, pods, direction)) for pods in counts]
    return other.period_s <= one.period_s and all(a >= b for a, b in pairs) and any(a > b for a, b in pairs)


@rule(
    "down-in-one-step",
    INFORMATION,
    "no scaleDown policies; a window of 0",
    "a policy; a window",
    "kubernetes/kubernetes#115162",
    "keda#1556",
)
def down_in_one_step(here: Scaled) -> Iterator[Hit]:
    """The default is 100 percent in 15 s."""
    pods, path = here.most - here.floor, (*BEHAVIOR, "scaleDown")
    if at(here.item.content, *path, "policies") or here.down.select == "Disabled" or pods < 2 or not here.triggers:
        return
    window = here.down_window_s
    words = (
        f"{pods:,} pods leave in one sync, {window:,} s after the lag"
        if window
        else f"{pods:,} pods leave at any dip of one sync"
    )
    cure: dict[Path, object] = {(*path, "policies"): [{"type": "Percent", "value": 25, "periodSeconds": 60}]}
    if not window:
        cure = {(*path, "stabilizationWindowSeconds"): 300}
    yield Hit(path, words, pods, cure, INFORMATION if window else WARNING)


@rule(
    "tolerance-dropped",
    ERROR,
    "a tolerance before Kubernetes 1.35 or KEDA 2.18",
    "upgrade",
    "kubernetes/kubernetes#116984",
)
def tolerance_dropped(here: Scaled) -> Iterator[Hit]:
    """The gate HPAConfigurableTolerance is off before 1.35, and KEDA's CRD lacks the field before 2.18."""
    for direction in ("scaleUp", "scaleDown") if not here.takes_tolerance else ():
        given = mapping(here.written_behavior.get(direction)).get("tolerance")
        if given is not None:
            words = f"the tolerance {given} is dropped, and 0.1 stays in force"
            yield Hit((*BEHAVIOR, direction, "tolerance"), words, 0.1)
