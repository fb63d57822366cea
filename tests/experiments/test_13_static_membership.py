"""Experiment 13: what does static membership buy at a rolling restart, and what does it cost?

Hypothesis. A static member that comes back within its session timeout keeps its partitions, so a rolling restart causes no
rebalance. It sends no LeaveGroup, so when it is taken its partitions wait for the session timeout. One that dies is back at
once; a dynamic one's partitions wait.

Method. Three pods of a StatefulSet at 60 % load, and without load: a rolling restart, dynamic beside static, with
cooperative-sticky and KIP-848, and A/A. Then a SIGKILL, and a pod taken. A standstill is the longest time without a message of
some partition.

Asserted. No rebalance of static members. A taken one stands still for its timeout less a heartbeat, a killed one for less.
From six pairs on dynamic dips deeper.

Refuted by one rebalance, one opposite run, or dips within A/A noise.
"""

import allure
import pytest

from lab.inputs.consumer import DYNAMIC, STATIC
from lab.inputs.events import Kill, Restart, ScaleTo
from lab.inputs.inputs import REPLAYED
from lab.inputs.workload import STATEFUL_SET, Workload
from lab.judge.aggregate import largest, smallest
from lab.judge.bounds import RECOVERY_S
from lab.judge.pairs import discern, paired
from lab.measure.delivery import AT_LEAST_ONCE
from tests.experiments.measure.membership import RollingRestart, rolling_restart, standstill
from tests.experiments.sources import DESIGN
from tests.experiments.workloads import busy

pytestmark = [pytest.mark.stretch, allure.epic("Scaling on lag"), allure.feature("13 Static membership")]

PODS = 3  # of policy three-pods
CLASSIC, KIP_848, IDLE = "cooperative-sticky", "KIP-848", "cooperative-sticky, no load"
BALANCERS = {CLASSIC: "cooperative-sticky", KIP_848: "consumer", IDLE: "cooperative-sticky"}
# s; of the classic group the lab's settings, of KIP-848 the broker's default, less the heartbeat that may have come before.
SESSION_S = {CLASSIC: (Workload.session_timeout_ms - Workload.heartbeat_ms) / 1000, KIP_848: 45 - 0.5}
SESSION_SOURCE = {
    CLASSIC: "settings: session_timeout_ms 10,000 less heartbeat_ms 500",
    KIP_848: "Kafka's default group.consumer.session.timeout.ms 45,000 less the lab's heartbeat of 500 ms",
}
NO_REBALANCE = {
    CLASSIC: "KIP-345: a static member that is back within its session timeout causes no rebalance",
    IDLE: "KIP-345: a static member that is back within its session timeout causes no rebalance",
    KIP_848: "KIP-848: a static member leaves with epoch -2 and keeps its assignment",
}


def sides(name, profile, during):
    """The plans of the dynamic and the static side."""
    plan = {"profile": profile, "policy": "three-pods", "until": REPLAYED, "during": during}
    works = [busy(balancer=BALANCERS[name], pod_owner=STATEFUL_SET, membership=one) for one in (DYNAMIC, STATIC)]
    return tuple(plan | {"workload": work} for work in works)


def by_name(found):
    """The runs of both sides of each duet by their name."""
    return {f"{name}, {side}": runs for name, pair in found.items() for side, runs in zip((DYNAMIC, STATIC), pair, strict=True)}


@allure.story("A rolling restart of static members causes no rebalance")
def test_a_static_member_is_restarted_without_a_rebalance(trials, evidence):
    """Dynamic beside static: rebalances, moved partitions, standstill, dip and time of the same rolling restart."""
    profiles = {CLASSIC: "restart", KIP_848: "restart", IDLE: "restart-idle"}
    pairs = {name: sides(name, profile, {"restart": Restart()}) for name, profile in profiles.items()}
    found = trials.duets(pairs | {"A/A": (pairs[CLASSIC][1], pairs[CLASSIC][1])})
    one, other = found.pop("A/A")
    runs = by_name(found) | {"A/A, a": one, "A/A, b": other}
    restarts = {name: rolling_restart(each, "restart") for name, each in runs.items()}
    for name, restart in restarts.items():
        evidence.report(name, {field: getattr(restart, field) for field in RollingRestart.declared()})
    evidence.noise(one, other)
    same = paired(restarts["A/A, a"].depth_1s, restarts["A/A, b"].depth_1s)
    deeper = paired(restarts[f"{CLASSIC}, {DYNAMIC}"].depth_1s, restarts[f"{CLASSIC}, {STATIC}"].depth_1s)
    evidence.report("dip, dynamic less static", deeper.figures())

    with evidence.of(runs) as claim:
        restarted = [restart.restarted for restart in restarts.values()]
        claim.control(smallest(restarted) == PODS, "no side has fewer restarts than pods", DESIGN)
        claim.control(largest(restarted) == PODS, "no side has more restarts than pods", DESIGN)
        for name in profiles:
            dynamic, static = restarts[f"{name}, {DYNAMIC}"], restarts[f"{name}, {STATIC}"]
            claim.control(dynamic.rebalances > 0, f"dynamic members rebalance: {name}", DESIGN)
            claim(static.rebalances == 0, f"no member that stays hears of the restart: {name}", NO_REBALANCE[name])
        claim(
            discern(deeper, same) > 0,
            "a rolling restart of dynamic members dips deeper",
            "text 1, section 13: static membership to avoid a rebalance on rolling restarts (direction only)",
        )


@allure.story("A static member that is gone holds its partitions until its session is over")
def test_a_static_member_that_is_gone_is_waited_for(trials, evidence):
    """A pod is killed and comes back; a pod is taken for good. How long the partitions stand still, on both sides."""
    taken = {"leave": ScaleTo(PODS - 1)}
    found = trials.duets(
        {CLASSIC: sides(CLASSIC, "member-goes", {"sigkill": Kill()} | taken), KIP_848: sides(KIP_848, "member-leaves", taken)}
    )
    runs = by_name(found)
    killed = {side: standstill(runs[f"{CLASSIC}, {side}"], "sigkill") for side in (DYNAMIC, STATIC)}
    for name, each in runs.items():
        evidence.report(f"{name}, a pod is taken", {"standstill (s)": standstill(each, "leave")})
    for side, seconds in killed.items():
        evidence.report(f"{CLASSIC}, {side}, a pod is killed", {"standstill (s)": seconds})

    with evidence.of(runs, delivery=AT_LEAST_ONCE) as claim:
        for name in found:
            dynamic, static = (standstill(runs[f"{name}, {side}"], "leave") for side in (DYNAMIC, STATIC))
            claim.control(dynamic < RECOVERY_S, f"a dynamic member that is taken is replaced soon: {name}")
            claim(
                static >= SESSION_S[name],
                f"the partitions of a static member that is taken wait for its session timeout: {name}",
                SESSION_SOURCE[name],
            )
        claim(
            killed[DYNAMIC] >= SESSION_S[CLASSIC],
            "the partitions of a dynamic member that is killed wait for its session timeout",
            SESSION_SOURCE[CLASSIC],
        )
        claim(
            killed[STATIC] < SESSION_S[CLASSIC],
            "the next process of a static member that is killed has its partitions before that",
            SESSION_SOURCE[CLASSIC],
        )
