"""Experiment 4: what do replicas beyond P do?

Hypothesis. A partition has one owner in a group, so replicas beyond P only cost rebalances. KEDA's own cap (allowIdleConsumers
false) is no substitute for maxReplicaCount = P: it stands at 22 of 24, within the HPA's tolerance, and asks for P + 1 as lag
falls (keda #4791, #4483).

Method. Profile ``overload`` with P = 24 and pods of 100 events/s, on policies that differ in the cap: ``past-p`` (48, idle
consumers allowed), ``capped`` (48, not allowed), and cured (24, allowed).

Asserted. 24 surplus pods own no partition, process nothing and add no speed. ``capped`` stands at 22, then asks
for 25; the cure stops at 24. Steps beyond P dip by 20 % or more and are over within 5 s.

Refuted by one message of a surplus pod, a group faster by a twentieth, or a smaller dip.
"""

import allure
import pytest

from lab.inputs.inputs import REPLAYED
from lab.inputs.variant import policy
from lab.judge.bounds import DIP, RECOVERY_S
from lab.measure.cost import surplus_replicas
from lab.measure.scaling import plateau, scale_events
from tests.experiments.measure.steps import SurplusSteps, surplus_steps
from tests.experiments.sources import DESIGN, ORACLES, TEXT
from tests.experiments.workloads import slim

pytestmark = [allure.epic("Scaling on lag"), allure.feature("4 Past P")]


PLAN = {"profile": "overload", "workload": slim(), "until": REPLAYED}
AT_P = PLAN | {"policy": policy("capped", max_replicas=24, allow_idle_consumers=True)}  # the group with P replicas at most


def claim_idleness(claim, surplus):
    """The pods beyond P own nothing and process nothing; ``surplus`` measures them."""
    claim.control(surplus.surplus >= 24, "the trial had as many replicas beyond P as it was meant to", f"{DESIGN}: 2P - P")
    claim.invariant(surplus.assigned_to_surplus == 0, "a partition has one owner, so the surplus owns none", TEXT)
    claim.invariant(surplus.messages_by_surplus == 0, "a pod without a partition does nothing", TEXT)


@pytest.mark.spike
@pytest.mark.acceptance
@pytest.mark.duration(40)
@allure.story("With 2P replicas P are idle")
def test_half_of_2p_replicas_are_idle(trials, evidence):
    """P + 1 .. 2P own nothing and process nothing; they cost rebalances."""
    beyond = trials.run(**PLAN | {"policy": "past-p"})
    found = surplus_replicas(beyond)

    with evidence.of(beyond) as claim:
        claim_idleness(claim, found)
        claim(found.rebalances_beyond > 0, "pods that do nothing cost rebalances", TEXT)


@pytest.mark.extended
@allure.story("Replicas beyond P are idle")
def test_replicas_beyond_p_are_idle(trials, evidence):
    """P + 1 .. 2P own nothing, process nothing and speed nothing up."""
    sides = trials.blocks({"at P": AT_P, "past P": PLAN | {"policy": "past-p"}})
    at_p, beyond = sides["at P"], sides["past P"]

    found = surplus_replicas(beyond)
    surplus = surplus_steps(beyond)
    evidence.report("steps beyond P pods", {name: getattr(surplus, name) for name in SurplusSteps.declared()})
    gain = (found.rate_beyond / plateau(at_p).rate).named("throughput of the group with more than P replicas over that with P")

    with evidence.of(sides) as claim:
        claim_idleness(claim, found)
        claim(gain <= 1.05, "pods beyond P add no throughput", "pilot of experiment 4")
        claim(surplus.depth >= DIP, "pods beyond P are not free: the group stumbles while they join", "pilot of experiment 4")
        claim(surplus.recovery_s < RECOVERY_S, "the group soon has its throughput back")

    evidence.conclude(
        "maxReplicaCount",
        f"{found.partitions}",
        f"{found.idle_pods} pods beyond P owned 0 partitions and added 0 messages/s, for {found.rebalances_beyond} rebalances",
    )


@pytest.mark.extended
@allure.story("KEDA's cap is no substitute for maxReplicaCount = P")
def test_kedas_cap_stands_still_below_p_and_then_goes_past_it(trials, evidence):
    """22 of 24 for as long as lag is high, 25 when it falls past the cap; maxReplicaCount = P cures both."""
    sides = trials.blocks({"allowIdleConsumers false": PLAN | {"policy": "capped"}, "true, maxReplicaCount P": AT_P})
    capped, at_p = sides.values()

    with evidence.of(sides) as claim:
        claim(
            plateau(capped).standing_at == 22,
            "the group stays below P: 22 of 24 is within the HPA's tolerance",
            "the pinned Go code of the HPA/KEDA (tests/oracles): tolerance 10 %",
        )
        claim(
            scale_events(capped).most_replicas == 25,
            "KEDA's cap asks for P + 1 while lag falls past it, because it rounds down",
            ORACLES,
        )
        claim.invariant(
            scale_events(at_p).most_replicas == 24, "maxReplicaCount = P gives all of P and no more", "policy: maxReplicaCount"
        )

    found = plateau(capped)
    evidence.conclude(
        "allowIdleConsumers",
        '"true"',
        f"false left the group at {found.standing_at} of 24 for {found.standing_s:.0f} s with {found.lag:,} messages waiting",
    )
