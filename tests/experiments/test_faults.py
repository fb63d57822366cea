"""Faults: does a group come through faults while it scales out and in?

Hypothesis. While bursts scale a group, faults lose no message, each copy was in flight at one, and what decides the replicas
is back soon after.

Method. Profile ``ten-bursts`` on ``lag-4500`` with a window down of a minute, from 4 pods or none. Faults of every kind, one in
4 s, are drawn by a seed. In some trials a proxy cuts off, slows or loses what consumers and broker send. Some have
poison. Some have three brokers, a store and the persistent-lag scaler, all struck.

Asserted. The invariants of faults: each event at least once, each copy explained, no committed offset back, replicas within
their bounds and not zero while there is lag, an HPA that decides again as its model does. Only poison is dead.

Refuted by one message lost or one copy unexplained.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import allure
import pytest

from lab.inputs.events import Brokers
from lab.inputs.faults import BROKER, COMPONENTS, CONSUMER, KILL, KINDS, LAG_SCALER, NETWORK, STORE, Faults
from lab.inputs.variant import policy
from tests.experiments.sources import DELIVERY
from tests.experiments.workloads import slim
from tests.scenarios.zero_loss.measure.deadletters import dead_letters

FLOORS, SEEDS, FEW_SEEDS, INTERVAL_S = (4, 0), 9, 3, 4.0


class Plan(NamedTuple):
    """Which ``kinds`` of faults are done to which ``victims``, in a trial on a ``policy`` with more to its workload."""

    kinds: tuple[str, ...] = KINDS
    victims: tuple[str, ...] = COMPONENTS
    policy: str = "lag-4500"
    changes: Mapping[str, int] = {}  # of the policy
    work: Mapping[str, Any] = {}
    brokers: Brokers | None = None
    scale: str = ""  # the most compressed that it is judged at


OWN = (CONSUMER, BROKER, STORE, LAG_SCALER)
OTHERS = {
    "network": Plan((KILL, *NETWORK)),
    "poison": Plan(work={"poison_rate": 0.002}),
    # Three brokers beside 24 pods, and one that starts anew at quick scale, leave the producer too little of two cores.
    "brokers": Plan(
        victims=OWN,
        policy="lasting-4500",
        changes={"max_replicas": 12},
        work={"store_slots": 24},
        brokers=Brokers(),
        scale="medium",
    ),
}
pytestmark = [pytest.mark.faults, allure.epic("Scaling on lag"), allure.feature("Faults")]


def pytest_generate_tests(metafunc):
    """A test for each floor and seed, from the seed of --faults on, and some more; with --replay-faults one a floor."""
    first, replayed = (metafunc.config.getoption(f"lab_{name}") for name in ("faults", "replay_faults"))
    first = 1 if first is None else first
    seeds = [None] if replayed else range(first, first + SEEDS)
    plans = [pytest.param(floor, seed, Plan(), id=f"{floor}-{seed}") for seed in seeds for floor in FLOORS]
    for seed in () if replayed else seeds[:FEW_SEEDS]:
        plans += [pytest.param(FLOORS[0], seed, plan, id=f"{FLOORS[0]}-{seed}-{name}") for name, plan in OTHERS.items()]
    metafunc.parametrize(("floor", "seed", "plan"), plans)


@pytest.mark.duration(135)
@allure.story("Bursts scale a group out and in, and what it stands on fails meanwhile")
def test_a_group_comes_through_faults(trials, evidence, floor, seed, plan):
    """One trial under a schedule of its own."""
    drawn = {} if seed is None else {"faults": Faults(seed, INTERVAL_S, plan.kinds, plan.victims)}
    bursts = policy(plan.policy, min_replicas=floor, scale_down_window=60, **plan.changes)
    work = slim(session_timeout_ms=6000, **plan.work)
    runs = trials.run(profile="ten-bursts", policy=bursts, workload=work, brokers=plan.brokers, scale=plan.scale, **drawn)

    with evidence.of(runs) as claim:
        if "poison_rate" in plan.work:
            letters = dead_letters(runs)
            claim.invariant(letters.without_letter == 0, "each poison message is a dead letter", DELIVERY)
            claim.invariant(letters.surplus == 0, "and no other message is", DELIVERY)
